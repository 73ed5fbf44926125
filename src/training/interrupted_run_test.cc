// SPDX-License-Identifier: Apache-2.0
// Kills outrider-train at random points and limits the size of its files; the files on disk must let it
// resume.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "config/environment.h"
#include "training/core/checkpoint.h"
#include "training/heads/head_run_fixture.h"

namespace outrider::training {
namespace {

using std::chrono::milliseconds;

constexpr int64_t kSteps = 24, kInterval = 2;
const char* const kLast = "/checkpoints/step-000000024";

class InterruptedRun : public HeadRunTest {
 protected:
  // file_limit: largest size of a file in bytes, which imitates a full disk; 0: no limit.
  pid_t start(const std::string& out, bool resumes, rlim_t file_limit = 0) {
    std::vector<std::string> words = {OUTRIDER_TRAIN,
                                      "mtp",
                                      "--target",
                                      target_path().string(),
                                      "--data",
                                      files_.path("text.jsonl").string(),
                                      "--out",
                                      files_.path(out).string(),
                                      "--context",
                                      "32",
                                      "--batch-tokens",
                                      "64",
                                      "--steps",
                                      std::to_string(kSteps),
                                      "--checkpoint-every",
                                      std::to_string(kInterval),
                                      "--evaluate-every",
                                      "12",
                                      "--threads",
                                      "1",
                                      "--prompt-limit",
                                      "1",
                                      "--measured-tokens",
                                      "4"};
    if (resumes) words.push_back("--resume");
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    const std::string log = files_.path("log").string();
    const pid_t child = fork();
    if (child != 0) return child;
    const int file = open(log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    dup2(file, STDOUT_FILENO);
    dup2(file, STDERR_FILENO);
    if (file_limit > 0) {
      signal(SIGXFSZ, SIG_IGN);  // write() fails instead, as on a full disk
      const rlimit limit = {file_limit, file_limit};
      setrlimit(RLIMIT_FSIZE, &limit);
    }
    execv(OUTRIDER_TRAIN, arguments.data());
    _exit(127);
  }

  static int wait_for(pid_t child) {
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

  // The step in the last line of the output that begins so; 0 if there is none.
  int64_t said(const std::string& what) const {
    const std::string log = files_.read("log");
    const size_t place = log.rfind(what);
    if (place == std::string::npos) return 0;
    return std::strtoll(log.c_str() + log.find_first_of("0123456789", place), nullptr, 10);
  }

  void expect_same(const std::string& file) const {
    EXPECT_EQ(files_.read("whole" + file), files_.read("cut" + file)) << file;
  }

  std::optional<std::filesystem::path> newest(const std::string& out) const {
    return latest_checkpoint(files_.path(out + "/checkpoints"));
  }

  // Starts the run, kills it at a random time and resumes it, up to eight times, and lets it end. Counts the
  // kills.
  int kill_until_done(milliseconds whole) {
    constexpr int kAttempts = 8;  // in the last one the run may end
    int kills = 0;
    for (int attempt = 0;; ++attempt) {
      const pid_t child = start("cut", newest("cut").has_value());
      if (attempt < kAttempts) {
        const auto percent = static_cast<int64_t>(25 + random_() % 50);
        std::this_thread::sleep_for(milliseconds(percent * whole.count() / 100));
        kill(child, SIGKILL);
      }
      const int code = wait_for(child);
      kills += code == -1 ? 1 : 0;
      expect_kept();
      if (attempt < kAttempts && code != 0) continue;
      EXPECT_EQ(code, 0) << files_.read("log");
      return kills;
    }
  }

  // The last checkpoint that the program told of is there.
  void expect_kept() const {
    const int64_t kept = said("checkpoint at step ");
    if (kept == 0) return;
    ASSERT_TRUE(newest("cut").has_value());
    const std::string name = newest("cut")->filename().string();
    // A checkpoint may be complete before the program reports it.
    EXPECT_GE(std::stoll(name.substr(name.find('-') + 1)), kept);
  }

  std::mt19937_64 random_{20240229};
};

// OUTRIDER_CHAOS_RUNS kills at least, else a few.
TEST_F(InterruptedRun, KilledAnywhereItLosesAtMostOneIntervalAndNoBit) {
  const auto begin = std::chrono::steady_clock::now();
  ASSERT_EQ(wait_for(start("whole", false)), 0) << files_.read("log");
  auto whole = std::chrono::duration_cast<milliseconds>(std::chrono::steady_clock::now() - begin);
  const auto variables = read_environment();
  const auto wanted = variables.find("OUTRIDER_CHAOS_RUNS");
  int kills = 0;
  do {
    std::filesystem::remove_all(files_.path("cut"));
    const int more = kill_until_done(whole);
    if (HasFatalFailure()) return;
    if (more == 0) whole /= 2;  // the machine was busier when the run was timed
    kills += more;
    for (const char* file : {"/tensors.safetensors", "/state.json"}) expect_same(std::string(kLast) + file);
    expect_same("/model.safetensors");
  } while (kills < (wanted == variables.end() ? 1 : std::atoi(wanted->second.c_str())) && !HasFailure());
  std::printf("%d kills\n", kills);
}

TEST_F(InterruptedRun, ASignalEndsItAfterACheckpointOfItsLastStep) {
  for (const int sent : {SIGINT, SIGTERM}) {
    std::filesystem::remove_all(files_.path("cut"));
    std::filesystem::remove(files_.path("log"));
    const pid_t child = start("cut", /*resumes=*/false);
    while (said("checkpoint at step ") == 0) std::this_thread::sleep_for(milliseconds(1));
    kill(child, sent);
    EXPECT_EQ(wait_for(child), 1) << files_.read("log");
    const int64_t stopped = said("stopped at step ");
    ASSERT_GT(stopped, 0) << files_.read("log");
    EXPECT_LT(stopped, kSteps);
    EXPECT_EQ(said("checkpoint at step "), stopped);
    EXPECT_EQ(wait_for(start("cut", /*resumes=*/true)), 0) << files_.read("log");
    EXPECT_TRUE(std::filesystem::exists(files_.path(std::string("cut") + kLast)));
  }
}

TEST_F(InterruptedRun, AFullDiskLeavesThePreviousCheckpoint) {
  ASSERT_EQ(wait_for(start("whole", false)), 0) << files_.read("log");
  std::filesystem::create_directories(files_.path("cut/checkpoints"));
  const std::string early = "/checkpoints/step-000000022";
  std::filesystem::copy(files_.path("whole" + early), files_.path("cut" + early));
  // The limits leave room for nothing, for the export but no checkpoint, and for all but the last bytes.
  const auto size =
      std::filesystem::file_size(files_.path(std::string("whole") + kLast + "/tensors.safetensors"));
  for (const rlim_t limit : {rlim_t{4096}, static_cast<rlim_t>(size / 3), static_cast<rlim_t>(size - 1)}) {
    SCOPED_TRACE(limit);
    EXPECT_EQ(wait_for(start("cut", true, limit)), 1);
    const std::string log = files_.read("log");
    EXPECT_THAT(log, testing::HasSubstr("outrider-train: "));
    ASSERT_TRUE(newest("cut").has_value());
    EXPECT_EQ(newest("cut")->filename(), "step-000000022") << log;
  }
  ASSERT_EQ(wait_for(start("cut", true)), 0) << files_.read("log");
  for (const char* file : {"/tensors.safetensors", "/state.json"}) expect_same(std::string(kLast) + file);
}

}  // namespace
}  // namespace outrider::training
