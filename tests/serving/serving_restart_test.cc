// SPDX-License-Identifier: Apache-2.0
// A server that starts again goes on from the prompts that it has kept on disk, however it ended.
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "tests/serving/serve_process.h"
#include "tests/serving/serving.h"
#include "tests/serving/serving_calls.h"

namespace outrider {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

class ServingRestart : public testing::TestWithParam<const char*> {
 protected:
  ServingRestart() {
    std::string pattern = (fs::temp_directory_path() / "serving_restart_XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
  }
  ~ServingRestart() override { fs::remove_all(folder_); }

  std::vector<std::string> options(bool keeps) const {
    std::vector<std::string> options = {"--speculative", GetParam(), "--max-batch", "2"};
    if (keeps) options.insert(options.end(), {"--prompt-cache", folder_.string()});
    return options;
  }

  int64_t files() const {
    int64_t count = 0;
    for (const auto& entry : fs::recursive_directory_iterator(folder_))
      count += entry.is_regular_file() ? 1 : 0;
    return count;
  }
  // Waits until no file has come for a while: the engine has nothing left to save.
  void wait_until_saved() const {
    for (int64_t before = -1; before != files() || before == 0;) {
      before = files();
      std::this_thread::sleep_for(std::chrono::milliseconds(500));
    }
  }

  fs::path folder_;
};

std::string long_text() {
  std::string text;
  for (int i = 0; i < 60; ++i)
    text += "The " + std::to_string(i) + ". child went to the forest and came back. ";
  return text;
}

struct Answer {
  std::string text;
  int64_t prompt = 0, cached = 0;
};

Answer ask(const ServeProcess& server, const std::string& prompt) {
  const Json body = {{"prompt", prompt}, {"max_tokens", 24}, {"temperature", 0}};
  const TestAnswer answer = TestClient(server.port()).post("/v1/completions", body.dump());
  EXPECT_EQ(answer.status, 200) << answer.body;
  const Json json = Json::parse(answer.body);
  return {.text = json["choices"][0]["text"],
          .prompt = json["usage"]["prompt_tokens"],
          .cached = json["usage"]["prompt_tokens_details"]["cached_tokens"]};
}

TEST_P(ServingRestart, GoesOnWithTheSameText) {
  const std::string first = long_text();
  std::string second, expected;
  {
    ServeProcess plain(options(/*keeps=*/false));
    ASSERT_TRUE(plain.wait_until_ready());
    second = first + ask(plain, first).text + " And then?";
    expected = ask(plain, second).text;
  }
  for (const int end : {SIGKILL, SIGTERM}) {
    {
      ServeProcess server(options(/*keeps=*/true));
      ASSERT_TRUE(server.wait_until_ready());
      ASSERT_EQ(first + ask(server, first).text + " And then?", second);
      if (end == SIGKILL) wait_until_saved();
      server.end(end);
    }
    ServeProcess again(options(/*keeps=*/true));
    ASSERT_TRUE(again.wait_until_ready());
    const Answer answer = ask(again, second);
    EXPECT_EQ(answer.text, expected);
    EXPECT_GT(answer.prompt, 400);
    EXPECT_GT(answer.cached, answer.prompt - 100) << "signal " << end;
    again.end(SIGKILL);
    for (const auto& entry : fs::directory_iterator(folder_)) fs::remove_all(entry.path());
  }
}

TEST_P(ServingRestart, ComputesDamagedFilesAgain) {
  std::string expected;
  {
    ServeProcess server(options(/*keeps=*/true));
    ASSERT_TRUE(server.wait_until_ready());
    expected = ask(server, long_text()).text;
    server.end(SIGTERM);
  }
  ASSERT_GT(files(), 0);
  for (const auto& entry : fs::recursive_directory_iterator(folder_)) {
    if (!entry.is_regular_file()) continue;
    std::fstream bytes(entry.path(), std::ios::in | std::ios::out | std::ios::binary);
    bytes.seekp(static_cast<std::streamoff>(entry.file_size() * 2 / 3));
    bytes.put('!');
  }
  ServeProcess again(options(/*keeps=*/true));
  ASSERT_TRUE(again.wait_until_ready());
  const Answer answer = ask(again, long_text());
  EXPECT_EQ(answer.text, expected);
  EXPECT_LT(answer.cached, answer.prompt - 100);
}

INSTANTIATE_TEST_SUITE_P(Drafters, ServingRestart, testing::Values("none", "ngram", "draft_target", "auto"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace outrider
