// SPDX-License-Identifier: Apache-2.0
// Filters, tests, methods and global functions, which share one signature.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "chat_template/jinja/runtime.h"

namespace outrider::jinja {

struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> named;
};

// `subject` is what a filter or test is applied to, or the object of a method.
using BuiltinFunction = Result<Value> (*)(Runtime& runtime, const Value& subject, const Arguments& arguments);

struct Builtin {
  std::string_view name;
  BuiltinFunction function;
};

// Each lookup gives null when there is none of that name.
const Builtin* find_filter(std::string_view name);
const Builtin* find_test(std::string_view name);
const Builtin* find_global(std::string_view name);
const Builtin* find_method(const Value& object, std::string_view name);
// True for methods that would change their object, which templates may not do.
bool is_mutating_method(const Value& object, std::string_view name);

Result<Value> apply_filter(Runtime& runtime, std::string_view name, const Value& subject,
                           const Arguments& arguments);
Result<bool> apply_test(Runtime& runtime, std::string_view name, const Value& subject,
                        const Arguments& arguments);

// The arguments of a call, matched to the names of a function's parameters.
class Parameters {
 public:
  // Error: more arguments than parameters, an unknown or repeated name, or one of the first `required`
  // parameters is missing.
  static Result<Parameters> bind(const Arguments& arguments, std::initializer_list<std::string_view> names,
                                 size_t required = 0);

  bool has(size_t index) const { return values_[index] != nullptr && !values_[index]->is(Kind::kNone); }
  // Precondition: the argument is given or required; none counts as given.
  const Value& operator[](size_t index) const { return *values_[index]; }
  bool given(size_t index) const { return values_[index] != nullptr; }
  // The value of an optional parameter; none counts as absent. Error: the argument has another type.
  Result<int64_t> integer(size_t index, int64_t fallback) const;
  Result<std::string> string(size_t index, std::string fallback) const;
  bool flag(size_t index, bool fallback) const;

 private:
  std::vector<const Value*> values_;  // null where absent; they point into the Arguments
  std::vector<std::string_view> names_;
};

// Makes a list of strings of `parts`.
Result<Value> make_string_list(Runtime& runtime, const std::vector<std::string_view>& parts);

// There are two tables: filters of sequences, and filters of text and numbers.
const Builtin* find_text_filter(std::string_view name);
const Builtin* find_sequence_filter(std::string_view name);

}  // namespace outrider::jinja
