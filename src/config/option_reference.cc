// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "config/message_text.h"
#include "config/option_table.h"
#include "config/option_value.h"

namespace outrider {
namespace {

std::string commands_of(const OptionRow& row) {
  std::string names;
  for (const CommandRow& command : command_table()) {
    if (!row.belongs_to(command.command)) continue;
    names += names.empty() ? "" : ", ";
    names += command.name;
  }
  return names;
}

std::string spelling(const OptionRow& row) {
  if (row.positional) return std::string(row.metavar);
  const std::string value = row.metavar.empty() ? "" : fmt::format(" {}", row.metavar);
  const std::string short_form = row.short_name == 0 ? "" : fmt::format("-{}, ", row.short_name);
  return fmt::format("{}--{}{}", short_form, row.name, value);
}

std::string values(const OptionRow& row) {
  switch (row.type) {
    case OptionType::kInteger:
      return fmt::format("whole number, {:.0f} to {:.0f}", row.min, row.max);
    case OptionType::kNumber:
      return fmt::format("number, {} to {}", row.min, row.max);
    case OptionType::kChoice: {
      std::string choices(row.choices);
      std::replace(choices.begin(), choices.end(), '|', ' ');
      return choices;
    }
    case OptionType::kFlag:
      return "flag";
    case OptionType::kTextList:
      return "text, repeatable";
    case OptionType::kSpeculation:
      return "see below";
    case OptionType::kText:
      return "text";
  }
  return "";
}

std::string escaped(std::string_view text) {
  std::string result;
  for (char c : text) {
    if (c == '|') result += '\\';
    result += c;
  }
  return result;
}

constexpr std::string_view kIntroduction =
    "# Options\n\n"
    "<!-- Written by `outrider options`; change src/config/option_table.cc instead. -->\n\n"
    "An option can be given on the command line, as an environment variable, or as a key of the YAML file\n"
    "named by `--config`; the first of these that gives it wins, then the default. Unknown names are "
    "errors.\n"
    "In the file `speculative_config:` holds the block that `--speculative` takes. `NO_COLOR` switches "
    "colour off.\n";

constexpr std::string_view kSpeculationText =
    "\n## Keys of `--speculative`\n\n"
    "Names and meaning are TensorRT-LLM's; a `speculative_config:` block works unchanged. Inline, the first "
    "word\n"
    "may be the method: `--speculative ngram,max_draft_len=8`. vLLM's JSON (`{\"method\": \"ngram\", ...}`) "
    "and\n"
    "the path of a YAML or JSON file are accepted in the same place.\n\n"
    "| key | also | method | default | meaning |\n|---|---|---|---|---|\n";

}  // namespace

std::string option_reference() {
  std::string text(kIntroduction);
  std::string_view group;
  for (const OptionRow& row : option_table()) {
    if (row.group != group) {
      group = row.group;
      text += fmt::format(
          "\n## {}\n\n| option | values | default | meaning | commands | environment, file |\n", group);
      text += "|---|---|---|---|---|---|\n";
    }
    const std::string elsewhere =
        row.command_line_only ? "-" : fmt::format("`{}`, `{}`", row.environment_name(), row.config_key());
    text += fmt::format("| `{}` | {} | {} | {} | {} | {} |\n", spelling(row), escaped(values(row)),
                        row.default_text, escaped(row.help), commands_of(row), elsewhere);
  }
  text += kSpeculationText;
  for (const SpeculativeKey& key : speculative_keys()) {
    std::string aliases(key.aliases);
    std::replace(aliases.begin(), aliases.end(), '|', ' ');
    text += fmt::format("| `{}` | {} | {} | {} | {} |\n", key.name, aliases,
                        key.methods.empty() ? "all" : joined(split(key.methods, '|')), key.default_text,
                        key.help);
  }
  return text;
}

}  // namespace outrider
