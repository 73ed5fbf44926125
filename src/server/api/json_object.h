// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "server/api/json_text.h"

namespace outrider {

// Appends the members of one JSON object to a text, and closes the object at its own end.
class JsonObject {
 public:
  explicit JsonObject(std::string& out) : out_(out) { out_ += '{'; }
  ~JsonObject() { out_ += '}'; }
  JsonObject(const JsonObject&) = delete;
  JsonObject& operator=(const JsonObject&) = delete;

  // Begins a member; the caller appends its value.
  std::string& key(std::string_view name) {
    if (!is_first_) out_ += ',';
    is_first_ = false;
    append_json_string(out_, name);
    return out_ += ':';
  }
  void integer(std::string_view name, int64_t value) { key(name) += std::to_string(value); }
  void flag(std::string_view name, bool value) { key(name) += value ? "true" : "false"; }
  void text(std::string_view name, std::string_view value) { append_json_string(key(name), value); }
  void json(std::string_view name, std::string_view value) { key(name) += value; }

 private:
  std::string& out_;
  bool is_first_ = true;
};

}  // namespace outrider
