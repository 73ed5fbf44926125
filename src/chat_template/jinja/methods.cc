// SPDX-License-Identifier: Apache-2.0
// Methods of str, list, dict and loop.
#include <algorithm>

#include "chat_template/jinja/builtins.h"
#include "chat_template/jinja/operators.h"
#include "chat_template/jinja/text.h"

namespace outrider::jinja {

namespace {

template <StripSide side>
Result<Value> str_strip(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  OUTRIDER_TRY(const Parameters parameters, Parameters::bind(arguments, {"chars"}));
  OUTRIDER_TRY(const std::string characters, parameters.string(0, ""));
  OUTRIDER_RETURN_IF_ERROR(runtime.spend_bytes(subject.string().size()));
  if (!parameters.has(0)) return Value(strip(subject.string(), side));
  return Value(strip(subject.string(), side, characters));
}

template <std::string (*map)(std::string_view)>
Result<Value> str_map(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  OUTRIDER_TRY(const Parameters parameters, Parameters::bind(arguments, {}));
  OUTRIDER_RETURN_IF_ERROR(runtime.spend_bytes(subject.string().size()));
  return Value(map(subject.string()));
}

template <bool at_start>
bool matches_edge(const std::string& text, const std::string& affix) {
  return at_start ? text.starts_with(affix) : text.ends_with(affix);
}

// str.startswith() and str.endswith() take one affix or a tuple of them.
template <bool at_start>
Result<Value> str_has_affix(Runtime&, const Value& subject, const Arguments& arguments) {
  OUTRIDER_TRY(const Parameters parameters, Parameters::bind(arguments, {"prefix"}, 1));
  const std::vector<Value> affixes =
      parameters[0].is_tuple() ? parameters[0].list().items : std::vector<Value>{parameters[0]};
  for (const Value& affix : affixes) {
    if (!affix.is(Kind::kString)) {
      return input_error("expected a string to compare with, found " + std::string(affix.type_name()));
    }
    if (matches_edge<at_start>(subject.string(), affix.string())) return Value(true);
  }
  return Value(false);
}

template <bool at_start>
Result<Value> str_remove_affix(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  OUTRIDER_TRY(const Parameters parameters, Parameters::bind(arguments, {"affix"}, 1));
  OUTRIDER_TRY(const std::string affix, parameters.string(0, ""));
  const std::string& text = subject.string();
  OUTRIDER_RETURN_IF_ERROR(runtime.spend_bytes(text.size()));
  if (!matches_edge<at_start>(text, affix)) return subject;
  return Value(at_start ? text.substr(affix.size()) : text.substr(0, text.size() - affix.size()));
}

template <bool from_right>
Result<Value> str_split(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  OUTRIDER_TRY(const Parameters parameters, Parameters::bind(arguments, {"sep", "maxsplit"}));
  OUTRIDER_TRY(const std::string separator, parameters.string(0, ""));
  OUTRIDER_TRY(const int64_t limit, parameters.integer(1, -1));
  const std::string& text = subject.string();
  if (!parameters.has(0)) {
    if (from_right && limit >= 0) return input_error("rsplit() with maxsplit needs a separator");
    return make_string_list(runtime, split_whitespace(text, limit));
  }
  if (separator.empty()) return input_error("the separator of split() cannot be empty");
  return make_string_list(
      runtime, from_right ? split_from_right(text, separator, limit) : split(text, separator, limit));
}

Result<Value> str_splitlines(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  OUTRIDER_TRY(const Parameters parameters, Parameters::bind(arguments, {}));
  return make_string_list(runtime, split_lines(subject.string()));
}

// str.partition(): the text before the separator, the separator, the text after it.
Result<Value> str_partition(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  OUTRIDER_TRY(const Parameters parameters, Parameters::bind(arguments, {"sep"}, 1));
  OUTRIDER_TRY(const std::string separator, parameters.string(0, ""));
  if (separator.empty()) return input_error("the separator of partition() cannot be empty");
  OUTRIDER_RETURN_IF_ERROR(runtime.spend_bytes(subject.string().size()));
  const std::vector<std::string_view> parts = split(subject.string(), separator, 1);
  if (parts.size() == 1) return make_tuple({subject, Value(""), Value("")});
  return make_tuple({Value(parts[0]), Value(separator), Value(parts[1])});
}

Result<Value> str_replace(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  OUTRIDER_TRY(const Parameters parameters, Parameters::bind(arguments, {"old", "new", "count"}, 2));
  OUTRIDER_TRY(const std::string from, parameters.string(0, ""));
  OUTRIDER_TRY(const std::string to, parameters.string(1, ""));
  OUTRIDER_TRY(const int64_t limit, parameters.integer(2, -1));
  OUTRIDER_RETURN_IF_ERROR(runtime.spend_bytes(replaced_size(subject.string(), from, to)));
  return Value(replace(subject.string(), from, to, limit));
}

// The place of the argument, counted in characters, or -1.
template <bool from_right>
Result<int64_t> find_text(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  OUTRIDER_TRY(const Parameters parameters, Parameters::bind(arguments, {"sub"}, 1));
  OUTRIDER_TRY(const std::string wanted, parameters.string(0, ""));
  const std::string& text = subject.string();
  OUTRIDER_RETURN_IF_ERROR(runtime.spend_bytes(text.size()));
  const size_t at = from_right ? text.rfind(wanted) : text.find(wanted);
  if (at == std::string::npos) return int64_t{-1};
  return count_characters(std::string_view(text).substr(0, at));
}

template <bool from_right>
Result<Value> str_find(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  OUTRIDER_TRY(const int64_t at, find_text<from_right>(runtime, subject, arguments));
  return Value(at);
}

Result<Value> str_index(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  OUTRIDER_TRY(const int64_t at, find_text<false>(runtime, subject, arguments));
  if (at < 0) return input_error("the string to look for is not there");
  return Value(at);
}

Result<Value> str_count(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  OUTRIDER_TRY(const Parameters parameters, Parameters::bind(arguments, {"sub"}, 1));
  OUTRIDER_TRY(const std::string wanted, parameters.string(0, ""));
  if (wanted.empty()) return Value(count_characters(subject.string()) + 1);
  const std::vector<std::string_view> parts = split(subject.string(), wanted, -1);
  OUTRIDER_RETURN_IF_ERROR(
      runtime.spend_bytes(subject.string().size() + parts.size() * sizeof(std::string_view)));
  return Value(static_cast<int64_t>(parts.size()) - 1);
}

Result<Value> str_join(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  OUTRIDER_TRY(const Parameters parameters, Parameters::bind(arguments, {"iterable"}, 1));
  OUTRIDER_TRY(const auto items, iterate(runtime, parameters[0]));
  std::string out;
  for (const Value& item : items->items) {
    if (!item.is(Kind::kString)) {
      return input_error("str.join() needs strings, found " + std::string(item.type_name()));
    }
    OUTRIDER_RETURN_IF_ERROR(runtime.spend_bytes(item.string().size() + subject.string().size()));
    if (&item != items->items.data()) out += subject.string();
    out += item.string();
  }
  return Value(std::move(out));
}

// True when the text is not empty and all its characters fulfil the predicate.
template <bool (*predicate)(int32_t)>
Result<Value> str_consists_of(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  OUTRIDER_TRY(const Parameters parameters, Parameters::bind(arguments, {}));
  OUTRIDER_RETURN_IF_ERROR(runtime.spend_bytes(subject.string().size()));
  const std::vector<std::string_view> characters = split_characters(subject.string());
  return Value(!characters.empty() &&
               std::all_of(characters.begin(), characters.end(),
                           [](std::string_view c) { return predicate(code_point(c)); }));
}

bool is_letter_or_digit(int32_t point) { return is_letter(point) || is_decimal_digit(point); }

template <const char* test>
Result<Value> str_test(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  OUTRIDER_TRY(const bool result, apply_test(runtime, test, subject, arguments));
  return Value(result);
}

constexpr char kUpperTest[] = "upper";
constexpr char kLowerTest[] = "lower";

Result<Value> list_index(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  OUTRIDER_TRY(const Parameters parameters, Parameters::bind(arguments, {"value"}, 1));
  const auto& items = subject.list().items;
  for (size_t i = 0; i < items.size(); ++i) {
    OUTRIDER_TRY(const bool same, equal(runtime, items[i], parameters[0]));
    if (same) return Value(static_cast<int64_t>(i));
  }
  return input_error("the value to look for is not in the list");
}

Result<Value> list_count(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  OUTRIDER_TRY(const Parameters parameters, Parameters::bind(arguments, {"value"}, 1));
  int64_t count = 0;
  for (const Value& item : subject.list().items) {
    OUTRIDER_TRY(const bool same, equal(runtime, item, parameters[0]));
    count += same ? 1 : 0;
  }
  return Value(count);
}

Result<Value> dict_items(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  OUTRIDER_TRY(const Parameters parameters, Parameters::bind(arguments, {}));
  std::vector<Value> items;
  for (const Dict::Entry& entry : subject.dict().entries()) {
    OUTRIDER_RETURN_IF_ERROR(runtime.spend_bytes(sizeof(List) + 3 * sizeof(Value)));
    OUTRIDER_TRY(Value pair, make_tuple({entry.key, entry.value}));
    items.push_back(std::move(pair));
  }
  return make_list(std::move(items));
}

template <Value Dict::Entry::*part>
Result<Value> dict_parts(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  OUTRIDER_TRY(const Parameters parameters, Parameters::bind(arguments, {}));
  OUTRIDER_RETURN_IF_ERROR(runtime.spend_bytes(subject.dict().entries().size() * sizeof(Value)));
  std::vector<Value> parts;
  for (const Dict::Entry& entry : subject.dict().entries()) parts.push_back(entry.*part);
  return make_list(std::move(parts));
}

Result<Value> dict_get(Runtime&, const Value& subject, const Arguments& arguments) {
  OUTRIDER_TRY(const Parameters parameters, Parameters::bind(arguments, {"key", "default"}, 1));
  if (const Value* value = subject.dict().find(parameters[0])) return *value;
  return parameters.given(1) ? parameters[1] : Value(None{});
}

Result<Value> copy(Runtime&, const Value& subject, const Arguments& arguments) {
  OUTRIDER_TRY(const Parameters parameters, Parameters::bind(arguments, {}));
  return subject;
}

Result<Value> loop_cycle(Runtime&, const Value& subject, const Arguments& arguments) {
  if (arguments.positional.empty()) return input_error("no items for cycling given");
  const auto place = static_cast<size_t>(subject.loop().index) % arguments.positional.size();
  return arguments.positional[place];
}

constexpr Builtin kStringMethods[] = {
    {"strip", str_strip<StripSide::kBoth>},
    {"lstrip", str_strip<StripSide::kLeft>},
    {"rstrip", str_strip<StripSide::kRight>},
    {"upper", str_map<to_upper>},
    {"lower", str_map<to_lower>},
    {"title", str_map<title_words>},
    {"capitalize", str_map<capitalize>},
    {"startswith", str_has_affix<true>},
    {"endswith", str_has_affix<false>},
    {"removeprefix", str_remove_affix<true>},
    {"removesuffix", str_remove_affix<false>},
    {"split", str_split<false>},
    {"rsplit", str_split<true>},
    {"splitlines", str_splitlines},
    {"partition", str_partition},
    {"replace", str_replace},
    {"find", str_find<false>},
    {"rfind", str_find<true>},
    {"index", str_index},
    {"count", str_count},
    {"join", str_join},
    {"isalpha", str_consists_of<is_letter>},
    {"isdigit", str_consists_of<is_decimal_digit>},
    {"isalnum", str_consists_of<is_letter_or_digit>},
    {"isspace", str_consists_of<is_whitespace>},
    {"isupper", str_test<kUpperTest>},
    {"islower", str_test<kLowerTest>},
};

constexpr Builtin kListMethods[] = {{"index", list_index}, {"count", list_count}, {"copy", copy}};

constexpr Builtin kDictMethods[] = {
    {"items", dict_items},
    {"keys", dict_parts<&Dict::Entry::key>},
    {"values", dict_parts<&Dict::Entry::value>},
    {"get", dict_get},
    {"copy", copy},
};

constexpr Builtin kLoopMethods[] = {{"cycle", loop_cycle}};

template <size_t count>
const Builtin* find_in(const Builtin (&table)[count], std::string_view name) {
  const auto* place =
      std::find_if(table, table + count, [&](const Builtin& entry) { return entry.name == name; });
  return place == table + count ? nullptr : place;
}

template <size_t count>
bool is_listed(const std::string_view (&names)[count], std::string_view name) {
  return std::find(names, names + count, name) != names + count;
}

constexpr std::string_view kListMutators[] = {"append", "clear", "pop",    "reverse",
                                              "insert", "sort",  "extend", "remove"};
constexpr std::string_view kDictMutators[] = {"clear", "pop", "popitem", "setdefault", "update"};

}  // namespace

const Builtin* find_method(const Value& object, std::string_view name) {
  switch (object.kind()) {
    case Kind::kString:
      return find_in(kStringMethods, name);
    case Kind::kList:
      return find_in(kListMethods, name);
    case Kind::kDict:
      return find_in(kDictMethods, name);
    case Kind::kLoop:
      return find_in(kLoopMethods, name);
    default:
      return nullptr;
  }
}

bool is_mutating_method(const Value& object, std::string_view name) {
  if (object.is(Kind::kDict)) return is_listed(kDictMutators, name);
  return object.is(Kind::kList) && !object.is_tuple() && is_listed(kListMutators, name);
}

}  // namespace outrider::jinja
