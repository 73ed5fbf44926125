// SPDX-License-Identifier: Apache-2.0
// Tools for tests, and answers as a client puts them together.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/api/tool_calls/output_parser.h"

namespace outrider {

inline constexpr const char* kAddSchema = R"({"type": "object", "properties": {
  "a": {"type": "integer"}, "b": {"type": "array"}, "s": {"type": "string"}, "t": {"type": "boolean"},
  "o": {"anyOf": [{"type": "number"}, {"type": "null"}]}, "e": {"enum": ["1", "2"]}, "m": {"enum": [1, "1x"]},
  "r": {"$ref": "#/$defs/point"}, "u": {"description": "of no type"}, "l": {"type": ["string", "null"]}},
  "$defs": {"point": {"type": "object"}}})";

inline SharedTools test_tools() {
  return std::make_shared<const std::vector<Tool>>(
      std::vector<Tool>{{.name = "add", .parameters = kAddSchema, .path = {}},
                        {.name = "now", .parameters = R"({"type": "object"})", .path = {}}});
}

// An answer as the form of the template, or the plain one, reads it.
struct Parsed {
  MessageDelta all;
  bool has_calls = false;

  // "content|name(arguments)|name(arguments)", with the pieces of every call joined.
  std::string text() const {
    std::string result = all.content;
    for (const auto& call : all.calls) result += "|" + call.name + "(" + call.arguments + ")";
    return result;
  }
};

inline void take(const MessageDelta& delta, MessageDelta& all) {
  all.reasoning += delta.reasoning;
  all.content += delta.content;
  for (const auto& call : delta.calls) {
    if (call.name.empty()) {
      ASSERT_FALSE(all.calls.empty());
      EXPECT_EQ(call.index, all.calls.back().index);
      all.calls.back().arguments += call.arguments;
    } else {
      EXPECT_EQ(call.index, static_cast<int>(all.calls.size()));
      all.calls.push_back(call);
    }
  }
}

inline OutputParts parts_of(std::string_view chat_template, ThinkingState begins = ThinkingState::kMayBegin) {
  OutputParts parts;
  parts.thinking = find_thinking_form(chat_template, "");
  parts.begins = begins;
  const CallForm* form = find_call_form(chat_template, nullptr);
  parts.calls = {form == nullptr ? &plain_call_form() : form};
  return parts;
}

inline Parsed parse(OutputParts parts, std::string_view text, size_t piece) {
  OutputParser parser(std::move(parts), test_tools());
  Parsed parsed;
  for (size_t i = 0; i < text.size(); i += piece) take(parser.push(text.substr(i, piece), false), parsed.all);
  take(parser.push("", true), parsed.all);
  parsed.has_calls = parser.has_calls();
  return parsed;
}

inline std::string parsed(std::string_view chat_template, std::string_view text, size_t piece) {
  return parse(parts_of(chat_template), text, piece).text();
}

}  // namespace outrider
