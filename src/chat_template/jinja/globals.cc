// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "chat_template/jinja/builtins.h"
#include "chat_template/jinja/operators.h"

namespace outrider::jinja {

namespace {

constexpr int64_t kMaxRange = 100'000;  // the limit of Jinja's sandbox
constexpr size_t kMaxDateText = 256;

Result<Value> range(Runtime& runtime, const Value&, const Arguments& arguments) {
  OUTRIDER_TRY(const Parameters parameters, Parameters::bind(arguments, {"start", "stop", "step"}, 1));
  OUTRIDER_TRY(int64_t start, parameters.integer(0, 0));
  OUTRIDER_TRY(int64_t stop, parameters.integer(1, 0));
  OUTRIDER_TRY(const int64_t step, parameters.integer(2, 1));
  if (!parameters.given(1)) {
    stop = start;
    start = 0;
  }
  if (step == 0) return input_error("the step of range() cannot be zero");
  std::vector<Value> items;
  for (int64_t i = start; step > 0 ? i < stop : i > stop;) {
    if (static_cast<int64_t>(items.size()) == kMaxRange) {
      return input_error("range() is limited to " + std::to_string(kMaxRange) + " items");
    }
    items.push_back(Value(i));
    if (__builtin_add_overflow(i, step, &i)) break;
  }
  OUTRIDER_RETURN_IF_ERROR(runtime.spend_bytes(items.size() * sizeof(Value)));
  return make_list(std::move(items));
}

// dict(mapping or pairs, name=value, ...)
Result<Dict> collect_dict(Runtime& runtime, const Arguments& arguments) {
  if (arguments.positional.size() > 1) return input_error("expected at most one positional argument");
  Dict dict;
  if (!arguments.positional.empty()) {
    const Value& source = arguments.positional[0];
    OUTRIDER_TRY(const auto items, iterate(runtime, source));
    for (const Value& item : items->items) {
      if (source.is(Kind::kDict)) {
        OUTRIDER_RETURN_IF_ERROR(dict.set(item, *source.dict().find(item)));
      } else if (item.is(Kind::kList) && item.list().items.size() == 2) {
        OUTRIDER_RETURN_IF_ERROR(dict.set(item.list().items[0], item.list().items[1]));
      } else {
        return input_error("expected a dict or a list of pairs");
      }
    }
  }
  for (const auto& [name, value] : arguments.named) OUTRIDER_RETURN_IF_ERROR(dict.set(name, value));
  OUTRIDER_RETURN_IF_ERROR(runtime.spend_bytes(dict.entries().size() * sizeof(Dict::Entry)));
  return dict;
}

Result<Value> make_dict_value(Runtime& runtime, const Value&, const Arguments& arguments) {
  OUTRIDER_TRY(Dict dict, collect_dict(runtime, arguments));
  return make_dict(std::move(dict));
}

Result<Value> make_namespace(Runtime& runtime, const Value&, const Arguments& arguments) {
  OUTRIDER_TRY(const Dict attributes, collect_dict(runtime, arguments));
  OUTRIDER_RETURN_IF_ERROR(runtime.spend_bytes(sizeof(Namespace)));
  Namespace* scope = runtime.make_namespace();
  for (const Dict::Entry& entry : attributes.entries()) {
    if (!entry.key.is(Kind::kString)) return input_error("the names of a namespace must be strings");
    scope->set(entry.key.string(), entry.value);
  }
  return Value(scope);
}

Result<Value> raise_exception(Runtime&, const Value&, const Arguments& arguments) {
  OUTRIDER_TRY(const Parameters parameters, Parameters::bind(arguments, {"message"}, 1));
  OUTRIDER_TRY(const std::string message, parameters.string(0, "no reason given"));
  return input_error("the template refuses its input: " + message);
}

Result<Value> strftime_now(Runtime& runtime, const Value&, const Arguments& arguments) {
  OUTRIDER_TRY(const Parameters parameters, Parameters::bind(arguments, {"format"}, 1));
  OUTRIDER_TRY(const std::string format, parameters.string(0, ""));
  if (format.empty()) return Value("");
  std::array<char, kMaxDateText> text;
  const size_t size = std::strftime(text.data(), text.size(), format.c_str(), &runtime.now());
  if (size == 0)
    return input_error("the date takes more than " + std::to_string(kMaxDateText - 1) + " bytes");
  return Value(std::string(text.data(), size));
}

constexpr Builtin kGlobals[] = {
    {"dict", make_dict_value},
    {"namespace", make_namespace},
    {"range", range},
    {"raise_exception", raise_exception},
    {"strftime_now", strftime_now},
};

}  // namespace

const Builtin* find_global(std::string_view name) {
  for (const Builtin& global : kGlobals) {
    if (global.name == name) return &global;
  }
  return nullptr;
}

}  // namespace outrider::jinja
