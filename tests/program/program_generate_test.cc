// SPDX-License-Identifier: Apache-2.0
// `outrider generate`: the form of its JSON, its output with and without speculation, and its display of
// drafts.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/program/program_fixture.h"

namespace outrider {
namespace {

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

TEST_F(ProgramTest, ATextSlidesWhereItFillsTheContext) {
  const std::string common =
      "generate " + kModel + " --prompt-ids 1,2,3 --ctx 32 --max-tokens 80 --ignore-eos --json";
  EXPECT_EQ(run_json(common)["token_ids"].size(), 29u);
  const Json plain = run_json(common + " --slide 2 --speculative none");
  EXPECT_EQ(plain["token_ids"].size(), 80u);
  EXPECT_EQ(run_json(common + " --slide 2 --speculative ngram,policy=fixed")["token_ids"],
            plain["token_ids"]);
  expect_refused(common + " --slide 31", 2, "slide must be 0 to the context less 2, 30");
}

TEST_F(ProgramTest, SpeculationLeavesTheOutputAlone) {
  const std::string common =
      "generate " + kModel + " -p 'a b a b a b' --max-tokens 24 --temperature 0.8 --seed 5 --json";
  const Json plain = run_json(common + " --speculative none");
  const Json ngram = run_json(common + " --speculative ngram,policy=fixed");
  const Json draft =
      run_json(common + " --speculative draft_target,policy=fixed,speculative_model=" + kModel);
  EXPECT_EQ(plain["speculation"]["method"], "none");
  EXPECT_EQ(plain["token_ids"], ngram["token_ids"]);
  EXPECT_EQ(plain["token_ids"], draft["token_ids"]);
  EXPECT_EQ(draft["speculation"]["method"], "draft_target");
  EXPECT_GT(draft["speculation"]["accepted"], 0);
}

TEST_F(ProgramTest, WithoutAMethodThePolicyDecides) {
  const std::string common = "generate " + kModel + " -p 'a b a b a b' --max-tokens 24 --json";
  const Json json = run_json(common);
  EXPECT_EQ(json["speculation"]["method"], "suffix+ngram+draft_target");  // a small model lies beside it
  EXPECT_EQ(json["token_ids"], run_json(common + " --speculative none")["token_ids"]);
  EXPECT_EQ(run_json(common, "OUTRIDER_SPECULATIVE=none")["speculation"]["method"], "none");
}

TEST_F(ProgramTest, SeveralDraftersLeaveTheOutputAlone) {
  const std::string common =
      "generate " + kModel + " -p 'a b a b a b' --max-tokens 24 --temperature 0.8 --seed 5 --json";
  const std::string model = "speculative_model=" + kModel;
  const Json plain = run_json(common + " --speculative none");
  const std::vector<std::pair<std::string, std::string>> methods = {
      {"auto", "suffix+ngram+draft_target"},
      {"combine=[suffix,ngram]", "suffix+ngram"},
      {"auto," + model, "suffix+ngram+draft_target"},
      {"spec_infer,speculative_models=[" + kModel + "]", "spec_infer"},
      {"spec_infer,speculative_models=[" + kModel + "," + kModel + "],expansion=[2,2]", "spec_infer"},
      {"combine=[ngram,draft_target],max_total_draft_tokens=12," + model, "ngram+draft_target"},
      {"combine=[suffix,lookahead,early_exit],exit_layer=1", "suffix+lookahead+early_exit"},
      {"combine=[ngram,spec_infer],speculative_models=[" + kModel + "]", "ngram+spec_infer"},
  };
  for (const auto& [speculative, method] : methods) {
    // The policy auto may find that no draft is worth its cost here.
    for (const char* policy : {",policy=fixed", ""}) {
      const Json json = run_json(common + " --cache-dir none --speculative '" + speculative + policy + "'");
      EXPECT_EQ(json["token_ids"], plain["token_ids"]) << speculative << policy;
      EXPECT_EQ(json["speculation"]["method"], method) << speculative << policy;
      EXPECT_GE(json["speculation"]["drafted"], *policy == ',' ? 1 : 0) << speculative << policy;
    }
  }
}

// The draft reads the text in its own tokens.
TEST_F(ProgramTest, ADraftMayHaveAnotherVocabulary) {
  const std::string common = "generate " + kModel + " -p 'a b a b a b' --max-tokens 40 --seed 5 --json";
  for (const char* temperature : {" --temperature 0", " --temperature 0.8"}) {
    const Json plain = run_json(common + temperature + " --speculative none");
    for (const char* tree :
         {"max_draft_len=3", "tree=dynamic", "expansion=[2,2]", "max_draft_len=3,vocabulary_match=strings",
          "expansion=[2,2],vocabulary_match=tokens"}) {
      const Json json = run_json(common + temperature + " --speculative draft_target,policy=fixed," + tree +
                                 ",speculative_model=" + kOtherVocabulary);
      EXPECT_EQ(json["token_ids"], plain["token_ids"]) << temperature << tree;
      EXPECT_GT(json["speculation"]["drafted"], 0) << temperature << tree;
    }
  }
}

TEST_F(ProgramTest, WhatDraftersCannotBeCombinedOf) {
  const std::string common = "generate " + kModel + " -p x --speculative ";
  expect_refused(common + "combined", 2, "combine must name 1 to 32 drafters, found 0");
  expect_refused(common + "'combine=[]'", 2, "combine: expected methods that draft");
  expect_refused(common + "'combine=[ngram,none]'", 2, "found None");
  expect_refused(common + "'combine=[ngram,combined]'", 2, "found Combined");
  expect_refused(common + "'combine=[ngram,ngrm]'", 2, "did you mean 'NGram'");
  expect_refused(common + "'combine=[user_provided]'", 2, "UserProvided needs a drafter from a program");
  expect_refused(common + "'combine=[ngram,draft_target]'", 2, "add speculative_model=DIR");
  expect_refused(common + "'combine=[ngram,spec_infer]'", 2, "add speculative_models=[DIR,DIR]");
  expect_refused(common + "spec_infer", 2, "spec_infer needs a draft model");
  expect_refused(common + "'ngram,combine=[ngram]'", 2, "belongs to Combined, found decoding_type NGram");
  expect_refused(common + "'auto,combine=[ngram]'", 2, "belongs to Combined, found decoding_type Auto");
  expect_refused(common + "'combine=[early_exit],exit_layer=2'", 2, "1 to 1 for a model of 2 layers");
  expect_refused(common + "'spec_infer,speculative_models=[/nonexistent]'", 1, "/nonexistent");
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
  const std::string thinking = ",use_relaxed_acceptance_for_thinking=true,relaxed_topk=10";
  const Outcome relaxed = run(common + thinking + ",begin_thinking_phase_token=1,end_thinking_phase_token=2");
  EXPECT_EQ(Json::parse(relaxed.output)["speculation"]["lossless"], false);
  EXPECT_NE(relaxed.errors.find("relaxed acceptance is lossy"), std::string::npos);
  for (const std::string& asked : {common + thinking, common + " --acceptance relaxed"}) {
    const Outcome refused = run(asked);
    EXPECT_EQ(refused.exit_code, 2) << asked;
    EXPECT_NE(refused.errors.find("begin_thinking_phase_token: expected the id of a token"),
              std::string::npos)
        << refused.errors;
  }
  for (const char* rule : {"rejection", "block"})
    EXPECT_EQ(run(common + " --acceptance " + rule).errors, "") << rule;
  for (const char* rule : {"--acceptance typical", "--acceptance relaxed",
                           "--speculative ngram,use_relaxed_acceptance_for_thinking=true"}) {
    expect_refused("verify-lossless " + kModel + " " + rule, 2,
                   "expects acceptance coupled, rejection or block");
  }
  expect_refused(common + ",use_relaxed_acceptance_for_thinking=true --acceptance rejection", 2,
                 "goes with coupled or relaxed");
  expect_refused(common + ",relaxed_space=bits", 2, "log_probability, probability");
}

TEST_F(ProgramTest, ShowDraftIsReadableWithoutColour) {
  const Outcome shown = run("generate " + kModel +
                            " -p 'a b a b' --max-tokens 12 --show-draft --speculative "
                            "draft_target,policy=fixed,speculative_model=" +
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
      run(common + "--show-draft --speculative draft_target,policy=fixed,speculative_model=" + kModel).output;
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
                             "draft_target,policy=fixed,expansion=[3,2],children=top,speculative_model=" +
                             kModel;
  const Outcome shown = run(common + " --show-tree");
  EXPECT_EQ(shown.exit_code, 0) << shown.errors;
  EXPECT_EQ(shown.errors, "");
  EXPECT_EQ(shown.output.find('\x1b'), std::string::npos);
  const Json json = run_json(common + " --show-tree --json");
  for (const char* part : {"step 1: ", "├─ ", "└─ + ", " ✓ ", " ✗ ", "not reached", "sampled out"})
    EXPECT_NE(shown.output.find(part), std::string::npos) << part << shown.output;
  const std::string cut = run("generate builtin -p 'one two three one two four one two' --max-tokens 24 "
                              "--temperature 1 --top-p 0.3 "
                              "--show-tree --speculative ngram,policy=fixed")
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
                             "draft_target,policy=fixed,expansion=[2,2],speculative_model=" +
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

TEST_F(ProgramTest, GenerateHoldsAForm) {
  const std::string common = "generate " + kModel + " --max-tokens 40 -p 'The dog'";
  EXPECT_EQ(run(common + " --regex '(ab){3}'").output, "ababab\n");
  EXPECT_EQ(run(common + " --grammar 'root ::= \"yes\" \" sir\"'").output, "yes sir\n");
  const std::string schema = write("schema.json", R"({"const": {"a": [1, true]}})");
  const std::string json = run(common + " --json-schema @" + schema).output;
  EXPECT_EQ(Json::parse(json, nullptr, false), Json::parse(R"({"a": [1, true]})")) << json;
  EXPECT_EQ(run(common + " --regex '(ab){3}' --speculative ngram").output, "ababab\n");
  EXPECT_EQ(run("generate " + chat_model() + " --chat --max-tokens 40 -p hi --regex '(ab){3}'").output,
            "ababab\n");
  expect_refused(common + " --regex a --grammar 'root ::= \"a\"'", 2, "found --regex and --grammar");
  expect_refused(common + " --regex '('", 1, "--regex: ");
  expect_refused(common + " --json-schema @none.json", 1, "none.json");
}

}  // namespace
}  // namespace outrider
