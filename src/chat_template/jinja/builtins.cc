// SPDX-License-Identifier: Apache-2.0
#include "chat_template/jinja/builtins.h"

#include <algorithm>

namespace outrider::jinja {

Result<Parameters> Parameters::bind(const Arguments& arguments, std::initializer_list<std::string_view> names,
                                    size_t required) {
  Parameters parameters;
  parameters.names_ = names;
  parameters.values_.resize(names.size());
  if (arguments.positional.size() > names.size()) {
    return input_error("expected at most " + std::to_string(names.size()) + " arguments, found " +
                       std::to_string(arguments.positional.size()));
  }
  for (size_t i = 0; i < arguments.positional.size(); ++i) parameters.values_[i] = &arguments.positional[i];
  for (const auto& [name, value] : arguments.named) {
    const auto place = std::find(names.begin(), names.end(), name);
    if (place == names.end()) return input_error("the argument '" + name + "' is not supported");
    const Value*& slot = parameters.values_[static_cast<size_t>(place - names.begin())];
    if (slot != nullptr) return input_error("the argument '" + name + "' is given twice");
    slot = &value;
  }
  for (size_t i = 0; i < required; ++i) {
    if (!parameters.given(i))
      return input_error("the argument '" + std::string(parameters.names_[i]) + "' is missing");
  }
  return parameters;
}

Result<int64_t> Parameters::integer(size_t index, int64_t fallback) const {
  if (!has(index)) return fallback;
  if (values_[index]->is_integral()) return values_[index]->integer();
  return input_error("the argument '" + std::string(names_[index]) + "' must be an integer, found " +
                     std::string(values_[index]->type_name()));
}

Result<std::string> Parameters::string(size_t index, std::string fallback) const {
  if (!has(index)) return fallback;
  if (values_[index]->is(Kind::kString)) return values_[index]->string();
  return input_error("the argument '" + std::string(names_[index]) + "' must be a string, found " +
                     std::string(values_[index]->type_name()));
}

bool Parameters::flag(size_t index, bool fallback) const {
  return has(index) ? values_[index]->truthy() : fallback;
}

const Builtin* find_filter(std::string_view name) {
  if (const Builtin* filter = find_text_filter(name)) return filter;
  return find_sequence_filter(name);
}

Result<Value> apply_filter(Runtime& runtime, std::string_view name, const Value& subject,
                           const Arguments& arguments) {
  const Builtin* filter = find_filter(name);
  if (filter == nullptr) return input_error("the filter '" + std::string(name) + "' is not supported");
  Result<Value> result = filter->function(runtime, subject, arguments);
  if (!result.ok()) {
    Error error = std::move(result).error();
    error.message = "filter '" + std::string(name) + "': " + error.message;
    return error;
  }
  return result;
}

Result<bool> apply_test(Runtime& runtime, std::string_view name, const Value& subject,
                        const Arguments& arguments) {
  const Builtin* test = find_test(name);
  if (test == nullptr) return input_error("the test '" + std::string(name) + "' is not supported");
  OUTRIDER_TRY(const Value result, test->function(runtime, subject, arguments));
  return result.truthy();
}

Result<Value> make_string_list(Runtime& runtime, const std::vector<std::string_view>& parts) {
  size_t bytes = parts.size() * sizeof(Value);
  for (std::string_view part : parts) bytes += part.size();
  OUTRIDER_RETURN_IF_ERROR(runtime.spend_bytes(bytes));
  return make_list(std::vector<Value>(parts.begin(), parts.end()));
}

}  // namespace outrider::jinja
