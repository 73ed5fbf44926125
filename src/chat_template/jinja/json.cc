// SPDX-License-Identifier: Apache-2.0
#include "chat_template/jinja/json.h"

#include <simdjson.h>

#include <algorithm>

#include "chat_template/jinja/text.h"

namespace outrider::jinja {

namespace {

class JsonWriter {
 public:
  JsonWriter(Runtime& runtime, const JsonStyle& style) : runtime_(runtime), style_(style) {}

  Status write(const Value& value);
  std::string take() { return std::move(out_); }

 private:
  Status write_list(const List& list);
  Status write_dict(const Dict& dict);
  Status write_key(const Value& key);
  void write_string(std::string_view text);
  void write_ascii(int32_t point);
  Status start_line();
  Status append(std::string_view text);
  static std::string number_text(const Value& value);

  Runtime& runtime_;
  const JsonStyle& style_;
  std::string out_;
  int level_ = 0;
};

// Separators come from the template and may be long, so each is charged before it is written.
Status JsonWriter::append(std::string_view text) {
  OUTRIDER_RETURN_IF_ERROR(runtime_.spend_bytes(text.size()));
  out_ += text;
  return {};
}

Status JsonWriter::start_line() {
  if (!style_.indent) return {};
  out_ += '\n';
  for (int i = 0; i < level_; ++i) OUTRIDER_RETURN_IF_ERROR(append(*style_.indent));
  return {};
}

std::string JsonWriter::number_text(const Value& value) {
  if (value.is(Kind::kInteger)) return std::to_string(value.integer());
  const double number = value.number();
  if (number != number) return "NaN";
  if (number - number != 0) return number < 0 ? "-Infinity" : "Infinity";
  return format_float(number);
}

void JsonWriter::write_ascii(int32_t point) {
  if (point >= 0x10000) {
    const int32_t offset = point - 0x10000;
    out_ += "\\u" + hex_digits(static_cast<uint32_t>(0xD800 + (offset >> 10)), 4) + "\\u" +
            hex_digits(static_cast<uint32_t>(0xDC00 + (offset & 0x3FF)), 4);
  } else {
    out_ += "\\u" + hex_digits(static_cast<uint32_t>(point), 4);
  }
}

void JsonWriter::write_string(std::string_view text) {
  static constexpr std::string_view kEscaped = "\"\\\n\r\t\b\f";
  static constexpr std::string_view kLetters = "\"\\nrtbf";
  out_ += '"';
  for (std::string_view character : split_characters(text)) {
    const size_t escape = character.size() == 1 ? kEscaped.find(character[0]) : std::string_view::npos;
    const int32_t point = code_point(character);
    if (escape != std::string_view::npos) {
      out_ += '\\';
      out_ += kLetters[escape];
    } else if ((point >= 0 && point < 0x20) || (style_.ensure_ascii && point > 0x7E)) {
      write_ascii(point);
    } else {
      out_ += character;
    }
  }
  out_ += '"';
}

Status JsonWriter::write_key(const Value& key) {
  if (key.is(Kind::kString)) {
    write_string(key.string());
  } else {
    out_ += '"';
    OUTRIDER_RETURN_IF_ERROR(write(key));
    out_ += '"';
  }
  return {};
}

Status JsonWriter::write_list(const List& list) {
  if (list.items.empty()) {
    out_ += "[]";
    return {};
  }
  out_ += '[';
  ++level_;
  for (size_t i = 0; i < list.items.size(); ++i) {
    if (i > 0) OUTRIDER_RETURN_IF_ERROR(append(style_.item_separator));
    OUTRIDER_RETURN_IF_ERROR(start_line());
    OUTRIDER_RETURN_IF_ERROR(write(list.items[i]));
  }
  --level_;
  OUTRIDER_RETURN_IF_ERROR(start_line());
  out_ += ']';
  return {};
}

Status JsonWriter::write_dict(const Dict& dict) {
  if (dict.entries().empty()) {
    out_ += "{}";
    return {};
  }
  std::vector<const Dict::Entry*> entries;
  for (const Dict::Entry& entry : dict.entries()) entries.push_back(&entry);
  if (style_.sort_keys) {
    for (const Dict::Entry* entry : entries) {
      if (!entry->key.is(Kind::kString)) return input_error("sort_keys needs keys that are all strings");
    }
    std::sort(entries.begin(), entries.end(),
              [](const auto* a, const auto* b) { return a->key.string() < b->key.string(); });
  }
  out_ += '{';
  ++level_;
  for (size_t i = 0; i < entries.size(); ++i) {
    if (i > 0) OUTRIDER_RETURN_IF_ERROR(append(style_.item_separator));
    OUTRIDER_RETURN_IF_ERROR(start_line());
    OUTRIDER_RETURN_IF_ERROR(write_key(entries[i]->key));
    OUTRIDER_RETURN_IF_ERROR(append(style_.key_separator));
    OUTRIDER_RETURN_IF_ERROR(write(entries[i]->value));
  }
  --level_;
  OUTRIDER_RETURN_IF_ERROR(start_line());
  out_ += '}';
  return {};
}

Status JsonWriter::write(const Value& value) {
  const size_t before = out_.size();
  switch (value.kind()) {
    case Kind::kNone:
      out_ += "null";
      break;
    case Kind::kBool:
      out_ += value.truthy() ? "true" : "false";
      break;
    case Kind::kInteger:
    case Kind::kFloat:
      out_ += number_text(value);
      break;
    case Kind::kString:
      write_string(value.string());
      break;
    case Kind::kList:
      OUTRIDER_RETURN_IF_ERROR(write_list(value.list()));
      break;
    case Kind::kDict:
      OUTRIDER_RETURN_IF_ERROR(write_dict(value.dict()));
      break;
    default:
      return input_error("a value of type " + std::string(value.type_name()) + " has no JSON form" +
                         (value.is(Kind::kUndefined) ? ": " + value.undefined_reason() : ""));
  }
  return runtime_.spend_bytes(out_.size() - before);
}

Result<Value> convert(const simdjson::dom::element& element);

Result<Value> convert_array(const simdjson::dom::array& array) {
  std::vector<Value> items;
  for (const simdjson::dom::element& item : array) {
    OUTRIDER_TRY(Value value, convert(item));
    items.push_back(std::move(value));
  }
  return make_list(std::move(items));
}

Result<Value> convert_object(const simdjson::dom::object& object) {
  Dict dict;
  for (const auto& [key, item] : object) {
    OUTRIDER_TRY(Value value, convert(item));
    OUTRIDER_RETURN_IF_ERROR(dict.set(key, std::move(value)));
  }
  return make_dict(std::move(dict));
}

Result<Value> convert(const simdjson::dom::element& element) {
  using simdjson::dom::element_type;
  switch (element.type()) {
    case element_type::ARRAY:
      return convert_array(element.get_array().value_unsafe());
    case element_type::OBJECT:
      return convert_object(element.get_object().value_unsafe());
    case element_type::INT64:
      return Value(element.get_int64().value_unsafe());
    case element_type::DOUBLE:
      return Value(element.get_double().value_unsafe());
    case element_type::STRING:
      return Value(element.get_string().value_unsafe());
    case element_type::BOOL:
      return Value(element.get_bool().value_unsafe());
    case element_type::NULL_VALUE:
      return Value(None{});
    case element_type::UINT64:
      break;
  }
  return input_error("expected integers that fit in 64 bits with sign, found a greater one");
}

}  // namespace

Result<std::string> to_json(Runtime& runtime, const Value& value, const JsonStyle& style) {
  JsonWriter writer(runtime, style);
  OUTRIDER_RETURN_IF_ERROR(writer.write(value));
  return writer.take();
}

Result<Value> parse_json(std::string_view json) {
  simdjson::dom::parser parser;
  // The document adds one level to the depth of its values.
  if (parser.allocate(json.size(), kMaxValueDepth + 1) != simdjson::SUCCESS) {
    return resource_error("not enough memory to read JSON of " + std::to_string(json.size()) + " bytes");
  }
  const auto document = parser.parse(json.data(), json.size());
  if (document.error() != simdjson::SUCCESS) {
    return input_error(std::string("expected valid JSON: ") + simdjson::error_message(document.error()));
  }
  return convert(document.value_unsafe());
}

}  // namespace outrider::jinja
