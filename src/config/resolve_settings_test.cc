// SPDX-License-Identifier: Apache-2.0
#include "config/resolve_settings.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>

namespace outrider {
namespace {

// A YAML file that lives as long as the test.
class ConfigFile {
 public:
  explicit ConfigFile(const std::string& text)
      : path_(std::filesystem::temp_directory_path() / "outrider_settings_test.yaml") {
    std::ofstream(path_, std::ios::binary) << text;
  }
  ~ConfigFile() { std::filesystem::remove(path_); }
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

GivenOptions generate() { return {.command = Command::kGenerate, .command_line = {}, .environment = {}}; }

Result<Settings> with_file(const std::string& text) {
  const ConfigFile file(text);
  GivenOptions given = generate();
  given.command_line["config"] = {file.path()};
  return resolve_settings(given);
}

std::string error_for(const std::string& option, const std::string& value) {
  GivenOptions given = generate();
  given.command_line[option] = {value};
  const auto settings = resolve_settings(given);
  return settings.ok() ? "accepted" : settings.error().message;
}

TEST(ResolveSettings, WhatIsNotGivenHasTheDefaultOfItsStruct) {
  const auto settings = resolve_settings(generate());
  ASSERT_TRUE(settings.ok()) << settings.error().message;
  EXPECT_EQ(settings->request.max_tokens, 128);
  EXPECT_EQ(settings->engine.max_batch, 8);
  EXPECT_FALSE(settings->origins.contains("max-tokens"));
  EXPECT_FALSE(settings->speculation_given);
}

TEST(ResolveSettings, OptionsOfAProgramComeBeforeTheEnvironment) {
  GivenOptions given = generate();
  given.environment = {{"OUTRIDER_MAX_TOKENS", "7"}, {"OUTRIDER_SEED", "3"}};
  given.program_options = *parse_config("max_tokens: 5", "options");
  const auto settings = resolve_settings(given);
  ASSERT_TRUE(settings.ok()) << settings.error().message;
  EXPECT_EQ(settings->request.max_tokens, 5);
  EXPECT_EQ(settings->request.sampling.seed, 3u);
}

TEST(ResolveSettings, DefaultsDifferBetweenCommands) {
  GivenOptions given = generate();
  given.command = Command::kVerifyLossless;
  const auto settings = resolve_settings(given);
  ASSERT_TRUE(settings.ok());
  EXPECT_EQ(settings->request.sampling.temperature, 0.7);
  EXPECT_EQ(settings->request.sampling.top_p, 0.9);
}

TEST(ResolveSettings, CommandLineBeforeEnvironmentBeforeFile) {
  const ConfigFile file("seed: 1\ntop_k: 1\nmax-tokens: 1\n");
  GivenOptions given = generate();
  given.command_line = {{"config", {file.path()}}, {"seed", {"3"}}};
  given.environment = {{"OUTRIDER_SEED", "2"}, {"OUTRIDER_TOP_K", "2"}};
  const auto settings = resolve_settings(given);
  ASSERT_TRUE(settings.ok()) << settings.error().message;
  EXPECT_EQ(settings->request.sampling.seed, 3u);
  EXPECT_EQ(settings->request.sampling.top_k, 2);
  EXPECT_EQ(settings->request.max_tokens, 1);
  EXPECT_EQ(settings->origins.at("seed").kind, OriginKind::kCommandLine);
  EXPECT_EQ(settings->origins.at("top-k").place, "OUTRIDER_TOP_K");
  EXPECT_EQ(settings->origins.at("max-tokens").place, file.path() + ":3: max-tokens");
}

TEST(ResolveSettings, SpeculationFromEverySource) {
  const auto block = with_file("speculative_config:\n  decoding_type: NGram\n  max_draft_len: 7\n");
  ASSERT_TRUE(block.ok()) << block.error().message;
  EXPECT_EQ(block->engine.speculation.decoding_type, Method::kNGram);
  EXPECT_EQ(block->engine.speculation.max_draft_len, 7);
  EXPECT_TRUE(block->speculation_given);
  const auto text = with_file("speculative: ngram,max_draft_len=6\n");
  ASSERT_TRUE(text.ok()) << text.error().message;
  EXPECT_EQ(text->engine.speculation.max_draft_len, 6);
  GivenOptions given = generate();
  given.environment["OUTRIDER_SPECULATIVE"] = "ngram,max_draft_len=5";
  const auto environment = resolve_settings(given);
  ASSERT_TRUE(environment.ok()) << environment.error().message;
  EXPECT_EQ(environment->engine.speculation.max_draft_len, 5);
}

TEST(ResolveSettings, ListsAndSpecialValues) {
  GivenOptions given = generate();
  given.command_line = {
      {"stop", {"a", "b"}}, {"prompt-ids", {"1, 2,3"}}, {"logit-bias", {"5=-inf", "6=1.5"}}};
  const auto settings = resolve_settings(given);
  ASSERT_TRUE(settings.ok()) << settings.error().message;
  EXPECT_EQ(settings->request.stop, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(*settings->input.ids, (std::vector<TokenId>{1, 2, 3}));
  EXPECT_EQ(settings->request.sampling.logit_bias[1], (std::pair<TokenId, float>{6, 1.5f}));
  EXPECT_LT(settings->request.sampling.logit_bias[0].second, -1e30f);
  const auto stops = with_file("stop: [x, y]\n");
  ASSERT_TRUE(stops.ok());
  EXPECT_EQ(stops->request.stop.size(), 2u);
}

TEST(ResolveSettings, SizesOfMemory) {
  for (const auto& [text, bytes] :
       {std::pair<const char*, int64_t>{"800M", 800LL << 20}, {"1.5G", 3LL << 29}}) {
    GivenOptions given = generate();
    given.command_line["memory"] = {text};
    const auto settings = resolve_settings(given);
    ASSERT_TRUE(settings.ok()) << settings.error().message;
    EXPECT_EQ(settings->engine.memory_limit, bytes);
  }
  for (const char* text : {"G", "800", "-1G", "0M", "8X", "nanG", "1e9G"})
    EXPECT_NE(error_for("memory", text).find("--memory: expected a size"), std::string::npos) << text;
}

TEST(ResolveSettings, KernelTableHasItsOwnVariable) {
  GivenOptions given = generate();
  given.environment["OUTRIDER_FORCE_KERNELS"] = "reference";
  EXPECT_EQ(resolve_settings(given)->engine.kernels, "reference");
}

TEST(ResolveSettings, UnknownVariablesAreWarnings) {
  GivenOptions given = generate();
  given.environment["OUTRIDER_SED"] = "1";
  const auto settings = resolve_settings(given);
  ASSERT_TRUE(settings.ok());
  ASSERT_EQ(settings->warnings.size(), 1u);
  EXPECT_NE(settings->warnings[0].find("'OUTRIDER_SEED'"), std::string::npos);
}

TEST(ResolveSettings, ValuesOutOfRangeNameTheOption) {
  const std::pair<const char*, const char*> cases[] = {
      {"max-tokens", "-5"},
      {"max-tokens", "0"},
      {"max-tokens", "1.5"},
      {"max-tokens", ""},
      {"temperature", "-1"},
      {"temperature", "nan"},
      {"temperature", "hot"},
      {"temperature", "inf"},
      {"top-p", "1.5"},
      {"top-p", "-0.1"},
      {"top-k", "-1"},
      {"min-p", "2"},
      {"seed", "-1"},
      {"seed", "99999999999999999999"},
      {"repetition-penalty", "0"},
      {"weights", "f16"},
      {"acceptance", "lenient"},
      {"prompt-ids", "1,,2"},
      {"prompt-ids", "a"},
      {"prompt-ids", "-1"},
      {"prompt-ids", ""},
      {"prompt-ids", "99999999999"},
      {"logit-bias", "5"},
      {"logit-bias", "x=1"},
      {"logit-bias", "5=nan"},
      {"stop", ""},
      {"threads", "5000"},
      {"page-size", "0"},
      {"json", "perhaps"},
      {"kernels", ""},
  };
  for (const auto& [option, value] : cases) {
    const std::string error = error_for(option, value);
    EXPECT_TRUE(error.starts_with(std::string("--") + option + ": expected"))
        << option << "=" << value << ": " << error;
  }
}

TEST(ResolveSettings, MalformedFilesNameTheLine) {
  const std::string texts[] = {
      "max_tokns: 4\n",
      "max_tokens: [4]\n",
      "max_tokens: {a: 4}\n",
      "max_tokens: four\n",
      "max_tokens: -4\n",
      "max_tokens: 1_000\n",
      "max_tokens: 1e3\n",
      "max_tokens: 4\nmax-tokens: 5\n",
      "speculative: ngram\nspeculative_config: {decoding_type: ngram}\n",
      "speculative_config: [ngram]\n",
      "speculative_config: {decoding_type: ngrm}\n",
      "temperature: no\n",
      "ignore_eos: 7\n",
      "stop: [[a]]\n",
      "stop: {a: b}\n",
      "prompt: hello\n",
      "- max_tokens\n",
      "just text\n",
      "max_tokens 4\n",
      "42\n",
      "Max_Tokens: 4\n",
  };
  for (const std::string& text : texts) {
    const auto settings = with_file(text);
    ASSERT_FALSE(settings.ok()) << text;
    EXPECT_NE(settings.error().message.find(".yaml:"), std::string::npos) << settings.error().message;
    EXPECT_EQ(settings.error().message.find('\n'), std::string::npos) << text;
  }
  EXPECT_NE(with_file("max_tokns: 4\n").error().message.find("did you mean 'max_tokens'"), std::string::npos);
}

TEST(ResolveSettings, KeysOfOtherCommandsGetALine) {
  const auto settings = with_file("port: 8000\nmax_tokens: 4\n");
  ASSERT_TRUE(settings.ok()) << settings.error().message;
  ASSERT_EQ(settings->warnings.size(), 1u);
  EXPECT_NE(settings->warnings[0].find("port has no effect here: it is for `outrider serve`"),
            std::string::npos)
      << settings->warnings[0];
}

TEST(ResolveSettings, EmptyFileAndNullsLeaveTheDefaults) {
  EXPECT_TRUE(with_file("").ok());
  const auto settings = with_file("max_tokens: ~\n");
  ASSERT_TRUE(settings.ok()) << settings.error().message;
  EXPECT_EQ(settings->request.max_tokens, 128);
}

}  // namespace
}  // namespace outrider
