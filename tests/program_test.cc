// SPDX-License-Identifier: Apache-2.0
// The built program as its users run it: exit codes, one-line errors, what goes to which stream, JSON shapes.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "heads/made_up_head.h"

namespace {

using Json = nlohmann::json;

const std::string kModel = OUTRIDER_SOURCE_DIR "/tests/data/models/llama";
const std::string kOtherVocabulary = OUTRIDER_SOURCE_DIR "/tests/data/formats/qwen2";

struct Outcome {
  int exit_code = -1;
  std::string output;
  std::string errors;
};

std::string contents(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

class ProgramTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
    folder_ = std::filesystem::temp_directory_path() / (std::string("outrider_cli_") + info->name());
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name, std::ios::binary) << text;
    return (folder_ / name).string();
  }

  // `arguments` as a shell sees them; `before` sets variables or pipes something in.
  Outcome run(const std::string& arguments, const std::string& before = "") const {
    const std::string out = (folder_ / "stdout").string();
    const std::string err = (folder_ / "stderr").string();
    const std::string line = before + " " OUTRIDER_PROGRAM " " + arguments + " >" + out + " 2>" + err;
    const int status = std::system(line.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, contents(out), contents(err)};
  }

  Json run_json(const std::string& arguments, const std::string& before = "") const {
    const Outcome outcome = run(arguments, before);
    EXPECT_EQ(outcome.exit_code, 0) << arguments << ": " << outcome.errors;
    return Json::parse(outcome.output, nullptr, false);
  }

  void expect_refused(const std::string& arguments, int exit_code, const std::string& part,
                      const std::string& before = "") const {
    const Outcome outcome = run(arguments, before);
    EXPECT_EQ(outcome.exit_code, exit_code) << arguments << ": " << outcome.errors;
    EXPECT_EQ(outcome.output, "") << arguments;
    EXPECT_EQ(std::count(outcome.errors.begin(), outcome.errors.end(), '\n'), 1) << outcome.errors;
    EXPECT_TRUE(outcome.errors.starts_with("outrider: ")) << outcome.errors;
    EXPECT_NE(outcome.errors.find(part), std::string::npos) << arguments << ": " << outcome.errors;
  }

  std::filesystem::path folder_;
};

