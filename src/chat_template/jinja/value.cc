// SPDX-License-Identifier: Apache-2.0
#include "chat_template/jinja/value.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

namespace outrider::jinja {

namespace {

// A text that is equal for keys that compare equal in Python; nullopt for types that cannot be keys.
std::optional<std::string> canonical_key(const Value& key) {
  switch (key.kind()) {
    case Kind::kNone:
      return "n";
    case Kind::kBool:
    case Kind::kInteger:
      return "i" + std::to_string(key.integer());
    case Kind::kFloat: {
      const double number = key.number();
      if (std::trunc(number) == number && std::fabs(number) < 0x1p63) {
        return "i" + std::to_string(static_cast<int64_t>(number));
      }
      return "f" + format_float(number);
    }
    case Kind::kString:
      return "s" + key.string();
    default:
      return std::nullopt;
  }
}

Status check_depth(int depth) {
  if (depth <= kMaxValueDepth) return {};
  return input_error("lists and dicts are nested deeper than " + std::to_string(kMaxValueDepth));
}

Result<Value> make_sequence(std::vector<Value> items, bool is_tuple) {
  int depth = 0;
  for (const Value& item : items) depth = std::max(depth, item.depth());
  OUTRIDER_RETURN_IF_ERROR(check_depth(depth + 1));
  return Value(std::make_shared<const List>(List{std::move(items), is_tuple, depth + 1}));
}

}  // namespace

const Value* Namespace::find(std::string_view name) const {
  for (const auto& [key, value] : attributes) {
    if (key == name) return &value;
  }
  return nullptr;
}

void Namespace::set(const std::string& name, Value value) {
  for (auto& [key, old] : attributes) {
    if (key == name) {
      old = std::move(value);
      return;
    }
  }
  attributes.emplace_back(name, std::move(value));
}

Value Value::undefined(std::string reason) {
  Value value;
  value.storage_ = Undefined{std::make_shared<const std::string>(std::move(reason))};
  return value;
}

std::string Value::undefined_reason() const {
  const auto& reason = std::get<Undefined>(storage_).reason;
  return reason ? *reason : "the value is undefined";
}

int64_t Value::integer() const {
  if (const bool* flag = std::get_if<bool>(&storage_)) return *flag ? 1 : 0;
  return std::get<int64_t>(storage_);
}

double Value::number() const {
  if (const double* number = std::get_if<double>(&storage_)) return *number;
  return static_cast<double>(integer());
}

bool Value::truthy() const {
  switch (kind()) {
    case Kind::kUndefined:
    case Kind::kNone:
      return false;
    case Kind::kBool:
    case Kind::kInteger:
    case Kind::kFloat:
      return number() != 0;
    case Kind::kString:
      return !string().empty();
    case Kind::kList:
      return !list().items.empty();
    case Kind::kDict:
      return !dict().entries().empty();
    default:
      return true;
  }
}

int Value::depth() const {
  switch (kind()) {
    case Kind::kList:
      return list().depth;
    case Kind::kDict:
      return dict().depth();
    case Kind::kLoop:
      return loop().items->depth;
    case Kind::kFunction:
      return function().self ? function().self->depth() + 1 : 0;
    default:
      return 0;
  }
}

std::string_view Value::type_name() const {
  switch (kind()) {
    case Kind::kUndefined:
      return "Undefined";
    case Kind::kNone:
      return "NoneType";
    case Kind::kBool:
      return "bool";
    case Kind::kInteger:
      return "int";
    case Kind::kFloat:
      return "float";
    case Kind::kString:
      return "str";
    case Kind::kList:
      return list().is_tuple ? "tuple" : "list";
    case Kind::kDict:
      return "dict";
    case Kind::kNamespace:
      return "namespace";
    case Kind::kLoop:
      return "loop";
    case Kind::kFunction:
      return "function";
    case Kind::kMacro:
      return "macro";
  }
  return "object";
}

bool Value::same_object(const Value& other) const {
  if (kind() != other.kind()) return false;
  switch (kind()) {
    case Kind::kUndefined:
      return false;
    case Kind::kNone:
      return true;
    case Kind::kBool:
    case Kind::kInteger:
      return integer() == other.integer();
    case Kind::kFunction:
      return function().builtin == other.function().builtin && function().self == other.function().self;
    default:
      return storage_.index() == other.storage_.index() &&
             std::visit(
                 [&](const auto& mine) {
                   using Held = std::decay_t<decltype(mine)>;
                   if constexpr (requires { mine == mine; }) return mine == std::get<Held>(other.storage_);
                   return false;
                 },
                 storage_);
  }
}

Status Dict::set(Value key, Value value) {
  std::optional<std::string> canonical = canonical_key(key);
  if (!canonical) {
    return input_error("a dict key must be a string, a number or none, found " +
                       std::string(key.type_name()));
  }
  depth_ = std::max(depth_, value.depth() + 1);
  const auto [place, inserted] = index_.try_emplace(std::move(*canonical), entries_.size());
  if (inserted) {
    entries_.push_back({std::move(key), std::move(value)});
  } else {
    entries_[place->second].value = std::move(value);
  }
  return {};
}

const Value* Dict::find(const Value& key) const {
  const std::optional<std::string> canonical = canonical_key(key);
  if (!canonical) return nullptr;
  const auto place = index_.find(*canonical);
  return place == index_.end() ? nullptr : &entries_[place->second].value;
}

const Value* Dict::find_key(std::string_view key) const {
  const auto place = index_.find("s" + std::string(key));
  return place == index_.end() ? nullptr : &entries_[place->second].value;
}

Result<Value> make_list(std::vector<Value> items) { return make_sequence(std::move(items), false); }

Result<Value> make_tuple(std::vector<Value> items) { return make_sequence(std::move(items), true); }

Result<Value> make_dict(Dict dict) {
  OUTRIDER_RETURN_IF_ERROR(check_depth(dict.depth()));
  return Value(std::make_shared<const Dict>(std::move(dict)));
}

std::string format_float(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char buffer[32];
  const auto end = std::to_chars(buffer, buffer + sizeof(buffer), value, std::chars_format::scientific).ptr;
  const std::string_view scientific(buffer, static_cast<size_t>(end - buffer));  // [-]d[.ddd]e[+-]dd
  const size_t e = scientific.find('e');
  const bool is_fraction = scientific[e + 1] == '-';
  int exponent = 0;
  std::from_chars(scientific.data() + e + 2, end, exponent);
  if (is_fraction) exponent = -exponent;
  const std::string sign = std::signbit(value) ? "-" : "";
  std::string digits;
  for (char c : scientific.substr(0, e)) {
    if (c >= '0' && c <= '9') digits += c;
  }
  // Python switches to an exponent outside 1e-4 <= |value| < 1e16.
  if (exponent < -4 || exponent >= 16) {
    const std::string power = (std::abs(exponent) < 10 ? "0" : "") + std::to_string(std::abs(exponent));
    const std::string fraction = digits.size() > 1 ? "." + digits.substr(1) : "";
    return sign + digits[0] + fraction + (exponent < 0 ? "e-" : "e+") + power;
  }
  if (exponent < 0) return sign + "0." + std::string(static_cast<size_t>(-exponent - 1), '0') + digits;
  const size_t whole = static_cast<size_t>(exponent) + 1;
  if (digits.size() <= whole) return sign + digits + std::string(whole - digits.size(), '0') + ".0";
  return sign + digits.substr(0, whole) + "." + digits.substr(whole);
}

}  // namespace outrider::jinja
