// SPDX-License-Identifier: Apache-2.0
// The forms in which model families write calls of tools, one row each (docs/reference/api.md).
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace outrider {

class Tokenizer;

enum class CallShape : uint8_t {
  kObject,   // {"name": ..., "arguments" or "parameters": ...}
  kNamed,    // a name, a mark, a JSON object
  kTagged,   // a name, then a key and a text between marks for each argument
  kLiteral,  // NAME(key=value, ...) with values of Python, or NAME{key:value,...}
  kChannel,  // a message on a channel, to a function
};

// The marks of kTagged. The white space between two marks does not matter.
struct TagMarks {
  std::string_view name_end = {};  // empty: the name ends before the next mark
  std::string_view key_open = {}, key_close = {};
  std::string_view kind = {};        // in a key, before "true" for a text or "false" for another value
  std::string_view value_open = {};  // empty: the value follows key_close
  std::string_view value_close = {};
  std::string_view call_end = {};
  bool has_lines = false;  // a line break after key_close and one before value_close belong to the marks
};

// The marks of kLiteral.
struct LiteralMarks {
  char open = '(', close = ')', assign = '=';
  std::string_view quote = {};  // around a text; empty: Python's strings
};

// How grammars write calls, where it is not said by the other marks.
struct CallSpelling {
  enum class Order : uint8_t {
    kMarked,  // each call between its own marks
    kLines,   // one pair of marks around all calls, with a break between two
    kList,    // [call, call]
    kEither,  // lines or a list
    kJoined,  // with "; " between two
  };
  Order order = Order::kMarked;
  std::string_view before_name = {}, after_name = {}, after_arguments = {};
  std::string_view id_mark = {};  // [CALL_ID], which may follow the name, and an id
  bool has_number = false;        // ":0" follows the name
  bool may_have_id = false;       // ", "id": ..." may follow the arguments
  bool is_closed = true;          // the closing mark is written
};

// [open] calls [close]. A list in brackets may enclose the calls, with commas between them.
struct CallForm {
  std::string_view name;                       // "hermes"
  std::array<std::string_view, 3> signs = {};  // a template of the form contains one of these
  std::string_view and_sign = {};              // and this
  std::string_view piece = {};                 // or its vocabulary has this control token
  CallShape shape = CallShape::kObject;
  std::array<std::string_view, 2> open = {};  // spellings of the mark before the calls
  std::string_view close = {};
  bool begins_with_name = false;  // the first call has no mark: the name of a tool and the separator begin it
  bool may_skip_open = false;     // a call may begin with `begin`, as models forget the mark
  bool may_be_bare = false;       // without the mark, a call may be the first text of the answer
  bool takes_objects = false;     // calls of the shape kObject count, too
  std::string_view begin = {};    // begins every call
  std::string_view separator = {};                  // kNamed: between name and arguments
  bool may_skip_separator = false;                  // "{" may follow the name at once
  std::array<std::string_view, 2> after_call = {};  // marks that may follow a call
  TagMarks tags = {};
  LiteralMarks literal = {};
  CallSpelling spelling = {};

  // All marks that tokens may spell: as control tokens they must stay in the text of the output.
  std::vector<std::string_view> marks() const;
};

// The form that the template asks for or the vocabulary has tokens of; null: none is known.
const CallForm* find_call_form(std::string_view chat_template, const Tokenizer* tokenizer);
// {"name": ..., "arguments": ...} as the first text: the form that tool_instructions() ask for.
const CallForm& plain_call_form();

}  // namespace outrider
