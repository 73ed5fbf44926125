// SPDX-License-Identifier: Apache-2.0
#include "formats/json_file.h"

#include <utility>

#include "base/quote.h"
#include "formats/json_object.h"
#include "platform/mapped_file.h"

namespace outrider {
namespace {

constexpr int kMaxDepth = 64;

}  // namespace

Error JsonObject::wrong_type(std::string_view key, std::string_view expected) const {
  return fail(quote(key) + " must be " + std::string(expected));
}

std::optional<simdjson::dom::element> JsonObject::find(std::string_view key) const {
  const auto field = field_.find(key);
  return field ? std::optional(field->value()) : std::nullopt;
}

template <typename T>
Result<std::optional<T>> JsonObject::get(std::string_view key, std::string_view expected) const {
  const auto field = field_.find(key);
  if (!field) return std::optional<T>();
  T value;
  if (field->value().get(value) != simdjson::SUCCESS)
    return wrong_type(key, std::string(expected) + ", found " + field->found());
  return std::optional<T>(value);
}

Result<std::optional<int64_t>> JsonObject::integer(std::string_view key) const {
  return get<int64_t>(key, "a whole number");
}

Result<std::optional<double>> JsonObject::number(std::string_view key) const {
  return get<double>(key, "a number");
}

Result<int64_t> JsonObject::require_integer(std::string_view key) const {
  OUTRIDER_TRY(const auto value, integer(key));
  if (!value) return fail(quote(key) + " is missing");
  return *value;
}

Result<std::optional<bool>> JsonObject::boolean(std::string_view key) const {
  return get<bool>(key, "true or false");
}

Result<std::optional<std::string_view>> JsonObject::string(std::string_view key) const {
  return get<std::string_view>(key, "a string");
}

Result<std::optional<JsonObject>> JsonObject::object(std::string_view key) const {
  OUTRIDER_TRY(const auto value, get<simdjson::dom::object>(key, "an object"));
  return value ? std::optional(JsonObject(*find(key), name_)) : std::nullopt;
}

Result<std::optional<simdjson::dom::array>> JsonObject::array(std::string_view key) const {
  return get<simdjson::dom::array>(key, "a list");
}

struct JsonFile::Parsed {
  JsonDocument document;
  std::unique_ptr<std::string> name;  // root points to it
  JsonObject root;
};

const JsonObject& JsonFile::root() const { return parsed_->root; }

Result<JsonFile> JsonFile::parse(std::string_view text, std::string name, size_t max_bytes) {
  if (text.size() > max_bytes)
    return input_error(name + ": larger than the limit of " + std::to_string(max_bytes >> 20) + " MiB");
  auto document = JsonDocument::parse(text, kMaxDepth);
  if (!document.ok()) return Error{document.error().kind, name + ": " + document.error().message};
  if (!document->root().is_object())
    return input_error(name + ": must be a JSON object, found " + document->root().found());
  if (const auto duplicate = document->find_duplicate_key())
    return input_error(name + ": key " + quote(duplicate->key()) + " appears twice");
  auto kept_name = std::make_unique<std::string>(std::move(name));
  const JsonObject root(document->root().value(), *kept_name);
  return JsonFile(std::make_shared<Parsed>(Parsed{std::move(*document), std::move(kept_name), root}));
}

Result<JsonFile> JsonFile::read(const std::filesystem::path& path, size_t max_bytes) {
  OUTRIDER_TRY(const MappedFile file, MappedFile::open(path));
  return parse({reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()}, path.string(),
               max_bytes);
}

}  // namespace outrider
