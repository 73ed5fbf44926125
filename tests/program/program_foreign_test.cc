// SPDX-License-Identifier: Apache-2.0
// Configuration files and command lines of other systems run with the default models.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "tests/program/program_fixture.h"

namespace outrider {
namespace {

const std::string kFolder = OUTRIDER_SOURCE_DIR "/tests/data/peer_configs/";
const std::string kDefaults = OUTRIDER_SOURCE_DIR "/models/";
const std::string kText =
    " " + kDefaults + "outrider-small -p 'Once upon a time' --max-tokens 24 --cache-dir none --threads 2";

// The text of a fixture with one path replaced.
std::string with_path(const std::string& name, const std::string& path, const std::string& model) {
  std::string text = contents(kFolder + name);
  for (size_t at = text.find(path); at != std::string::npos; at = text.find(path, at + model.size()))
    text.replace(at, path.size(), model);
  return text;
}

int lines_of(const std::string& text) { return static_cast<int>(std::count(text.begin(), text.end(), '\n')); }

struct Snippet {
  std::string name, path, model;  // `path` of the fixture is `model` here
  std::string method;             // that drafts then
  int lines = 0;                  // on standard error
};

class ForeignProgramTest : public ProgramTest, public ::testing::WithParamInterface<Snippet> {};

// Every step drafts, whatever the passes cost on the machine that runs the test.
TEST_P(ForeignProgramTest, AFileForTrtllmServeGivesThePlainText) {
  const Snippet& snippet = GetParam();
  std::string text = with_path(snippet.name, snippet.path, kDefaults + snippet.model);
  const std::string section = "speculative_config:\n";
  text.insert(text.find(section) + section.size(), "  policy: fixed\n");
  const std::string file = write("config.yaml", text);
  const Json plain = run_json("generate --json" + kText);
  const Outcome outcome = run("generate --json --extra_llm_api_options " + file + kText);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.errors;
  const Json json = Json::parse(outcome.output, nullptr, false);
  EXPECT_EQ(json["text"], plain["text"]);
  EXPECT_EQ(json["speculation"]["method"], snippet.method);
  EXPECT_EQ(lines_of(outcome.errors), snippet.lines) << outcome.errors;
  EXPECT_GT(json["speculation"]["drafted"].get<int64_t>(), 0);
}

INSTANTIATE_TEST_SUITE_P(
    Snippets, ForeignProgramTest,
    ::testing::Values(
        Snippet{"trtllm_draft_target.yaml", "/path/to/draft_model", "outrider-draft", "draft_target", 1},
        Snippet{"trtllm_eagle_two_model.yaml", "/path/to/draft/model", "outrider-eagle3", "eagle3", 1},
        Snippet{"trtllm_eagle_one_model.yaml", "/path/to/draft/model", "outrider-eagle3", "eagle3", 1},
        Snippet{"trtllm_eagle3_dynamic_tree.yaml", "/path/to/eagle3", "outrider-eagle3", "eagle3", 1},
        Snippet{"trtllm_ngram.yaml", "/path/to/nothing", "", "ngram", 1},
        Snippet{"trtllm_mtp.yaml", "/path/to/nothing", "", "mtp", 0}),
    [](const auto& snippet) { return snippet.param.name.substr(0, snippet.param.name.find('.')); });

TEST_F(ProgramTest, BenchReadsAFileForTrtllmBench) {
  const std::string file =
      write("config.yaml",
            with_path("trtllm_eagle_two_model.yaml", "/path/to/draft/model", kDefaults + "outrider-eagle3"));
  const Outcome outcome = run("bench " + kDefaults + "outrider-small --config " + file +
                              " --limit 1 --runs 1 --max-tokens 8 --json --cache-dir none");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.errors;
  EXPECT_EQ(Json::parse(outcome.output, nullptr, false)["speculative_model"], kDefaults + "outrider-eagle3");
  EXPECT_NE(outcome.errors.find("disable_overlap_scheduler has no effect here"), std::string::npos);
}

// The server takes the command, listens, and ends by the signal.
TEST_F(ProgramTest, ServeTakesCommandsOfLlamaServerAndVllm) {
  const std::string draft = kDefaults + "outrider-draft", target = kDefaults + "outrider-small";
  const std::pair<std::string, int> commands[] = {
      {"serve -m " + target + " -md " + draft +
           " -c 512 -np 2 -ngl 99 -fa on --draft-max 8 --draft-min 1 --port 0",
       2},
      {"serve " + target + " --max_model_len 512 --max-num-seqs 2 --gpu-memory-utilization 0.9 --port 0" +
           " --served-model-name tiny --api-key 0123456789abcdef --speculative-config '{\"model\": \"" +
           draft + "\", \"num_speculative_tokens\": 5, \"method\": \"draft_model\"}'",
       1},
  };
  for (const auto& [command, lines] : commands) {
    // In the foreground, `timeout` sends the signal once; a second signal would end the draining server at
    // once.
    const Outcome outcome = run(command, "timeout --foreground --preserve-status -s TERM 2");
    EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
    EXPECT_TRUE(outcome.output.starts_with("listening on http://127.0.0.1:"))
        << outcome.output << outcome.errors;
    size_t said = 0, at = 0;
    while ((at = outcome.errors.find("has no effect here", at)) != std::string::npos) ++said, ++at;
    EXPECT_EQ(said, static_cast<size_t>(lines)) << outcome.errors;
  }
}

TEST_F(ProgramTest, WhatWouldChangeTheOutputIsRefused) {
  expect_refused("serve --lora-init-without-apply", 2, "is not supported here: write --lora NAME=PATH");
  expect_refused("serve --dtype int8", 2,
                 "--dtype: expected auto, bfloat16, float32, float, half, float16, found 'int8'");
  expect_refused("serve --speculative-algorithm NGRAM --speculative-accept-threshold-acc 0.5", 2,
                 "found '0.5'");
}

}  // namespace
}  // namespace outrider
