// SPDX-License-Identifier: Apache-2.0
// The trainer of learned drafters over a small random target: its text, its states, its runs.
#include "training/heads/head_trainer.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>

#include "formats/model_file.h"
#include "tokenizer/tokenizer.h"
#include "training/core/safetensors_file.h"
#include "training/head_data/frozen_target.h"
#include "training/head_data/head_data.h"
#include "training/head_data/responses.h"
#include "training/head_data/self_questions.h"
#include "training/head_data/state_source.h"
#include "training/heads/head_run_fixture.h"

namespace outrider::training {
namespace {

class HeadTrainerTest : public HeadRunTest {
 protected:
  // Trains without and with a cut in the middle; the runs' folders are recipe.command + "-whole" and "-cut".
  void train_twice(const HeadRecipe& recipe, const std::string& device) {
    const auto run_options = [&](const std::string& out) {
      HeadOptions run = options(recipe.command + out, 8);
      run.device = device;
      return run;
    };
    const Status first = train_head(recipe, run_options("-whole"));
    ASSERT_TRUE(first.ok()) << first.error().message;
    HeadOptions interrupted = run_options("-cut");
    ASSERT_TRUE(train_head(recipe, interrupted).ok());
    // The state of a run that was killed after its first checkpoint.
    std::filesystem::remove_all(files_.path(recipe.command + "-cut/checkpoints/step-000000008"));
    interrupted.resume = true;
    const Status resumed = train_head(recipe, interrupted);
    ASSERT_TRUE(resumed.ok()) << resumed.error().message;
    EXPECT_THAT(files_.read(recipe.command + "-whole/report.html"), testing::HasSubstr(recipe.command));
  }

  void expect_resumed_runs_equal(const HeadRecipe& recipe) {
    train_twice(recipe, "cpu");
    for (const char* file :
         {"/checkpoints/step-000000008/tensors.safetensors", "/checkpoints/step-000000008/state.json",
          "/model.safetensors", "/config.json"}) {
      EXPECT_EQ(files_.read(recipe.command + "-whole" + file), files_.read(recipe.command + "-cut" + file))
          << file;
    }
  }

