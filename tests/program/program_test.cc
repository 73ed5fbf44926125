// SPDX-License-Identifier: Apache-2.0
// The built program as users run it: exit codes, one-line errors, sources of settings and prompts.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "tests/program/program_fixture.h"

namespace outrider {
namespace {

// The files that packages install for shells and readers are written from the tables.
TEST_F(ProgramTest, FilesForShellsAreCurrent) {
  const std::string folder = OUTRIDER_SOURCE_DIR "/packaging/";
  for (const std::string shell : {"bash", "zsh", "fish"}) {
    EXPECT_EQ(contents(folder + "completions/outrider." + shell), run("options " + shell).output)
        << "run: ./dev docs";
  }
  EXPECT_EQ(contents(folder + "outrider.1"), run("options man").output) << "run: ./dev docs";
  expect_refused("options csh", 2, "expected foreign, bash, zsh, fish or man");
}

TEST_F(ProgramTest, BashCompletesCommandsOptionsAndChoices) {
  const auto completed = [&](const std::string& words) {
    const std::string script = ". " OUTRIDER_SOURCE_DIR "/packaging/completions/outrider.bash; COMP_WORDS=(" +
                               words +
                               "); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _outrider; echo ${COMPREPLY[@]}";
    const std::string file = (folder_ / "completed").string();
    EXPECT_EQ(std::system(("bash -c '" + script + "' > " + file).c_str()), 0);
    return contents(file);
  };
  EXPECT_EQ(completed("outrider gen"), "generate\n");
  EXPECT_EQ(completed("outrider serve --api-k"), "--api-key --api-key-file\n");
  EXPECT_EQ(completed("outrider generate m --weights q8"), "q8_0 q8\n");
  EXPECT_EQ(completed("outrider bench --row"), "--rows\n");
}

TEST_F(ProgramTest, WrongUsageExitsWithTwo) {
  expect_refused("", 2, "expected a command");
  EXPECT_EQ(run("help").output, run("--help").output);
  EXPECT_EQ(run("help bench rows").output, run("bench rows --help").output);
  EXPECT_EQ(run("-V").output, run("--version").output);
  EXPECT_EQ(run("show " + kModel).output, run("inspect " + kModel).output);
  EXPECT_EQ(run("ls --help").output, run("models --help").output);
  expect_refused("help generat", 2, "did you mean 'generate'");
  expect_refused("frobnicate", 2, "unknown command 'frobnicate'; commands: ");
  expect_refused("frobnicate", 2, "inspect, bench, verify-lossless");
  expect_refused("generat", 2, "did you mean 'generate'");
  expect_refused("serv", 2, "did you mean 'serve'");
  expect_refused("serve " + kModel + " --port 70000", 2, "--port");
  expect_refused("generate " + kModel + " -p x --max-token 4", 2, "did you mean '--max-tokens'");
  expect_refused("generate " + kModel + " -p x --max-tokens -4", 2, "--max-tokens: expected a whole number");
  expect_refused("generate " + kModel + " -p x --max-tokens four", 2, "found 'four'");
  expect_refused("generate " + kModel + " -p x --max-tokens", 2, "--max-tokens");
  expect_refused("generate " + kModel + " -p x --temperature -1", 2, "--temperature: expected a number");
  expect_refused("generate " + kModel + " --prompt-ids 1,x", 2, "--prompt-ids: expected token ids");
  expect_refused("generate " + kModel, 2, "expected exactly one of --prompt");
  expect_refused("generate " + kModel + " -p x --prompt-ids 1", 2, "found several");
  expect_refused("generate " + kModel + " " + kModel + " -p x", 2, "unexpected argument");
  expect_refused("generate " + kModel + " -p x --speculative ngrm", 2, "did you mean 'NGram'");
  expect_refused("generate " + kModel + " -p x --speculative zebra", 2, "None, NGram, DraftTarget");
  expect_refused("generate " + kModel + " -p x --speculative eagle3", 2, "speculative_model=DIR");
  expect_refused("generate " + kModel + " -p x --speculative ngram,max_draft_len=65", 2, "from 0 to 64");
  expect_refused("generate " + kModel + " -p x --speculative draft_target", 2, "speculative_model=DIR");
  expect_refused("generate " + kModel + " -p x --acceptance lenient", 2, "coupled, rejection");
  expect_refused("generate " + kModel + " -p x --weights f16", 2, "auto, f32, bf16");
  expect_refused("generate " + kModel + " -p x --kernels sse9", 2, "reference");
  expect_refused("generate " + kModel + " -p x", 2, "OUTRIDER_SEED: expected", "OUTRIDER_SEED=minus");
  expect_refused("bench " + kModel + " --show-draft", 2, "unknown option '--show-draft'");
  expect_refused("generate " + kModel + " -p x --show-draft --show-tree", 2, "found both");
  expect_refused("bench " + kModel + " --rows 1 --trace x.html", 2, "--rows or --trace");
}

TEST_F(ProgramTest, HelpIsShortOrWhole) {
  const auto options = [&](const std::string& arguments) {
    const std::string text = run(arguments).output;
    int count = 0;
    for (size_t at = text.find("\n  -"); at != std::string::npos; at = text.find("\n  -", at + 1)) ++count;
    return count;
  };
  for (const std::string command :
       {"generate", "chat", "serve", "bench", "bench rows", "quantize", "doctor"}) {
    EXPECT_LE(options(command + " -h"), 11) << command;  // --help among them
    EXPECT_GE(options(command + " -h"), 3) << command;
  }
  EXPECT_GT(options("generate --help"), 40);
  EXPECT_NE(run("generate --help").output.find("Sampling"), std::string::npos);
}

TEST_F(ProgramTest, BenchHasCommandsThatOptionsStandFor) {
  const std::string rest = " --context 8 --runs 1 --json";
  for (const std::string& command :
       {"bench rows " + kModel + " --rows 1,3", "bench " + kModel + " --rows=1,3"})
    EXPECT_EQ(run_json(command + rest)["rows"].size(), 2u) << command;
  EXPECT_EQ(run_json("bench rows " + kModel + rest)["rows"].size(), 3u);
  expect_refused("bench rows " + kModel + " --batch 2", 2, "found both");
  expect_refused("bench batch " + kModel + " --prompt-length 2", 2, "unknown option");
}

TEST_F(ProgramTest, FailedRunsExitWithOne) {
  expect_refused("generate /nonexistent/model -p x", 1, "/nonexistent/model");
  expect_refused("generate " + write("not-a-model", "hello") + " -p x", 1, "not-a-model");
  expect_refused("generate " + folder_.string() + " -p x", 1, folder_.string());
  expect_refused("inspect " + write("short.gguf", "GGUF"), 1, "short.gguf");
  expect_refused("generate " + kModel + " --prompt-file /nonexistent/prompt", 1, "/nonexistent/prompt");
  expect_refused("generate " + kModel + " --prompt-ids 999999", 1, "999999");
  expect_refused("tokenize " + kModel + " --ids 999999", 1, "999999");
  expect_refused("generate " + kModel + " -p x --speculative missing.yaml", 1, "missing.yaml");
  expect_refused("bench " + kModel + " --prompts " + write("p.jsonl", "{\"prompt\": 3}\n"), 1, "p.jsonl:1");
}

TEST_F(ProgramTest, PromptLongerThanTheContext) {
  const std::string prompt = write("long.txt", std::string(5000, 'x'));
  expect_refused("generate " + kModel + " --ctx 64 --prompt-file " + prompt, 1, "context");
  expect_refused("score " + kModel + " --ctx 64 --text-file " + prompt, 1, "context");
  expect_refused("chat " + kModel, 1, "chat template", "echo hello |");
}

TEST_F(ProgramTest, YamlErrorsNameTheLineAndTheNearestKey) {
  const std::string config = write("run.yaml", "seed: 1\nmax_tokns: 4\n");
  expect_refused("generate " + kModel + " -p x --config " + config, 1,
                 "run.yaml:2: unknown key 'max_tokns'; did you mean 'max_tokens'");
  const std::string speculation =
      write("s.yaml", "speculative_config:\n  decoding_type: NGram\n  max_draft_ln: 3\n");
  expect_refused("generate " + kModel + " -p x --speculative " + speculation, 2, "s.yaml:3");
}

TEST_F(ProgramTest, CommandLineBeforeEnvironmentBeforeFile) {
  const std::string config = " --config " + write("run.yaml", "max_tokens: 3\n");
  const std::string common = "generate " + kModel + " -p a --ignore-eos --json";
  EXPECT_EQ(run_json(common + config)["token_ids"].size(), 3u);
  EXPECT_EQ(run_json(common + config, "OUTRIDER_MAX_TOKENS=4")["token_ids"].size(), 4u);
  EXPECT_EQ(run_json(common + config + " --max-tokens 5", "OUTRIDER_MAX_TOKENS=4")["token_ids"].size(), 5u);
}

TEST_F(ProgramTest, PromptFromStandardInputAndText) {
  const std::string common = "generate " + kModel + " --max-tokens 6 --json -p ";
  EXPECT_EQ(run_json(common + "-", "printf 'hello' |")["token_ids"], run_json(common + "hello")["token_ids"]);
  const Outcome text = run("generate " + kModel + " --max-tokens 6 -p hello");
  EXPECT_EQ(text.exit_code, 0);
  EXPECT_EQ(text.errors, "");
}

TEST_F(ProgramTest, ScoreGivesOneNumberPerToken) {
  const Json json = run_json("score " + kModel + " --prompt-ids 1,2,3 --json");
  EXPECT_EQ(json["token_ids"], Json({1, 2, 3}));
  ASSERT_EQ(json["logprobs"].size(), 3u);
  EXPECT_TRUE(json["logprobs"][0].is_null());
  EXPECT_LT(json["logprobs"][1], 0.0);
  EXPECT_NE(run("score " + kModel + " --prompt-ids 1,2,3").output.find("perplexity"), std::string::npos);
}

TEST_F(ProgramTest, TokenizeGoesBothWays) {
  const Json json = run_json("tokenize " + kModel + " --text 'hello world' --json");
  std::string ids;
  for (const Json& id : json["token_ids"]) ids += (ids.empty() ? "" : ",") + id.dump();
  EXPECT_EQ(run("tokenize " + kModel + " --text 'hello world'").output, ids + "\n");
  EXPECT_NE(run("tokenize " + kModel + " --ids " + ids).output.find("hello world\n"), std::string::npos);
}

TEST_F(ProgramTest, FrequentTokensAreATokenMap) {
  EXPECT_EQ(run("tokenize " + kModel + " --ids 9,4,9,7,9,7,30 --frequent 3").output, "[9,7,4]\n");
  std::ofstream(folder_ / "map.json") << run("tokenize " + kModel + " --ids 9,4,9 --frequent 8").output;
  const std::string draft = " --speculative draft_target,speculative_model=" + kModel +
                            ",speculative_token_map=" + (folder_ / "map.json").string();
  const std::string plain = run("generate " + kModel + " -p hello --max-tokens 12").output;
  EXPECT_EQ(run("generate " + kModel + " -p hello --max-tokens 12" + draft).output, plain);
}

TEST_F(ProgramTest, InspectListsTensors) {
  const Json json = run_json("inspect " + kModel + " --json");
  EXPECT_EQ(json["config"]["family"], "llama");
  EXPECT_GT(json["parameters"], 0);
  EXPECT_EQ(json["tensors"][0]["name"], "lm_head.weight");
  EXPECT_NE(run("inspect " + kModel + ".gguf").output.find("model.norm.weight"), std::string::npos);
}

TEST_F(ProgramTest, InspectNeedsNoWeights) {
  std::filesystem::copy(kModel + "/config.json", folder_ / "config.json");
  const Json json = run_json("inspect " + folder_.string() + " --json");
  EXPECT_EQ(json["format"], "no weights");
  EXPECT_EQ(json["config"]["family"], "llama");
  EXPECT_EQ(json["tokenizer"]["kind"], "none");
  std::filesystem::copy(kModel + "/tokenizer.json", folder_ / "tokenizer.json");
  EXPECT_NE(run("inspect " + folder_.string()).output.find("byte-level BPE"), std::string::npos);
  expect_refused("generate " + folder_.string() + " -p x", 1, "model.safetensors");
}

TEST_F(ProgramTest, PsListsServersWithoutTheirKeys) {
  const std::string server =
      "timeout --preserve-status -s TERM 3 " OUTRIDER_PROGRAM " serve " + kModel +
      " --port 0 --api-key 0123456789abcdef --api-key=fedcba9876543210 >/dev/null 2>&1 &";
  const std::string listed =
      " until " OUTRIDER_PROGRAM " ps 2>/dev/null | grep -q api-key; do sleep 0.1; done;";
  for (const char* form : {"ps", "ps --json"}) {
    const std::string text = run(form, server + listed).output;
    EXPECT_NE(text.find("***"), std::string::npos) << text;
    EXPECT_NE(text.find("--api-key=***"), std::string::npos) << text;
    EXPECT_EQ(text.find("0123456789abcdef"), std::string::npos) << text;
    EXPECT_EQ(text.find("fedcba9876543210"), std::string::npos) << text;
  }
}

TEST_F(ProgramTest, HelpAndVersion) {
  const std::string version = run("--version").output;
  EXPECT_TRUE(version.starts_with("outrider 0.")) << version;
  EXPECT_NE(version.find("\nkernels of this machine: "), std::string::npos) << version;
  EXPECT_NE(version.find("\nGPU: "), std::string::npos) << version;
  EXPECT_NE(run("--help").output.find("verify-lossless"), std::string::npos);
  const Outcome help = run("generate --help");
  EXPECT_EQ(help.exit_code, 0);
  EXPECT_NE(help.output.find("--repetition-penalty"), std::string::npos);
}

}  // namespace
}  // namespace outrider
