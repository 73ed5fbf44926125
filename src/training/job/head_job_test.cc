// SPDX-License-Identifier: Apache-2.0
// Whole jobs over small random models.
#include "training/job/head_job.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "open/drafters/drafter_search.h"
#include "training/core/test_files.h"

namespace outrider::training {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class HeadJobTest : public testing::Test {
 protected:
  // A copy of a model of tests/data, so that its heads lie beside it and nowhere else.
  fs::path model(const std::string& name, const std::string& folder = "models") {
    const fs::path copy = files_.path(folder) / name;
    fs::create_directories(copy.parent_path());
    fs::copy(fs::path(OUTRIDER_SOURCE_DIR) / "tests/data/models" / name, copy, fs::copy_options::recursive);
    return copy;
  }

  JobOptions options(const fs::path& target, const std::string& out) const {
    JobOptions options;
    options.model = target;
    options.out = files_.path(out);
    options.steps = 4;
    options.head.context = 32;
    options.head.batch_tokens = 64;
    options.head.response_tokens = 12;
    options.head.prompt_limit = 2;
    options.head.measured_tokens = 8;
    options.head.threads = 1;
    return options;
  }

  nlohmann::json done(const std::string& out) const {
    return nlohmann::json::parse(files_.read(out + "/job.json")).at("done");
  }

  static std::string error_of(const JobOptions& options) {
    const Status status = run_head_job(options);
    return status.ok() ? std::string() : status.error().message;
  }

  // The head that `auto` takes for this model.
  static fs::path found_head(const fs::path& target) {
    const auto file = open_model(target);
    EXPECT_TRUE(file.ok());
    const DrafterSearch search = find_drafters(*file);
    return search.found.empty() ? fs::path() : search.found.front().path;
  }

  TestFiles files_;
};

TEST_F(HeadJobTest, MakesAHeadThatAutoFinds) {
  const fs::path target = model("llama_tied");
  const JobOptions job = options(target, "job");
  ASSERT_EQ(error_of(job), "");
  const fs::path head = target.parent_path() / "llama_tied-eagle3";
  EXPECT_TRUE(fs::equivalent(found_head(target), head));
  const nlohmann::json pieces = done("job");
  EXPECT_GT(pieces.at("text").at("tokens"), 100);
  for (const char* piece : {"measured in 16 bits", "measured in 8 bits", "measured in 4 bits"})
    EXPECT_GE(pieces.at(piece).at("tree"), 1.0);
  EXPECT_GT(pieces.at("proof").at("tokens"), 20);  // that equal the plain ones
  const auto config = nlohmann::json::parse(files_.read("models/llama_tied-eagle3/config.json"));
  EXPECT_TRUE(config.contains("outrider_ranking_temperature"));
  EXPECT_EQ(config.contains("quantization_config"), pieces.at("measuring").at("bits") != 16);

  // Once more, nothing is left to do.
  const auto time = fs::last_write_time(files_.path("job/job.json"));
  ASSERT_EQ(error_of(job), "");
  EXPECT_EQ(fs::last_write_time(files_.path("job/job.json")), time);
}

TEST_F(HeadJobTest, EveryFamilyGetsOne) {
  for (const std::string name : {"mixtral", "lfm2", "qwen3_5", "gemma3", "phi3", "gpt_oss", "gpt2"}) {
    SCOPED_TRACE(name);
    const fs::path target = model(name);
    JobOptions job = options(target, name + "-job");
    job.steps = 2;
    ASSERT_EQ(error_of(job), "");
    EXPECT_TRUE(fs::equivalent(found_head(target), target.parent_path() / (name + "-eagle3")));
    fs::remove_all(files_.path("models"));
  }
}

TEST_F(HeadJobTest, APlanIsAllThatADryRunMakes) {
  JobOptions job = options(model("llama_tied"), "job");
  job.is_dry = true;
  ASSERT_EQ(error_of(job), "");
  EXPECT_FALSE(fs::exists(job.out));
}

TEST_F(HeadJobTest, FoldersOfOtherJobsAreRefused) {
  const JobOptions job = options(model("llama_tied"), "job");
  files_.write_bytes("job/job.json", "{}");
  EXPECT_THAT(error_of(job), HasSubstr("not the state of a job"));
  fs::remove_all(job.out);
  ASSERT_EQ(error_of(job), "");

  JobOptions other = job;
  other.steps = 5;
  EXPECT_THAT(error_of(other), HasSubstr("holds a job with --steps 4, found --steps 5 now"));
  other = job;
  other.model = model("qwen3");
  EXPECT_THAT(error_of(other), HasSubstr("holds a job with MODEL \"llama_tied"));
  other = job;
  other.head.seed = 2;
  EXPECT_THAT(error_of(other), HasSubstr("--seed"));
}

TEST_F(HeadJobTest, ErrorsNameWhatIsExpected) {
  JobOptions job = options(model("gemma2"), "job");
  job.kind = "draft";
  EXPECT_THAT(error_of(job), HasSubstr("--kind: expected eagle3"));
  job.kind = "mtp";
  EXPECT_THAT(error_of(job), HasSubstr("expected a target of the form of Llama"));
  job.kind = "eagle3";
  job.model = "no-such-model";
  EXPECT_THAT(error_of(job), HasSubstr("no such model"));
  EXPECT_FALSE(fs::exists(job.out));
}

TEST_F(HeadJobTest, GivenTextComesFirst) {
  std::string lines;
  for (int i = 0; i < 20; ++i) lines += R"({"prompt": "number )" + std::to_string(i) + "\"}\n";
  files_.write_bytes("a.jsonl", lines);
  files_.write_bytes("b.txt", std::string("one text\nof two lines\n\nanother text\n"));
  JobOptions job = options(model("llama_tied"), "job");
  job.text = {files_.path("a.jsonl"), files_.path("b.txt")};
  ASSERT_EQ(error_of(job), "");
  // 48 prompts are the least; the model writes what is missing.
  const std::string questions = files_.read("job/responses/questions.jsonl");
  EXPECT_EQ(std::ranges::count(questions, '\n'), 26);
}

