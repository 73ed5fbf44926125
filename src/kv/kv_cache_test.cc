// SPDX-License-Identifier: Apache-2.0
#include "kv/kv_cache.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "kernels/kernel_table.h"

namespace outrider {
namespace {

constexpr KvShape kSmall{
    .layer_count = 2, .kv_head_count = 1, .head_dim = 2, .page_size = 4, .page_count = 6};
constexpr KvOptions kPoisoned{.hash_bits = 64, .poison = true};

std::vector<TokenId> count_up(int count, TokenId first = 0) {
  std::vector<TokenId> tokens(static_cast<size_t>(count));
  std::iota(tokens.begin(), tokens.end(), first);
  return tokens;
}

std::vector<int> whole_path(int count) { return count_up(count); }

float& first_number(const KvCache& cache, std::byte* rows, int32_t slot) {
  return *reinterpret_cast<float*>(rows + slot * cache.shape().row_bytes());
}
float& first_key(KvCache& cache, int64_t layer, int32_t slot) {
  return first_number(cache, cache.keys(layer), slot);
}
float& first_value(KvCache& cache, int64_t layer, int32_t slot) {
  return first_number(cache, cache.values(layer), slot);
}

int32_t slot_of(const KvSequence& sequence, int entry, int page_size) {
  return sequence.pages()[static_cast<size_t>(entry / page_size)] * page_size + entry % page_size;
}

// Stages the tokens, writes each one into its rows, and commits all of them.
void append(KvCache& cache, KvSequence& sequence, const std::vector<TokenId>& tokens) {
  auto transaction = cache.stage(sequence, static_cast<int>(tokens.size()));
  ASSERT_TRUE(transaction.ok());
  for (int i = 0; i < transaction->count(); ++i) {
    for (int64_t layer = 0; layer < cache.shape().layer_count; ++layer) {
      first_key(cache, layer, transaction->slot(i)) = static_cast<float>(tokens[static_cast<size_t>(i)]);
      first_value(cache, layer, transaction->slot(i)) = -static_cast<float>(tokens[static_cast<size_t>(i)]);
    }
  }
  transaction->commit(whole_path(transaction->count()), tokens);
}

TEST(KvCache, CommitsATreePathInEveryLayer) {
  KvCache cache(kSmall, kPoisoned);
  KvSequence sequence = cache.open({});
  append(cache, sequence, {50, 51, 52});
  {
    auto transaction = cache.stage(sequence, 6);
    ASSERT_TRUE(transaction.ok());
    for (int i = 0; i < 6; ++i) {
      for (int64_t layer = 0; layer < 2; ++layer) {
        first_key(cache, layer, transaction->slot(i)) = static_cast<float>(100 + i);
        first_value(cache, layer, transaction->slot(i)) = static_cast<float>(200 + i + 10 * layer);
      }
    }
    const std::vector<int> path = {0, 2, 5};
    const std::vector<TokenId> tokens = {60, 62, 65};
    transaction->commit(path, tokens);
  }
  EXPECT_EQ(sequence.length(), 6);
  EXPECT_EQ(sequence.pages().size(), 2u);
  for (int64_t layer = 0; layer < 2; ++layer) {
    EXPECT_EQ(first_key(cache, layer, slot_of(sequence, 3, 4)), 100);
    EXPECT_EQ(first_key(cache, layer, slot_of(sequence, 4, 4)), 102);
    EXPECT_EQ(first_key(cache, layer, slot_of(sequence, 5, 4)), 105);
    EXPECT_EQ(first_value(cache, layer, slot_of(sequence, 5, 4)), 205 + 10 * static_cast<float>(layer));
  }
  EXPECT_TRUE(cache.check_invariants().ok());
}

TEST(KvCache, DestroyedTransactionGivesEverythingBack) {
  KvCache cache(kSmall, kPoisoned);
  KvSequence sequence = cache.open({});
  append(cache, sequence, count_up(5));
  const int64_t before = cache.available_pages();
  {
    auto transaction = cache.stage(sequence, 9);
    ASSERT_TRUE(transaction.ok());
    EXPECT_EQ(cache.available_pages(), before - 2);
    EXPECT_EQ(sequence.pages().size(), 4u);
  }
  EXPECT_EQ(cache.available_pages(), before);
  EXPECT_EQ(sequence.length(), 5);
  EXPECT_TRUE(cache.check_invariants().ok());
}

TEST(KvCache, RefusesWhatDoesNotFitAndChangesNothing) {
  KvCache cache(kSmall, kPoisoned);
  KvSequence sequence = cache.open({});
  append(cache, sequence, count_up(20));
  EXPECT_EQ(cache.pages_needed(sequence, 4), 1);
  EXPECT_EQ(cache.pages_needed(sequence, 5), 2);
  const auto refused = cache.stage(sequence, 5);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().kind, ErrorKind::kResource);
  EXPECT_EQ(sequence.pages().size(), 5u);
  EXPECT_TRUE(cache.check_invariants().ok());
  EXPECT_TRUE(cache.stage(sequence, 4).ok());
}

TEST(KvCache, SharesTheLongestCachedBeginningButLeavesOneTokenToCompute) {
  KvCache cache(kSmall, kPoisoned);
  KvSequence first = cache.open({});
  append(cache, first, count_up(9));
  EXPECT_EQ(cache.open(count_up(8)).length(), 4);
  EXPECT_EQ(cache.open(count_up(9)).length(), 8);
  EXPECT_EQ(cache.open(count_up(30)).length(), 8);
  EXPECT_EQ(cache.open(count_up(30, 1)).length(), 0);
  const KvSequence second = cache.open(count_up(9));
  EXPECT_EQ(second.pages()[0], first.pages()[0]);
  EXPECT_EQ(second.pages()[1], first.pages()[1]);
  EXPECT_TRUE(cache.check_invariants().ok());
}

TEST(KvCache, PagesOfClosedSequencesStayFindableUntilNeeded) {
  KvCache cache(kSmall, kPoisoned);
  {
    KvSequence first = cache.open({});
    append(cache, first, count_up(12));
  }
  EXPECT_EQ(cache.available_pages(), 6);
  EXPECT_EQ(cache.open(count_up(13)).length(), 12);
  KvSequence other = cache.open({});
  append(cache, other, count_up(16, 100));  // three free pages and one kept one: the last of the kept text
  EXPECT_EQ(cache.open(count_up(13)).length(), 8);
  EXPECT_TRUE(cache.check_invariants().ok());
}

TEST(KvCache, EqualPageAfterADifferentBeginningIsNotShared) {
  KvCache cache(kSmall, {.hash_bits = 0, .poison = true});
  KvSequence first = cache.open({});
  append(cache, first, {1, 1, 1, 1, 2, 2, 2, 2});
  const std::vector<TokenId> prompt = {2, 2, 2, 2, 2, 2, 2, 2, 9};
  EXPECT_EQ(cache.open(prompt).length(), 0);
}

TEST(KvCache, RewindIntoASharedPageCopiesItBeforeWriting) {
  KvCache cache(kSmall, kPoisoned);
  KvSequence first = cache.open({});
  append(cache, first, count_up(9));
  KvSequence second = cache.open(count_up(9));
  cache.rewind(second, 6);
  EXPECT_EQ(second.pages()[1], first.pages()[1]);
  EXPECT_EQ(cache.pages_needed(second, 1), 1);
  append(cache, second, {77});
  EXPECT_NE(second.pages()[1], first.pages()[1]);
  EXPECT_EQ(first_key(cache, 1, slot_of(second, 5, 4)), 5);
  EXPECT_EQ(first_key(cache, 1, slot_of(second, 6, 4)), 77);
  EXPECT_EQ(first_key(cache, 1, slot_of(first, 6, 4)), 6);
  EXPECT_TRUE(cache.check_invariants().ok());
}

TEST(KvCache, RewindIntoAnUnsharedFindablePageWritesInPlace) {
  KvCache cache(kSmall, kPoisoned);
  KvSequence sequence = cache.open({});
  append(cache, sequence, count_up(8));
  const int32_t page = sequence.pages()[1];
  cache.rewind(sequence, 7);
  EXPECT_EQ(cache.pages_needed(sequence, 1), 0);
  append(cache, sequence, {70});
  EXPECT_EQ(sequence.pages()[1], page);
  EXPECT_EQ(cache.open(count_up(9)).length(), 4);
  const std::vector<TokenId> prompt = {0, 1, 2, 3, 4, 5, 6, 70, 8};
  EXPECT_EQ(cache.open(prompt).length(), 8);
  EXPECT_TRUE(cache.check_invariants().ok());
}

TEST(KvCache, PoisonsEntriesNobodyHolds) {
  KvCache cache(kSmall, kPoisoned);
  KvSequence sequence = cache.open({});
  append(cache, sequence, count_up(3));
  const int32_t slot = slot_of(sequence, 2, 4);
  EXPECT_EQ(first_key(cache, 0, slot), 2);
  cache.rewind(sequence, 2);
  EXPECT_TRUE(std::isnan(first_key(cache, 0, slot)));
  EXPECT_TRUE(std::isnan(first_value(cache, 1, slot)));
}

// For every type, rows move as a whole, and all numbers of entries without an owner are NaN.
TEST(KvCache, MovesAndPoisonsWholeRowsOfEveryType) {
  for (const DType type : {DType::kF32, DType::kBF16, DType::kF16, DType::kE4M3, DType::kQ8_0}) {
    SCOPED_TRACE(dtype_name(type));
    const KvShape shape{
        .layer_count = 2, .kv_head_count = 3, .head_dim = 40, .type = type, .page_size = 4, .page_count = 6};
    KvCache cache(shape, kPoisoned);
    const int64_t bytes = shape.row_bytes();
    const int64_t numbers = bytes / block_bytes(type) * block_elements(type);
    EXPECT_EQ(numbers, 3 * 64);
    const auto rows = [&](int64_t layer, int which) {
      return which == 0 ? cache.keys(layer) : cache.values(layer);
    };
    KvSequence sequence = cache.open({});
    {
      auto transaction = cache.stage(sequence, 5);
      ASSERT_TRUE(transaction.ok());
      for (int i = 0; i < 5; ++i) {
        for (int64_t part = 0; part < 4; ++part) {
          std::byte* row = rows(part / 2, static_cast<int>(part % 2)) + transaction->slot(i) * bytes;
          for (int64_t b = 0; b < bytes; ++b) row[b] = static_cast<std::byte>(16 * i + part + b % 3);
        }
      }
      transaction->commit(std::vector<int>{0, 4}, std::vector<TokenId>{1, 2});
    }
    for (int64_t part = 0; part < 4; ++part) {
      const std::byte* of_part = rows(part / 2, static_cast<int>(part % 2));
      const std::byte* moved = of_part + slot_of(sequence, 1, 4) * bytes;
      for (int64_t b = 0; b < bytes; ++b) ASSERT_EQ(moved[b], static_cast<std::byte>(64 + part + b % 3));
      std::vector<float> freed(static_cast<size_t>(numbers));
      dequantize_row(type, of_part + slot_of(sequence, 2, 4) * bytes, freed.data(), numbers);
      for (const float number : freed) ASSERT_TRUE(std::isnan(number));
    }
  }
}

TEST(KvCache, SequencesMoveInContainers) {
  KvCache cache(kSmall, kPoisoned);
  std::vector<KvSequence> sequences;
  for (int i = 0; i < 5; ++i) {
    sequences.push_back(cache.open({}));
    append(cache, sequences.back(), {i});
  }
  EXPECT_TRUE(cache.check_invariants().ok());
  sequences.erase(sequences.begin() + 1);
  EXPECT_EQ(cache.available_pages(), 2);
  EXPECT_TRUE(cache.check_invariants().ok());
  sequences.clear();
  EXPECT_EQ(cache.available_pages(), 6);
}

TEST(KvCache, GivesBackPagesThatNoLaterRowSees) {
  KvShape shape = kSmall;
  shape.window = 6;
  KvCache cache(shape, kPoisoned);
  KvSequence sequence = cache.open({});
  append(cache, sequence, count_up(13));
  // The next row sees entries 8 to 13. The page before it stays for rewinding.
  EXPECT_EQ(sequence.pages()[0], KvSequence::kNoPage);
  EXPECT_NE(sequence.pages()[1], KvSequence::kNoPage);
  EXPECT_EQ(cache.available_pages(), 3);
  for (TokenId first = 13; first < 33; first += 4) append(cache, sequence, count_up(4, first));
  EXPECT_EQ(sequence.length(), 33);
  EXPECT_TRUE(cache.check_invariants().ok());
  EXPECT_EQ(first_key(cache, 0, slot_of(sequence, 32, 4)), 32);
  cache.rewind(sequence, 30);
  EXPECT_EQ(sequence.length(), 30);
  cache.rewind(sequence, 12);  // the rows there would see pages that are gone
  EXPECT_EQ(sequence.length(), 0);
  EXPECT_EQ(cache.available_pages(), 6);
  EXPECT_TRUE(cache.check_invariants().ok());
}

TEST(KvCache, PagesBeforeTheWindowAreFoundByOtherSequences) {
  KvShape shape = kSmall;
  shape.window = 2;
  KvCache cache(shape, kPoisoned);
  KvSequence sequence = cache.open({});
  append(cache, sequence, count_up(15));
  const KvSequence second = cache.open(count_up(15));
  EXPECT_EQ(second.length(), 12);
  EXPECT_NE(second.pages()[0], KvSequence::kNoPage);
  EXPECT_TRUE(cache.check_invariants().ok());
}

}  // namespace
}  // namespace outrider
