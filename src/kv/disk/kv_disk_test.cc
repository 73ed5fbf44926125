// SPDX-License-Identifier: Apache-2.0
// Texts come back from disk as they were computed, or not at all. Every cached row carries a number made of
// all tokens up to it, so that a wrong row shows.
#include "kv/disk/kv_disk.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <memory>
#include <numeric>
#include <random>
#include <utility>

#include "base/sanitized.h"
#include "kv/disk/kv_disk_test_folder.h"
#include "kv/disk/text_file.h"

namespace outrider::kv_disk {
namespace {

KvShape shape_of(int64_t page_count, int64_t window = 0) {
  return {.layer_count = 2,
          .kv_head_count = 1,
          .head_dim = 2,
          .page_size = kPageSize,
          .page_count = page_count,
          .window = window};
}

// Exact in f32.
float payload(std::span<const TokenId> tokens) {
  uint32_t state = 1;
  for (const TokenId token : tokens) state = state * 2654435761u + static_cast<uint32_t>(token) + 7;
  return static_cast<float>(state >> 10);
}

// A process: a cache and its part of the folder. Runs have two pages unless another number is asked for.
class Process {
 public:
  explicit Process(const fs::path& folder, int64_t page_count = 64, int64_t max_bytes = kMuch,
                   int run_pages = 2, const std::string& identity = "model\n", int64_t window = 0)
      : cache_(shape_of(page_count, window), {.hash_bits = 64, .poison = true}) {
    disk_.emplace(&cache_, KvDisk::Options{.folder = folder,
                                           .max_bytes = max_bytes,
                                           .identity = identity,
                                           .run_bytes = run_pages * cache_.shape().page_bytes()});
  }

  KvCache& cache() { return cache_; }
  KvDisk& disk() { return *disk_; }
  void end() { disk_.reset(); }

  // Runs a text as the engine does, and checks all of its rows. Returns how many tokens were not computed.
  int32_t run(std::span<const TokenId> text, uint64_t scope = 0) {
    while (disk_->restore(1, text, scope, kNoLimitMs)) {
    }
    KvSequence sequence = cache_.open(text, scope);
    disk_->release();
    const int32_t found = sequence.length();
    extend(sequence, text.subspan(static_cast<size_t>(found)));
    check(sequence, text);
    EXPECT_TRUE(cache_.check_invariants().ok());
    return found;
  }

 private:
  float& number(std::byte* rows, int32_t slot) {
    return *reinterpret_cast<float*>(rows + slot * cache_.shape().row_bytes());
  }
  static int32_t slot_of(const KvSequence& sequence, int entry) {
    return sequence.pages()[static_cast<size_t>(entry / kPageSize)] * kPageSize + entry % kPageSize;
  }

  void extend(KvSequence& sequence, std::span<const TokenId> tokens) {
    if (tokens.empty()) return;
    std::vector<TokenId> text(sequence.tokens().begin(), sequence.tokens().end());
    auto transaction = cache_.stage(sequence, static_cast<int>(tokens.size()));
    ASSERT_TRUE(transaction.ok());
    std::vector<int> path(tokens.size());
    std::iota(path.begin(), path.end(), 0);
    for (const int entry : path) {
      text.push_back(tokens[static_cast<size_t>(entry)]);
      for (int64_t layer = 0; layer < 2; ++layer) {
        const float value = payload(text) + static_cast<float>(layer);
        number(cache_.keys(layer), transaction->slot(entry)) = value;
        number(cache_.values(layer), transaction->slot(entry)) = -value;
      }
    }
    transaction->commit(path, tokens);
  }

  void check(const KvSequence& sequence, std::span<const TokenId> text) {
    ASSERT_TRUE(std::ranges::equal(sequence.tokens(), text));
    for (int entry = 0; entry < sequence.length(); ++entry) {
      if (sequence.pages()[static_cast<size_t>(entry / kPageSize)] == KvSequence::kNoPage) continue;
      for (int64_t layer = 0; layer < 2; ++layer) {
        const float value = payload(text.first(static_cast<size_t>(entry) + 1)) + static_cast<float>(layer);
        ASSERT_EQ(number(cache_.keys(layer), slot_of(sequence, entry)), value) << "entry " << entry;
        ASSERT_EQ(number(cache_.values(layer), slot_of(sequence, entry)), -value) << "entry " << entry;
      }
    }
  }

