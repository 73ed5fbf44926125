// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "config/foreign/foreign_names.h"
#include "config/methods.h"
#include "config/option_table.h"
#include "config/speculative_key_table.h"

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

// "a|b" as "a b".
std::string spaced(std::string_view names) {
  std::string text(names);
  std::replace(text.begin(), text.end(), '|', ' ');
  return text;
}

// The names that other systems give to a key.
std::string also(const SpeculativeKey& key) {
  std::string text;
  for (const ForeignName& name : foreign_keys()) {
    if (name.here == key.name) text += (text.empty() ? "" : " ") + spaced(name.names);
  }
  return text;
}

std::string_view needs(MethodNeeds needs) {
  switch (needs) {
    case MethodNeeds::kNothing:
      return "nothing";
    case MethodNeeds::kDraftModel:
      return "a draft model";
    case MethodNeeds::kDraftModels:
      return "several draft models";
    case MethodNeeds::kHead:
      return "a network trained for the target";
    case MethodNeeds::kMethods:
      return "other methods";
    case MethodNeeds::kUserDrafter:
      return "a program";
  }
  return "";
}

std::string usual_tree(const MethodRow& row) {
  const UsualTree& usual = row.usual;
  if (row.method == Method::kNone) return "none";
  if (row.has_own_tree) return "its own";
  std::string text(tree_kind_name(usual.kind.value_or(TreeKind::kChain)));
  if (usual.fills_block) text += ", the head's block";
  if (usual.max_draft_len > 0) text += fmt::format(", max_draft_len {}", usual.max_draft_len);
  if (usual.dynamic_tree_max_top_k > 0)
    text += fmt::format(", dynamic_tree_max_topK {}", usual.dynamic_tree_max_top_k);
  if (usual.max_total_draft_tokens > 0)
    text += fmt::format(", max_total_draft_tokens {}", usual.max_total_draft_tokens);
  return text;
}

// "a b" of a and b.
std::string listed(std::span<const std::string_view> names) {
  std::string text;
  for (const std::string_view name : names) text.append(text.empty() ? "" : " ").append(name);
  return text;
}

std::string values(const OptionRow& row, NumberRange range) {
  switch (row.type()) {
    case OptionType::kInteger:
      return "whole number, " + range.text();
    case OptionType::kNumber:
      return "number, " + range.text();
    case OptionType::kChoice:
      return listed(row.choice_names());
    case OptionType::kFlag:
      return "flag";
    case OptionType::kIntegers:
    case OptionType::kNumbers:
      return fmt::format("{}, {}, with commas", row.noun, range.text());
    case OptionType::kTextList:
      return "text, repeatable";
    case OptionType::kSpeculation:
      return "see below";
    case OptionType::kText:
    case OptionType::kSpeculationKey:
      return "text";
  }
  return "";
}

// The default, and the commands with another one: "0; serve 0.8".
std::string defaults(const OptionRow& row) {
  std::string usual, others;
  bool is_first = true;
  for (const CommandRow& command : command_table()) {
    if (!row.belongs_to(command.command)) continue;
    const std::string text = row.text(default_settings(command.command));
    if (std::exchange(is_first, false)) {
      usual = text;
    } else if (text != usual) {
      others += fmt::format("; {} {}", command.name, text);
    }
  }
  return usual + others;
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
    "[Names of other systems](coming_from.md) are taken in their place. "
    "In the file `speculative_config:` holds the block that `--speculative` takes. `NO_COLOR` switches "
    "colour off.\n";

constexpr std::string_view kRequestsText =
    "\n## Parameters of requests\n\n"
    "Names in C and Python, and the fields of HTTP requests ([API](api.md)) with the numbers that are taken "
    "there.\n\n"
    "| parameter | values | HTTP | meaning |\n|---|---|---|---|\n";

std::string request_reference() {
  std::string text(kRequestsText);
  for (const OptionRow& row : option_table()) {
    if (!row.member.is_of_request()) continue;
    std::string field = row.http.name.empty() ? "" : fmt::format("`{}`", row.http.name);
    if (row.http.range) field += fmt::format(", {}", row.http.range->text());
    text += fmt::format("| `{}` | {} | {} | {} |\n", row.config_key(), escaped(values(row, row.range)), field,
                        escaped(row.help));
  }
  return text;
}

constexpr std::string_view kMethodsText =
    "\n## Methods\n\n"
    "A method is the `decoding_type` of `--speculative`; letter case, `-` and `_` do not matter. Its usual "
    "tree is\n"
    "drafted where no key asks for another; numbers that are not named here are the defaults of the keys "
    "below.\n\n"
    "| method | also | needs | usual tree | drafts |\n|---|---|---|---|---|\n";

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
    if (row.commands == 0) continue;
    if (row.group != group) {
      group = row.group;
      text += fmt::format(
          "\n## {}\n\n| option | values | default | meaning | commands | environment, file |\n", group);
      text += "|---|---|---|---|---|---|\n";
    }
    const std::string elsewhere =
        row.command_line_only ? "-" : fmt::format("`{}`, `{}`", row.environment_name(), row.config_key());
    text += fmt::format("| `{}` | {} | {} | {} | {} | {} |\n", spelling(row), escaped(values(row, row.range)),
                        defaults(row), escaped(row.help), commands_of(row), elsewhere);
  }
  text += request_reference();
  text += kMethodsText;
  for (const MethodRow& row : method_table()) {
    text += fmt::format("| {} | {} | {} | {} | {} |\n", row.name, spaced(row.aliases), needs(row.needs),
                        usual_tree(row), row.help);
  }
  text += kSpeculationText;
  for (const SpeculativeKey& key : speculative_key_table()) {
    text += fmt::format("| `{}` | {} | {} | {} | {} |\n", key.name, also(key), methods_of(key),
                        key.default_text(), key.meaning());
  }
  return text;
}

}  // namespace outrider
