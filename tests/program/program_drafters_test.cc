// SPDX-License-Identifier: Apache-2.0
// Commands about drafters and their files: `doctor`, `inspect`, `bench --all`.
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "draft_heads/fake_head.h"
#include "tests/program/program_fixture.h"

namespace outrider {
namespace {

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
  EXPECT_GT(json["shapes"][2]["acceptance_length"], 2.0);  // the model drafts for itself
  const Outcome text = run(common + " --speculative 'combine=[ngram,early_exit]'");
  EXPECT_EQ(text.exit_code, 0) << text.errors;
  EXPECT_EQ(text.errors, "");
  EXPECT_NE(text.output.find("agreement        over 8 places"), std::string::npos) << text.output;
  EXPECT_NE(text.output.find("\nverdict          "), std::string::npos) << text.output;
  EXPECT_EQ(run_json(common + " --json --speculative ngram")["agreement"].contains("kl_divergence"), false);
}

// Heads of this shape fit kModel. Their random weights give no speed-up.
void make_medusa(FakeHead& made, int64_t hidden = 64, int64_t vocab = 288) {
  made.tensors["0.0.linear.weight"] = {hidden, hidden};
  made.tensors["0.0.linear.bias"] = {hidden};
  made.tensors["0.1.weight"] = {vocab, hidden};
}

TEST_F(ProgramTest, DoctorRecognisesALearnedDrafter) {
  FakeHead made;
  make_medusa(made);
  const std::string common = "doctor " + kModel + " --limit 1 --max-tokens 8 --ignore-eos --cache-dir none ";
  const Json json = run_json(common + "--json --speculative-model " + made.write().string());
  EXPECT_EQ(json["method"], "medusa");
  EXPECT_EQ(json["drafter"]["kind"], "Medusa");
  EXPECT_EQ(json["drafter"]["hidden_size"], 64);
  EXPECT_EQ(json["drafter"]["vocab_size"], 288);
  EXPECT_EQ(json["drafter"]["trained_for_this_target"], nullptr);
  EXPECT_EQ(json["agreement"]["places"], 8);
  EXPECT_TRUE(json["agreement"].contains("kl_divergence"));  // the head got features and drafted
  EXPECT_EQ(json["shapes"].front()["keys"], "max_draft_len=1,policy=fixed");
  EXPECT_LE(json["shapes"].front()["nodes"], 1.0);  // its own shape, not the usual tree of the method
  EXPECT_EQ(json["shapes"].back()["keys"], "tree=choices,policy=fixed");
  EXPECT_GT(json["shapes"].back()["nodes"], 1.0);

  FakeHead other;
  make_medusa(other, 32, 300);
  other.config["outrider_target"] = "0123456789abcdef";
  const std::string path = other.write().string();
  for (const char* reason : {"this Medusa drafter does not fit", "hidden size 32, the target's is 64",
                             "300 tokens, the target's has 288", "fingerprint 0123456789abcdef"})
    expect_refused(common + "--speculative-model " + path, 1, reason);
}

TEST_F(ProgramTest, InspectShowsALearnedDrafter) {
  FakeHead made;
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
  FakeHead made;
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

TEST_F(ProgramTest, DraftsThatRanksMadeAheadAreCounted) {
  const std::string common =
      "generate builtin -p 'Once upon a time' --max-tokens 60 --ignore-eos --json "
      "--draft-ranks 1 --speculative draft_target,policy=fixed --draft-ahead ";
  const Json on = run_json(common + "on"), off = run_json(common + "off");
  EXPECT_EQ(on["text"], off["text"]);
  EXPECT_GT(on["speculation"]["foreseen_drafts"], 0);
  EXPECT_EQ(off["speculation"]["foreseen_drafts"], 0);
}

TEST_F(ProgramTest, ACorpusGivesDraftsAndNoOtherText) {
  const std::string common = "generate " + kModel + " -p 'hello world' --max-tokens 40 --ignore-eos --json ";
  const Json plain = run_json(common + "--speculative none");
  const Json alone = run_json(common + "--speculative suffix,policy=fixed");
  const std::string corpus = write("answers.txt", "hello world" + plain["text"].get<std::string>() + "\n");
  const std::string cache = "--cache-dir " + (folder_ / "cache").string() + " ";
  const std::string drafting = common + cache + "--corpus " + corpus;
  const Outcome built = run(drafting + " --speculative suffix,policy=fixed");
  EXPECT_NE(built.errors.find("building the index"), std::string::npos) << built.errors;
  for (const std::string speculative : {"suffix", "suffix,tree=dynamic", "combine=[ngram,suffix]", "auto"}) {
    const Json json = run_json(drafting + " --speculative '" + speculative + ",policy=fixed'");
    EXPECT_EQ(json["text"], plain["text"]) << speculative;
    EXPECT_GT(json["speculation"]["accepted"], alone["speculation"]["accepted"]) << speculative;
  }
  const Outcome found = run(drafting + " --speculative suffix");
  EXPECT_EQ(found.errors.find("building the index"), std::string::npos) << found.errors;

  const Json shown = run_json("inspect --json " + kModel + " " + cache + "--corpus " + corpus)["corpus"];
  EXPECT_EQ(shown["documents"], 1);
  EXPECT_EQ(shown["text_bytes"], std::filesystem::file_size(corpus));
  EXPECT_GT(shown["tokens"], 40);
  EXPECT_TRUE(std::filesystem::exists(shown["index"].get<std::string>()));
  EXPECT_NE(run("inspect " + kModel + " " + cache + "--corpus " + corpus).output.find("\ncorpus\n"),
            std::string::npos);

  expect_refused(drafting + " --speculative ngram", 2, "--corpus expects a method that drafts from it");
  expect_refused(common + "--cache-dir none --corpus " + corpus, 2, "--cache-dir none");
  expect_refused(common + cache + "--corpus " + corpus + ".missing", 1, "answers.txt.missing");
}

const std::vector<std::string> kContenders = {"NGram chain",
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

// Checks the rows of `bench --all` with 8 nodes, and returns their names.
std::vector<std::string> checked_contenders(const Json& rows) {
  std::vector<std::string> names;
  for (const Json& row : rows) {
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
  return names;
}

TEST_F(ProgramTest, BenchAllComparesEveryDrafter) {
  FakeHead fits, other;
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
  EXPECT_EQ(json["complete"], true);
  EXPECT_EQ(json["skipped_prompts"], 0);
  EXPECT_EQ(checked_contenders(json["drafters"]), kContenders);
  ASSERT_EQ(json["left_out"].size(), 1u);
  EXPECT_NE(json["left_out"][0]["reason"].get<std::string>().find("hidden size 32"), std::string::npos);
  EXPECT_NE(outcome.errors.find("left out: "), std::string::npos) << outcome.errors;
  EXPECT_NE(contents(page).find("Medusa fits"), std::string::npos);
  const Outcome text = run(common + "--drafters " + folder_.string());
  EXPECT_NE(text.output.find("Medusa fits"), std::string::npos) << text.output << text.errors;
  expect_refused(common + "--speculative ngram", 2, "--all or --speculative");
  expect_refused(common + "--drafters /nonexistent", 1, "/nonexistent");
  expect_refused(common + "--output /nonexistent/page.html", 1, "--output");
  expect_refused("bench " + kModel + " --output page.html", 2, "goes with --all");
}

// Without a method these commands examine what would run.
TEST_F(ProgramTest, ProofAndDoctorTakeAutoByThemselves) {
  FakeHead made;
  make_medusa(made);
  std::filesystem::copy(kModel, folder_ / "model");
  std::filesystem::rename(made.write(), folder_ / "head");
  const std::string model = (folder_ / "model").string();
  const std::string common = " --limit 1 --max-tokens 8 --ignore-eos --json --cache-dir none";
  const std::string empty = "XDG_CACHE_HOME=" + folder_.string() + "/cache HOME=" + folder_.string();
  EXPECT_EQ(run_json("verify-lossless " + model + common, empty)["method"], "suffix+ngram+medusa");
  const Json json = run_json("doctor " + model + common, empty);
  EXPECT_EQ(json["method"], "suffix+ngram+medusa");
  EXPECT_EQ(json["drafter"]["kind"], "Medusa");
  EXPECT_TRUE(json["agreement"].contains("kl_divergence"));  // the head by itself
  EXPECT_EQ(json["drafters"][0]["state"], "uses");
  EXPECT_EQ(json["drafters"][0]["name"], "head");
  EXPECT_FALSE(json.contains("vocabularies"));
  const Json inspect = run_json("inspect --json " + model, empty);
  EXPECT_EQ(inspect["drafters"], json["drafters"]);
}

TEST_F(ProgramTest, BenchAllListsTheHeadsThatComeWithTheProgram) {
  const Json json =
      run_json("bench builtin --all --limit 1 --runs 1 --max-tokens 2 --nodes 4 --json --cache-dir none");
  std::set<std::string> drafters;
  for (const Json& row : json["drafters"]) drafters.insert(row["drafter"].get<std::string>());
  for (const char* head : {"Eagle3 outrider-eagle3", "MTP outrider-mtp", "Medusa outrider-medusa",
                           "MoA outrider-moa", "DraftTarget outrider-draft"})
    EXPECT_TRUE(drafters.contains(head)) << head;
}

// A draft with another tokenizer drafts what both have; all commands say how much that is.
TEST_F(ProgramTest, SaysWhatAnotherTokenizerCosts) {
  const std::string draft = " --speculative draft_target,speculative_model=" + kModel;
  const std::string common = " builtin --max-tokens 8 --cache-dir none";
  const std::string says = "of the target's 4096 tokens are among its 288";
  const Outcome text = run("generate -p 'Once upon a time'" + common + draft);
  EXPECT_NE(text.errors.find(says), std::string::npos) << text.errors;
  const Json json = run_json("generate -p 'Once upon a time' --json" + common + draft)["vocabularies"];
  EXPECT_EQ(json["target_tokens"], 4096);
  EXPECT_EQ(json["draft_tokens"], 288);
  EXPECT_GT(json["shared_tokens"], 16);
  EXPECT_LT(json["share_of_text"], 1.0);
  const Outcome doctor = run("doctor --limit 1 --ignore-eos" + common + draft);
  EXPECT_NE(doctor.output.find(says), std::string::npos) << doctor.output;
  EXPECT_NE(doctor.output.find("of the tokens of these answers the draft has"), std::string::npos);
  EXPECT_EQ(doctor.output.find("vocabulary       fits"), std::string::npos);
  const std::string same = " --speculative draft_target";
  EXPECT_EQ(run_json("generate -p x --json" + common + same)["vocabularies"], nullptr);
}

TEST_F(ProgramTest, DoctorNeedsADrafter) {
  expect_refused("doctor " + kModel + " --speculative none", 2, "expected a method in --speculative");
  expect_refused("doctor " + kModel + " --speculative ngram,max_draft_len=0", 2, "expected a method");
  expect_refused("doctor " + kModel + " --speculative draft_target,speculative_model=/nonexistent", 1,
                 "/nonexistent");
}

}  // namespace
}  // namespace outrider
