// SPDX-License-Identifier: Apache-2.0
// Values of Jinja templates with Python's semantics. Lists and dicts are immutable, as in the sandbox that
// transformers renders with, so values form no cycles; namespaces and macros are owned by the interpreter.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "outrider/result.h"

namespace outrider::jinja {

class Value;
class Dict;
struct Builtin;
struct Macro;

// Bounds the recursion of all code that walks a value, destructors included.
inline constexpr int kMaxValueDepth = 100;

// The kinds, in the order of the alternatives of Value::Storage.
enum class Kind {
  kUndefined,
  kNone,
  kBool,
  kInteger,
  kFloat,
  kString,
  kList,
  kDict,
  kNamespace,
  kLoop,
  kFunction,
  kMacro,
};

// `reason` is the error of a use that needs a value, e.g. "'tools' is undefined".
struct Undefined {
  std::shared_ptr<const std::string> reason;
};

struct None {};

struct List {
  std::vector<Value> items;
  bool is_tuple = false;
  int depth = 1;  // levels of nesting, this list included
};

// The one mutable value: {% set ns.name = value %}.
struct Namespace {
  std::vector<std::pair<std::string, Value>> attributes;

  const Value* find(std::string_view name) const;
  void set(const std::string& name, Value value);
};

// The state of one {% for %}, which its body sees as `loop`.
struct Loop {
  std::shared_ptr<const List> items;
  int64_t index = 0;
};

// A global function or, with `self`, a method bound to its object.
struct Function {
  const Builtin* builtin = nullptr;
  std::shared_ptr<const Value> self;
};

class Value {
 public:
  Value() = default;                         // undefined
  Value(None) : storage_(None{}) {}          // NOLINT: implicit by design, as are the next ones
  Value(bool value) : storage_(value) {}     // NOLINT
  Value(int64_t value) : storage_(value) {}  // NOLINT
  Value(double value) : storage_(value) {}   // NOLINT
  Value(std::string text) : storage_(std::make_shared<const std::string>(std::move(text))) {}  // NOLINT
  Value(std::string_view text) : Value(std::string(text)) {}                                   // NOLINT
  Value(const char* text) : Value(std::string(text)) {}                                        // NOLINT
  Value(std::shared_ptr<const List> list) : storage_(std::move(list)) {}                       // NOLINT
  Value(std::shared_ptr<const Dict> dict) : storage_(std::move(dict)) {}                       // NOLINT
  Value(Namespace* scope) : storage_(scope) {}                                                 // NOLINT
  Value(std::shared_ptr<const Loop> loop) : storage_(std::move(loop)) {}                       // NOLINT
  Value(Function function) : storage_(std::move(function)) {}                                  // NOLINT
  Value(const Macro* macro) : storage_(macro) {}                                               // NOLINT
  static Value undefined(std::string reason);

  Kind kind() const { return static_cast<Kind>(storage_.index()); }
  bool is(Kind kind) const { return this->kind() == kind; }
  bool is_number() const { return is(Kind::kBool) || is(Kind::kInteger) || is(Kind::kFloat); }
  bool is_integral() const { return is(Kind::kBool) || is(Kind::kInteger); }
  bool is_tuple() const { return is(Kind::kList) && list().is_tuple; }

  // Precondition of each getter: the value has the matching kind.
  int64_t integer() const;  // kBool or kInteger
  double number() const;    // kBool, kInteger or kFloat
  const std::string& string() const { return *std::get<std::shared_ptr<const std::string>>(storage_); }
  const List& list() const { return *std::get<std::shared_ptr<const List>>(storage_); }
  const std::shared_ptr<const List>& shared_list() const {
    return std::get<std::shared_ptr<const List>>(storage_);
  }
  const Dict& dict() const { return *std::get<std::shared_ptr<const Dict>>(storage_); }
  Namespace* name_space() const { return std::get<Namespace*>(storage_); }
  const Loop& loop() const { return *std::get<std::shared_ptr<const Loop>>(storage_); }
  const Function& function() const { return std::get<Function>(storage_); }
  const Macro* macro() const { return std::get<const Macro*>(storage_); }
  std::string undefined_reason() const;

  bool truthy() const;
  int depth() const;  // levels of nested lists and dicts; 0 for scalars
  // Python's name of the type, for messages: "str", "list", "dict", ...
  std::string_view type_name() const;
  bool same_object(const Value& other) const;

 private:
  using Storage = std::variant<Undefined, None, bool, int64_t, double, std::shared_ptr<const std::string>,
                               std::shared_ptr<const List>, std::shared_ptr<const Dict>, Namespace*,
                               std::shared_ptr<const Loop>, Function, const Macro*>;
  Storage storage_;
};

// Insertion-ordered; keys are None, bool, int, float or str, and equal numbers are one key as in Python.
class Dict {
 public:
  struct Entry {
    Value key;
    Value value;
  };

  // Adds a key or replaces its value. Error: the type cannot be a key.
  Status set(Value key, Value value);
  // The value of a key; null when absent.
  const Value* find(const Value& key) const;
  const Value* find_key(std::string_view key) const;
  const std::vector<Entry>& entries() const { return entries_; }
  int depth() const { return depth_; }

 private:
  std::vector<Entry> entries_;
  std::unordered_map<std::string, size_t> index_;  // canonical key -> index in entries_
  int depth_ = 1;
};

// Error of both functions: the value is nested deeper than kMaxValueDepth.
Result<Value> make_list(std::vector<Value> items);
Result<Value> make_tuple(std::vector<Value> items);
Result<Value> make_dict(Dict dict);

// The text of Python's repr() for a float: the shortest digits that read back as the same number.
std::string format_float(double value);

}  // namespace outrider::jinja
