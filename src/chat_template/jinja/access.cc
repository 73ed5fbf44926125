// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>

#include "chat_template/jinja/builtins.h"
#include "chat_template/jinja/operators.h"
#include "chat_template/jinja/text.h"

namespace outrider::jinja {

namespace {

Value no_such_attribute(const Value& object, std::string_view name) {
  return Value::undefined("'" + std::string(object.type_name()) + " object' has no attribute '" +
                          std::string(name) + "'");
}

// The attribute `name` of `loop`; nullopt when there is none.
std::optional<Value> loop_attribute(const Loop& loop, std::string_view name) {
  const auto& items = loop.items->items;
  const int64_t length = static_cast<int64_t>(items.size());
  if (name == "index") return Value(loop.index + 1);
  if (name == "index0") return Value(loop.index);
  if (name == "revindex") return Value(length - loop.index);
  if (name == "revindex0") return Value(length - loop.index - 1);
  if (name == "first") return Value(loop.index == 0);
  if (name == "last") return Value(loop.index == length - 1);
  if (name == "length") return Value(length);
  // Recursive loops are not supported, so the depth is always 1.
  if (name == "depth") return Value(int64_t{1});
  if (name == "depth0") return Value(int64_t{0});
  if (name == "previtem") {
    return loop.index > 0 ? items[static_cast<size_t>(loop.index - 1)]
                          : Value::undefined("there is no previous item");
  }
  if (name == "nextitem") {
    return loop.index + 1 < length ? items[static_cast<size_t>(loop.index + 1)]
                                   : Value::undefined("there is no next item");
  }
  return std::nullopt;
}

// An attribute in Python's sense; nullopt when the object has none of this name.
std::optional<Value> own_attribute(const Value& object, std::string_view name) {
  if (object.is(Kind::kNamespace)) {
    if (const Value* value = object.name_space()->find(name)) return *value;
    return std::nullopt;
  }
  if (object.is(Kind::kLoop)) {
    if (std::optional<Value> value = loop_attribute(object.loop(), name)) return value;
  }
  if (const Builtin* method = find_method(object, name)) {
    return Value(Function{method, std::make_shared<const Value>(object)});
  }
  return std::nullopt;
}

Error blocked_method(const Value& object, std::string_view name) {
  return input_error("'" + std::string(name) + "' would change a " + std::string(object.type_name()) +
                     ", which templates may not");
}

// The place of an index, which counts from the end when negative; nullopt outside the sequence.
std::optional<size_t> resolve_index(int64_t index, int64_t size) {
  if (index < 0) index += size;
  if (index < 0 || index >= size) return std::nullopt;
  return static_cast<size_t>(index);
}

std::optional<Value> item_at(const Value& object, const Value& key) {
  if (object.is(Kind::kDict)) {
    if (const Value* value = object.dict().find(key)) return *value;
  }
  if (!key.is_integral()) return std::nullopt;
  if (object.is(Kind::kList)) {
    const auto& items = object.list().items;
    const auto index = resolve_index(key.integer(), static_cast<int64_t>(items.size()));
    if (index) return items[*index];
  }
  if (object.is(Kind::kString)) {
    const std::vector<std::string_view> characters = split_characters(object.string());
    const auto index = resolve_index(key.integer(), static_cast<int64_t>(characters.size()));
    if (index) return Value(characters[*index]);
  }
  return std::nullopt;
}

// The places that Python's slice(start, stop, step) visits in a sequence of `size` items.
std::vector<size_t> slice_places(const SliceBounds& bounds, int64_t size) {
  const int64_t step = std::max(bounds.step.value_or(1), -INT64_MAX);
  const bool forward = step > 0;
  const int64_t lowest = forward ? 0 : -1;
  const int64_t highest = forward ? size : size - 1;
  const auto clamp = [&](std::optional<int64_t> bound, int64_t fallback) {
    if (!bound) return fallback;
    return std::clamp(*bound < 0 ? *bound + size : *bound, lowest, highest);
  };
  const int64_t start = clamp(bounds.start, forward ? lowest : highest);
  const int64_t stop = clamp(bounds.stop, forward ? highest : lowest);
  std::vector<size_t> places;
  const int64_t span = forward ? stop - start : start - stop;
  const int64_t stride = forward ? step : -step;
  for (int64_t offset = 0; offset < span; offset += std::min(stride, span)) {
    places.push_back(static_cast<size_t>(forward ? start + offset : start - offset));
  }
  return places;
}

}  // namespace

Result<Value> get_attribute(const Value& object, std::string_view name) {
  if (object.is(Kind::kUndefined)) return input_error(object.undefined_reason());
  if (is_mutating_method(object, name)) return blocked_method(object, name);
  if (std::optional<Value> attribute = own_attribute(object, name)) return *std::move(attribute);
  if (object.is(Kind::kDict)) {
    if (const Value* value = object.dict().find_key(name)) return *value;
  }
  return no_such_attribute(object, name);
}

Result<Value> get_item(Runtime& runtime, const Value& object, const Value& key) {
  if (object.is(Kind::kUndefined)) return input_error(object.undefined_reason());
  if (object.is(Kind::kString)) OUTRIDER_RETURN_IF_ERROR(runtime.spend_bytes(object.string().size()));
  if (std::optional<Value> item = item_at(object, key)) return *std::move(item);
  if (!key.is(Kind::kString)) {
    return Value::undefined("'" + std::string(object.type_name()) + " object' has no such item");
  }
  if (is_mutating_method(object, key.string())) return blocked_method(object, key.string());
  if (std::optional<Value> attribute = own_attribute(object, key.string())) return *std::move(attribute);
  return no_such_attribute(object, key.string());
}

Result<Value> get_slice(Runtime& runtime, const Value& object, const SliceBounds& bounds) {
  if (object.is(Kind::kUndefined)) return input_error(object.undefined_reason());
  if (bounds.step == 0) return input_error("a slice step cannot be zero");
  if (object.is(Kind::kString)) {
    OUTRIDER_RETURN_IF_ERROR(runtime.spend_bytes(object.string().size()));
    const std::vector<std::string_view> characters = split_characters(object.string());
    std::string out;
    for (size_t place : slice_places(bounds, static_cast<int64_t>(characters.size())))
      out += characters[place];
    return Value(std::move(out));
  }
  if (!object.is(Kind::kList))
    return Value::undefined("a " + std::string(object.type_name()) + " cannot be sliced");
  const auto& items = object.list().items;
  OUTRIDER_RETURN_IF_ERROR(runtime.spend_bytes(items.size() * sizeof(Value)));
  std::vector<Value> slice;
  for (size_t place : slice_places(bounds, static_cast<int64_t>(items.size()))) slice.push_back(items[place]);
  return object.is_tuple() ? make_tuple(std::move(slice)) : make_list(std::move(slice));
}

Result<std::shared_ptr<const List>> iterate(Runtime& runtime, const Value& value) {
  Result<Value> list = input_error("a " + std::string(value.type_name()) + " cannot be iterated over");
  if (value.is(Kind::kList)) {
    list = value;
  } else if (value.is(Kind::kUndefined)) {
    list = make_list({});
  } else if (value.is(Kind::kString)) {
    list = make_string_list(runtime, split_characters(value.string()));
  } else if (value.is(Kind::kDict)) {
    std::vector<Value> keys;
    OUTRIDER_RETURN_IF_ERROR(runtime.spend_bytes(value.dict().entries().size() * sizeof(Value)));
    for (const Dict::Entry& entry : value.dict().entries()) keys.push_back(entry.key);
    list = make_list(std::move(keys));
  }
  OUTRIDER_TRY(const Value items, std::move(list));
  return items.shared_list();
}

Result<int64_t> length(const Value& value) {
  switch (value.kind()) {
    case Kind::kUndefined:
      return int64_t{0};
    case Kind::kString:
      return count_characters(value.string());
    case Kind::kList:
      return static_cast<int64_t>(value.list().items.size());
    case Kind::kDict:
      return static_cast<int64_t>(value.dict().entries().size());
    default:
      return input_error("a " + std::string(value.type_name()) + " has no length");
  }
}

}  // namespace outrider::jinja
