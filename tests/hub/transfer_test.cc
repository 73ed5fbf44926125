// SPDX-License-Identifier: Apache-2.0
// Downloads from a stand-in of the Hub: what goes wrong on networks, servers and disks.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <sstream>

#include "hub/pull.h"
#include "tests/support/fake_hub.h"

namespace outrider {
namespace {

namespace fs = std::filesystem;

const std::string kRepository = "org/repo";
const std::string kFile = "m-Q8_0.gguf";
const std::string kTarget = FakeHub::target_of(kRepository, kFile);
constexpr int64_t kMemory = int64_t{1} << 34;

class Recorder final : public TransferObserver {
 public:
  void began(std::string_view, int64_t, int64_t present) override { presents.push_back(present); }
  void advanced(int64_t present) override {
    if (on_advance) on_advance(present);
  }
  void waits(std::string_view reason, double seconds) override {
    reasons.emplace_back(reason);
    pauses.push_back(seconds);
  }
  bool is_interrupted() override { return interrupted; }

  std::vector<int64_t> presents;
  std::vector<std::string> reasons;
  std::vector<double> pauses;
  std::function<void(int64_t)> on_advance;
  bool interrupted = false;
};

std::string contents_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

class Transfer : public ::testing::Test {
 protected:
  Transfer() {
    std::string name = (fs::temp_directory_path() / "outrider_hub_XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) std::abort();
    ::setenv("no_proxy", "*", 1);
    root_ = name;
    for (size_t i = 0; i < 200'000; ++i) data_ += static_cast<char>((i * 2654435761u) >> 13);
    hub_.add_repository(kRepository, {{kFile, data_}});
  }
  ~Transfer() override { fs::remove_all(root_); }

  Status pull(const std::string& reference = "hf:org/repo", const std::string& token = "") {
    OUTRIDER_TRY(const HubReference parsed, parse_hub_reference(reference));
    OUTRIDER_TRY(HubSession session,
                 HubSession::open({hub_.url(), token}, recorder_, {.attempts = 3, .first_pause_s = 0.01}));
    OUTRIDER_TRY(const PullPlan plan, session.plan(parsed, root_, kMemory));
    return session.fetch(plan);
  }

  void expect_whole() { EXPECT_TRUE(contents_of(root_ / kRepository / kFile) == data_); }

  void expect_error(const Status& status, const std::string& part) {
    ASSERT_FALSE(status.ok()) << part;
    EXPECT_NE(status.error().message.find(part), std::string::npos) << status.error().message;
    EXPECT_EQ(status.error().message.find('\n'), std::string::npos);
    EXPECT_FALSE(fs::exists(root_ / kRepository / kFile)) << part;
  }

  int64_t kept_bytes() const {
    int64_t bytes = 0;
    for (const auto& entry : fs::directory_iterator(root_ / kRepository))
      bytes += static_cast<int64_t>(entry.file_size());
    return bytes;
  }

  std::vector<std::string> ranges() const {
    std::vector<std::string> result;
    for (const HubRequest& request : hub_.requests()) {
      if (request.target == kTarget) result.push_back(request.range);
    }
    return result;
  }

  fs::path root_;
  std::string data_;
  FakeHub hub_;
  Recorder recorder_;
};

TEST_F(Transfer, WholeFilesOnceAndNothingBesides) {
  ASSERT_TRUE(pull().ok());
  expect_whole();
  EXPECT_EQ(kept_bytes(), static_cast<int64_t>(data_.size()));
  ASSERT_TRUE(pull().ok());
  EXPECT_EQ(ranges(), std::vector<std::string>{""});  // the second time it was there
  std::ofstream(root_ / kRepository / kFile) << std::string(data_.size(), 'x');
  ASSERT_TRUE(pull().ok());
  expect_whole();  // a damaged file is replaced
}

TEST_F(Transfer, GoesOnWhereTheConnectionWasCut) {
  hub_.fail(kTarget, {{.cut_after = 70'000}, {.cut_after = 0}, {.cut_after = 50'000}});
  ASSERT_TRUE(pull().ok());
  expect_whole();
  EXPECT_EQ(ranges(), (std::vector<std::string>{"", "bytes=70000-", "bytes=70000-", "bytes=120000-"}));
  EXPECT_EQ(recorder_.reasons.size(), 3u);
}

TEST_F(Transfer, GivesUpAfterTheLastAttemptAndGoesOnLater) {
  hub_.fail(kTarget, {{.cut_after = 70'000}, {.cut_after = 0}, {.cut_after = 0}});
  expect_error(pull(), kTarget);
  EXPECT_EQ(kept_bytes(), 70'000);
  recorder_.presents.clear();
  ASSERT_TRUE(pull().ok());
  expect_whole();
  EXPECT_EQ(recorder_.presents, std::vector<int64_t>{70'000});
}

TEST_F(Transfer, ServersWithoutRangesSendEverythingAgain) {
  hub_.fail(kTarget, {{.cut_after = 70'000}, {.knows_no_ranges = true}});
  ASSERT_TRUE(pull().ok());
  expect_whole();
}

TEST_F(Transfer, WrongContentsAreNotKept) {
  std::string wrong = data_;
  wrong[123'456] ^= 1;
  hub_.set_contents(kTarget, wrong);
  expect_error(pull(), "the checksum is wrong");
  EXPECT_EQ(kept_bytes(), 0);
  hub_.set_contents(kTarget, data_ + "x");
  expect_error(pull(), "expected 200000 bytes, found more");
  hub_.set_contents(kTarget, data_.substr(1));
  expect_error(pull(), "expected 200000 bytes, found 199999");
}

TEST_F(Transfer, ADamagedPartIsFetchedAgain) {
  hub_.fail(kTarget, {{.cut_after = 70'000}, {.cut_after = 0}, {.cut_after = 0}});
  ASSERT_FALSE(pull().ok());
  for (const auto& entry : fs::directory_iterator(root_ / kRepository)) {
    std::fstream part(entry.path(), std::ios::in | std::ios::out | std::ios::binary);
    part.put('!');
  }
  ASSERT_TRUE(pull().ok());
  expect_whole();
}

TEST_F(Transfer, TheHubsChecksumIsKnownBeforeTheContents) {
  const std::string headers = "X-Linked-Etag: \"" + std::string(64, 'e') + "\"\r\n";
  hub_.fail(kTarget, {{.headers = headers, .cut_after = 10}});
  expect_error(pull(), "expected the contents ");
}

TEST_F(Transfer, TheTokenStaysWithItsHost) {
  FakeHub elsewhere;
  elsewhere.set_contents("/blob", data_);
  hub_.fail(kTarget, {{.status = 302, .headers = "Location: " + elsewhere.url() + "/blob\r\n"}});
  ASSERT_TRUE(pull("hf:org/repo", "hf_secret").ok());
  expect_whole();
  for (const HubRequest& request : hub_.requests()) EXPECT_EQ(request.authorization, "Bearer hf_secret");
  ASSERT_EQ(elsewhere.requests().size(), 1u);
  EXPECT_EQ(elsewhere.requests().front().authorization, "");
}

TEST_F(Transfer, ResumesThroughARedirection) {
  FakeHub elsewhere;
  elsewhere.set_contents("/blob", data_);
  elsewhere.fail("/blob", {{.cut_after = 70'000}});
  const HubFault redirection = {.status = 302, .headers = "Location: " + elsewhere.url() + "/blob\r\n"};
  hub_.fail(kTarget, {redirection, redirection});
  ASSERT_TRUE(pull().ok());
  expect_whole();
  ASSERT_EQ(elsewhere.requests().size(), 2u);
  EXPECT_EQ(elsewhere.requests().back().range, "bytes=70000-");
}

TEST_F(Transfer, RedirectionsEnd) {
  hub_.fail(kTarget, std::vector<HubFault>(
                         20, {.status = 302, .headers = "Location: " + hub_.url() + kTarget + "\r\n"}));
  expect_error(pull(), "redirects");
}

TEST_F(Transfer, RefusalsSayWhatToDo) {
  expect_error(pull("hf:org/other"), "status 404: no such repository or file");
  hub_.fail(kTarget, {{.status = 401}});
  expect_error(pull(), "set HF_TOKEN");
  hub_.fail(kTarget, {{.status = 403}});
  expect_error(pull(), "gated");
  EXPECT_TRUE(recorder_.reasons.empty());  // none of them is tried again
  expect_error(pull("hf:org/repo:Q4_0"), "there are Q8_0");
}

TEST_F(Transfer, WaitsAsLongAsAskedAndThenGivesUp) {
  hub_.fail(kTarget, {{.status = 429, .headers = "Retry-After: 0\r\n"}, {.status = 503}});
  ASSERT_TRUE(pull().ok());
  expect_whole();
  EXPECT_EQ(recorder_.pauses, (std::vector<double>{0, 0.02}));
  fs::remove(root_ / kRepository / kFile);
  hub_.fail(kTarget, std::vector<HubFault>(3, {.status = 429}));
  expect_error(pull(), "too many requests");
}

TEST_F(Transfer, NoConnection) {
  HubSession session =
      HubSession::open({"http://127.0.0.1:1", ""}, recorder_, {.attempts = 2, .first_pause_s = 0.01}).value();
  const auto plan = session.plan({.repository = kRepository, .wanted = ""}, root_, kMemory);
  ASSERT_FALSE(plan.ok());
  EXPECT_NE(plan.error().message.find("127.0.0.1"), std::string::npos) << plan.error().message;
  EXPECT_EQ(recorder_.reasons.size(), 1u);
}

TEST_F(Transfer, InterruptionKeepsThePart) {
  recorder_.on_advance = [&](int64_t present) { recorder_.interrupted = present >= 100'000; };
  hub_.fail(kTarget, {{.pause_ms = 5}});
  expect_error(pull(), "interrupted");
  EXPECT_GE(kept_bytes(), 100'000);
  recorder_.on_advance = {};
  recorder_.interrupted = false;
  ASSERT_TRUE(pull().ok());
  expect_whole();
}

TEST_F(Transfer, AFullDiskKeepsThePart) {
  rlimit before = {};
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit small = {.rlim_cur = 100'000, .rlim_max = before.rlim_max};
  const auto previous = std::signal(SIGXFSZ, SIG_IGN);
  setrlimit(RLIMIT_FSIZE, &small);
  const Status status = pull();
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, previous);
  expect_error(status, "100000 of 200000 bytes are kept: make room");
  ASSERT_TRUE(pull().ok());
  expect_whole();
  EXPECT_EQ(ranges().back(), "bytes=100000-");
}

TEST_F(Transfer, TwoProcessesDoNotFetchTheSameFile) {
  recorder_.on_advance = [&](int64_t) {
    recorder_.on_advance = {};
    Recorder second;
    HubSession session = HubSession::open({hub_.url(), ""}, second).value();
    const auto plan = session.plan({.repository = kRepository, .wanted = ""}, root_, kMemory);
    ASSERT_TRUE(plan.ok());
    expect_error(session.fetch(*plan), "another process is fetching");
  };
  ASSERT_TRUE(pull().ok());
  expect_whole();
}

TEST_F(Transfer, FoldersWithTheirShards) {
  const std::string index = R"({"weight_map":{"a":"model-1.safetensors","b":"model-2.safetensors"}})";
  hub_.add_repository("org/folder", {{"config.json", "{}"},
                                     {"tokenizer.json", std::string(2000, 't')},
                                     {"model.safetensors.index.json", index},
                                     {"model-1.safetensors", std::string(3000, '1')},
                                     {"model-2.safetensors", std::string(3000, '2')},
                                     {"onnx/model.onnx", "no"},
                                     {"README.md", "no"}});
  ASSERT_TRUE(pull("hf:org/folder").ok());
  EXPECT_EQ(contents_of(root_ / "org/folder/model-2.safetensors"), std::string(3000, '2'));
  EXPECT_EQ(contents_of(root_ / "org/folder/config.json"), "{}");
  EXPECT_FALSE(fs::exists(root_ / "org/folder/README.md"));
  EXPECT_FALSE(fs::exists(root_ / "org/folder/onnx"));
}

TEST_F(Transfer, ATokenIsNeverSentUnencryptedToAnotherMachine) {
  const auto refused = HubSession::open({"http://hub.example", "hf_secret"}, recorder_);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("unencrypted"), std::string::npos);
  EXPECT_FALSE(HubSession::open({"http://127.evil.example", "hf_secret"}, recorder_).ok());
  EXPECT_FALSE(HubSession::open({"ftp://hub.example", ""}, recorder_).ok());
  EXPECT_TRUE(HubSession::open({"http://hub.example", ""}, recorder_).ok());
  EXPECT_TRUE(HubSession::open({"https://hub.example", "hf_secret"}, recorder_).ok());
  EXPECT_TRUE(HubSession::open({"http://localhost:8080", "hf_secret"}, recorder_).ok());
}

}  // namespace
}  // namespace outrider
