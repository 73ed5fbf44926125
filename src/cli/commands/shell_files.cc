// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/shell_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "config/option_table.h"

namespace outrider {
namespace {

// A word after which options are completed: commands with one first word, as "bench rows", share a word.
struct Word {
  std::string name;
  std::string summary;
  unsigned commands = 0;
};

std::vector<Word> words() {
  std::vector<Word> all;
  for (const CommandRow& row : command_table()) {
    const std::string name(row.name.substr(0, row.name.find(' ')));
    if (all.empty() || all.back().name != name)
      all.push_back({.name = name, .summary = std::string(row.summary), .commands = 0});
    all.back().commands |= static_cast<unsigned>(row.command);
  }
  return all;
}

// The options after a word, each name once.
std::vector<const OptionRow*> options_after(const Word& word) {
  std::map<std::string_view, const OptionRow*> by_name;
  for (const OptionRow& row : option_table()) {
    if ((row.commands & word.commands) != 0 && !row.positional) by_name.emplace(row.name, &row);
  }
  std::vector<const OptionRow*> rows;
  for (const auto& [name, row] : by_name) rows.push_back(row);
  return rows;
}

std::string joined_choices(const OptionRow& row) {
  std::string text;
  for (const std::string_view choice : row.choice_names())
    text.append(text.empty() ? "" : " ").append(choice);
  return text;
}

// `text` with a backslash before each of `marks`.
std::string escaped(std::string_view text, std::string_view marks) {
  std::string result;
  for (const char c : text) {
    if (marks.find(c) != std::string_view::npos) result += '\\';
    result += c;
  }
  return result;
}

// Within single quotes of a shell.
std::string in_quotes(std::string_view text) {
  std::string result;
  for (const char c : text) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result;
}

std::string bash_choices(const Word& word) {
  std::string text;
  for (const OptionRow* row : options_after(word)) {
    if (const std::string choices = joined_choices(*row); !choices.empty())
      text += fmt::format("    {}:--{}) words=\"{}\" ;;\n", word.name, row->name, choices);
  }
  return text;
}

std::string zsh_argument(const OptionRow& row) {
  std::string text = fmt::format("--{}[{}]", row.name, escaped(in_quotes(row.help), "[]:"));
  if (row.metavar.empty()) return text;
  const std::string choices = joined_choices(row);
  return fmt::format("{}:{}:{}", text, row.metavar,
                     choices.empty() ? "_files" : fmt::format("({})", choices));
}

// Text of the manual: a line that begins with a dot or a quote is no macro.
std::string in_manual(std::string_view text) {
  std::string result;
  for (const char c : text) result += c == '-' ? "\\-" : c == '\\' ? "\\e" : std::string(1, c);
  return (result.starts_with('.') || result.starts_with('\'') ? "\\&" : "") + result;
}

std::string manual_option(const OptionRow& row) {
  std::string commands;
  for (const CommandRow& command : command_table()) {
    if (row.belongs_to(command.command)) commands.append(commands.empty() ? "" : ", ").append(command.name);
  }
  const std::string head =
      row.positional ? fmt::format(".I {}", row.metavar)
                     : fmt::format(".BI \"{}\\-\\-{}\" \" {}\"",
                                   row.short_name == 0 ? "" : fmt::format("\\-{}, ", row.short_name),
                                   in_manual(row.name), in_manual(row.metavar));
  const std::string choices = joined_choices(row);
  return fmt::format(".TP\n{}\n{}{}\n.br\nCommands: {}.\n", head, in_manual(row.help),
                     choices.empty() ? "" : fmt::format("; one of {}", in_manual(choices)),
                     in_manual(commands));
}

std::string manual_options() {
  std::vector<std::pair<std::string_view, std::string>> groups;  // in the order of the table
  for (const OptionRow& row : option_table()) {
    if (row.commands == 0) continue;
    auto group = std::ranges::find(groups, row.group, &std::pair<std::string_view, std::string>::first);
    if (group == groups.end()) group = groups.insert(groups.end(), {row.group, ""});
    group->second += manual_option(row);
  }
  std::string text;
  for (const auto& [name, options] : groups) text += fmt::format(".SS {}\n{}", name, options);
  return text;
}

}  // namespace

std::string bash_completion() {
  std::string names, options, choices;
  for (const Word& word : words()) {
    names.append(names.empty() ? "" : " ").append(word.name);
    std::string own;
    for (const OptionRow* row : options_after(word)) own += fmt::format("--{} ", row->name);
    options += fmt::format("    {}) words=\"{}--help\" ;;\n", word.name, own);
    choices += bash_choices(word);
  }
  return fmt::format(R"(# Completion of outrider for bash, written by `outrider options bash`.
_outrider() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD-1]}} words=
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W "{} help" -- "$current"))
    return
  fi
  case ${{COMP_WORDS[1]}}:$previous in
{}  esac
  if [ -z "$words" ] && [[ $current == -* ]]; then
    case ${{COMP_WORDS[1]}} in
{}    esac
  fi
  if [ -n "$words" ]; then
    COMPREPLY=($(compgen -W "$words" -- "$current"))
  else
    COMPREPLY=($(compgen -f -- "$current"))
  fi
}}
complete -o filenames -F _outrider outrider
)",
                     names, choices, options);
}