  // libtorch's sums of gradients on a GPU are in no fixed order, so that no two runs have the same bits
  // there.
  void expect_resumed_runs_near(const HeadRecipe& recipe) {
    train_twice(recipe, "cuda");
    const auto head_of = [&](const std::string& out) {
      return *read_safetensors(
          files_.path(recipe.command + out + "/checkpoints/step-000000008/tensors.safetensors"));
    };
    const NamedTensors whole = head_of("-whole"), cut = head_of("-cut");
    ASSERT_EQ(whole.size(), cut.size());
    for (size_t i = 0; i < whole.size(); ++i) {
      const auto distance = (whole[i].second - cut[i].second).norm().item<double>();
      EXPECT_LE(distance, 0.02 * whole[i].second.norm().item<double>()) << whole[i].first;
    }
  }
};

TEST_F(HeadTrainerTest, EveryKindResumesInTheSameBits) {
  for (const HeadRecipe& recipe : head_recipes()) {
    SCOPED_TRACE(recipe.command);
    expect_resumed_runs_equal(recipe);
  }
}

TEST_F(HeadTrainerTest, EveryKindResumesOnAGpu) {
  if (!at::hasCUDA()) GTEST_SKIP() << "no GPU, or a libtorch without CUDA";
  for (const HeadRecipe& recipe : head_recipes()) {
    SCOPED_TRACE(recipe.command);
    expect_resumed_runs_near(recipe);
  }
}

// Qwen3 normalises queries and keys; drafters trained on its states and cached keys serve it.
TEST_F(HeadTrainerTest, EveryKindServesATargetThatNormalisesQueriesAndKeys) {
  for (const HeadRecipe& recipe : head_recipes()) {
    SCOPED_TRACE(recipe.command);
    HeadOptions run = options(recipe.command, 4);
    run.target = target_path().parent_path() / "qwen3";
    const Status trained = train_head(recipe, run);
    EXPECT_TRUE(trained.ok()) << trained.error().message;
  }
}

TEST_F(HeadTrainerTest, TheMlpMayHaveAnySizeAndIsServed) {
  for (const std::string command : {"eagle3", "eagle", "mtp"}) {
    for (const std::string size : {"32", "160"}) {
      SCOPED_TRACE(command + " " + size);
      const HeadRecipe recipe = recipe_of(command, "--mlp " + size);
      const std::string out = command + size;
      const Status trained = train_head(recipe, options(out, 4));
      ASSERT_TRUE(trained.ok()) << trained.error().message;
      const auto config = nlohmann::json::parse(files_.read(out + "/config.json"));
      EXPECT_EQ(config.at("intermediate_size"), std::stoi(size));
    }
  }
}

TEST_F(HeadTrainerTest, ARunIsNeitherOverwrittenNorResumedWithOtherOptions) {
  const HeadRecipe recipe = recipe_of("mtp");
  HeadOptions run = options("run", 4);
  ASSERT_TRUE(train_head(recipe, run).ok());
  EXPECT_FALSE(train_head(recipe, run).ok());
  run.resume = true;
  run.hard_share = 0.5;
  const Status status = train_head(recipe, run);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().kind, ErrorKind::kUsage);
}

TEST_F(HeadTrainerTest, TheFeatureCacheChangesNoBit) {
  const HeadRecipe recipe = recipe_of("mtp");
  ASSERT_TRUE(train_head(recipe, options("plain", 8)).ok());
  HeadOptions cached = options("cached", 8);
  cached.feature_cache = files_.path("cache");
  ASSERT_TRUE(train_head(recipe, cached).ok());
  EXPECT_EQ(files_.read("plain/model.safetensors"), files_.read("cached/model.safetensors"));
  HeadOptions other = options("other", 8);
  other.feature_cache = files_.path("cache");
  other.seed = 2;
  EXPECT_TRUE(train_head(recipe, other).ok()) << "states of other windows are added";
  other.out = files_.path("third");
  EXPECT_FALSE(train_head(recipe_of("eagle3"), other).ok()) << "other states";
}

TEST_F(HeadTrainerTest, StatesDependOnTheirWindowAloneAndTheCacheIsBounded) {
  auto target = FrozenTarget::open(target_path(), 1);
  ASSERT_TRUE(target.ok()) << target.error().message;
  ASSERT_TRUE((*target)->want({.taps = {1, 2}, .keys_values = true}).ok());
  const HeadData text = data();
  const std::vector<Window> windows = text.batch(0);
  ASSERT_GE(windows.size(), 2u);
  constexpr int64_t kMax = 100000;
  auto cache = StateSource::open(**target, {.folder = files_.path("c"), .max_bytes = kMax});
  ASSERT_TRUE(cache.ok()) << cache.error().message;
  for (int round = 0; round < 2; ++round) {  // computed, then read
    auto all = cache->states(windows);
    ASSERT_TRUE(all.ok()) << all.error().message;
    for (size_t i = 0; i < windows.size(); ++i) {
      const std::span<const TokenId> text_of = windows[i].tokens;
      auto alone = (*target)->run(std::span(&text_of, 1));
      ASSERT_TRUE(alone.ok());
      EXPECT_TRUE((*alone)[0].hidden.equal((*all)[i].hidden));
      EXPECT_TRUE((*alone)[0].features.equal((*all)[i].features));
      EXPECT_TRUE((*alone)[0].keys_values.equal((*all)[i].keys_values));
    }
  }
  for (int64_t step = 1; step < 20; ++step) ASSERT_TRUE(cache->states(text.batch(step)).ok());
  EXPECT_GT(cache->bytes_kept(), kMax / 2);
  EXPECT_LE(cache->bytes_kept(), kMax);
}

TEST_F(HeadTrainerTest, AnEpochHoldsEveryWindowOnce) {
  const HeadData text = data();
  std::multiset<int64_t> seen;
  for (int64_t step = 0; std::ssize(seen) < text.window_count(); ++step) {
    int64_t longest = 0;
    const std::vector<Window> windows = text.batch(step);
    for (const Window& window : windows) {
      seen.insert(window.id);
      longest = std::max(longest, std::ssize(window.tokens));
    }
    EXPECT_LE(longest * std::ssize(windows), 64);
  }
  for (int64_t id = 0; id < text.window_count(); ++id) EXPECT_EQ(seen.count(id), 1u) << id;
  const int64_t step = 77;
  const std::vector<Window> later = text.batch(step);
  static_cast<void>(text.batch(3));
  const std::vector<Window> again = text.batch(step);
  ASSERT_EQ(later.size(), again.size());
  for (size_t i = 0; i < later.size(); ++i) EXPECT_EQ(later[i].id, again[i].id);
}

TEST_F(HeadTrainerTest, OnlyResponsesCount) {
  auto target = open_model(target_path());
  ASSERT_TRUE(target.ok());
  target->chat_template =
      "{% for m in messages %}[{{ m['role'] }}]{{ m['content'] }}{% endfor %}"
      "{% if add_generation_prompt %}[assistant]{% endif %}";
  files_.write_bytes("chat.jsonl", R"({"messages": [{"role": "user", "content": "ab"}, )"
                                   R"({"role": "assistant", "content": "cde"}]})"
                                   "\n");
  auto sources = read_documents(files_.path("chat.jsonl"), *target, false);
  ASSERT_TRUE(sources.ok()) << sources.error().message;
  ASSERT_EQ((*sources)[0].documents.size(), 1u);
  const Document& document = (*sources)[0].documents[0];
  auto tokenizer = Tokenizer::create(target->tokenizer);
  ASSERT_TRUE(tokenizer.ok());
  std::vector<TokenId> prompt, response;
  for (size_t i = 0; i < document.tokens.size(); ++i)
    (document.counted[i] != 0 ? response : prompt).push_back(document.tokens[i]);
  EXPECT_EQ((*tokenizer)->decode(prompt), "[user]ab[assistant]");
  EXPECT_EQ((*tokenizer)->decode(response), "cde");
}

TEST_F(HeadTrainerTest, ABadLineIsNamed) {
  auto target = open_model(target_path());
  ASSERT_TRUE(target.ok());
  for (const char* line : {"{", "[]", R"({"words": 1})", R"({"text": 1})", R"({"messages": [{}]})"}) {
    files_.write_bytes("bad.jsonl", std::string(R"({"text": "a"})") + "\n" + line + "\n");
    auto sources = read_documents(files_.path("bad.jsonl"), *target, false);
    ASSERT_FALSE(sources.ok()) << line;
    EXPECT_THAT(sources.error().message, testing::HasSubstr("bad.jsonl:2: ")) << line;
  }
}

TEST_F(HeadTrainerTest, PromptsMayBeSpecBenchsQuestions) {
  auto target = open_model(target_path());
  ASSERT_TRUE(target.ok());
  files_.write_bytes("prompts.jsonl", R"({"prompt": "word1 word2", "kind": "qa"})");
  files_.write_bytes("questions.jsonl", R"({"question_id": 81, "turns": ["word1 word2", "word3"]})");
  const auto prompts = read_prompts(files_.path("prompts.jsonl"), *target, 4);
  const auto questions = read_prompts(files_.path("questions.jsonl"), *target, 4);
  ASSERT_TRUE(prompts.ok()) << prompts.error().message;
  ASSERT_TRUE(questions.ok()) << questions.error().message;
  EXPECT_EQ(*questions, *prompts);
}

// A run with more prompts, fewer, or a lost part keeps the answers there are; its result equals the result of
// a run with a separate folder.
TEST_F(HeadTrainerTest, OnlyMissingAnswersAreMade) {
  auto target = FrozenTarget::open(target_path(), 1);
  ASSERT_TRUE(target.ok());
  const auto sources = read_documents(files_.path("text.jsonl"), (*target)->file(), true);
  ASSERT_TRUE(sources.ok());
  const auto answered = [&](const std::string& folder, int64_t count) {
    HeadOptions run = options("unused", 1);
    run.responses = files_.path(folder);
    run.regenerate = count;
    run.response_tokens = 6;
    run.sampled_share = 0.5;
    auto result = regenerate_responses(*sources, {}, run, **target);
    EXPECT_TRUE(result.ok()) << result.error().message;
    std::vector<std::vector<TokenId>> texts;
    for (const Document& document : (*result)[0].documents) texts.push_back(document.tokens);
    return texts;
  };
  const auto part_size = [&](const std::string& part) {
    const auto tensors = read_safetensors(files_.path(part));
    EXPECT_TRUE(tensors.ok()) << part;
    for (const auto& [name, tensor] : *tensors) {
      if (name == "lengths") return tensor.numel();
    }
    return int64_t{-1};
  };
  const auto twenty = answered("fresh-20", 20), fifty = answered("fresh-50", 50);
  EXPECT_EQ(answered("grown", 20), twenty);
  const std::string first = files_.read("grown/part-00000.safetensors");
  EXPECT_EQ(answered("grown", 50), fifty);
  EXPECT_EQ(part_size("grown/part-00001.safetensors"), 30);
  EXPECT_EQ(answered("grown", 20), twenty);
  std::filesystem::remove(
      files_.path("grown/part-00001.safetensors"));  // a run was killed before it wrote this file
  EXPECT_EQ(answered("grown", 50), fifty);
  EXPECT_EQ(part_size("grown/part-00001.safetensors"), 30);
  EXPECT_EQ(files_.read("grown/part-00000.safetensors"), first);
  EXPECT_FALSE(std::filesystem::exists(files_.path("grown/part-00002.safetensors")));
  HeadOptions other = options("unused", 1);
  other.responses = files_.path("grown");
  other.regenerate = 20;
  EXPECT_FALSE(regenerate_responses(*sources, {}, other, **target).ok()) << "other options";
}

// A model with a chat template writes questions; a later run keeps them and adds to them.
TEST_F(HeadTrainerTest, TheTargetAsksItself) {
  auto target = FrozenTarget::open(std::filesystem::path(OUTRIDER_SOURCE_DIR) / "models/outrider-small", 1);
  ASSERT_TRUE(target.ok());
  HeadOptions run = options("unused", 1);
  run.target = (*target)->file().path;
  run.responses = files_.path("questions");
  const auto asked = [&](int64_t count) {
    run.self_questions = count;
    auto questions = self_questions(run, **target);
    EXPECT_TRUE(questions.ok()) << questions.error().message;
    return std::move(questions->documents);
  };
  const std::vector<Document> few = asked(6), more = asked(10);
  ASSERT_GT(more.size(), 3u);
  ASSERT_GE(more.size(), few.size());
  for (size_t i = 0; i < few.size(); ++i) EXPECT_EQ(few[i].tokens, more[i].tokens);
  EXPECT_NE(more[0].tokens, more[1].tokens);
  auto tokenizer = Tokenizer::create((*target)->file().tokenizer);
  ASSERT_TRUE(tokenizer.ok());
  for (const Document& document : more) {
    EXPECT_EQ(std::ranges::count(document.counted, 1), 0);
    // The template's end asks for an answer.
    EXPECT_THAT((*tokenizer)->decode(document.tokens, /*skip_special=*/false),
                testing::HasSubstr("assistant"));
  }
  run.question_kinds = files_.path("kinds.jsonl");
  files_.write_bytes("kinds.jsonl", std::string("{}\n"));
  EXPECT_THAT(self_questions(run, **target).error().message, testing::HasSubstr("questions of other kinds"));
  run.question_kinds.clear();
}

// One without a chat template writes beginnings of texts and goes on with them.
TEST_F(HeadTrainerTest, ATargetWithoutChatTemplateWritesBeginnings) {
  auto target = FrozenTarget::open(target_path(), 1);
  ASSERT_TRUE(target.ok());
  HeadOptions run = options("unused", 1);
  run.responses = files_.path("beginnings");
  run.self_questions = 12;
  const auto beginnings = self_questions(run, **target);
  ASSERT_TRUE(beginnings.ok()) << beginnings.error().message;
  ASSERT_GT(beginnings->documents.size(), 6u);
  for (const Document& document : beginnings->documents) EXPECT_GT(document.tokens.size(), 1u);
  EXPECT_NE(beginnings->documents[0].tokens, beginnings->documents[1].tokens);
}

// Kinds take turns; what is asked about a text may be asked about its beginning.
TEST_F(HeadTrainerTest, QuestionsAreOfTheKindsAskedFor) {
  auto target = FrozenTarget::open(std::filesystem::path(OUTRIDER_SOURCE_DIR) / "models/outrider-small", 1);
  ASSERT_TRUE(target.ok());
  HeadOptions run = options("unused", 1);
  run.target = (*target)->file().path;
  run.responses = files_.path("kinds-of-questions");
  run.question_kinds = files_.path("kinds.jsonl");
  run.self_questions = 8;
  files_.write_bytes("kinds.jsonl",
                     std::string(R"({"question": "Summarize: {} In short?", "max_tokens": 48})") + "\n\n" +
                         R"({"temperature": 0.5})" + "\n");
  const auto questions = self_questions(run, **target);
  ASSERT_TRUE(questions.ok()) << questions.error().message;
  const std::string file = files_.read("kinds-of-questions/questions.jsonl");
  EXPECT_GT(questions->documents.size(), 2u);
  EXPECT_EQ(std::ranges::count(file, '\n'), 8);
  std::istringstream lines(file);
  int64_t number = 0;
  for (std::string line; std::getline(lines, line); ++number) {
    const std::string prompt = nlohmann::json::parse(line).at("prompt");
    if (prompt.empty()) continue;
    EXPECT_EQ(prompt.starts_with("Summarize: ") && prompt.ends_with(" In short?"), number % 2 == 0) << prompt;
  }
  for (const char* line :
       {R"({"question": "no place"})", R"({"max_tokens": 0})", R"({"temperature": "hot"})", "[]", ""}) {
    files_.write_bytes("kinds.jsonl", std::string(line) + "\n");
    run.responses = files_.path("refused");
    EXPECT_FALSE(self_questions(run, **target).ok()) << line;
  }
}

TEST_F(HeadTrainerTest, ATimeLimitSaysHowManyStepsThereAre) {
  HeadOptions limited = options("limited", 100000);
  limited.time_limit_s = 1.0;
  limited.evaluate_every = limited.checkpoint_every = 100000;
  const Status ended = train_head(recipe_of("mtp"), limited);
  ASSERT_TRUE(ended.ok()) << ended.error().message;
  const nlohmann::json config = nlohmann::json::parse(files_.read("limited/config.json"));
  EXPECT_TRUE(config.contains("outrider_agreement")) << "the last step was measured";
  int checkpoints = 0;
  for (const auto& entry : std::filesystem::directory_iterator(files_.path("limited/checkpoints"))) {
    const int64_t step = std::stoll(entry.path().filename().string().substr(5));
    EXPECT_GE(step, 5);
    EXPECT_LT(step, 100000);
    ++checkpoints;
  }
  EXPECT_EQ(checkpoints, 1);
}

TEST_F(HeadTrainerTest, AResumedRunMakesTheLastMeasurement) {
  const HeadRecipe recipe = recipe_of("mtp");
  HeadOptions failing = options("out", 3);
  files_.write_bytes("out/candidate", "no folder");
  ASSERT_FALSE(train_head(recipe, failing).ok());
  std::filesystem::remove(files_.path("out/candidate"));
  failing.resume = true;
  const Status ended = train_head(recipe, failing);
  ASSERT_TRUE(ended.ok()) << ended.error().message;
  EXPECT_TRUE(std::filesystem::exists(files_.path("out/model.safetensors")));
}

TEST_F(HeadTrainerTest, ARunBeginsWithAHead) {
  const auto run = [&](const std::string& out, const std::string& init, const std::string& arguments) {
    HeadOptions run = options(out, 2);
    if (!init.empty()) {
      run.init = files_.path(init);
      run.learning_rate = run.final_learning_rate = 1e-30;  // it stays as it began
    }
    return train_head(recipe_of("eagle3", arguments), run);
  };
  const auto tensors = [&](const std::string& out) {
    auto read = read_safetensors(files_.path(out + "/model.safetensors"));
    EXPECT_TRUE(read.ok());
    return std::move(*read);
  };
  ASSERT_TRUE(run("first", "", "--draft-vocab 40").ok());
  const Status again = run("again", "first", "");
  ASSERT_TRUE(again.ok()) << again.error().message;
  const NamedTensors first = tensors("first"), second = tensors("again");
  ASSERT_EQ(first.size(), second.size());
  for (size_t i = 0; i < first.size(); ++i)
    EXPECT_TRUE(first[i].second.equal(second[i].second)) << first[i].first;
  const Status less = run("less", "first", "--draft-vocab 39");
  ASSERT_FALSE(less.ok());
  EXPECT_THAT(less.error().message, testing::HasSubstr("at least the 40 tokens"));
  const Status other = run("other", "first", "--mlp 8");
  ASSERT_FALSE(other.ok());
  EXPECT_THAT(other.error().message, testing::HasSubstr("midlayer.mlp"));
}

TEST_F(HeadTrainerTest, ARunBeginsWithAHeadOfFewerTokens) {
  ASSERT_TRUE(train_head(recipe_of("eagle3", "--draft-vocab 40"), options("first", 2)).ok());
  HeadOptions run = options("wider", 2);
  run.init = files_.path("first");
  run.learning_rate = run.final_learning_rate = 1e-30;  // it stays as it began
  const Status wider = train_head(recipe_of("eagle3", "--draft-vocab 50"), run);
  ASSERT_TRUE(wider.ok()) << wider.error().message;
  // [draft vocabulary, hidden] by the token that a row stands for
  const auto rows = [&](const std::string& out) {
    auto read = read_safetensors(files_.path(out + "/model.safetensors"));
    EXPECT_TRUE(read.ok());
    std::map<int64_t, at::Tensor> by_token;
    std::map<std::string, at::Tensor> tensors(read->begin(), read->end());
    const at::Tensor& offsets = tensors.at("d2t");
    for (int64_t row = 0; row < offsets.numel(); ++row)
      by_token[row + offsets[row].item<int64_t>()] = tensors.at("lm_head.weight")[row];
    return by_token;
  };
  auto first = rows("first"), second = rows("wider");
  ASSERT_EQ(first.size(), 40U);
  ASSERT_EQ(second.size(), 50U);
  auto target = FrozenTarget::open(target_path(), 1);
  ASSERT_TRUE(target.ok());
  for (const auto& [token, row] : second) {
    const at::Tensor expected =
        first.contains(token) ? first.at(token) : (*target)->output_head()[token].to(row.scalar_type());
    EXPECT_TRUE(row.equal(expected)) << token;
  }
}

TEST_F(HeadTrainerTest, TapsBeyondTheTargetAreRefused) {
  auto target = FrozenTarget::open(target_path(), 1);
  ASSERT_TRUE(target.ok());
  const std::vector<std::vector<int64_t>> bad = {{3}, {1, 1}, {2, 1}, {-1}};
  for (const std::vector<int64_t>& taps : bad) EXPECT_FALSE((*target)->want({.taps = taps}).ok());
}

}  // namespace
}  // namespace outrider::training
