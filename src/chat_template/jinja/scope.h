// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "chat_template/jinja/ast.h"
#include "chat_template/jinja/value.h"

namespace outrider::jinja {

// The names set in one pass through a loop, macro, block or the template itself. Inner scopes see the names
// of outer ones and set only their own.
class Scope {
 public:
  explicit Scope(std::shared_ptr<const Scope> parent) : parent_(std::move(parent)) {}

  // Null when no scope has the name.
  const Value* find(std::string_view name) const {
    for (const Scope* scope = this; scope != nullptr; scope = scope->parent_.get()) {
      for (const auto& [key, value] : scope->names_) {
        if (key == name) return &value;
      }
    }
    return nullptr;
  }

  void set(std::string_view name, Value value) {
    for (auto& [key, old] : names_) {
      if (key == name) {
        old = std::move(value);
        return;
      }
    }
    names_.emplace_back(name, std::move(value));
  }

 private:
  std::vector<std::pair<std::string, Value>> names_;
  std::shared_ptr<const Scope> parent_;
};

// A macro with the scope of its definition; it sees the names there as they are at the time of the call.
struct Macro {
  const MacroDefinition* definition = nullptr;
  std::shared_ptr<const Scope> scope;
};

}  // namespace outrider::jinja