// The program in a process of its own.
class KilledJobTest : public HeadJobTest {
 protected:
  pid_t start(const fs::path& target, const std::string& out) const {
    std::vector<std::string> words = {OUTRIDER_TRAIN,
                                      "head",
                                      target.string(),
                                      "--out",
                                      files_.path(out).string(),
                                      "--steps",
                                      "12",
                                      "--context",
                                      "32",
                                      "--batch-tokens",
                                      "64",
                                      "--response-tokens",
                                      "12",
                                      "--prompt-limit",
                                      "2",
                                      "--measured-tokens",
                                      "8",
                                      "--threads",
                                      "1"};
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    const std::string log = files_.path("log").string();
    fs::remove(log);
    const pid_t child = fork();
    if (child != 0) return child;
    const int file = ::open(log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    dup2(file, STDOUT_FILENO);
    dup2(file, STDERR_FILENO);
    execv(OUTRIDER_TRAIN, arguments.data());
    _exit(127);
  }

  int wait_for(pid_t child) const {
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

  // Runs until the output has this text, and kills it; false: it ended before.
  bool kill_at(const fs::path& target, const std::string& out, const std::string& text) const {
    const pid_t child = start(target, out);
    while (files_.read("log").find(text) == std::string::npos) {
      if (waitpid(child, nullptr, WNOHANG) == child) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(4));
    }
    kill(child, SIGKILL);
    return wait_for(child) == -1;
  }
};

TEST_F(KilledJobTest, AnyStageGoesOnToTheSameHead) {
  const fs::path whole = model("llama_tied"), cut = model("llama_tied", "cut");
  ASSERT_EQ(wait_for(start(whole, "whole-job")), 0) << files_.read("log");
  for (const char* place : {"measuring this machine", "stage 1 of 5", "writing questions",
                            "answering prompts", "stage 2 of 5", "training eagle3 ", "checkpoint at step",
                            "stage 3 of 5", "16 bits", "8 bits", "stage 4 of 5", "stage 5 of 5"}) {
    SCOPED_TRACE(place);
    EXPECT_TRUE(kill_at(cut, "cut-job", place)) << files_.read("log");
  }
  ASSERT_EQ(wait_for(start(cut, "cut-job")), 0) << files_.read("log");
  EXPECT_THAT(files_.read("log"), HasSubstr("outrider generate"));
  for (const char* file : {"llama_tied-eagle3/config.json", "llama_tied-eagle3/model.safetensors"})
    EXPECT_EQ(files_.read(std::string("models/") + file), files_.read(std::string("cut/") + file)) << file;
  EXPECT_EQ(done("whole-job").at("measuring"), done("cut-job").at("measuring"));
}

}  // namespace
}  // namespace outrider::training
