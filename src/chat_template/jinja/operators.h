// SPDX-License-Identifier: Apache-2.0
// Python's operators on values. Errors name the operator and the types.
#pragma once

#include <memory>
#include <optional>
#include <string_view>

#include "chat_template/jinja/runtime.h"

namespace outrider::jinja {

enum class ArithmeticOperator { kAdd, kSubtract, kMultiply, kDivide, kFloorDivide, kModulo, kPower };

Result<Value> apply_arithmetic(Runtime& runtime, ArithmeticOperator op, const Value& left,
                               const Value& right);
Result<Value> negate(const Value& value);

Result<bool> equal(Runtime& runtime, const Value& left, const Value& right);
Result<bool> less(Runtime& runtime, const Value& left, const Value& right);
// True for `item in container`.
Result<bool> contains(Runtime& runtime, const Value& container, const Value& item);

// object.name: a method or attribute first, then an item; undefined when there is neither. Errors: the object
// is undefined, or the method would change it.
Result<Value> get_attribute(const Value& object, std::string_view name);
// object[key]: an item first, then an attribute.
Result<Value> get_item(Runtime& runtime, const Value& object, const Value& key);

struct SliceBounds {
  std::optional<int64_t> start, stop, step;
};
Result<Value> get_slice(Runtime& runtime, const Value& object, const SliceBounds& bounds);

// The list that a loop over the value visits: items, characters or keys; empty for undefined.
Result<std::shared_ptr<const List>> iterate(Runtime& runtime, const Value& value);
// The number of items, characters or keys.
Result<int64_t> length(const Value& value);

}  // namespace outrider::jinja
