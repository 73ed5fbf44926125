// SPDX-License-Identifier: Apache-2.0
#include "open/files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "config/speculative_config.h"
#include "draft_heads/fake_head.h"
#include "open/parts.h"

namespace outrider {
namespace {

namespace fs = std::filesystem;
using testing::Each;
using testing::Pair;

// Counts how often each file of some folders is opened and closed again. The system may report equal events
// that follow each other as one; a mapped file is closed when it is unmapped.
class OpenCounter {
 public:
  explicit OpenCounter(const std::vector<fs::path>& folders) {
    for (const fs::path& folder : folders)
      folders_[inotify_add_watch(inotify_, folder.c_str(), IN_OPEN | IN_CLOSE)] = folder.filename();
  }
  OpenCounter(const OpenCounter&) = delete;
  OpenCounter& operator=(const OpenCounter&) = delete;
  ~OpenCounter() { close(inotify_); }

  std::map<std::string, int> counts() {
    std::map<std::string, int> opened, closed;
    std::array<char, 1 << 16> bytes = {};
    for (ssize_t size = 0; (size = read(inotify_, bytes.data(), bytes.size())) > 0;) {
      for (const char* at = bytes.data(); at < bytes.data() + size;) {
        inotify_event event = {};
        std::memcpy(&event, at, sizeof(event));
        if (event.len > 0 && (event.mask & IN_ISDIR) == 0)
          ++((event.mask & IN_OPEN) != 0 ? opened
                                         : closed)[(folders_[event.wd] / (at + sizeof(event))).string()];
        at += sizeof(event) + event.len;
      }
    }
    for (auto& [name, count] : opened) count = std::max(count, closed[name]);
    return opened;
  }

 private:
  int inotify_ = inotify_init1(IN_NONBLOCK);
  std::map<int, fs::path> folders_;  // by watch
};

// A folder with a target, and a user who has no cache.
class OpenedOnce : public testing::Test {
 protected:
  OpenedOnce() : folder_(fs::temp_directory_path() / ("outrider_opened_once_" + std::to_string(getpid()))) {
    fs::create_directories(folder_);
    ::setenv("XDG_CACHE_HOME", (folder_ / "cache").c_str(), 1);
    fs::copy(OUTRIDER_SOURCE_DIR "/tests/data/models/llama", target());
  }
  ~OpenedOnce() override { fs::remove_all(folder_); }

  fs::path target() const { return folder_ / "target"; }

  // A Medusa head beside the target.
  fs::path add_head() const {
    FakeHead head;
    head.tensors = {{"0.0.linear.weight", {64, 64}}, {"0.0.linear.bias", {64}}, {"0.1.weight", {288, 64}}};
    fs::rename(head.write(), folder_ / "head");
    return folder_ / "head";
  }

  // How often each file is opened on the way to an engine.
  static std::map<std::string, int> counts(const std::string& speculative, Names names,
                                           const std::vector<fs::path>& folders) {
    OpenCounter counter(folders);
    names.options.speculation = parse_speculative(speculative)->options;
    names.options.threads = 1;
    {
      const auto parts = open_parts(std::move(names));
      EXPECT_TRUE(parts.ok()) << parts.error().message;
    }
    auto found = counter.counts();
    // The tokenizer and the chat template are read from this file, each by itself.
    std::erase_if(found, [](const auto& file) { return file.first.ends_with("tokenizer_config.json"); });
    return found;
  }

  Names names() const {
    Names names;
    names.options.model = target();
    names.finds_drafter = true;
    return names;
  }

  fs::path folder_;
};

TEST_F(OpenedOnce, TheTargetAndTheHeadThatIsFound) {
  const fs::path head = add_head();
  for (const char* speculative : {"auto", "medusa", "combine=[suffix,medusa]"}) {
    const auto found = counts(speculative, names(), {target(), head});
    EXPECT_EQ(found.at("target/model.safetensors"), 1) << speculative;
    EXPECT_EQ(found.at("target/config.json"), 1) << speculative;
    EXPECT_EQ(found.at("target/tokenizer.json"), 1) << speculative;
    EXPECT_EQ(found.at("head/model.safetensors"), 1) << speculative;
    EXPECT_EQ(found.at("head/config.json"), 1) << speculative;
  }
}

TEST_F(OpenedOnce, TheHeadThatIsNamed) {
  const std::string head = add_head();
  for (const char* speculative : {"speculative_model=", "medusa,speculative_model=",
                                  "auto,speculative_model=", "combine=[suffix,medusa],speculative_model="}) {
    const auto found = counts(speculative + head, names(), {target(), head});
    EXPECT_THAT(found, Each(Pair(testing::_, 1))) << speculative;
    EXPECT_EQ(found.size(), 6u);
  }
}

TEST_F(OpenedOnce, TheDraftModelThatIsNamed) {
  const fs::path models = OUTRIDER_SOURCE_DIR "/tests/data/models", files = folder_ / "files";
  fs::create_directory(files);
  fs::copy(models / "llama.gguf", files);
  fs::copy(models / "llama", folder_ / "draft");
  for (const std::string method : {"", "draft_target,", "auto,", "combine=[suffix,draft_target],"}) {
    for (const fs::path& draft : {files / "llama.gguf", folder_ / "draft"}) {
      const auto found = counts(method + "speculative_model=" + draft.string(), names(),
                                {target(), files, folder_ / "draft"});
      EXPECT_THAT(found, Each(Pair(testing::_, 1))) << method << draft;
    }
  }
}

}  // namespace
}  // namespace outrider
