// SPDX-License-Identifier: Apache-2.0
#include "config/arguments.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "config/message_text.h"
#include "config/option_table.h"
#include "config/option_value.h"

namespace outrider {
namespace {

// The option of the command that is called `name`, without dashes.
const OptionRow* option_of(Command command, std::string_view name) {
  for (const OptionRow& row : option_table()) {
    if (row.belongs_to(command) && row.name == name) return &row;
  }
  return nullptr;
}

// "--max_tokens" as "max-tokens"; empty for what is no long option.
std::string long_name(std::string_view argument) {
  if (!argument.starts_with("--")) return "";
  std::string name(argument.substr(2));
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

// "method" of "--speculative-config.method", as vLLM takes the keys one by one; empty: no such option.
std::string speculative_key(std::string_view argument) {
  constexpr std::string_view kMaps[] = {"speculative-config.", "speculative."};
  const std::string name = long_name(argument);
  for (const std::string_view map : kMaps) {
    if (name.starts_with(map)) return name.substr(map.size());
  }
  return "";
}

const OptionRow* own_option(Command command, std::string_view argument) {
  if (argument.size() == 2 && argument[0] == '-') {
    for (const OptionRow& row : option_table()) {
      if (row.belongs_to(command) && row.short_name == argument[1]) return &row;
    }
  }
  const OptionRow* row = option_of(command, long_name(argument));
  return row != nullptr && !row->positional ? row : nullptr;
}

class Translator {
 public:
  Translator(Command command, std::span<const std::string> given) : command_(command), given_(given) {}

  Result<Arguments> run() {
    while (next_ < given_.size()) {
      const std::string& argument = given_[next_++];
      if (argument == "--") {
        arguments_.own.push_back(argument);
        copy_rest();
      } else if (!argument.starts_with('-') || argument == "-") {
        arguments_.own.push_back(argument);
        has_words_ = true;
      } else {
        OUTRIDER_RETURN_IF_ERROR(take(argument));
      }
    }
    arguments_.own.insert(arguments_.own.end(), later_words_.begin(), later_words_.end());
    return std::move(arguments_);
  }

 private:
  void copy_rest() {
    while (next_ < given_.size()) arguments_.own.push_back(given_[next_++]);
  }

  Status take(const std::string& argument) {
    const size_t equals = argument.find('=');
    const std::string name = argument.substr(0, equals);
    std::optional<std::string> value;
    if (equals != std::string::npos) value = argument.substr(equals + 1);
    if (const OptionRow* own = own_option(command_, name)) {
      take_own(*own, argument, value);
      return {};
    }
    if (const std::string key = speculative_key(name); !key.empty() && option_of(command_, "speculative"))
      return take_key(key, name, std::move(value));
    const ForeignName* foreign = find_foreign(foreign_options(), name);
    const bool is_known = foreign != nullptr && (!is_option(*foreign) || option_of(command_, foreign->here) ||
                                                 !foreign->remark.empty());
    if (is_known) return take_foreign(*foreign, name, std::move(value));
    arguments_.own.push_back(argument);
    return {};
  }

  // Whether the name stands for an option of our own.
  static bool is_option(const ForeignName& foreign) {
    return !foreign.here.empty() && speculative_key_of(foreign).empty();
  }

  void take_own(const OptionRow& row, const std::string& argument, const std::optional<std::string>& value) {
    const bool is_long = argument.starts_with("--");
    arguments_.own.push_back(!is_long ? argument
                                      : fmt::format("--{}{}", row.name, value ? "=" + *value : ""));
    const bool has_more = row.type() != OptionType::kFlag && !value && next_ < given_.size();
    if (has_more) arguments_.own.push_back(given_[next_++]);
    while (row.takes_words && is_further_word())
      arguments_.own.push_back(fmt::format("--{}={}", row.name, given_[next_++]));
  }

  // Lists of other systems are words one after another. Before MODEL was given, the next word is MODEL.
  bool is_further_word() const {
    return has_words_ && next_ < given_.size() && !given_[next_].starts_with('-');
  }

  // A flag of one system has a number in another: "--warmup 2".
  bool is_number_next() const {
    return next_ < given_.size() && !given_[next_].empty() &&
           given_[next_].find_first_not_of("0123456789") == std::string::npos;
  }

  Status take_foreign(const ForeignName& foreign, const std::string& place,
                      std::optional<std::string> value) {
    if (!value && foreign.is_flag) value = "true";
    if (!value && next_ < given_.size()) value = given_[next_++];
    if (!value) return usage_error(fmt::format("{}: expected a value, found none", place));
    auto translated = value_here(foreign, *value);
    if (!translated.ok()) return usage_error(fmt::format("{}: {}", place, translated.error().message));
    const bool has_option = is_option(foreign) && option_of(command_, foreign.here) != nullptr;
    if (has_option && !leaves_default(foreign, *translated)) return add_option(foreign, place, *translated);
    while (foreign.here.empty() && !foreign.is_flag && is_further_word()) ++next_;
    if (foreign.here.empty() && foreign.is_flag && is_number_next()) ++next_;
    arguments_.foreign.push_back({.place = place, .name = &foreign, .value = *std::move(translated)});
    return {};
  }

  Status take_key(const std::string& key, const std::string& place, std::optional<std::string> value) {
    if (!value && next_ < given_.size()) value = given_[next_++];
    if (!value) return usage_error(fmt::format("{}: expected a value, found none", place));
    arguments_.foreign.push_back({.place = place, .name = nullptr, .value = *std::move(value), .key = key});
    return {};
  }

  Status add_option(const ForeignName& foreign, const std::string& place, const std::string& value) {
    const auto [earlier, is_new] = values_.try_emplace(std::string(foreign.here), value);
    if (!is_new && earlier->second != value) {
      return usage_error(fmt::format("{}: is given twice, also as {}; keep one", place,
                                     arguments_.spelling.find(foreign.here)->second));
    }
    if (!is_new) return {};
    arguments_.spelling.emplace(foreign.here, place);
    if (option_of(command_, foreign.here)->positional) {
      add_word(foreign.here, value);
    } else {
      arguments_.own.push_back(fmt::format("--{}={}", foreign.here, value));
    }
    return {};
  }

  // Words are told apart by their order: the first one of the command stands before all others.
  void add_word(std::string_view name, const std::string& value) {
    const auto first = std::ranges::find_if(
        option_table(), [this](const OptionRow& row) { return row.positional && row.belongs_to(command_); });
    has_words_ = true;
    if (first->name == name) {
      arguments_.own.insert(arguments_.own.begin(), value);
    } else {
      later_words_.push_back(value);
    }
  }

  Command command_;
  std::span<const std::string> given_;
  size_t next_ = 0;
  bool has_words_ = false;  // MODEL, or whatever else stands by itself, was given
  Arguments arguments_;
  std::vector<std::string> later_words_;                    // given by name
  std::map<std::string, std::string, std::less<>> values_;  // of options given by other names
};

}  // namespace

Result<Arguments> translate_arguments(Command command, std::span<const std::string> given) {
  return Translator(command, given).run();
}

}  // namespace outrider
