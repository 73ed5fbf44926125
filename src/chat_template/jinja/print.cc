// SPDX-License-Identifier: Apache-2.0
#include "chat_template/jinja/print.h"

#include "chat_template/jinja/text.h"

namespace outrider::jinja {

namespace {

// Quotes as Python does, which prefers single quotes and escapes unprintable characters.
std::string python_repr(std::string_view text) {
  const bool has_single = text.find('\'') != std::string_view::npos;
  const char mark = has_single && text.find('"') == std::string_view::npos ? '"' : '\'';
  std::string out(1, mark);
  for (char c : text) {
    if (c == mark || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\r') {
      out += "\\r";
    } else if (c == '\t') {
      out += "\\t";
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
      out += "\\x" + hex_digits(static_cast<uint32_t>(c), 2);
    } else {
      out += c;
    }
  }
  return out += mark;
}

Status append_repr(Runtime& runtime, const Value& value, std::string& out);

Status append_list(Runtime& runtime, const List& list, std::string& out) {
  out += list.is_tuple ? '(' : '[';
  for (size_t i = 0; i < list.items.size(); ++i) {
    if (i > 0) out += ", ";
    OUTRIDER_RETURN_IF_ERROR(append_repr(runtime, list.items[i], out));
  }
  if (list.is_tuple && list.items.size() == 1) out += ',';
  out += list.is_tuple ? ')' : ']';
  return {};
}

Status append_dict(Runtime& runtime, const Dict& dict, std::string& out) {
  out += '{';
  for (size_t i = 0; i < dict.entries().size(); ++i) {
    if (i > 0) out += ", ";
    OUTRIDER_RETURN_IF_ERROR(append_repr(runtime, dict.entries()[i].key, out));
    out += ": ";
    OUTRIDER_RETURN_IF_ERROR(append_repr(runtime, dict.entries()[i].value, out));
  }
  out += '}';
  return {};
}

// Shared parts of a value are printed each time they occur, so their cost is charged as it arises.
Status append_repr(Runtime& runtime, const Value& value, std::string& out) {
  const size_t before = out.size();
  switch (value.kind()) {
    case Kind::kUndefined:
      out += "Undefined";
      break;
    case Kind::kNone:
      out += "None";
      break;
    case Kind::kBool:
      out += value.truthy() ? "True" : "False";
      break;
    case Kind::kInteger:
      out += std::to_string(value.integer());
      break;
    case Kind::kFloat:
      out += format_float(value.number());
      break;
    case Kind::kString:
      out += python_repr(value.string());
      break;
    case Kind::kList:
      OUTRIDER_RETURN_IF_ERROR(runtime.spend_steps(1));
      return append_list(runtime, value.list(), out);
    case Kind::kDict:
      OUTRIDER_RETURN_IF_ERROR(runtime.spend_steps(1));
      return append_dict(runtime, value.dict(), out);
    default:
      return input_error("a " + std::string(value.type_name()) + " cannot be printed");
  }
  return runtime.spend_bytes(out.size() - before);
}

}  // namespace

Result<std::string> to_text(Runtime& runtime, const Value& value) {
  if (value.is(Kind::kUndefined)) return std::string();
  if (value.is(Kind::kString)) {
    OUTRIDER_RETURN_IF_ERROR(runtime.spend_bytes(value.string().size()));
    return value.string();
  }
  std::string out;
  OUTRIDER_RETURN_IF_ERROR(append_repr(runtime, value, out));
  return out;
}

}  // namespace outrider::jinja
