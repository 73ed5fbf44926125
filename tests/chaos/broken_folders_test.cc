// SPDX-License-Identifier: Apache-2.0
// Folders that several processes share, cannot be written or are full, and files that change while they are
// in use.
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/chaos/chaos_runs.h"
#include "tests/program/program_fixture.h"
#include "tests/serving/serve_process.h"
#include "tests/serving/serving.h"
#include "tests/serving/serving_calls.h"

namespace outrider {
namespace {

namespace fs = std::filesystem;

const std::string kAsk = "generate " + kSmall + " --json -p 'Once upon a time' --max-tokens 16 --threads 1";

class BrokenFolders : public ProgramTest {
 protected:
  BrokenFolders() : text_(run_json(kAsk + " --cache-dir none")["text"]) {}

  std::string caches(const fs::path& folder) const {
    return " --cache-dir " + folder.string() + " --packed-cache " + folder.string();
  }

  std::string text_;
};

TEST_F(BrokenFolders, FourProcessesFillOneCache) {
  for (int i = 0; i < chaos_runs(10); ++i) {
    const fs::path folder = folder_ / "shared";
    fs::remove_all(folder);
    std::string line;
    for (int process = 0; process < 4; ++process) {
      const std::string out = (folder_ / ("out" + std::to_string(process))).string();
      line += std::string(OUTRIDER_PROGRAM " ") + kAsk + caches(folder) + " >" + out + " 2>/dev/null & ";
    }
    ASSERT_EQ(std::system((line + "wait").c_str()), 0);
    for (int process = 0; process < 4; ++process) {
      const Json json = Json::parse(contents(folder_ / ("out" + std::to_string(process))), nullptr, false);
      ASSERT_TRUE(json.is_object());
      EXPECT_EQ(json["text"], text_);
    }
    EXPECT_EQ(run_json(kAsk + caches(folder))["text"], text_);
  }
}

// Nobody may write there, not even root.
TEST_F(BrokenFolders, AFolderThatCannotBeWrittenCostsTheCache) {
  const Outcome outcome = run(kAsk + caches("/proc/outrider"));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.errors;
  EXPECT_EQ(Json::parse(outcome.output)["text"], text_);
  EXPECT_NE(outcome.errors.find("/proc/outrider"), std::string::npos) << outcome.errors;
}

TEST_F(BrokenFolders, AFullDiskCostsTheCache) {
  const fs::path folder = folder_ / "full";
  const Outcome outcome = run(kAsk + caches(folder), "trap '' XFSZ; ulimit -f 64;");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.errors;
  EXPECT_EQ(Json::parse(outcome.output)["text"], text_);
  EXPECT_EQ(run_json(kAsk + caches(folder))["text"], text_);
  const std::string out = (folder_ / "out.gguf").string();
  const Outcome quantized =
      run("quantize " + kModel + ".gguf " + out + " --type q8_0", "trap '' XFSZ; ulimit -f 8;");
  EXPECT_EQ(quantized.exit_code, 1) << quantized.errors;
  EXPECT_FALSE(fs::exists(out));
}

// A file that shrinks or changes while it is mapped is an error of the engine; the process stays.
TEST_F(BrokenFolders, AServerOutlivesItsFiles) {
  for (const bool shrinks : {true, false}) {
    const fs::path folder = folder_ / (shrinks ? "shrinks" : "changes");
    const std::vector<std::string> options = {"--packed-cache", folder.string()};
    std::string text;
    {
      ServeProcess first(options);
      ASSERT_TRUE(first.wait_until_ready());
      text = text_of(TestClient(first.port()).post("/v1/completions", completion_of("The dog", 24)));
      ASSERT_FALSE(text.empty());
    }
    ServeProcess server(options);
    ASSERT_TRUE(server.wait_until_ready());
    EXPECT_EQ(text_of(TestClient(server.port()).post("/v1/completions", completion_of("The dog", 24))), text);
    int files = 0;
    for (const auto& entry : fs::recursive_directory_iterator(folder)) {
      if (!entry.is_regular_file()) continue;
      ++files;
      if (shrinks) {
        fs::resize_file(entry.path(), 4096);
      } else {
        std::fstream(entry.path(), std::ios::in | std::ios::out | std::ios::binary) << "other";
      }
    }
    ASSERT_GT(files, 0);
    for (int i = 0; i < 3; ++i) {
      const TestAnswer answer =
          TestClient(server.port()).post("/v1/completions", completion_of("The dog", 24));
      EXPECT_GE(answer.status, 500) << answer.body;
      EXPECT_TRUE(text_of(answer).empty());
    }
    EXPECT_NE(TestClient(server.port()).get("/health").status, 0);
    server.end(SIGKILL);
    ServeProcess next(options);
    ASSERT_TRUE(next.wait_until_ready());
    EXPECT_EQ(text_of(TestClient(next.port()).post("/v1/completions", completion_of("The dog", 24))), text);
  }
}

}  // namespace
}  // namespace outrider