std::string zsh_completion() {
  std::string commands, cases;
  for (const Word& word : words()) {
    commands += fmt::format("    '{}:{}'\n", word.name, escaped(in_quotes(word.summary), ":"));
    cases += fmt::format("    {})\n      _arguments", word.name);
    for (const OptionRow* row : options_after(word))
      cases += fmt::format(" \\\n        '{}'", zsh_argument(*row));
    cases += " \\\n        '*:file:_files' ;;\n";
  }
  return fmt::format(R"(#compdef outrider
# Completion of outrider for zsh, written by `outrider options zsh`.
_outrider() {{
  local -a commands=(
{}  )
  if (( CURRENT == 2 )); then
    _describe command commands
    return
  fi
  local word=$words[2]
  words=($words[2,-1])
  (( CURRENT-- ))
  case $word in
{}  esac
}}
_outrider "$@"
)",
                     commands, cases);
}

std::string fish_completion() {
  std::string text = "# Completion of outrider for fish, written by `outrider options fish`.\n";
  for (const Word& word : words())
    text += fmt::format("complete -c outrider -n __fish_use_subcommand -a {} -d '{}'\n", word.name,
                        escaped(word.summary, "'\\"));
  for (const Word& word : words()) {
    for (const OptionRow* row : options_after(word)) {
      const std::string choices = joined_choices(*row);
      text +=
          fmt::format("complete -c outrider -n '__fish_seen_subcommand_from {}' -l {}{}{} -d '{}'\n",
                      word.name, row->name, row->metavar.empty() ? "" : " -r",
                      choices.empty() ? "" : fmt::format(" -f -a '{}'", choices), escaped(row->help, "'\\"));
    }
  }
  return text;
}

std::string manual_page() {
  std::string commands;
  for (const CommandRow& row : command_table())
    commands += fmt::format(".TP\n.B {}\n{}\n", in_manual(row.name), in_manual(row.summary));
  return fmt::format(R"(.\" Written by `outrider options man`.
.TH OUTRIDER 1
.SH NAME
outrider \- text from language models with speculative decoding that never changes the output
.SH SYNOPSIS
.B outrider
.I COMMAND
.RI [ OPTION ...]
.RI [ MODEL ]
.SH COMMANDS
{}.SH OPTIONS
An option can be given on the command line, in the environment (OUTRIDER_MAX_TOKENS=64) or in a YAML file
.RB ( \-\-config ).
.B \-h
lists the options of a command that people use most,
.B \-\-help
all of them.
{}.SH EXIT STATUS
0: success. 1: the command failed, or outputs differ. 2: an option, a name or a request was wrong.
.SH FILES
.TP
.I ~/.cache/outrider
models, packed weights and measured costs
.TP
.I ~/.local/state/outrider
lines that were said to
.B outrider chat
)",
                     commands, manual_options());
}

}  // namespace outrider
