// SPDX-License-Identifier: Apache-2.0
// The one table of options. A row becomes --name on the command line, OUTRIDER_NAME in the environment, a key
// of the --config file, and a line of docs/options.md.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "config/converted_option.h"
#include "config/settings.h"
#include "outrider/result.h"

namespace outrider {

// kSpeculationKey: a key of --speculative with an option of its own, whose name is the key's.
enum class OptionType { kFlag, kInteger, kNumber, kChoice, kText, kTextList, kSpeculation, kSpeculationKey };

struct OptionRow {
  std::string_view name;  // "max-tokens"
  std::string_view metavar = {};
  OptionType type = OptionType::kText;
  std::string_view group = {};
  unsigned commands = 0;               // bits of Command
  std::string_view default_text = {};  // converted like a given value; empty: none
  std::string_view help = {};
  Status (*apply)(Settings& settings, const OptionValue& value) = nullptr;  // null for those of speculation
  double min = 0;                                                           // kInteger and kNumber
  double max = 0;
  std::string_view choices = {};  // kChoice, separated by '|'
  char short_name = 0;
  bool positional = false;
  bool command_line_only = false;     // it belongs to one run, as a prompt does
  std::string_view environment = {};  // where the name differs from OUTRIDER_ and the option's

  bool belongs_to(Command command) const { return (commands & static_cast<unsigned>(command)) != 0; }
  std::string environment_name() const;  // "OUTRIDER_MAX_TOKENS"
  std::string config_key() const;        // "max_tokens"
};

// Name, group and defaults may differ between commands; a (command, name) pair occurs once.
std::span<const OptionRow> option_table();

struct CommandRow {
  Command command;
  std::string_view name;     // "verify-lossless"
  std::string_view summary;  // for --help
};
std::span<const CommandRow> command_table();

// docs/options.md.
std::string option_reference();

}  // namespace outrider
