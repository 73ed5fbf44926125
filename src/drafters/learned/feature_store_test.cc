// SPDX-License-Identifier: Apache-2.0
#include "drafters/learned/feature_store.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "models/model_test_data.h"

namespace outrider {
namespace {

constexpr int kSize = 3;
constexpr int kPageSize = 4;
const KvShape kHead{
    .layer_count = 1, .kv_head_count = 1, .head_dim = 32, .page_size = kPageSize, .page_count = 64};

std::vector<TokenId> text_of(int length, int variant) {
  std::vector<TokenId> text;
  for (int i = 0; i < length; ++i) text.push_back(i < 10 ? i : 100 * variant + i);
  return text;
}

struct Owner {
  FeatureStore::Waiting waiting;
};

// A store, its owners, and a head that reads everything that waits whenever it must.
struct Reader {
  ThreadPool pool{1};
  std::unique_ptr<LayerBackend> backend =
      bare_backend({.kernels = *select_kernels("reference"), .pool = &pool, .weights = {}});
  FeatureStore store{*backend, kSize, kHead, 3, 0};
  std::map<uint64_t, Owner> owners;
  std::map<uint64_t, std::vector<float>> read;  // by owner

  void begin(uint64_t id, std::span<const TokenId> tokens, uint64_t scope = 0) {
    owners[id].waiting = store.open(tokens, scope, 0);
  }
  // Features depend on the token and its place.
  void absorb(uint64_t id, std::span<const TokenId> tokens, int first, int count) {
    std::vector<int> rows;
    std::vector<float> features;
    for (int i = 0; i < count; ++i) {
      rows.push_back(i);
      for (int n = 0; n < kSize; ++n) features.push_back(feature(tokens, first + i, n));
    }
    const CommittedFeatures committed{.sequence = id,
                                      .tokens = tokens,
                                      .first = first,
                                      .rows = rows,
                                      .features = features.data(),
                                      .size = kSize};
    store.absorb({&committed, 1}, owners, [&] { read_all(); });
  }
  void read_all() {
    ++times;
    for (auto& [id, owner] : owners) {
      std::vector<float>& seen = read[id];
      const int had = static_cast<int>(seen.size()) / kSize;
      const std::vector<float> found = gather(owner.waiting, had, owner.waiting.end() - had);
      seen.insert(seen.end(), found.begin(), found.end());
      store.drop(owner.waiting, owner.waiting.end());
    }
  }
  std::vector<float> gather(const FeatureStore::Waiting& waiting, int token, int64_t count) {
    BackendRows rows(*backend);
    rows.reserve(count, kSize);
    store.gather(waiting, token, count, rows.data());
    return numbers_at(*backend, rows.data(), count * kSize);
  }
  static float feature(std::span<const TokenId> tokens, int place, int n) {
    return static_cast<float>(tokens[static_cast<size_t>(place)] * 1000 + place * 10 + n);
  }
  static std::vector<float> features_of(std::span<const TokenId> tokens, int first, int end) {
    std::vector<float> all;
    for (int place = first; place < end; ++place) {
      for (int n = 0; n < kSize; ++n) all.push_back(feature(tokens, place, n));
    }
    return all;
  }

  int times = 0;  // that everything was read
};

TEST(FeatureStore, LaterSequencesFindWhatWaits) {
  Reader reader;
  const auto first = text_of(30, 1), second = text_of(30, 2);
  reader.begin(1, first);
  reader.absorb(1, first, 0, 7);
  reader.absorb(1, first, 5, 20);  // two of them come for a second time
  EXPECT_EQ(reader.owners[1].waiting.end(), 25);
  reader.owners.erase(1);
  EXPECT_EQ(reader.store.find(first, 0, 0), 24);
  EXPECT_EQ(reader.store.find(second, 0, 0), 8);
  EXPECT_EQ(reader.store.find(first, 5, 0), 0) << "another scope";
  reader.begin(2, second);
  EXPECT_EQ(reader.owners[2].waiting.end(), 8);
  EXPECT_EQ(reader.gather(reader.owners[2].waiting, 2, 6), Reader::features_of(second, 2, 8));
  EXPECT_EQ(reader.times, 0);
}

TEST(FeatureStore, WhatWasReadIsDroppedInFullPages) {
  Reader reader;
  const auto text = text_of(30, 1);
  reader.begin(1, text);
  reader.absorb(1, text, 0, 22);
  FeatureStore::Waiting& waiting = reader.owners[1].waiting;
  reader.store.drop(waiting, 14);
  EXPECT_EQ(waiting.first, 12);
  EXPECT_EQ(waiting.end(), 22);
  reader.absorb(1, text, 22, 5);
  EXPECT_EQ(reader.gather(waiting, 13, 14), Reader::features_of(text, 13, 27));
  reader.owners.erase(1);
  // A head that has cached as much of the text needs only the rest.
  EXPECT_EQ(reader.store.find(text, 0, 12), 24);
  auto other = text;
  other[3] += 1;
  EXPECT_EQ(reader.store.find(other, 0, 12), 12) << "features depend on all tokens before";
}

TEST(FeatureStore, MissingFeaturesAreNoticed) {
  Reader reader;
  const auto text = text_of(30, 1);
  reader.begin(1, text);
  reader.absorb(1, text, 0, 5);
  reader.absorb(1, text, 6, 5);
  EXPECT_FALSE(reader.owners[1].waiting.is_complete);
}

TEST(FeatureStore, WhereNoRoomIsLeftEverythingIsRead) {
  Reader reader;
  std::map<uint64_t, std::vector<TokenId>> texts;
  for (uint64_t id = 1; id <= 3; ++id) {
    texts[id] = text_of(900, id == 3 ? 1 : static_cast<int>(id));
    reader.begin(id, texts[id]);
  }
  reader.absorb(1, texts[1], 0, 500);  // more than there is room for
  EXPECT_GT(reader.times, 0);
  for (int first = 0; first < 800; first += 8) {
    for (uint64_t id = 1; id <= 3; ++id) {
      if (id > 1 || first >= 496) reader.absorb(id, texts[id], first, 8 + static_cast<int>(id));
    }
  }
  reader.read_all();
  for (uint64_t id = 1; id <= 3; ++id) {
    ASSERT_TRUE(reader.owners[id].waiting.is_complete);
    EXPECT_EQ(reader.read[id], Reader::features_of(texts[id], 0, 800 + static_cast<int>(id))) << id;
  }
  EXPECT_LT(reader.times, 100);
}

}  // namespace
}  // namespace outrider
