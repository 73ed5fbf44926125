// SPDX-License-Identifier: Apache-2.0
// States come back from disk with the pages before them, or not at all.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kv/disk/kv_disk.h"
#include "kv/disk/kv_disk_test_folder.h"
#include "kv/disk/text_file.h"

namespace outrider::kv_disk {
namespace {

// A cache with states: sums of all tokens, which updates add to.
class StateProcess {
 public:
  explicit StateProcess(const fs::path& folder)
      : cache_({.layer_count = 1,
                .kv_head_count = 1,
                .head_dim = 2,
                .page_size = kPageSize,
                .page_count = 64,
                .states = {.layer_count = 2,
                           .size = 3,
                           .update_size = 1,
                           .sequence_count = 1,
                           .checkpoint_count = 8}}) {
    disk_.emplace(&cache_, KvDisk::Options{.folder = folder,
                                           .max_bytes = kMuch,
                                           .identity = "hybrid\n",
                                           .run_bytes = 2 * cache_.shape().page_bytes()});
  }

  // Brings a text back while another sequence has so many pages. Returns the states that came.
  int64_t restore_beside(std::span<const TokenId> text, int pages) {
    KvSequence other = cache_.open({});
    const auto staged = cache_.stage(other, pages * kPageSize);
    EXPECT_TRUE(staged.ok());
    while (disk_->restore(1, text, 0, kNoLimitMs)) {
    }
    disk_->release();
    return std::ssize(cache_.checkpoints().prefixes());
  }
  KvCache& cache() { return cache_; }
  // Runs a text in chunks, and returns how many tokens were not computed.
  int32_t run(std::span<const TokenId> text, int32_t chunk) {
    while (disk_->restore(1, text, 0, kNoLimitMs)) {
    }
    KvSequence sequence = cache_.open(text);
    disk_->release();
    const int32_t found = sequence.length();
    EXPECT_EQ(sum(sequence), expected(text.first(static_cast<size_t>(found)))) << found << " tokens";
    while (sequence.length() < std::ssize(text)) {
      const int32_t to_page = kPageSize - sequence.length() % kPageSize;
      const int32_t count =
          std::min({chunk, to_page, static_cast<int32_t>(std::ssize(text)) - sequence.length()});
      extend(sequence, text.subspan(static_cast<size_t>(sequence.length()), static_cast<size_t>(count)));
    }
    EXPECT_EQ(sum(sequence), expected(text));
    return found;
  }

 private:
  static float expected(std::span<const TokenId> text) {
    return static_cast<float>(std::accumulate(text.begin(), text.end(), TokenId{0}));
  }
  float sum(const KvSequence& sequence) {
    float sum = *cache_.host_states().state(sequence.state(), 1);
    const int32_t first = sequence.length() - sequence.kept_updates();
    for (int32_t entry = cache_.states().entries(sequence.state(), 1); entry < sequence.length(); ++entry)
      sum += *cache_.host_states().update(sequence.state(), entry - first, 1);
    return sum;
  }
  // A pass over a chain applies all updates but the last.
  void extend(KvSequence& sequence, std::span<const TokenId> tokens) {
    auto staged = cache_.stage(sequence, static_cast<int>(tokens.size()));
    ASSERT_TRUE(staged.ok());
    HostStates& numbers = cache_.host_states();
    for (int64_t layer = 0; layer < 2; ++layer) {
      float& state = *numbers.state(sequence.state(), layer);
      const int32_t first = sequence.length() - sequence.kept_updates();
      for (int32_t entry = cache_.states().entries(sequence.state(), layer); entry < sequence.length();
           ++entry)
        state += *numbers.update(sequence.state(), entry - first, layer);
      cache_.states().reserve_updates(sequence.state(), sequence.kept_updates() + 1);
      for (size_t i = 0; i + 1 < tokens.size(); ++i) state += static_cast<float>(tokens[i]);
      *numbers.update(sequence.state(), sequence.kept_updates(), layer) = static_cast<float>(tokens.back());
      cache_.states().set_entries(sequence.state(), layer,
                                  sequence.length() + static_cast<int32_t>(tokens.size()) - 1);
    }
    std::vector<int> path(tokens.size());
    std::iota(path.begin(), path.end(), 0);
    staged->commit(path, tokens);
  }

