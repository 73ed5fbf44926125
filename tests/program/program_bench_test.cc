// SPDX-License-Identifier: Apache-2.0
// `outrider bench` and `verify-lossless`.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "tests/program/program_fixture.h"

namespace outrider {
namespace {

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
  EXPECT_EQ(json["results"][1]["id"], "7");  // its second turn needs a chat template
  const Outcome text = run("bench " + kModel + " --limit 2 --runs 1 --max-tokens 8 --ignore-eos");
  EXPECT_NE(text.output.find("identical, all 2 prompts"), std::string::npos) << text.output << text.errors;
  EXPECT_EQ(text.errors, "");
}

TEST_F(ProgramTest, BenchMeasuresEveryTurnOfAConversation) {
  const std::string model = chat_model();
  const std::string common = " --max-tokens 6 --ignore-eos --json --cache-dir none ";
  const std::string prompts = write("p.jsonl", "{\"id\": \"c\", \"turns\": [\"one\", \"two\", \"three\"]}\n");
  const Json json =
      run_json("bench " + model + common + "--runs 1 --speculative ngram,policy=fixed --prompts " + prompts);
  ASSERT_EQ(json["results"].size(), 3u);
  EXPECT_EQ(json["results"][0]["id"], "c");
  EXPECT_EQ(json["results"][2]["id"], "c/3");
  EXPECT_EQ(json["identical"], true);
  const std::string answer = run_json("generate " + model + common + "--chat -p one")["text"];
  const std::string by_hand =
      write("q.jsonl", Json({{"prompt", Json::array({"one", answer, "two"})}}).dump());
  const Json second =
      run_json("bench " + model + common + "--runs 1 --speculative ngram,policy=fixed --prompts " + by_hand);
  for (const char* figure : {"prompt_tokens", "output_tokens", "acceptance_length"})
    EXPECT_EQ(second["results"][0][figure], json["results"][1][figure]) << figure;
  EXPECT_GT(json["results"][2]["prompt_tokens"], json["results"][1]["prompt_tokens"]);
}

TEST_F(ProgramTest, BenchTimesPassesByTheirRows) {
  const Json json = run_json("bench " + kModel + " --rows 1,3,70,9x3 --context 40 --runs 2 --json");
  EXPECT_EQ(json["context"], 40);
  EXPECT_EQ(json["rows"].size(), 4u);
  EXPECT_EQ(json["rows"][2]["rows"], 70);
  EXPECT_EQ(json["rows"][2]["ms"].size(), 2u);
  EXPECT_EQ(json["rows"][2]["width"], 1);
  EXPECT_EQ(json["rows"][3]["rows"], 9);
  EXPECT_EQ(json["rows"][3]["width"], 3);
  EXPECT_GT(json["rows"][0]["median_ms"], 0.0);
  EXPECT_EQ(json["read"]["ms"].size(), 2u);
  EXPECT_LT(json["streamed_bytes"], json["weight_bytes"]);
  expect_refused("bench " + kModel + " --rows 1,0", 2, "row counts from 1 to 4096");
  expect_refused("bench " + kModel + " --rows 1,,2", 2, "found '1,,2'");
  expect_refused("bench " + kModel + " --rows 4x0", 2, "found '4x0'");
  expect_refused("bench " + kModel + " --rows 66x2", 2, "a tree of up to 65 rows");
  expect_refused("bench " + kModel + " --rows 8 --context 60 --ctx 64", 2, "60 tokens and 8 rows exceed");
  expect_refused("bench " + kModel + " --rows 65 --ctx 64", 2, "raise --ctx");
  expect_refused("bench " + kModel + " --context 60", 2, "goes with --rows");
}

// Figures of experts say nothing where the rows of a random model agree on them.
TEST_F(ProgramTest, RowsOfARandomMixtureChooseDifferentExperts) {
  constexpr double kExpertBytes = 3 * 2048 * 768 * 18 / 32.0;
  const Json rows = run_json(
      "bench shape:qwen3-30b-a3b@1,q4_0,256 --ctx 64 --context 40 --rows 1,8 --runs 3 --json")["rows"];
  const double more = rows[1]["weight_bytes"].get<double>() - rows[0]["weight_bytes"].get<double>();
  EXPECT_GT(8 + more / kExpertBytes, 40);  // of 128; 52 are expected of eight independent choices of 8
}

// The operations' share of the pass that they cover least of.
double least_share(const Json& json) {
  double least = 1;
  for (const Json& pass : json["rows"]) {
    double share = 0;
    for (const Json& operation : pass["profile"]) share += operation["share_of_pass"].get<double>();
    EXPECT_LE(share, 1.0);
    least = std::min(least, share);
  }
  return least;
}

TEST_F(ProgramTest, BenchTimesPassesByOperation) {
  const std::string bench = "bench " + kModel + " --rows 1,5 --context 40 --runs 2 ";
  EXPECT_FALSE(run_json(bench + "--json")["rows"][0].contains("profile"));
  // A busy machine stalls between operations as well, so the passes of a quieter moment count.
  const auto profiled = [&] {
    return run_json("bench " + kModel + " --rows 1,5 --context 40 --runs 100 --profile --json");
  };
  Json json = profiled();
  for (int attempt = 1; attempt < 10 && least_share(json) <= 0.5; ++attempt) json = profiled();
  EXPECT_GT(least_share(json), 0.5);
  for (const Json& pass : json["rows"]) {
    double operations = 0;
    for (const Json& operation : pass["profile"]) {
      if (operation["operation"] != "attention") operations += operation["operations"].get<double>();
      if (operation["operation"] == "output head") {
        EXPECT_EQ(operation["calls"], 1.0);
      }
    }
    // Two operations for every row and weight, of which norms are no product.
    const double most = 2 * pass["rows"].get<double>() * json["parameters"].get<double>();
    EXPECT_LE(operations, most);
    EXPECT_GT(operations, 0.5 * most);
  }
  EXPECT_NE(run(bench + "--profile").output.find("5 rows, by operation:"), std::string::npos);
  expect_refused("bench " + kModel + " --profile", 2, "goes with --rows");
}

TEST_F(ProgramTest, BenchTimesPromptsToTheirFirstToken) {
  const Json json = run_json("bench " + kModel + " --prompt-lengths 20,200 --runs 10 --json");
  ASSERT_EQ(json["prompts"].size(), 2u);
  EXPECT_EQ(json["prompts"][1]["tokens"], 200);
  EXPECT_EQ(json["prompts"][1]["ms"].size(), 10u);
  EXPECT_GT(json["prompts"][1]["median_ms"], json["prompts"][0]["median_ms"]);
  expect_refused("bench " + kModel + " --prompt-lengths 64 --ctx 64", 2, "raise --ctx");
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
  const Json beside = run_json(
      "bench shape:llama-25m,q8_0,512 --limit 1 --max-tokens 8 --runs 1 --draft-shape llama-25m@1 --json "
      "--speculative draft_target,policy=fixed");
  EXPECT_EQ(beside["identical"], true);
  EXPECT_EQ(beside["results"][0]["id"], "random-1");
  expect_refused("bench --shape llama-2b --rows 1", 2, "llama-1b");
  expect_refused("bench " + kModel + " --shape llama-25m --rows 1", 2, "found both");
  for (const char* option : {"--rows 1", "--batch 2", "--prompt-lengths 64"})
    expect_refused("bench " + kModel + " --synthetic-acceptance 0.7 " + option, 2, "found both");
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

// Rules that keep the distribution and not the text are proved by where the sampled tokens lie in it.
TEST_F(ProgramTest, VerifyLosslessProvesSampledOutputByItsDistribution) {
  for (const std::string& draft : {kModel, kOtherVocabulary}) {
    const std::string common = "verify-lossless " + kModel +
                               " --limit 4 --max-tokens 24 --temperature 1 --json --speculative "
                               "draft_target,speculative_model=" +
                               draft + " --acceptance ";
    for (const std::string rule : {"rejection", "block"}) {
      const Json json = run_json(common + rule);
      EXPECT_EQ(json["places"]["tokens"], 2 * 4 * 24) << rule;
      EXPECT_LT(json["places"]["deviation"], json["places"]["limit"]) << rule;
      EXPECT_EQ(json["modes"].back(), "sampled, by distribution");
    }
    EXPECT_TRUE(run_json(common + "coupled")["places"].is_null());
  }
}

// Equal outputs prove nothing if nothing was drafted.
TEST_F(ProgramTest, VerifyLosslessRefusesAVacuousProof) {
  expect_refused("verify-lossless " + kModel + " --speculative none", 2,
                 "expected a method in --speculative");
  const std::string prompts = write("p.jsonl", "{\"id\": \"one\", \"prompt\": \"xyz\"}\n");
  expect_refused("verify-lossless " + kModel + " --max-tokens 1 --speculative ngram --prompts " + prompts, 1,
                 "nothing was drafted for 1 prompts");
}

// A prompt that is too long is refused before anything runs. Results remain after an interruption.
TEST_F(ProgramTest, BenchesRefuseOrSkipLongPrompts) {
  const std::string prompts = write("p.jsonl",
                                    "{\"id\": \"short\", \"prompt\": \"a b a b\"}\n"
                                    "{\"id\": \"long\", \"prompt\": \"" +
                                        std::string(400, 'b') + "\"}\n");
  for (const std::string command :
       {"bench ", "bench --all ", "bench --batch 2 ", "verify-lossless ", "doctor "}) {
    const bool is_all = command.starts_with("bench --all");
    const std::string line = command + kModel + " --ctx 64 --max-tokens 8 --prompts " + prompts +
                             (is_all ? " --drafters " + folder_.string() : " --speculative ngram") +
                             (command.starts_with("bench") ? " --runs 1" : "");
    expect_refused(line, 1, "prompt long has");
    const Outcome skipped = run(line + " --skip-long");
    EXPECT_EQ(skipped.exit_code, 0) << command << skipped.errors;
    EXPECT_NE(skipped.errors.find("left out: 1 of 2 prompts"), std::string::npos) << command;
  }
  expect_refused("bench " + kModel + " --ctx 3 --skip-long --prompts " + prompts, 1, "raise --ctx");
}

TEST_F(ProgramTest, BenchAllReportsAndKeepsWhatIsDone) {
  const std::string table = (folder_ / "table.json").string();
  const std::string line = "bench " + kModel +
                           " --all --runs 400 --max-tokens 8 --ignore-eos --json --output " + table +
                           " --drafters " + folder_.string();
  // A signal ends the run as soon as the file has a drafter.
  const Outcome outcome = run(line, "sh -c '\"$@\" & p=$!; while [ ! -e " + table +
                                        " ]; do sleep 0.01; done; kill -TERM $p; wait $p' --");
  EXPECT_EQ(outcome.exit_code, 1) << outcome.errors;
  EXPECT_NE(outcome.errors.find("interrupted; the drafters measured"), std::string::npos) << outcome.errors;
  EXPECT_NE(outcome.errors.find(": NGram, chain: greedy length "), std::string::npos) << outcome.errors;
  EXPECT_NE(outcome.errors.find(" left\n"), std::string::npos) << outcome.errors;
  for (const std::string& text : {outcome.output, contents(table)}) {
    const Json json = Json::parse(text, nullptr, false);
    ASSERT_TRUE(json.is_object()) << text;
    EXPECT_EQ(json["complete"], false);
    ASSERT_GE(json["drafters"].size(), 1u);
    EXPECT_GE(json["drafters"][0]["greedy"]["acceptance_length"], 1.0);
  }
}

}  // namespace
}  // namespace outrider
