// SPDX-License-Identifier: Apache-2.0
// The one table of options and of request parameters. A row becomes --name on the command line, OUTRIDER_NAME
// in the environment, a key of the --config file, a parameter of C and Python, a field of HTTP requests, and
// a line of docs/reference/options.md.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "config/option_member.h"
#include "config/settings.h"
#include "outrider/result.h"

namespace outrider {

// The place of a row's value. A value of the request is also a parameter of requests in C and Python.
struct OptionMember {
  Member<Settings> of_settings = {};
  Member<Request> of_request = {};

  constexpr OptionMember(Member<Settings> member) : of_settings(member) {}  // NOLINT: rows name either
  constexpr OptionMember(Member<Request> member) : of_request(member) {}    // NOLINT
  constexpr OptionMember(OptionType type) { of_settings.type = type; }      // NOLINT: keys of speculation

  OptionType type() const { return is_of_request() ? of_request.type : of_settings.type; }
  bool is_of_request() const { return of_request.store != nullptr; }
};

// The field of HTTP requests that a row is. A dot joins the names of nested objects.
struct HttpField {
  std::string_view name = {};             // empty: none
  std::optional<NumberRange> range = {};  // unset: the row's
};

struct OptionRow {
  std::string_view name = {};  // "max-tokens"
  std::string_view metavar = {};
  std::string_view group = {};
  unsigned commands = 0;        // bits of Command; 0: a parameter of requests that no command has
  unsigned brief_commands = 0;  // the commands whose -h shows it, ten options at most
  OptionMember member;
  std::string_view help = {};
  NumberRange range = {};  // of numbers, and of each item of a list
  HttpField http = {};
  std::string_view choices = {};  // of a text, separated by '|'; empty: any, or by the names of the member
  std::string_view noun = "whole numbers";  // the items of a list, in messages
  char short_name = 0;
  bool positional = false;
  bool command_line_only = false;     // it belongs to one run, as a prompt does
  bool takes_words = false;           // on a command line, words after its value are further values
  std::string_view environment = {};  // where the name differs from OUTRIDER_ and the option's

  bool belongs_to(Command command) const { return (commands & static_cast<unsigned>(command)) != 0; }
  bool is_brief(Command command) const { return (brief_commands & static_cast<unsigned>(command)) != 0; }
  OptionType type() const { return choices.empty() ? member.type() : OptionType::kChoice; }
  std::string environment_name() const;  // "OUTRIDER_MAX_TOKENS"
  std::string config_key() const;        // "max_tokens"
  std::vector<std::string_view> choice_names() const;
  ValueRule rule() const;
  // The value in `settings` as it would be given; empty: none, or a flag that is not set.
  std::string text(const Settings& settings) const;
  // Errors say what was expected, without the name of the option.
  Status store(Settings& settings, std::span<const std::string> texts) const;
  Status store(Request& request,
               std::span<const std::string> texts) const;  // precondition: it is of a request
};

// A (command, name) pair occurs once.
std::span<const OptionRow> option_table();
// The rows at its end: parameters of requests that no command has.
std::span<const OptionRow> parameter_table();

// The row of a request parameter by its name in C and Python, such as "max_tokens"; null: no such parameter.
const OptionRow* find_parameter(std::string_view name);
// The row of a field of HTTP requests, such as "speculative.budget"; null: no such field in the table.
const OptionRow* find_http_field(std::string_view name);
// The numbers that the field takes. Precondition: find_http_field(name) has a row.
NumberRange http_range(std::string_view name);

// Error: a number of the request's sampling parameters is outside the range of its row.
Status check_sampling(const Request& request);

struct CommandRow {
  Command command;
  std::string_view name;     // "verify-lossless"
  std::string_view summary;  // for --help
  // An option that stands for the second word of the command: `bench --rows 1,8` is `bench rows --rows 1,8`.
  std::string_view chosen_by = {};
};
std::span<const CommandRow> command_table();

// docs/reference/options.md.
std::string option_reference();

}  // namespace outrider
