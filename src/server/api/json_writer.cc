// SPDX-License-Identifier: Apache-2.0
#include "server/api/json_writer.h"

namespace outrider {

JsonWriter& JsonWriter::key(std::string_view name) {
  separate();
  append_json_string(out_, name);
  out_ += ':';
  needs_comma_ = false;
  return *this;
}

JsonWriter& JsonWriter::json(std::string_view text) {
  separate();
  out_ += text;
  return *this;
}

JsonWriter& JsonWriter::begin(char bracket) {
  separate();
  out_ += bracket;
  needs_comma_ = false;
  return *this;
}

JsonWriter& JsonWriter::end(char bracket) {
  out_ += bracket;
  needs_comma_ = true;
  return *this;
}

}  // namespace outrider
