// SPDX-License-Identifier: Apache-2.0
// Too few descriptors, too little memory, clocks that jump and processes that are stopped.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/chaos/chaos_runs.h"
#include "tests/serving/serve_process.h"
#include "tests/serving/serving.h"
#include "tests/serving/serving_calls.h"

namespace outrider {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;
using std::chrono::milliseconds;
using std::chrono::seconds;

std::string ask(const ServeProcess& server) {
  return text_of(TestClient(server.port()).post("/v1/completions", completion_of("The dog", 40)));
}

class ScarceResources : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    ServeProcess server;
    ASSERT_TRUE(server.wait_until_ready());
    text_ = ask(server);
    ASSERT_FALSE(text_.empty());
  }

  static inline std::string text_;
};

TEST_F(ScarceResources, Descriptors) {
  ServeProcess server({}, {"prlimit", "--nofile=48:48"});
  ASSERT_TRUE(server.wait_until_ready());
  for (int round = 0; round < 5; ++round) {
    std::vector<TestClient> clients;
    for (int i = 0; i < 200; ++i) clients.emplace_back(server.port());
    for (TestClient& client : clients) client.send("GET /health HTTP/1.1\r\n");
    std::this_thread::sleep_for(milliseconds(200));
    clients.clear();
    EXPECT_EQ(ask(server), text_);
  }
}

// Bodies of requests that need much memory.
std::vector<std::string> large_bodies() {
  std::string ids = "[1";
  for (int i = 0; i < 2'000'000; ++i) ids += ",1";
  return {R"({"max_tokens": 4, "prompt": ")" + std::string(8'000'000, ' ') + "\"}",
          R"({"max_tokens": 4, "prompt": )" + ids + "]}"};
}

// A control group that may use so much memory, in version 1 or 2; without path where this user may not have
// one.
class MemoryGroup {
 public:
  explicit MemoryGroup(int64_t bytes) {
    const fs::path mount = "/sys/fs/cgroup", name = "outrider_chaos_" + std::to_string(getpid());
    const bool is_first_version = fs::exists(mount / "memory/memory.limit_in_bytes");
    const fs::path path = (is_first_version ? mount / "memory" : mount) / name;
    std::error_code code;
    if (!fs::create_directory(path, code)) return;
    path_ = path;
    const fs::path limit = path / (is_first_version ? "memory.limit_in_bytes" : "memory.max");
    has_limit_ = fs::exists(limit) && static_cast<bool>(std::ofstream(limit) << bytes << std::flush);
  }
  ~MemoryGroup() {
    if (!path_.empty()) rmdir(path_.c_str());
  }
  MemoryGroup(const MemoryGroup&) = delete;
  MemoryGroup& operator=(const MemoryGroup&) = delete;

  bool has_limit() const { return has_limit_; }
  // Starts a program within the group.
  Words command() const {
    return {"sh", "-c", "echo $$ > " + (path_ / "cgroup.procs").string() + " && exec \"$@\"", "sh"};
  }

 private:
  fs::path path_;
  bool has_limit_ = false;
};

// The kernel kills a process that exceeds such a limit, so the server has to stay below it by itself.
TEST_F(ScarceResources, ControlGroup) {
  for (const int mib : {200, 400, 800}) {
    const MemoryGroup group(int64_t{mib} << 20);
    if (!group.has_limit()) GTEST_SKIP() << "no control group of memory can be made here";
    ServeProcess server({}, group.command());
    ASSERT_TRUE(server.wait_until_ready()) << mib << " MiB";
    for (const std::string& body : large_bodies()) {
      std::vector<TestClient> clients;
      for (int i = 0; i < 3; ++i) clients.emplace_back(server.port());
      for (TestClient& client : clients) client.send(post_text("/v1/completions", body));
      for (TestClient& client : clients) EXPECT_GE(client.read_answer().status, 400) << mib << " MiB";
      EXPECT_EQ(ask(server), text_) << mib << " MiB";
    }
    server.end(SIGKILL);
  }
}

// From hardly enough to start to enough for all.
TEST_F(ScarceResources, AddressSpace) {
  for (const int mib : {450, 600, 750, 1000}) {
    ServeProcess server({}, {"prlimit", "--as=" + std::to_string(int64_t{mib} << 20)});
    if (!server.wait_until_ready()) {
      std::printf("%d MiB do not suffice to start\n", mib);
      continue;
    }
    for (const std::string& body : large_bodies()) {
      const TestAnswer answer = TestClient(server.port()).post("/v1/completions", body);
      EXPECT_TRUE(answer.status == 0 || answer.status >= 400) << answer.status;
      EXPECT_EQ(ask(server), text_) << mib << " MiB";
    }
  }
}

// The wall clock jumps by years, to and fro, while streams run. Nothing waits for it.
TEST_F(ScarceResources, ClockJumps) {
  const fs::path offset = OUTRIDER_CLOCK_OFFSET;
  std::ofstream(offset, std::ios::binary) << std::string(8, '\0');
  ServeProcess server({}, {"env", "LD_PRELOAD=" OUTRIDER_CLOCK_JUMPS});
  ASSERT_TRUE(server.wait_until_ready());
  for (const int64_t jump : {int64_t{86'400} * 3650, int64_t{-86'400} * 3650, int64_t{-1}, int64_t{0}}) {
    TestClient stream(server.port());
    stream.send(post_text("/v1/completions", completion_of("The dog", 400, true)));
    ASSERT_TRUE(stream.receive_until("data: ", seconds(20)));
    std::ofstream(offset, std::ios::binary).write(reinterpret_cast<const char*>(&jump), sizeof jump);
    EXPECT_TRUE(stream.receive_until("[DONE]", seconds(20)));
    EXPECT_EQ(ask(server), text_);
  }
  fs::remove(offset);
  EXPECT_EQ(server.end(SIGTERM), 0);
}

TEST_F(ScarceResources, StoppedAndContinued) {
  ServeProcess server;
  ASSERT_TRUE(server.wait_until_ready());
  for (int i = 0; i < 20; ++i) {
    std::thread pauses([&] {
      for (int pause = 0; pause < 5; ++pause) {
        std::this_thread::sleep_for(milliseconds(3 * i));
        server.send(SIGSTOP);
        std::this_thread::sleep_for(milliseconds(20));
        server.send(SIGCONT);
      }
    });
    EXPECT_EQ(ask(server), text_);
    pauses.join();
  }
}

// SIGHUP reads keys and certificates again, and SIGTERM ends the server with what runs.
TEST_F(ScarceResources, SignalsUnderLoad) {
  ServeProcess server;
  ASSERT_TRUE(server.wait_until_ready());
  for (int i = 0; i < 200; ++i) {
    std::thread hang_up([&] { server.send(SIGHUP); });
    if (i % 20 == 0) {
      EXPECT_EQ(ask(server), text_);
    }
    hang_up.join();
  }
  TestClient stream(server.port());
  stream.send(post_text("/v1/completions", completion_of("The dog", 200, true)));
  ASSERT_TRUE(stream.receive_until("data: ", seconds(20)));
  std::thread drain([&] { EXPECT_EQ(server.end(SIGTERM), 0); });
  EXPECT_TRUE(stream.receive_until("[DONE]", seconds(20)));
  drain.join();
}

}  // namespace
}  // namespace outrider