  KvCache cache_;
  std::optional<KvDisk> disk_;
};

TEST(KvDiskStates, BringsStatesBack) {
  for (const int32_t chunk : {1, 3, 4}) {
    const Folder folder;
    StateProcess(folder.path()).run(count_up(27), chunk);
    EXPECT_EQ(StateProcess(folder.path()).run(count_up(27), chunk), 24);
    EXPECT_EQ(StateProcess(folder.path()).run(count_up(40), chunk), 24);
  }
}

// Without room for all pages, the state after them has no place.
TEST(KvDiskStates, BringsNoStateBackWithoutItsPages) {
  const Folder folder;
  StateProcess(folder.path()).run(count_up(27), 4);
  StateProcess process(folder.path());
  EXPECT_EQ(process.restore_beside(count_up(27), 60), 0);
  EXPECT_EQ(process.run(count_up(27), 4), 24);
}

TEST(KvDiskStates, FindsDamagedStates) {
  const Folder folder;
  StateProcess(folder.path()).run(count_up(27), 4);
  const Snapshot whole(folder);
  int damaged_states = 0;
  for (const auto& [path, bytes] : whole.files()) {
    for (size_t at = 0; at < bytes.size(); at += 23) {
      whole.put_back();
      std::string damaged = bytes;
      damaged[at] = static_cast<char>(damaged[at] ^ 0x40);
      overwrite(path, damaged);
      damaged_states += StateProcess(folder.path()).run(count_up(27), 4) < 24 ? 1 : 0;
    }
  }
  EXPECT_GT(damaged_states, 0);
}

TEST(TextFileStates, CarriesAStateToAnotherProcess) {
  const Folder folder;
  const fs::path file = folder.path() / "text";
  StateProcess process(folder.path() / "pages");
  process.run(count_up(27), 4);
  const auto saved = save_text(process.cache(), count_up(27), 0, "hybrid", file);
  ASSERT_TRUE(saved.ok()) << saved.error().message;
  EXPECT_EQ(saved->tokens, count_up(24));
  EXPECT_EQ(saved->bytes,
            static_cast<int64_t>(fs::file_size(file) + fs::file_size(file.string() + ".state")));
  StateProcess other(folder.path() / "other");
  const auto loaded = load_text(other.cache(), 0, "hybrid", file);
  ASSERT_TRUE(loaded.ok()) << loaded.error().message;
  EXPECT_EQ(loaded->tokens, saved->tokens);
  EXPECT_EQ(loaded->bytes, saved->bytes);
  EXPECT_EQ(other.run(count_up(40), 3), 24);
}

TEST(TextFileStates, RefusesDamagedAndForeignStates) {
  const Folder folder;
  const fs::path file = folder.path() / "text", state = folder.path() / "text.state";
  StateProcess process(folder.path() / "pages");
  process.run(count_up(16), 4);
  ASSERT_TRUE(save_text(process.cache(), count_up(16), 0, "hybrid", file).ok());
  const std::string shorter = contents(state);
  process.run(count_up(27), 4);
  ASSERT_TRUE(save_text(process.cache(), count_up(27), 0, "hybrid", file).ok());
  const std::string whole = contents(state);
  const auto loads = [&] {
    StateProcess other(folder.path() / "other");
    const bool is_loaded = load_text(other.cache(), 0, "hybrid", file).ok();
    EXPECT_EQ(other.run(count_up(27), 4), is_loaded ? 24 : 0);
    fs::remove_all(folder.path() / "other");
    return is_loaded;
  };
  EXPECT_TRUE(loads());
  overwrite(state, shorter);
  EXPECT_FALSE(loads()) << "a state after fewer tokens";
  overwrite(state, contents(file));
  EXPECT_FALSE(loads()) << "no state";
  for (size_t at = 0; at < whole.size(); at += 7) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 2);
    overwrite(state, damaged);
    EXPECT_FALSE(loads()) << "byte " << at;
  }
  fs::remove(state);
  EXPECT_FALSE(loads()) << "missing";
}

TEST(TextFileStates, SaysThatAStateHasNoRoom) {
  const Folder folder;
  const fs::path file = folder.path() / "text";
  StateProcess process(folder.path() / "pages");
  process.run(count_up(27), 4);
  ASSERT_TRUE(save_text(process.cache(), count_up(27), 0, "hybrid", file).ok());
  StateProcess full(folder.path() / "other");
  KvSequence other = full.cache().open({});
  const auto staged = full.cache().stage(other, 60 * kPageSize);
  ASSERT_TRUE(staged.ok());
  const auto loaded = load_text(full.cache(), 0, "hybrid", file);
  ASSERT_FALSE(loaded.ok());
  EXPECT_NE(loaded.error().message.find("room in the cache for 24 tokens and their state, found it for 16"),
            std::string::npos)
      << loaded.error().message;
}

}  // namespace
}  // namespace outrider::kv_disk
