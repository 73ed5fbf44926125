// SPDX-License-Identifier: Apache-2.0
#include "formats/json_document.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/quote.h"
#include "platform/mapped_file.h"

namespace outrider {
namespace {

constexpr size_t kMaxBytes = 4 << 20;
constexpr size_t kMaxDepth = 64;

// The first key that appears twice in one object, anywhere in the tree. The parser has limited the depth.
std::optional<std::string_view> find_duplicate_key(simdjson::dom::element element) {
  simdjson::dom::array array;
  if (element.get(array) == simdjson::SUCCESS) {
    for (const simdjson::dom::element item : array) {
      if (const auto duplicate = find_duplicate_key(item)) return duplicate;
    }
    return std::nullopt;
  }
  simdjson::dom::object object;
  if (element.get(object) != simdjson::SUCCESS) return std::nullopt;
  std::vector<std::string_view> keys;
  for (const auto& [key, value] : object) {
    if (const auto duplicate = find_duplicate_key(value)) return duplicate;
    keys.push_back(key);
  }
  std::sort(keys.begin(), keys.end());
  const auto twice = std::adjacent_find(keys.begin(), keys.end());
  return twice == keys.end() ? std::nullopt : std::optional(*twice);
}

}  // namespace

Error JsonObject::wrong_type(std::string_view key, std::string_view expected) const {
  return fail(quote(key) + " must be " + std::string(expected));
}

std::optional<simdjson::dom::element> JsonObject::find(std::string_view key) const {
  simdjson::dom::element element;
  if (object_.at_key(key).get(element) != simdjson::SUCCESS || element.is_null()) return std::nullopt;
  return element;
}

template <typename T>
Result<std::optional<T>> JsonObject::get(std::string_view key, std::string_view expected) const {
  const auto element = find(key);
  if (!element) return std::optional<T>();
  T value;
  if (element->get(value) != simdjson::SUCCESS) return wrong_type(key, expected);
  return std::optional<T>(value);
}

Result<std::optional<int64_t>> JsonObject::integer(std::string_view key) const {
  return get<int64_t>(key, "a whole number");
}

Result<std::optional<double>> JsonObject::number(std::string_view key) const {
  return get<double>(key, "a number");
}

Result<std::optional<bool>> JsonObject::boolean(std::string_view key) const {
  return get<bool>(key, "true or false");
}

Result<std::optional<std::string_view>> JsonObject::string(std::string_view key) const {
  return get<std::string_view>(key, "a string");
}

Result<std::optional<JsonObject>> JsonObject::object(std::string_view key) const {
  OUTRIDER_TRY(const auto value, get<simdjson::dom::object>(key, "an object"));
  return value ? std::optional(JsonObject(*value, name_)) : std::nullopt;
}

Result<std::optional<simdjson::dom::array>> JsonObject::array(std::string_view key) const {
  return get<simdjson::dom::array>(key, "a list");
}

Result<JsonDocument> JsonDocument::parse(std::string_view text, std::string name) {
  if (text.size() > kMaxBytes) return input_error(name + ": larger than the limit of 4 MiB");
  JsonDocument document;
  document.parser_ = std::make_unique<simdjson::dom::parser>();
  document.name_ = std::make_unique<std::string>(std::move(name));
  simdjson::dom::element root;
  auto error = document.parser_->allocate(std::max<size_t>(text.size(), 64), kMaxDepth);
  if (error == simdjson::SUCCESS) error = document.parser_->parse(text.data(), text.size()).get(root);
  if (error != simdjson::SUCCESS) {
    return input_error(*document.name_ + ": not valid JSON: " + simdjson::error_message(error));
  }
  simdjson::dom::object object;
  if (root.get(object) != simdjson::SUCCESS) return input_error(*document.name_ + ": must be a JSON object");
  if (const auto duplicate = find_duplicate_key(root)) {
    return input_error(*document.name_ + ": key " + quote(*duplicate) + " appears twice");
  }
  document.root_.emplace(object, *document.name_);
  return document;
}

Result<JsonDocument> JsonDocument::read(const std::filesystem::path& path) {
  OUTRIDER_TRY(const MappedFile file, MappedFile::open(path));
  return parse({reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()}, path.string());
}

}  // namespace outrider
