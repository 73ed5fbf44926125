// SPDX-License-Identifier: Apache-2.0
// Where an option keeps its value: a path of members from a root, as in member<&Settings::engine,
// &EngineOptions::threads>. The type of the last member says what texts the option takes, and the value of
// that member in a new root is the option's default.
#pragma once

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "outrider/result.h"

namespace outrider {

// kIntegers and kNumbers: several in one text, separated by commas. kTextList: several texts. kSpeculation: a
// whole configuration of --speculative; kSpeculationKey: one of its keys.
enum class OptionType {
  kFlag,
  kInteger,
  kNumber,
  kChoice,
  kText,
  kIntegers,
  kNumbers,
  kTextList,
  kSpeculation,
  kSpeculationKey
};

// The smallest and the greatest value that is taken.
struct NumberRange {
  double min = 0;
  double max = 0;

  bool has(double value) const { return value >= min && value <= max; }
  std::string text() const { return fmt::format("{} to {}", number_text(min), number_text(max)); }

 private:
  static std::string number_text(double value) {
    return value == std::trunc(value) ? fmt::format("{:.0f}", value) : fmt::format("{}", value);
  }
};

// A converted value: the member of its type is set; kChoice and kText use texts[0].
struct OptionValue {
  bool flag = false;
  int64_t integer = 0;
  double number = 0;
  std::vector<int64_t> integers = {};
  std::vector<double> numbers = {};
  std::vector<std::string> texts = {};

  const std::string& text() const { return texts.front(); }
};

template <typename Root>
struct Member {
  OptionType type = OptionType::kText;
  // Errors of members with a form of their own: the text has another form.
  Status (*store)(Root& root, const OptionValue& value) = nullptr;
  std::string (*text)(const Root& root) = nullptr;       // as it would be given; empty: no value
  double (*number)(const Root& root) = nullptr;          // null: no number, or one without a sign
  std::vector<std::string_view> (*choices)() = nullptr;  // null: any text
};

template <typename Value>
using NamedValue = std::pair<std::string_view, Value>;

namespace member_detail {

template <auto... kPath>
struct RootOf;
template <typename Root, typename Value, Value Root::*kFirst, auto... kRest>
struct RootOf<kFirst, kRest...> {
  using type = Root;
};

template <auto kFirst, auto... kRest>
auto& follow(auto& object) {
  if constexpr (sizeof...(kRest) == 0) {
    return object.*kFirst;
  } else {
    return follow<kRest...>(object.*kFirst);
  }
}

template <typename T>
struct Traits {
  static constexpr OptionType kType = OptionType::kText;
  static void assign(T& place, const OptionValue& value) { place = value.text(); }
  static std::string text(const T& value) { return std::filesystem::path(value).string(); }
};
template <>
struct Traits<bool> {
  static constexpr OptionType kType = OptionType::kFlag;
  static void assign(bool& place, const OptionValue& value) { place = value.flag; }
  static std::string text(bool value) { return value ? "true" : "false"; }
};
template <typename T>
requires std::is_integral_v<T>
struct Traits<T> {
  static constexpr OptionType kType = OptionType::kInteger;
  static void assign(T& place, const OptionValue& value) { place = static_cast<T>(value.integer); }
  static std::string text(T value) { return std::to_string(value); }
};
template <>
struct Traits<double> {
  static constexpr OptionType kType = OptionType::kNumber;
  static void assign(double& place, const OptionValue& value) { place = value.number; }
  static std::string text(double value) { return fmt::format("{}", value); }
};
template <typename T>
struct Traits<std::optional<T>> {
  static constexpr OptionType kType = Traits<T>::kType;
  static void assign(std::optional<T>& place, const OptionValue& value) {
    Traits<T>::assign(place.emplace(), value);
  }
  static std::string text(const std::optional<T>& value) { return value ? Traits<T>::text(*value) : ""; }
};
template <typename T>
struct Traits<std::vector<T>> {
  static constexpr bool kIsWhole = std::is_integral_v<T>;
  static constexpr bool kIsNumber = kIsWhole || std::is_floating_point_v<T>;
  static constexpr OptionType kType = kIsWhole    ? OptionType::kIntegers
                                      : kIsNumber ? OptionType::kNumbers
                                                  : OptionType::kTextList;
  static void assign(std::vector<T>& place, const OptionValue& value) {
    place.clear();
    if constexpr (kIsWhole) {
      for (const int64_t item : value.integers) place.push_back(static_cast<T>(item));
    } else if constexpr (kIsNumber) {
      place = value.numbers;
    } else {
      place.assign(value.texts.begin(), value.texts.end());
    }
  }
  static std::string text(const std::vector<T>& values) {
    std::string text;
    for (const T& value : values) text += (text.empty() ? "" : ",") + Traits<T>::text(value);
    return text;
  }
};

}  // namespace member_detail

template <auto... kPath>
constexpr auto member() {
  using Root = typename member_detail::RootOf<kPath...>::type;
  using Value = std::remove_cvref_t<decltype(member_detail::follow<kPath...>(std::declval<Root&>()))>;
  using Traits = member_detail::Traits<Value>;
  Member<Root> made;
  made.type = Traits::kType;
  made.store = [](Root& root, const OptionValue& value) {
    Traits::assign(member_detail::follow<kPath...>(root), value);
    return Status();
  };
  made.text = [](const Root& root) { return Traits::text(member_detail::follow<kPath...>(root)); };
  if constexpr (std::is_arithmetic_v<Value> && std::is_signed_v<Value>) {
    made.number = [](const Root& root) { return static_cast<double>(member_detail::follow<kPath...>(root)); };
  }
  return made;
}

// A member whose values have names, as `kNames` lists them.
template <const auto& kNames, auto... kPath>
constexpr auto named() {
  using Root = typename member_detail::RootOf<kPath...>::type;
  Member<Root> made;
  made.type = OptionType::kChoice;
  made.store = [](Root& root, const OptionValue& value) {
    for (const auto& [name, meaning] : kNames) {
      if (name == value.text()) member_detail::follow<kPath...>(root) = meaning;
    }
    return Status();
  };
  made.text = [](const Root& root) {
    for (const auto& [name, meaning] : kNames) {
      if (member_detail::follow<kPath...>(root) == meaning) return std::string(name);
    }
    return std::string();
  };
  made.choices = [] {
    std::vector<std::string_view> choices;
    for (const auto& [name, meaning] : kNames) choices.push_back(name);
    return choices;
  };
  return made;
}

// A member whose text has its own form, which kRead reads and `text`, if it is given, writes.
template <auto kRead, typename Root>
constexpr Member<Root> read_by(OptionType type = OptionType::kText,
                               std::string (*text)(const Root&) = nullptr) {
  Member<Root> made;
  made.type = type;
  made.store = kRead;
  made.text = text != nullptr ? text : [](const Root&) { return std::string(); };
  return made;
}

// The values that a row takes.
struct ValueRule {
  OptionType type = OptionType::kText;
  NumberRange range = {};
  std::vector<std::string_view> choices = {};  // kChoice; letter case, '-' and '_' do not matter
  std::string_view noun = "whole numbers";     // the items of a list, in messages
  bool may_be_empty = false;                   // a text without a character, or a list without an item
};

// The value that texts stand for. Errors say what was expected, without the name of the option.
Result<OptionValue> convert_texts(const ValueRule& rule, std::span<const std::string> texts);

// A bound of a range as a whole number; bounds outside of int64_t become its ends.
int64_t whole_bound(double bound);

}  // namespace outrider
