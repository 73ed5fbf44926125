// SPDX-License-Identifier: Apache-2.0
// Every row of the option table and of the keys of --speculative: defaults, ranges, names and help.
#include "config/option_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <limits>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "config/resolve_settings.h"
#include "config/speculative_config.h"
#include "config/speculative_key_table.h"

namespace outrider {
namespace {

using testing::HasSubstr;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

std::string contents(const std::string& path) {
  std::ifstream file(OUTRIDER_SOURCE_DIR "/" + path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

bool is_number(OptionType type) { return type == OptionType::kInteger || type == OptionType::kNumber; }

bool is_key_of_speculation(const OptionRow& row) {
  return row.type() == OptionType::kSpeculation || row.type() == OptionType::kSpeculationKey;
}

// Texts at the ends of a range, and just beyond them.
struct RangeTexts {
  std::vector<std::string> inside, outside;
};

RangeTexts texts_of(OptionType type, NumberRange range) {
  if (type == OptionType::kNumber) {
    return {{fmt::format("{}", range.min), fmt::format("{}", range.max)},
            {fmt::format("{}", std::nextafter(range.min, -kInf)),
             fmt::format("{}", std::nextafter(range.max, kInf))}};
  }
  const int64_t min = whole_bound(range.min), max = whole_bound(range.max);
  // Ten times the largest numbers are beyond every whole number.
  constexpr int64_t kLarge = int64_t{1} << 60;
  return {{std::to_string(min), std::to_string(max)},
          {min < -kLarge ? std::to_string(min) + "0" : std::to_string(min - 1),
           max > kLarge ? std::to_string(max) + "0" : std::to_string(max + 1)}};
}

std::vector<Command> commands_of(const OptionRow& row) {
  std::vector<Command> commands;
  for (const CommandRow& command : command_table()) {
    if (row.belongs_to(command.command)) commands.push_back(command.command);
  }
  return commands;
}

std::string outcome(const Result<Settings>& settings) {
  return settings.ok() ? "accepted" : settings.error().message;
}

std::string on_command_line(const OptionRow& row, Command command, const std::string& text) {
  GivenOptions given = {.command = command, .command_line = {}, .environment = {}};
  given.command_line[std::string(row.name)] = {text};
  return outcome(resolve_settings(given));
}

std::string in_environment(const OptionRow& row, Command command, const std::string& text) {
  return outcome(resolve_settings(
      {.command = command, .command_line = {}, .environment = {{row.environment_name(), text}}}));
}

std::string in_file(const OptionRow& row, Command command, const std::string& text) {
  GivenOptions given = {.command = command, .command_line = {}, .environment = {}};
  given.program_options = *parse_config(row.config_key() + ": " + text, "options");
  return outcome(resolve_settings(given));
}

TEST(OptionTable, EveryCommandNamesAnOptionOnce) {
  for (const CommandRow& command : command_table()) {
    std::set<std::string_view> names;
    for (const OptionRow& row : option_table()) {
      EXPECT_FALSE(row.help.empty()) << row.name;
      if (row.belongs_to(command.command)) {
        EXPECT_TRUE(names.insert(row.name).second) << row.name;
      }
    }
  }
  std::set<std::string> parameters;
  for (const OptionRow& row : option_table()) {
    if (row.member.is_of_request()) {
      EXPECT_TRUE(parameters.insert(row.config_key()).second) << row.name;
    }
    EXPECT_TRUE(row.commands != 0 || row.member.is_of_request()) << row.name;
  }
}

// A default that its own row would refuse, or that reads back as another value, is no value that a user can
// give.
TEST(OptionTable, DefaultsAreReadFromTheStructsAndCanBeGiven) {
  for (const CommandRow& command : command_table()) {
    const Settings defaults = default_settings(command.command);
    const auto resolved =
        resolve_settings({.command = command.command, .command_line = {}, .environment = {}});
    ASSERT_TRUE(resolved.ok());
    for (const OptionRow& row : option_table()) {
      if (is_key_of_speculation(row) || !row.belongs_to(command.command)) continue;
      const std::string text = row.text(defaults);
      EXPECT_EQ(row.text(*resolved), text) << row.name;
      if (text.empty() || row.type() == OptionType::kTextList) continue;
      Settings settings = defaults;
      const Status stored = row.store(settings, std::span(&text, 1));
      EXPECT_TRUE(stored.ok()) << row.name << ": " << (stored.ok() ? "" : stored.error().message);
      EXPECT_EQ(row.text(settings), text) << row.name;
    }
  }
}

TEST(OptionTable, RangesHoldOnCommandLineEnvironmentAndFile) {
  int rows = 0;
  for (const OptionRow& row : option_table()) {
    if (!is_number(row.type())) continue;
    const RangeTexts texts = texts_of(row.type(), row.range);
    for (const Command command : commands_of(row)) {
      ++rows;
      for (const std::string& text : texts.inside) {
        EXPECT_EQ(on_command_line(row, command, text), "accepted") << row.name;
        if (row.command_line_only) continue;
        EXPECT_EQ(in_environment(row, command, text), "accepted") << row.name;
        EXPECT_EQ(in_file(row, command, text), "accepted") << row.name;
      }
      for (const std::string& text : texts.outside) {
        EXPECT_THAT(on_command_line(row, command, text), HasSubstr("number from")) << row.name << " " << text;
        if (row.command_line_only) continue;
        EXPECT_THAT(in_environment(row, command, text), HasSubstr("number from")) << row.name << " " << text;
        EXPECT_THAT(in_file(row, command, text), HasSubstr("number from")) << row.name << " " << text;
      }
    }
  }
  EXPECT_GT(rows, 150);
}

TEST(OptionTable, BriefHelpHasTenOptionsAtMost) {
  for (const CommandRow& command : command_table()) {
    int brief = 0;
    for (const OptionRow& row : option_table()) {
      if (!row.is_brief(command.command)) continue;
      EXPECT_TRUE(row.belongs_to(command.command)) << command.name << " " << row.name;
      ++brief;
    }
    EXPECT_GE(brief, 1) << command.name;
    EXPECT_LE(brief, 10) << command.name;
  }
}

// The names in Python are the names of the table, apart from what Python makes of its own arguments.
TEST(OptionTable, PythonHasEveryParameterOfRequests) {
  const std::string text = contents("python/outrider/sampling.py");
  for (const OptionRow& row : option_table()) {
    const std::string key = row.config_key();
    if (!row.member.is_of_request() || key == "sample_index" || key == "cache_scope") continue;
    EXPECT_THAT(text, HasSubstr("\"" + key + "\"")) << row.name;
  }
  std::istringstream plain(text.substr(
      text.find("_PLAIN = (") + 10, text.find(")", text.find("_PLAIN = (")) - text.find("_PLAIN = (") - 10));
  for (std::string name; plain >> name;)
    EXPECT_NE(find_parameter(name.substr(1, name.rfind('"') - 1)), nullptr) << name;
}

TEST(OptionTable, DocumentationIsCurrent) {
  EXPECT_EQ(contents("docs/reference/options.md"), option_reference())
      << "run: outrider options > docs/reference/options.md";
}

std::string key_outcome(const SpeculativeKey& key, const std::string& text) {
  SpeculativeConfig config;
  const Status assigned = key.assign(config, text);
  return assigned.ok() ? "accepted" : assigned.error().message;
}

TEST(SpeculativeKeys, DefaultsCanBeGivenAndRangesHold) {
  for (const SpeculativeKey& key : speculative_key_table()) {
    if (key.usual_default.empty() && !key.default_text().empty()) {
      SpeculativeConfig config;
      EXPECT_TRUE(key.assign(config, key.default_text()).ok()) << key.name;
      EXPECT_EQ(key.member.text(config), key.member.text({})) << key.name;
    }
    if (!is_number(key.member.type)) continue;
    const RangeTexts texts = texts_of(key.member.type, key.range);
    for (const std::string& text : texts.inside) EXPECT_EQ(key_outcome(key, text), "accepted") << key.name;
    for (const std::string& text : texts.outside)
      EXPECT_THAT(key_outcome(key, text), HasSubstr("number from")) << key.name << " " << text;
  }
}

// Options that a program sets as members obey the same ranges.
TEST(SpeculativeKeys, RangesHoldForProgramsToo) {
  SpeculativeOptions options;
  EXPECT_TRUE(check_method_options(options, Method::kNGram).ok());
  options.ngram.max_matching_ngram_size = 16;
  EXPECT_TRUE(check_method_options(options, Method::kNGram).ok());
  options.ngram.max_matching_ngram_size = 17;
  EXPECT_THAT(check_method_options(options, Method::kNGram).error().message,
              HasSubstr("max_matching_ngram_size must be 1 to 16, found 17"));
  EXPECT_TRUE(check_method_options(options, Method::kSuffix).ok());
}

TEST(CheckSampling, AcceptsTheDefaultsAndTheEdges) {
  SamplingParams params;
  EXPECT_TRUE(check_sampling({.sampling = params}).ok());
  params.min_p = 1;
  params.logit_bias = {{0, static_cast<float>(-kInf)}, {3, -100.0f}};
  params.presence_penalty = -2;
  EXPECT_TRUE(check_sampling({.sampling = params}).ok());
}

TEST(CheckSampling, NamesTheParameterItsRangeAndTheValue) {
  const auto message = [](auto change) {
    SamplingParams params;
    change(params);
    const Status status = check_sampling({.sampling = params});
    return status.ok() ? std::string("accepted") : status.error().message;
  };
  EXPECT_THAT(message([](auto& p) { p.temperature = -0.5; }),
              HasSubstr("temperature must be 0 to 100, found -0.5"));
  EXPECT_THAT(message([](auto& p) { p.temperature = kNan; }), HasSubstr("temperature"));
  EXPECT_THAT(message([](auto& p) { p.temperature = kInf; }), HasSubstr("temperature"));
  EXPECT_THAT(message([](auto& p) { p.top_k = -1; }), HasSubstr("top_k"));
  EXPECT_THAT(message([](auto& p) { p.top_p = 0; }), HasSubstr("top_p"));
  EXPECT_THAT(message([](auto& p) { p.top_p = 1.01; }), HasSubstr("top_p"));
  EXPECT_THAT(message([](auto& p) { p.top_p = kNan; }), HasSubstr("top_p"));
  EXPECT_THAT(message([](auto& p) { p.min_p = -0.1; }), HasSubstr("min_p"));
  EXPECT_THAT(message([](auto& p) { p.min_p = 1.1; }), HasSubstr("min_p"));
  EXPECT_THAT(message([](auto& p) { p.repetition_penalty = 0; }), HasSubstr("repetition_penalty"));
  EXPECT_THAT(message([](auto& p) { p.presence_penalty = kInf; }), HasSubstr("presence_penalty"));
  EXPECT_THAT(message([](auto& p) { p.frequency_penalty = kNan; }), HasSubstr("frequency_penalty"));
  EXPECT_THAT(message([](auto& p) { p.logit_bias = {{-1, 0.0f}}; }), HasSubstr("logit_bias must be"));
  EXPECT_THAT(message([](auto& p) {
                p.logit_bias = {{7, static_cast<float>(kNan)}};
              }),
              HasSubstr("for token 7"));
  EXPECT_THAT(message([](auto& p) {
                p.logit_bias = {{7, static_cast<float>(kInf)}};
              }),
              HasSubstr("for token 7"));
}

}  // namespace
}  // namespace outrider