  KvCache cache_;
  std::optional<KvDisk> disk_;
};

TEST(KvDisk, BringsATextBackAfterARestart) {
  for (const int length : {3, 4, 5, 8, 9, 12, 13, 30}) {
    for (const int run_pages : {1, 2, 3, 64}) {
      const Folder folder;
      const std::vector<TokenId> text = count_up(length);
      EXPECT_EQ(Process(folder.path(), 64, kMuch, run_pages).run(text), 0);
      Process later(folder.path(), 64, kMuch, run_pages);
      EXPECT_EQ(later.run(text), (length - 1) / kPageSize * kPageSize) << length << " tokens";
      std::vector<TokenId> longer = text;
      longer.push_back(1);
      EXPECT_EQ(later.run(longer), length / kPageSize * kPageSize);
    }
  }
}

TEST(KvDisk, BringsAPartOfATextBack) {
  const Folder folder;
  Process(folder.path()).run(count_up(33));
  std::vector<TokenId> other = count_up(33);
  other[13] = 77;
  EXPECT_EQ(Process(folder.path()).run(other), 12);
  other[1] = 77;
  EXPECT_EQ(Process(folder.path()).run(other), 0);
}

TEST(KvDisk, KeepsScopesApart) {
  const Folder folder;
  Process(folder.path()).run(count_up(33), 5);
  EXPECT_EQ(Process(folder.path()).run(count_up(33), 6), 0);
  EXPECT_EQ(Process(folder.path()).run(count_up(33), 5), 32);
}

TEST(KvDisk, SavesRunsAtOnceAndTheRestWhenThereIsTime) {
  for (const bool everything : {false, true}) {
    const Folder folder;
    Process killed(folder.path());
    killed.run(count_up(21));
    while (killed.disk().save(everything)) {
    }
    killed.disk().flush();
    EXPECT_EQ(killed.disk().size(), everything ? 3 : 2);
    EXPECT_EQ(Process(folder.path()).run(count_up(21)), everything ? 20 : 16);
  }
}

TEST(KvDisk, ReplacesARunThatGrew) {
  const Folder folder;
  Process process(folder.path(), 64, kMuch, 64);
  for (const int length : {9, 17, 25, 33}) {
    process.run(count_up(length));
    while (process.disk().save(/*everything=*/true)) {
    }
  }
  process.disk().flush();
  EXPECT_EQ(process.disk().size(), 1);
  EXPECT_EQ(folder.files().size(), 1u);
}

TEST(KvDisk, BringsBackWhatTheCacheHadNoRoomFor) {
  const Folder folder;
  Process process(folder.path(), 10);
  for (int text = 0; text < 20; ++text) process.run(count_up(31, 100 * text));
  for (int text = 0; text < 20; ++text) EXPECT_EQ(process.run(count_up(31, 100 * text)), 28) << text;
}

TEST(KvDisk, ReadsForALimitedTime) {
  const Folder folder;
  Process(folder.path()).run(count_up(41));
  Process process(folder.path());
  while (process.disk().restore(1, count_up(41), 0, 0)) {
  }
  EXPECT_EQ(process.cache().count_hits(count_up(41), 0).found, 10);
}

TEST(KvDisk, StopsWherePagesAreHeldByOthers) {
  const Folder folder;
  Process(folder.path()).run(count_up(41));
  Process process(folder.path(), 12);
  KvSequence other = process.cache().open({});
  auto staged = process.cache().stage(other, 6 * kPageSize);
  ASSERT_TRUE(staged.ok());
  EXPECT_FALSE(process.disk().restore(1, count_up(41), 0, kNoLimitMs));
  EXPECT_EQ(process.cache().available_pages(), 0);
  EXPECT_TRUE(process.disk().release());
  EXPECT_FALSE(process.disk().release());
  EXPECT_EQ(process.cache().available_pages(), 6);
}

TEST(KvDisk, StaysWithinItsBound) {
  const Folder folder;
  constexpr int64_t kBound = 100'000;
  {
    Process process(folder.path(), 512, kBound);
    for (int text = 0; text < 30; ++text) {
      process.run(count_up(41, 100 * text));
      while (process.disk().save(/*everything=*/true)) {
      }
      process.disk().flush();
      EXPECT_LE(folder.bytes(), kBound);
    }
  }
  EXPECT_GT(folder.bytes(), kBound / 2);
  Process later(folder.path(), 512, kBound);
  EXPECT_EQ(later.run(count_up(41, 2900)), 40) << "the last text";
  EXPECT_EQ(later.run(count_up(41, 0)), 0) << "the first text";
}

TEST(KvDisk, RemovesTheTextThatWasUsedLeastRecently) {
  const Folder folder;
  {
    Process process(folder.path());
    for (int text = 0; text < 4; ++text) process.run(count_up(41, 100 * text));
  }
  const int64_t all = folder.bytes();
  Process(folder.path()).run(count_up(41, 0));
  Process(folder.path(), 64, all * 3 / 5);
  EXPECT_LE(folder.bytes(), all * 3 / 5);
  EXPECT_EQ(Process(folder.path()).run(count_up(41, 0)), 40);
  int32_t left = 0;
  for (int text = 1; text < 4; ++text) left += Process(folder.path()).run(count_up(41, 100 * text));
  EXPECT_LT(left, 2 * 40);
}

// Whatever comes back beside a damaged file is right, and the rest is computed.
TEST(KvDisk, FindsEveryDamagedByte) {
  const Folder folder;
  const std::vector<TokenId> text = count_up(29);
  Process(folder.path()).run(text);
  const Snapshot whole(folder);
  ASSERT_EQ(whole.files().size(), 4u);
  for (const auto& [path, bytes] : whole.files()) {
    for (size_t at = 0; at < bytes.size(); at += (at < 64 ? 2 : 13) * (kIsSanitized ? 7 : 1)) {
      whole.put_back();
      std::string damaged = bytes;
      damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
      overwrite(path, damaged);
      Process process(folder.path());
      ASSERT_LT(process.run(text), 28) << path << " at " << at;
      ASSERT_FALSE(fs::exists(path)) << "damaged at " << at;
      process.end();
      ASSERT_EQ(Process(folder.path()).run(text), 28) << "it was saved again";
    }
  }
}

TEST(KvDisk, FindsTornFiles) {
  const Folder folder;
  const std::vector<TokenId> text = count_up(29);
  Process(folder.path()).run(text);
  const Snapshot whole(folder);
  for (const auto& [path, bytes] : whole.files()) {
    for (size_t size = 0; size < bytes.size(); size += 17) {
      whole.put_back();
      overwrite(path, bytes.substr(0, size));
      ASSERT_LT(Process(folder.path()).run(text), 28) << path << " with " << size << " bytes";
    }
    whole.put_back();
    overwrite(path, bytes + "more");
    ASSERT_LT(Process(folder.path()).run(text), 28);
  }
}

TEST(KvDisk, FindsDamageThatComesLater) {
  const Folder folder;
  const std::vector<TokenId> text = count_up(29);
  Process(folder.path()).run(text);
  Process process(folder.path());
  for (const fs::path& file : folder.files()) {
    std::string bytes = contents(file);
    bytes.back() ^= 1;
    overwrite(file, bytes);
  }
  EXPECT_EQ(process.run(text), 4) << "the first page of the first run is whole";
}

TEST(KvDisk, RefusesFilesOfAnotherModel) {
  const Folder folder;
  const std::vector<TokenId> text = count_up(29), other_text = count_up(29, 50);
  Process(folder.path()).run(text);
  const auto run_other = [&](std::span<const TokenId> tokens) {
    return Process(folder.path(), 64, kMuch, 2, "other\n").run(tokens);
  };
  EXPECT_EQ(run_other(other_text), 0);
  EXPECT_EQ(run_other(text), 0);
  std::vector<fs::path> folders;
  for (const auto& entry : fs::directory_iterator(folder.path())) folders.push_back(entry.path());
  ASSERT_EQ(folders.size(), 2u);
  for (const auto& file : folder.files()) {
    for (const fs::path& to : folders) {
      if (to != file.parent_path()) fs::copy_file(file, to / file.filename());
    }
  }
  const size_t files = folder.files().size();
  EXPECT_EQ(Process(folder.path()).run(other_text), 0);
  EXPECT_EQ(run_other(text), 28);
  EXPECT_LT(folder.files().size(), files) << "foreign files are removed";
}

TEST(KvDisk, WorksWhereNothingCanBeWritten) {
  const Folder folder;
  overwrite(folder.path() / "file", "no folder");
  Process process(folder.path() / "file");
  EXPECT_EQ(process.run(count_up(29)), 0);
  EXPECT_EQ(process.run(count_up(29)), 28);
  EXPECT_FALSE(process.disk().save(/*everything=*/true));
}

TEST(KvDisk, WorksWhereTheFolderGoesAway) {
  Folder folder;
  Process process(folder.path(), 12);
  process.run(count_up(29));
  fs::remove_all(folder.path());
  for (int text = 1; text < 6; ++text) EXPECT_EQ(process.run(count_up(41, 100 * text)), 0);
}

TEST(KvDisk, RemovesWhatAKilledProcessLeft) {
  const Folder folder;
  Process(folder.path()).run(count_up(29));
  const fs::path left = folder.files().front().string() + ".tmp";
  overwrite(left, "half of a run");
  EXPECT_EQ(Process(folder.path()).run(count_up(29)), 28);
  EXPECT_FALSE(fs::exists(left));
}

TEST(KvDisk, SharesAFolderWithAnotherProcess) {
  const Folder folder;
  const auto work = [&](uint32_t seed) {
    std::mt19937 random(seed);
    for (int start = 0; start < 6; ++start) {
      Process process(folder.path(), 16, 30'000);
      for (int text = 0; text < 12; ++text)
        process.run(count_up(9 + static_cast<int>(random() % 40), 100 * static_cast<TokenId>(random() % 4)));
    }
  };
  const pid_t child = ::fork();
  if (child == 0) {
    work(1);
    ::_exit(testing::Test::HasFailure() ? 1 : 0);
  }
  work(2);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  Process(folder.path()).run(count_up(5));
  EXPECT_EQ(Process(folder.path()).run(count_up(5)), 4) << "the folder is in order";
}

TEST(TextFile, CarriesATextToAnotherProcess) {
  const Folder folder;
  const fs::path file = folder.path() / "text";
  const std::vector<TokenId> text = count_up(30);
  Process process(folder.path() / "pages");
  process.run(text);
  const auto saved = save_text(process.cache(), text, 0, "model", file);
  ASSERT_TRUE(saved.ok()) << saved.error().message;
  EXPECT_EQ(saved->tokens, count_up(28));
  EXPECT_EQ(saved->bytes, static_cast<int64_t>(fs::file_size(file)));
  Process other(folder.path() / "other");
  const auto loaded = load_text(other.cache(), 3, "model", file);
  ASSERT_TRUE(loaded.ok()) << loaded.error().message;
  EXPECT_EQ(loaded->tokens, saved->tokens);
  EXPECT_EQ(other.run(text, 4), 0);
  EXPECT_EQ(other.run(text, 3), 28);
  other.cache().forget(text, 3);
  EXPECT_EQ(other.cache().count_hits(text, 3).found, 0);
  EXPECT_EQ(other.cache().available_pages(), other.cache().shape().page_count);
  EXPECT_FALSE(save_text(other.cache(), text, 3, "model", file).ok()) << "it has none";
}

TEST(TextFile, RefusesDamagedAndForeignFiles) {
  const Folder folder;
  const fs::path file = folder.path() / "text";
  Process process(folder.path() / "pages");
  process.run(count_up(30));
  ASSERT_TRUE(save_text(process.cache(), count_up(30), 0, "model", file).ok());
  const std::string bytes = contents(file);
  Process other(folder.path() / "other");
  EXPECT_FALSE(load_text(other.cache(), 0, "another", file).ok());
  EXPECT_FALSE(load_text(other.cache(), 0, "model", folder.path() / "none").ok());
  for (size_t at = 0; at < bytes.size(); at += 7) {
    std::string damaged = bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ 2);
    overwrite(file, damaged);
    EXPECT_FALSE(load_text(other.cache(), 0, "model", file).ok()) << "byte " << at;
  }
  EXPECT_EQ(other.run(count_up(30)) % kPageSize, 0);
}

// Random texts that begin alike, in a cache too small for them, with restarts, damage and a small bound.
TEST(KvDisk, KeepsEveryRowRightWhateverHappens) {
  int64_t found = 0, later_found = 0;
  for (uint32_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Folder folder;
    std::mt19937 random(seed);
    const auto draw = [&](int below) { return static_cast<int>(random() % static_cast<uint32_t>(below)); };
    const int64_t window = seed % 4 == 3 ? 9 : 0;
    const int64_t max_bytes = seed % 2 == 0 ? kMuch : 40'000;
    for (int start = 0; start < 5; ++start) {
      Process process(folder.path(), 20, max_bytes, 1 + static_cast<int>(seed % 3), "model\n", window);
      for (int run = 0; run < 25; ++run) {
        std::vector<TokenId> text = count_up(1 + draw(60), 100 * draw(2));
        for (int change = draw(3); change > 0; --change)
          text[static_cast<size_t>(draw(static_cast<int>(text.size())))] = draw(2);
        const int32_t reused = process.run(text, static_cast<uint64_t>(draw(2)));
        found += reused;
        later_found += run == 0 ? reused : 0;
        if (draw(3) == 0) process.disk().save(draw(2) == 0);
        if (testing::Test::HasFatalFailure()) return;
      }
      const std::vector<fs::path> files = folder.files();
      if (draw(2) == 0 && !files.empty()) {
        const fs::path& file = files[static_cast<size_t>(draw(static_cast<int>(files.size())))];
        std::string bytes = contents(file);
        if (!bytes.empty()) bytes[static_cast<size_t>(draw(static_cast<int>(bytes.size())))] ^= 4;
        overwrite(file, bytes);
      }
    }
  }
  EXPECT_GT(found, 0);
  EXPECT_GT(later_found, 0);
}

}  // namespace
}  // namespace outrider::kv_disk