TEST_F(ProgramTest, WrongUsageExitsWithTwo) {
  expect_refused("", 2, "expected a command");
  expect_refused("generat", 2, "did you mean 'generate'");
  expect_refused("serv", 2, "did you mean 'serve'");
  expect_refused("serve " + kModel + " --port 70000", 2, "--port");
  expect_refused("bench serve", 2, "--url http://");
  expect_refused("bench serve --url https://h", 2, "TLS is not spoken");
  expect_refused("bench serve --url http://h --concurrency 1,0", 2, "numbers of requests from 1");
  expect_refused("bench serve --url http://h --concurrency 1 --request-rate 2", 2, "found both");
  expect_refused("bench serve --url http://h --goodput itl:3", 2, "ttft:200");
  expect_refused("bench --limit 3 serve --url http://h", 2, "behind 'bench serve'");
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

TEST_F(ProgramTest, FailedRunsExitWithOne) {
  expect_refused("generate /nonexistent/model -p x", 1, "/nonexistent/model");
  expect_refused("bench serve --url http://127.0.0.1:1", 1, "is the server running?");
  expect_refused("generate " + write("not-a-model", "hello") + " -p x", 1, "not-a-model");
  expect_refused("generate " + folder_.string() + " -p x", 1, folder_.string());
  expect_refused("inspect " + write("short.gguf", "GGUF"), 1, "short.gguf");
  expect_refused("generate " + kModel + " --prompt-file /nonexistent/prompt", 1, "/nonexistent/prompt");
  expect_refused("generate " + kModel + " --prompt-ids 999999", 1, "999999");
  expect_refused("tokenize " + kModel + " --ids 999999", 1, "999999");
  expect_refused("generate " + kModel + " -p x --speculative missing.yaml", 1, "missing.yaml");
  expect_refused("bench " + kModel + " --prompts " + write("p.jsonl", "{\"prompt\": 3}\n"), 1, "p.jsonl:1");
  expect_refused(
      "generate " + kModel + " -p x --speculative draft_target,speculative_model=" + kOtherVocabulary, 1,
      "vocabular");
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

TEST_F(ProgramTest, GenerateJsonHasTheContractsShape) {
  const Json json = run_json("generate " + kModel +
                             " --prompt-ids 1,2,3,1,2,3 --max-tokens 8 --ignore-eos --json "
                             "--speculative ngram,max_draft_len=3");
  ASSERT_TRUE(json.is_object());
  EXPECT_EQ(json["prompt_token_ids"], Json({1, 2, 3, 1, 2, 3}));
  EXPECT_EQ(json["token_ids"].size(), 8u);
  EXPECT_TRUE(json["text"].is_string());
  EXPECT_EQ(json["finish_reason"], "length");
  EXPECT_EQ(json["usage"]["total_tokens"], 14);
  for (const char* key : {"load_ms", "prompt_ms", "decode_ms", "tokens_per_second"}) {
    EXPECT_TRUE(json["timings"][key].is_number()) << key;
  }
  EXPECT_FALSE(json.contains("logprobs"));
  EXPECT_EQ(json["speculation"]["method"], "ngram");
  EXPECT_EQ(json["speculation"]["lossless"], true);
  for (const char* key : {"steps", "drafted", "accepted", "acceptance_length", "draft_ms", "verify_ms"}) {
    EXPECT_TRUE(json["speculation"][key].is_number()) << key;
  }
  EXPECT_TRUE(json["speculation"]["accepted_per_position"].is_array());
}

TEST_F(ProgramTest, GenerateListsLogProbabilities) {
  const std::string common = "generate " + kModel + " --prompt-ids 1,2,3 --max-tokens 6 --ignore-eos --json";
  const Json json = run_json(common + " --logprobs 2");
  ASSERT_EQ(json["logprobs"].size(), 6u);
  for (size_t i = 0; i < 6; ++i) {
    const Json& one = json["logprobs"][i];
    EXPECT_EQ(one["token_id"], json["token_ids"][i]);
    ASSERT_EQ(one["top_logprobs"].size(), 2u);
    EXPECT_EQ(one["top_logprobs"][0]["logprob"], one["logprob"]);  // greedy
    EXPECT_GE(one["logprob"], one["top_logprobs"][1]["logprob"]);
  }
  EXPECT_EQ(run_json(common + " --logprobs 0")["logprobs"][5]["top_logprobs"].size(), 0u);
  expect_refused("generate " + kModel + " -p x --logprobs 21", 2, "logprobs");
}

TEST_F(ProgramTest, SpeculationLeavesTheOutputAlone) {
  const std::string common =
      "generate " + kModel + " -p 'a b a b a b' --max-tokens 24 --temperature 0.8 --seed 5 --json";
  const Json plain = run_json(common);
  const Json ngram = run_json(common + " --speculative ngram");
  const Json draft = run_json(common + " --speculative draft_target,speculative_model=" + kModel);
  EXPECT_EQ(plain["token_ids"], ngram["token_ids"]);
  EXPECT_EQ(plain["token_ids"], draft["token_ids"]);
  EXPECT_EQ(draft["speculation"]["method"], "draft_target");
  EXPECT_GT(draft["speculation"]["accepted"], 0);
}

TEST_F(ProgramTest, SeveralDraftersLeaveTheOutputAlone) {
  const std::string common =
      "generate " + kModel + " -p 'a b a b a b' --max-tokens 24 --temperature 0.8 --seed 5 --json";
  const std::string model = "speculative_model=" + kModel;
  const Json plain = run_json(common);
  const std::vector<std::pair<std::string, std::string>> methods = {
      {"auto", "suffix"},
      {"auto," + model, "suffix+draft_target"},
      {"auto," + model + ",policy=fixed", "suffix+draft_target"},
      {"spec_infer,speculative_models=[" + kModel + "]", "spec_infer"},
      {"spec_infer,speculative_models=[" + kModel + "," + kModel + "],expansion=[2,2]", "spec_infer"},
      {"combine=[ngram,draft_target],max_total_draft_tokens=12," + model, "ngram+draft_target"},
      {"combine=[suffix,lookahead,early_exit],exit_layer=1,policy=auto", "suffix+lookahead+early_exit"},
      {"combine=[ngram,spec_infer],speculative_models=[" + kModel + "]", "ngram+spec_infer"},
  };
  for (const auto& [speculative, method] : methods) {
    const Json json = run_json(common + " --cache-dir none --speculative '" + speculative + "'");
    EXPECT_EQ(json["token_ids"], plain["token_ids"]) << speculative;
    EXPECT_EQ(json["speculation"]["method"], method) << speculative;
    // Where the policy decides, it may find that no draft pays here.
    const bool decides =
        speculative.find("policy=auto") != std::string::npos ||
        (speculative.starts_with("auto") && speculative.find("policy=") == std::string::npos);
    EXPECT_GE(json["speculation"]["drafted"], decides ? 0 : 1) << speculative;
  }
}

TEST_F(ProgramTest, WhatDraftersCannotBeCombinedOf) {
  const std::string common = "generate " + kModel + " -p x --speculative ";
  expect_refused(common + "combined", 2, "combine must name 1 to 32 drafters, found 0");
  expect_refused(common + "'combine=[]'", 2, "combine: expected methods that draft");
  expect_refused(common + "'combine=[ngram,none]'", 2, "found None");
  expect_refused(common + "'combine=[ngram,combined]'", 2, "found Combined");
  expect_refused(common + "'combine=[ngram,ngrm]'", 2, "did you mean 'NGram'");
  expect_refused(common + "'combine=[user_provided]'", 2, "UserProvided needs a drafter from a C++ program");
  expect_refused(common + "'combine=[ngram,draft_target]'", 2, "add speculative_model=DIR");
  expect_refused(common + "'combine=[ngram,spec_infer]'", 2, "add speculative_models=[DIR,DIR]");
  expect_refused(common + "spec_infer", 2, "spec_infer needs a draft model");
  expect_refused(common + "'ngram,combine=[ngram]'", 2, "belongs to Combined, found decoding_type NGram");
  expect_refused(common + "'auto,combine=[ngram]'", 2, "belongs to Combined, found decoding_type Auto");
  expect_refused(common + "'combine=[early_exit],exit_layer=2'", 2, "1 to 1 for a model of 2 layers");
  expect_refused(common + "'spec_infer,speculative_models=[/nonexistent]'", 1, "/nonexistent");
  expect_refused(common + "'combine=[ngram,draft_target],speculative_model=" + kOtherVocabulary + "'", 1,
                 "vocabular");
}

TEST_F(ProgramTest, DoctorTriesShapesThatCanBeUsed) {
  const std::string speculative = "draft_target,speculative_model=" + kModel;
  const std::string common = "doctor " + kModel + " --limit 1 --max-tokens 8 --ignore-eos --cache-dir none";
  const Json json = run_json(common + " --json --speculative " + speculative);
  EXPECT_EQ(json["method"], "draft_target");
  EXPECT_EQ(json["prompts"], 1);
  EXPECT_EQ(json["agreement"]["places"], 8);
  EXPECT_NEAR(json["agreement"]["kl_divergence"].get<double>(), 0.0, 1e-12);
  EXPECT_EQ(json["agreement"]["top_k_coverage"], Json({1.0, 1.0, 1.0, 1.0, 1.0}));
  EXPECT_EQ(json["miswired"], false);
  EXPECT_GT(json["plain_ms_per_token"], 0.0);
  EXPECT_EQ(json["shapes"].size(), 11u);
  for (const Json& shape : json["shapes"]) {
    const auto keys = shape["keys"].get<std::string>();
    EXPECT_GE(shape["acceptance_length"], 1.0) << keys;
    EXPECT_EQ(run("generate " + kModel + " -p x --max-tokens 2 --cache-dir none --speculative '" +
                  speculative + "," + keys + "'")
                  .exit_code,
              0)
        << keys;
  }
  EXPECT_GT(json["shapes"][2]["acceptance_length"], 2.0);  // it drafts for itself
  const Outcome text = run(common + " --speculative 'combine=[ngram,early_exit]'");
  EXPECT_EQ(text.exit_code, 0) << text.errors;
  EXPECT_EQ(text.errors, "");
  EXPECT_NE(text.output.find("agreement        over 8 places"), std::string::npos) << text.output;
  EXPECT_NE(text.output.find("\nverdict          "), std::string::npos) << text.output;
  EXPECT_EQ(run_json(common + " --json --speculative ngram")["agreement"].contains("kl_divergence"), false);
}

// Heads of this shape fit kModel; random ones are of no use.
void make_medusa(outrider::MadeUpHead& made, int64_t hidden = 64, int64_t vocab = 288) {
  made.tensors["0.0.linear.weight"] = {hidden, hidden};
  made.tensors["0.0.linear.bias"] = {hidden};
  made.tensors["0.1.weight"] = {vocab, hidden};
}

TEST_F(ProgramTest, DoctorRecognisesALearnedDrafter) {
  outrider::MadeUpHead made;
  make_medusa(made);
  const std::string common = "doctor " + kModel + " --limit 1 --max-tokens 8 --ignore-eos --cache-dir none ";
  const Json json = run_json(common + "--json --speculative-model " + made.write().string());
  EXPECT_EQ(json["method"], "medusa");
  EXPECT_EQ(json["drafter"]["kind"], "Medusa");
  EXPECT_EQ(json["drafter"]["hidden_size"], 64);
  EXPECT_EQ(json["drafter"]["vocab_size"], 288);
  EXPECT_EQ(json["drafter"]["trained_for_this_target"], nullptr);
  EXPECT_EQ(json["agreement"]["places"], 8);
  EXPECT_TRUE(json["agreement"].contains("kl_divergence"));  // it was given features, and drafted
  EXPECT_EQ(json["shapes"].back()["keys"], "tree=choices");
  EXPECT_GT(json["shapes"].back()["nodes"], 1.0);

  outrider::MadeUpHead other;
  make_medusa(other, 32, 300);
  other.config["outrider_target"] = "0123456789abcdef";
  const std::string path = other.write().string();
  for (const char* reason : {"this Medusa drafter does not fit", "hidden size 32, the target's is 64",
                             "300 tokens, the target's has 288", "fingerprint 0123456789abcdef"})
    expect_refused(common + "--speculative-model " + path, 1, reason);
}

TEST_F(ProgramTest, InspectShowsALearnedDrafter) {
  outrider::MadeUpHead made;
  make_medusa(made);
  made.config["medusa_num_heads"] = 1;
  const std::string path = made.write().string();
  const Json json = run_json("inspect --json " + path);
  EXPECT_EQ(json["drafter"]["kind"], "Medusa");
  EXPECT_EQ(json["config"]["medusa_num_heads"], 1);
  EXPECT_EQ(json["tensors"].size(), 3u);
  EXPECT_EQ(json["parameters"], 64 * 64 + 64 + 288 * 64);
  EXPECT_NE(run("inspect " + path).output.find("0.0.linear.bias"), std::string::npos);
}

TEST_F(ProgramTest, ADirectoryNamesItsMethod) {
  outrider::MadeUpHead made;
  make_medusa(made);
  const std::string path = made.write().string();
  const std::string common = "generate " + kModel + " -p hello --max-tokens 8 --ignore-eos --json ";
  const Json plain = run_json(common);
  for (const std::string& speculative :
       {"--speculative-model " + path, "--speculative speculative_model=" + path,
        "--speculative medusa --speculative-model " + path}) {
    const Json json = run_json(common + speculative);
    EXPECT_EQ(json["speculation"]["method"], "medusa") << speculative;
    EXPECT_EQ(json["text"], plain["text"]) << speculative;
  }
  EXPECT_EQ(run_json(common + "--speculative-model " + kModel)["speculation"]["method"], "draft_target");
  expect_refused(common + "--speculative draft_target,speculative_model=" + path, 1, "kind Medusa");
  expect_refused(common + "--speculative speculative_model=a --speculative-model b", 2, "keep one");
  expect_refused(common + "--speculative medusa", 2, "found none beside it");
}

TEST_F(ProgramTest, BenchAllComparesEveryDrafter) {
  outrider::MadeUpHead fits, other;
  make_medusa(fits);
  make_medusa(other, 32);
  std::filesystem::rename(fits.write(), folder_ / "fits");
  std::filesystem::rename(other.write(), folder_ / "other");
  const std::string page = (folder_ / "page.html").string();
  const std::string common = "bench " + kModel + " --all --limit 1 --runs 1 --max-tokens 8 --ignore-eos ";
  const Outcome outcome =
      run(common + "--nodes 8 --json --drafters " + folder_.string() + " --output " + page);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.errors;
  const Json json = Json::parse(outcome.output);
  EXPECT_EQ(json["nodes"], 8);
  EXPECT_EQ(json["levels"], 2);
  std::vector<std::string> names;
  for (const Json& row : json["drafters"]) {
    names.push_back(row["drafter"].get<std::string>() + " " + row["tree"].get<std::string>());
    for (const char* decoding : {"greedy", "sampled"}) {
      EXPECT_EQ(row[decoding]["identical"], true) << names.back();
      EXPECT_GE(row[decoding]["acceptance_length"], 1.0) << names.back();
      EXPECT_LE(row[decoding]["drafted"], 8 * row[decoding]["steps"].get<int>()) << names.back();
      EXPECT_GT(row[decoding]["speedup"], 0.0) << names.back();
      EXPECT_GE(row[decoding]["draft_share"], 0.0) << names.back();
    }
    const bool has_weights = names.back().find("Medusa") != std::string::npos;
    EXPECT_EQ(row["weight_bytes"].get<int>() > 0, has_weights) << names.back();
  }
  const std::vector<std::string> expected = {"NGram chain",
                                             "NGram dynamic",
                                             "Suffix chain",
                                             "Suffix dynamic",
                                             "Lookahead window",
                                             "EarlyExit chain",
                                             "EarlyExit dynamic",
                                             "Suffix+NGram chain",
                                             "Suffix+NGram dynamic",
                                             "Medusa fits chain",
                                             "Medusa fits dynamic",
                                             "Medusa fits choices",
                                             "Suffix+Medusa fits chain",
                                             "Suffix+Medusa fits dynamic"};
  EXPECT_EQ(names, expected);
  ASSERT_EQ(json["left_out"].size(), 1u);
  EXPECT_NE(json["left_out"][0]["reason"].get<std::string>().find("hidden size 32"), std::string::npos);
  EXPECT_NE(outcome.errors.find("left out: "), std::string::npos) << outcome.errors;
  EXPECT_NE(contents(page).find("Medusa fits"), std::string::npos);
  const Outcome text = run(common + "--drafters " + folder_.string());
  EXPECT_NE(text.output.find("Medusa fits"), std::string::npos) << text.output << text.errors;
  expect_refused(common + "--speculative ngram", 2, "--all or --speculative");
  expect_refused(common + "--drafters /nonexistent", 1, "/nonexistent");
  expect_refused(common + "--output /nonexistent/page.html", 1, "--output");
  expect_refused("bench " + kModel + " --output page.html", 2, "go with --all");
}

TEST_F(ProgramTest, DoctorNeedsADrafter) {
  expect_refused("doctor " + kModel + " --speculative none", 2, "expected a method in --speculative");
  expect_refused("doctor " + kModel + " --speculative ngram,max_draft_len=0", 2, "expected a method");
  expect_refused("doctor " + kModel + " --speculative draft_target,speculative_model=/nonexistent", 1,
                 "/nonexistent");
  expect_refused("doctor " + kModel + " --speculative draft_target,speculative_model=" + kOtherVocabulary, 1,
                 "vocabular");
}

TEST_F(ProgramTest, LossyRulesAreMarkedAndNeverVerified) {
  const std::string common =
      "generate " + kModel + " -p 'a b a b a b' --max-tokens 4 --json --speculative ngram";
  const Outcome typical = run(common + " --acceptance typical");
  EXPECT_EQ(typical.exit_code, 0) << typical.errors;
  EXPECT_EQ(Json::parse(typical.output)["speculation"]["lossless"], false);
  EXPECT_EQ(
      typical.errors,
      "outrider: warning: typical acceptance is lossy: with speculation the output is not the model's own\n");
  const Outcome relaxed = run(common + ",use_relaxed_acceptance_for_thinking=true,relaxed_topk=10");
  EXPECT_EQ(Json::parse(relaxed.output)["speculation"]["lossless"], false);
  EXPECT_NE(relaxed.errors.find("relaxed acceptance is lossy"), std::string::npos);
  EXPECT_EQ(run(common + " --acceptance rejection").errors, "");
  for (const char* rule : {"--acceptance typical", "--acceptance relaxed",
                           "--speculative ngram,use_relaxed_acceptance_for_thinking=true"}) {
    expect_refused("verify-lossless " + kModel + " " + rule, 2, "expects acceptance coupled or rejection");
  }
  expect_refused(common + ",use_relaxed_acceptance_for_thinking=true --acceptance rejection", 2,
                 "goes with coupled or relaxed");
  expect_refused(common + ",relaxed_space=bits", 2, "probability, log_probability");
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

TEST_F(ProgramTest, ShowDraftIsReadableWithoutColour) {
  const Outcome shown = run("generate " + kModel +
                            " -p 'a b a b' --max-tokens 12 --show-draft --speculative "
                            "draft_target,speculative_model=" +
                            kModel);
  EXPECT_EQ(shown.exit_code, 0) << shown.errors;
  EXPECT_EQ(shown.output.find('\x1b'), std::string::npos);
  EXPECT_NE(shown.output.find("[accepted] {corrected} <bonus> plain"), std::string::npos) << shown.output;
  EXPECT_NE(shown.output.find("acceptance length"), std::string::npos);
}

TEST_F(ProgramTest, ShowDraftAddsMarksAlone) {
  const std::string common = "generate " + kModel + " -p 'a b a b' --max-tokens 40 --temperature 0.9 ";
  const std::string plain = run(common).output;
  const std::string shown =
      run(common + "--show-draft --speculative draft_target,speculative_model=" + kModel).output;
  std::string without;
  for (const char c : shown.substr(0, shown.find("\n\n[accepted]"))) {
    if (std::string_view("[]{}<>").find(c) == std::string_view::npos) without += c;
  }
  std::string expected;
  for (const char c : plain.substr(0, plain.size() - 1)) {
    if (std::string_view("[]{}<>").find(c) == std::string_view::npos) expected += c;
  }
  EXPECT_EQ(without, expected);
}

TEST_F(ProgramTest, ShowTreePrintsEveryStep) {
  const std::string common = "generate " + kModel +
                             " -p 'a b a b' --max-tokens 20 --temperature 0.9 --top-p 0.5 --speculative "
                             "draft_target,expansion=[3,2],children=top,speculative_model=" +
                             kModel;
  const Outcome shown = run(common + " --show-tree");
  EXPECT_EQ(shown.exit_code, 0) << shown.errors;
  EXPECT_EQ(shown.errors, "");
  EXPECT_EQ(shown.output.find('\x1b'), std::string::npos);
  const Json json = run_json(common + " --show-tree --json");
  for (const char* part : {"step 1: ", "├─ ", "└─ + ", " ✓ ", " ✗ ", "not reached", "sampled out"})
    EXPECT_NE(shown.output.find(part), std::string::npos) << part << shown.output;
  const std::string cut =
      run("generate -p 'one two three one two four one two' --max-tokens 24 --temperature 1 --top-p 0.3 "
          "--show-tree --speculative ngram")
          .output;
  EXPECT_NE(cut.find("cut by top-p"), std::string::npos) << cut;
  EXPECT_NE(shown.output.find("\n" + json["text"].get<std::string>() + "\n"), std::string::npos);
  EXPECT_NE(shown.output.find("step " + std::to_string(json["speculation"]["steps"].get<int>()) + ": "),
            std::string::npos);
  EXPECT_NE(shown.output.find("acceptance length"), std::string::npos);
}

TEST_F(ProgramTest, JsonTraceAgreesWithTheCompletion) {
  const std::string common = "generate " + kModel +
                             " -p 'a b a b' --max-tokens 20 --json --speculative "
                             "draft_target,expansion=[2,2],speculative_model=" +
                             kModel;
  const Json json = run_json(common + " --show-tree");
  EXPECT_FALSE(run_json(common).contains("trace"));
  const Json& trace = json["trace"];
  EXPECT_EQ(trace["sources"], Json({"DraftTarget"}));
  EXPECT_EQ(trace["acceptance"], "coupled");
  Json committed = Json::array();
  int drafted = 0, accepted = 0;
  for (const Json& step : trace["steps"]) {
    for (const Json& token : step["committed"]["tokens"]) {
      committed.push_back(token);
      EXPECT_TRUE(trace["token_texts"].contains(token.dump()));
    }
    const Json& nodes = step["nodes"];
    for (const char* column : {"parents", "draft", "target", "sources", "fates", "causes"})
      EXPECT_EQ(nodes[column].size(), nodes["tokens"].size()) << column;
    drafted += static_cast<int>(nodes["tokens"].size()) - 1;
    for (size_t i = 1; i < nodes["fates"].size(); ++i) {
      accepted += nodes["fates"][i] == "accepted" ? 1 : 0;
      EXPECT_EQ(nodes["fates"][i] == "accepted", nodes["causes"][i] == "");
      EXPECT_LT(nodes["parents"][i], i);
    }
    EXPECT_GT(step["verify_ms"], 0.0);
    EXPECT_GE(step["other_ms"], 0.0);
  }
  EXPECT_EQ(committed, json["token_ids"]);
  EXPECT_EQ(drafted, json["speculation"]["drafted"]);
  EXPECT_EQ(accepted, json["speculation"]["accepted"]);
}

TEST_F(ProgramTest, TraceWritesAPageOrRefusesBeforehand) {
  const std::string page = write("trace.html", "old");
  const std::string generate = "generate " + kModel + " -p 'a b a b' --max-tokens 8 ";
  EXPECT_EQ(run(generate + "--speculative ngram --trace " + page).output, run(generate).output);
  EXPECT_TRUE(contents(page).starts_with("<!doctype html>"));
  EXPECT_NE(contents(page).find("\"sources\":[\"NGram\"]"), std::string::npos);
  const std::string prompts = write("p.jsonl", "{\"id\": \"</script>\", \"prompt\": \"a b a b a b\"}\n");
  const std::string bench = "bench " + kModel + " --runs 1 --max-tokens 8 --ignore-eos --speculative ngram ";
  EXPECT_EQ(run(bench + "--prompts " + prompts + " --trace " + page).exit_code, 0);
  EXPECT_NE(contents(page).find("\"runs\":[\"\\u003c/script>\"]"), std::string::npos);
  expect_refused(generate + "--trace /nonexistent/trace.html", 1, "--trace: cannot create /nonexistent");
  expect_refused(generate + "--trace " + folder_.string(), 1, "not a file");
  expect_refused(generate + "--trace /dev/full", 1, "not a file");
}

TEST_F(ProgramTest, ColourOnATerminalUnlessRefused) {
  if (std::system("command -v script >/dev/null") != 0)
    GTEST_SKIP() << "no script(1) to make a terminal with";
  const auto on_terminal = [&](const std::string& before, const std::string& view) {
    const std::string command = OUTRIDER_PROGRAM " generate " + kModel + " -p a --max-tokens 4 " + view;
    const std::string out = (folder_ / "typescript").string();
    EXPECT_EQ(
        std::system((before + " script -qec '" + command + "' " + out + " >/dev/null </dev/null").c_str()),
        0);
    return contents(out);
  };
  EXPECT_NE(on_terminal("env -u NO_COLOR", "--show-draft").find("\x1b[32m"), std::string::npos);
  EXPECT_EQ(on_terminal("NO_COLOR=1", "--show-draft").find("\x1b[32m"), std::string::npos);
  EXPECT_NE(on_terminal("env -u NO_COLOR", "--show-tree").find("\x1b[34m"), std::string::npos);
  EXPECT_EQ(on_terminal("NO_COLOR=1", "--show-tree").find("\x1b["), std::string::npos);
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

TEST_F(ProgramTest, InspectListsTensors) {
  const Json json = run_json("inspect " + kModel + " --json");
  EXPECT_EQ(json["config"]["family"], "llama");
  EXPECT_GT(json["parameters"], 0);
  EXPECT_EQ(json["tensors"][0]["name"], "lm_head.weight");
  EXPECT_NE(run("inspect " + kModel + ".gguf").output.find("model.norm.weight"), std::string::npos);
}

TEST_F(ProgramTest, BenchMeasuresBothAndCompares) {
  const std::string prompts =
      write("p.jsonl",
            "{\"id\": \"a\", \"domain\": \"x\", \"prompt\": \"a b a b a b\"}\n\n"
            "{\"question_id\": 7, \"category\": \"y\", \"turns\": [\"hello\", \"again\"]}\n");
  const Json json = run_json("bench " + kModel + " --prompts " + prompts +
                             " --runs 1 --max-tokens 8 --ignore-eos --json --speculative ngram");
  EXPECT_EQ(json["identical"], true);
  EXPECT_EQ(json["prompts"], 2);
  EXPECT_GE(json["acceptance_length"], 1.0);
  EXPECT_GT(json["speedup"], 0.0);
  EXPECT_EQ(json["categories"].size(), 2u);
  EXPECT_EQ(json["results"][1]["id"], "7");
  const Outcome text = run("bench " + kModel + " --limit 2 --runs 1 --max-tokens 8 --ignore-eos");
  EXPECT_NE(text.output.find("identical, all 2 prompts"), std::string::npos) << text.output << text.errors;
  EXPECT_EQ(text.errors, "");
}

TEST_F(ProgramTest, BenchTimesPassesByTheirRows) {
  const Json json = run_json("bench " + kModel + " --rows 1,3,70 --context 40 --runs 2 --json");
  EXPECT_EQ(json["context"], 40);
  EXPECT_EQ(json["rows"].size(), 3u);
  EXPECT_EQ(json["rows"][2]["rows"], 70);
  EXPECT_EQ(json["rows"][2]["ms"].size(), 2u);
  EXPECT_GT(json["rows"][0]["median_ms"], 0.0);
  EXPECT_EQ(json["read"]["ms"].size(), 2u);
  EXPECT_LT(json["streamed_bytes"], json["weight_bytes"]);
  expect_refused("bench " + kModel + " --rows 1,0", 2, "row counts from 1 to 4096");
  expect_refused("bench " + kModel + " --rows 1,,2", 2, "found '1,,2'");
  expect_refused("bench " + kModel + " --rows 8 --context 60 --ctx 64", 2, "60 tokens and 8 rows exceed");
  expect_refused("bench " + kModel + " --rows 65 --ctx 64", 2, "raise --ctx");
  expect_refused("bench " + kModel + " --context 60", 2, "goes with --rows");
}

TEST_F(ProgramTest, ThreadsArePinnedWhenAsked) {
  const std::string bench = "bench " + kModel + " --rows 1 --context 8 --runs 1 ";
  EXPECT_EQ(run_json(bench + "--json --pin on")["pinned"], true);
  EXPECT_EQ(run_json(bench + "--json --pin off")["pinned"], false);
  expect_refused(bench + "--pin on --threads 1024", 2, "one for each processor");
}

TEST_F(ProgramTest, PackedWeightsAreMappedByLaterStarts) {
  const std::string cache = " --packed-cache " + (folder_ / "packed").string();
  const std::string generate = "generate " + kModel + " -p hello --max-tokens 8";
  const Outcome plain = run(generate);
  const Outcome first = run(generate + cache);
  const Outcome second = run(generate + cache);
  EXPECT_EQ(first.output, plain.output);
  EXPECT_EQ(second.output, plain.output);
  EXPECT_EQ(second.errors, plain.errors);
  const std::string bench = "bench " + kModel + " --rows 1 --context 8 --runs 1 --json";
  EXPECT_EQ(run_json(bench)["maps_weights"], false);
  EXPECT_EQ(run_json(bench + cache)["maps_weights"], true);
}

TEST_F(ProgramTest, BenchRunsShapesAndSyntheticDrafts) {
  const std::string shape = "bench --shape llama-25m --weights q8 --runs 1 ";
  const Json rows = run_json(shape + "--rows 1,4 --context 8 --json");
  EXPECT_EQ(rows["weights"], "i8");
  EXPECT_EQ(rows["parameters"], 24680064);
  const Json json = run_json(shape +
                             "--limit 1 --max-tokens 40 --draft-shape llama-25m --json "
                             "--synthetic-acceptance 1");
  EXPECT_EQ(json["identical"], true);
  EXPECT_EQ(json["method"], "draft_target");
  EXPECT_EQ(json["acceptance_rate"], 1.0);
  EXPECT_GT(json["acceptance_length"], 4.0);
  expect_refused("bench --shape llama-2b --rows 1", 2, "llama-1b");
  expect_refused("bench " + kModel + " --shape llama-25m --rows 1", 2, "found both");
  expect_refused("bench " + kModel + " --draft-shape llama-25m --speculative draft_target", 2,
                 "--shape only");
  expect_refused(shape + "--draft-shape llama-25m --speculative ngram", 2, "another method");
  expect_refused(shape + "--speculative none --synthetic-acceptance 1", 2, "needs a drafter");
  expect_refused(shape + "--synthetic-acceptance 1 --acceptance rejection --temperature 1", 2,
                 "same with and without speculation");
  expect_refused(shape + "--synthetic-acceptance 2", 2, "from 0 to 1");
}

TEST_F(ProgramTest, VerifyLosslessProvesEquality) {
  const Json json = run_json("verify-lossless " + kModel +
                             " --limit 4 --max-tokens 12 --max-batch 3 --json --speculative ngram");
  EXPECT_EQ(json["identical"], true);
  EXPECT_EQ(json["prompts"], 4);
  EXPECT_EQ(json["modes"].size(), 2u);
  EXPECT_TRUE(json["difference"].is_null());
  const Outcome text =
      run("verify-lossless " + kModel + " --limit 2 --max-tokens 4 --temperature 0 --speculative ngram");
  EXPECT_TRUE(text.output.starts_with("identical: 2 prompts")) << text.output << text.errors;
}

// A copy of the test model that can chat.
std::string chat_model(const std::filesystem::path& folder) {
  const std::filesystem::path model = folder / "chat-model";
  std::filesystem::create_directories(model);
  for (const char* name : {"config.json", "generation_config.json", "model.safetensors", "tokenizer.json"}) {
    std::filesystem::copy_file(std::filesystem::path(kModel) / name, model / name,
                               std::filesystem::copy_options::overwrite_existing);
  }
  Json config = Json::parse(contents(kModel + "/tokenizer_config.json"));
  config["chat_template"] =
      "{% for m in messages %}{{ m['role'] }}: {{ m['content'] }} {% endfor %}assistant:";
  std::ofstream(model / "tokenizer_config.json") << config.dump();
  return model.string();
}

TEST_F(ProgramTest, ChatAnswersEveryLineOfAPipe) {
  const std::string model = chat_model(folder_);
  const std::string chat = "chat " + model + " --max-tokens 4 --ignore-eos --speculative ngram";
  const Outcome once = run(chat, "printf 'hi\\n/exit\\nlost\\n' |");
  EXPECT_EQ(once.exit_code, 0) << once.errors;
  EXPECT_FALSE(once.output.empty());
  EXPECT_EQ(once.errors, "");
  const Outcome again = run(chat, "printf 'hi\\n/reset\\nhi\\n/stats\\n' |");
  EXPECT_EQ(again.output, once.output + once.output);
  EXPECT_NE(again.errors.find("ngram: 4 tokens"), std::string::npos) << again.errors;
  EXPECT_NE(run(chat, "echo /rest |").errors.find("unknown command /rest"), std::string::npos);
}

TEST_F(ProgramTest, InterruptEndsAnAnswerNotTheConversation) {
  const std::string script = write("interrupt.sh", R"(
mkfifo "$1/in"
"$2" chat "$3" --kernels reference --max-tokens 900 --ignore-eos <"$1/in" >"$1/out" 2>"$1/err" &
chat=$!
exec 3>"$1/in"
echo hello >&3
until [ -s "$1/out" ] || ! kill -0 $chat; do sleep 0.05; done
kill -INT $chat
echo /stats >&3
exec 3>&-
wait $chat
)");
  const std::string line = "sh " + script + " " + folder_.string() + " " OUTRIDER_PROGRAM " " +
                           OUTRIDER_SOURCE_DIR "/models/outrider-small";
  EXPECT_EQ(std::system(line.c_str()), 0) << contents(folder_ / "err");
  const std::string stats = contents(folder_ / "err");
  ASSERT_TRUE(stats.starts_with("none: ")) << stats;
  EXPECT_LT(std::stoi(stats.substr(std::string("none: ").size())), 900) << stats;
}

TEST_F(ProgramTest, ChatSaysWhenTheConversationNoLongerFits) {
  const std::string chat = "chat " + chat_model(folder_) + " --ctx 32 --max-tokens 2";
  const Outcome outcome = run(chat, "printf '%0100d\\n' 0 |");
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_NE(outcome.errors.find("/reset starts a new one"), std::string::npos) << outcome.errors;
}

TEST_F(ProgramTest, QuantizeWritesTheSameModel) {
  const std::string out = (folder_ / "out.gguf").string();
  const Json report = run_json("quantize " + kModel + " " + out + " --type q8_0 --json");
  EXPECT_EQ(report["type"], "q8_0");
  EXPECT_EQ(report["tensors"][0]["name"], "token_embd.weight");
  EXPECT_EQ(report["tensors"][0]["to"], "q8_0");
  EXPECT_GT(report["tensors"][0]["rmse"], 0.0);
  EXPECT_LT(report["bytes"], report["bytes_before"]);
  const std::string score = " --prompt-ids 1,2,3,4,5,6 --json";
  EXPECT_EQ(run("score " + out + score).output, run("score " + kModel + " --weights q8_0" + score).output);
  const std::string reference = (folder_ / "reference.gguf").string();  // from what the gguf package wrote
  EXPECT_EQ(run("quantize " + kModel + ".gguf " + reference + " --type q8_0").exit_code, 0);
  EXPECT_EQ(run("score " + out + score).output, run("score " + reference + score).output);
  const Json exact = run_json("score " + kModel + score), rounded = run_json("score " + out + score);
  for (int i = 1; i < 6; ++i) {
    EXPECT_NEAR(exact["logprobs"][i].get<double>(), rounded["logprobs"][i].get<double>(), 0.2) << i;
  }

  const std::string again = (folder_ / "again.gguf").string();
  const Outcome smaller = run("quantize " + out + " " + again + " --type q4_k");
  EXPECT_EQ(smaller.exit_code, 0) << smaller.errors;
  EXPECT_NE(smaller.errors.find("lose quality a second time"), std::string::npos) << smaller.errors;
  EXPECT_NE(smaller.errors.find("fit no whole blocks and become q4_0"), std::string::npos) << smaller.errors;
  EXPECT_NE(smaller.output.find("bits per weight"), std::string::npos);
  EXPECT_EQ(run("generate " + again + " -p hello --max-tokens 4").exit_code, 0);
}

TEST_F(ProgramTest, QuantizeRefusesAndLeavesFilesAlone) {
  const std::string out = write("out.gguf", "old");
  const std::string type = " --type q8_0";
  expect_refused("quantize " + kModel + " " + out, 2, "expected --type");
  expect_refused("quantize " + kModel + type, 2, "expected IN and OUT");
  expect_refused("quantize " + kModel + " " + out + " third" + type, 2, "at most IN OUT is taken");
  expect_refused("quantize " + kModel + " out.bin" + type, 2, "ends in .gguf");
  expect_refused("quantize " + kModel + " " + out + " --type q5_k", 2, "q8_0, q4_0, q4_k, q6_k");
  expect_refused("quantize " + kModel + " " + out + type, 1, "--force replaces it");
  expect_refused("quantize /nonexistent/model " + out + type + " --force", 1, "/nonexistent/model");
  expect_refused("quantize " + kModel + " /nonexistent/out.gguf" + type, 1, "/nonexistent/out.gguf");
  const std::string in = (folder_ / "in.gguf").string();
  std::filesystem::copy_file(kModel + ".gguf", in);
  expect_refused("quantize " + in + " " + in + type + " --force", 1, "is IN");
  // A limit on the size of files stands for a full disk.
  expect_refused("quantize " + kModel + " " + out + type + " --force", 1, "out.gguf",
                 "trap '' XFSZ; ulimit -f 8;");
  EXPECT_EQ(contents(out), "old");
  EXPECT_FALSE(std::filesystem::exists(out + ".tmp"));
  EXPECT_EQ(run("quantize " + kModel + " " + out + type + " --force").exit_code, 0);
}

TEST_F(ProgramTest, HelpAndVersion) {
  EXPECT_TRUE(run("--version").output.starts_with("outrider "));
  EXPECT_NE(run("--help").output.find("verify-lossless"), std::string::npos);
  const Outcome help = run("generate --help");
  EXPECT_EQ(help.exit_code, 0);
  EXPECT_NE(help.output.find("--repetition-penalty"), std::string::npos);
}

}  // namespace
