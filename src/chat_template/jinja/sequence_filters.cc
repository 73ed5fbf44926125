// SPDX-License-Identifier: Apache-2.0
// Filters on lists and dicts. Filters that are lazy in Jinja return lists here.
#include <algorithm>

#include "chat_template/jinja/builtins.h"
#include "chat_template/jinja/operators.h"
#include "chat_template/jinja/print.h"
#include "chat_template/jinja/text.h"

namespace outrider::jinja {

namespace {

// Looks up "a.b.0" step by step; null or none as `path` gives the item itself.
Result<Value> follow_path(Runtime& runtime, Value item, const Value* path) {
  if (path == nullptr || path->is(Kind::kNone)) return item;
  if (!path->is(Kind::kString)) return get_item(runtime, item, *path);
  for (std::string_view part : split(path->string(), ".", -1)) {
    const bool is_index =
        !part.empty() && part.size() < 10 && part.find_first_not_of("0123456789") == part.npos;
    const Value key = is_index ? Value(int64_t{std::atoi(std::string(part).c_str())}) : Value(part);
    OUTRIDER_TRY(item, get_item(runtime, item, key));
  }
  return item;
}

const Value* optional(const Parameters& parameters, size_t index) {
  return parameters.has(index) ? &parameters[index] : nullptr;
}

Result<Value> default_value(Runtime&, const Value& subject, const Arguments& arguments) {
  OUTRIDER_TRY(const Parameters parameters, Parameters::bind(arguments, {"default_value", "boolean"}));
  const bool replaced = subject.is(Kind::kUndefined) || (parameters.flag(1, false) && !subject.truthy());
  if (!replaced) return subject;
  return parameters.given(0) ? parameters[0] : Value("");
}

Result<Value> count(Runtime&, const Value& subject, const Arguments& arguments) {
  OUTRIDER_TRY(const Parameters parameters, Parameters::bind(arguments, {}));
  OUTRIDER_TRY(const int64_t size, length(subject));
  return Value(size);
}

Result<Value> to_list(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  OUTRIDER_TRY(const Parameters parameters, Parameters::bind(arguments, {}));
  OUTRIDER_TRY(const auto items, iterate(runtime, subject));
  OUTRIDER_RETURN_IF_ERROR(runtime.spend_bytes(items->items.size() * sizeof(Value)));
  return make_list(items->items);
}

template <bool from_end>
Result<Value> edge_item(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  OUTRIDER_TRY(const Parameters parameters, Parameters::bind(arguments, {}));
  OUTRIDER_TRY(const auto items, iterate(runtime, subject));
  if (items->items.empty()) return Value::undefined("the sequence is empty");
  return from_end ? items->items.back() : items->items.front();
}

Result<Value> reverse(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  OUTRIDER_TRY(const Parameters parameters, Parameters::bind(arguments, {}));
  OUTRIDER_TRY(const auto items, iterate(runtime, subject));
  OUTRIDER_RETURN_IF_ERROR(runtime.spend_bytes(items->items.size() * sizeof(Value)));
  if (!subject.is(Kind::kString)) return make_list({items->items.rbegin(), items->items.rend()});
  std::string out;
  for (auto item = items->items.rbegin(); item != items->items.rend(); ++item) out += item->string();
  return Value(std::move(out));
}

Result<Value> join(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  OUTRIDER_TRY(const Parameters parameters, Parameters::bind(arguments, {"d", "attribute"}));
  OUTRIDER_TRY(const auto items, iterate(runtime, subject));
  std::string separator;
  if (parameters.given(0)) {
    OUTRIDER_TRY(separator, to_text(runtime, parameters[0]));
  }
  std::string out;
  for (const Value& item : items->items) {
    OUTRIDER_TRY(const Value part, follow_path(runtime, item, optional(parameters, 1)));
    OUTRIDER_TRY(const std::string text, to_text(runtime, part));
    OUTRIDER_RETURN_IF_ERROR(runtime.spend_bytes(text.size() + separator.size()));
    if (&item != items->items.data()) out += separator;
    out += text;
  }
  return Value(std::move(out));
}

Result<Value> items_of(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  if (subject.is(Kind::kUndefined)) return make_list({});
  if (!subject.is(Kind::kDict))
    return input_error("expected a dict, found " + std::string(subject.type_name()));
  return find_method(subject, "items")->function(runtime, subject, arguments);
}

Result<Value> sum(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  OUTRIDER_TRY(const Parameters parameters, Parameters::bind(arguments, {"attribute", "start"}));
  OUTRIDER_TRY(const auto items, iterate(runtime, subject));
  Value total = parameters.given(1) ? parameters[1] : Value(int64_t{0});
  for (const Value& item : items->items) {
    OUTRIDER_TRY(const Value part, follow_path(runtime, item, optional(parameters, 0)));
    OUTRIDER_TRY(total, apply_arithmetic(runtime, ArithmeticOperator::kAdd, total, part));
  }
  return total;
}

// The value by which sort, unique, min and max compare an item; case counts only where asked.
Result<Value> comparison_key(Runtime& runtime, const Value& value, bool case_sensitive) {
  if (case_sensitive || !value.is(Kind::kString)) return value;
  OUTRIDER_RETURN_IF_ERROR(runtime.spend_bytes(value.string().size()));
  return Value(to_lower(value.string()));
}

struct Keyed {
  Value key;
  Value item;
};

Result<std::vector<Keyed>> key_items(Runtime& runtime, const std::vector<Value>& items, const Value* path,
                                     bool case_sensitive) {
  OUTRIDER_RETURN_IF_ERROR(runtime.spend_bytes(items.size() * sizeof(Keyed)));
  std::vector<Keyed> keyed;
  for (const Value& item : items) {
    OUTRIDER_TRY(const Value part, follow_path(runtime, item, path));
    OUTRIDER_TRY(Value key, comparison_key(runtime, part, case_sensitive));
    keyed.push_back({std::move(key), item});
  }
  return keyed;
}

// A stable merge sort. std::sort cannot serve, because a comparison may fail and need not be a strict weak
// order (NaN).
Status merge_sort(Runtime& runtime, std::vector<Keyed>& items, bool descending) {
  std::vector<Keyed> merged(items.size());
  for (size_t width = 1; width < items.size(); width *= 2) {
    for (size_t begin = 0; begin < items.size(); begin += 2 * width) {
      const size_t middle = std::min(begin + width, items.size());
      const size_t end = std::min(begin + 2 * width, items.size());
      size_t left = begin, right = middle;
      for (size_t out = begin; out < end; ++out) {
        bool take_right = left == middle;
        if (!take_right && right < end) {
          const Value& first = descending ? items[left].key : items[right].key;
          const Value& second = descending ? items[right].key : items[left].key;
          OUTRIDER_TRY(take_right, less(runtime, first, second));
        }
        merged[out] = std::move(items[take_right ? right++ : left++]);
      }
    }
    items.swap(merged);
  }
  return {};
}

Result<Value> make_item_list(std::vector<Keyed> keyed) {
  std::vector<Value> items;
  for (Keyed& entry : keyed) items.push_back(std::move(entry.item));
  return make_list(std::move(items));
}

Result<Value> sort(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  OUTRIDER_TRY(const Parameters parameters,
               Parameters::bind(arguments, {"reverse", "case_sensitive", "attribute"}));
  if (parameters.has(2) && parameters[2].is(Kind::kString) &&
      parameters[2].string().find(',') != std::string::npos) {
    return input_error("several attributes are not supported");
  }
  OUTRIDER_TRY(const auto items, iterate(runtime, subject));
  OUTRIDER_TRY(auto keyed,
               key_items(runtime, items->items, optional(parameters, 2), parameters.flag(1, false)));
  OUTRIDER_RETURN_IF_ERROR(merge_sort(runtime, keyed, parameters.flag(0, false)));
  return make_item_list(std::move(keyed));
}

Result<Value> dictsort(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  OUTRIDER_TRY(const Parameters parameters, Parameters::bind(arguments, {"case_sensitive", "by", "reverse"}));
  OUTRIDER_TRY(const std::string by, parameters.string(1, "key"));
  if (by != "key" && by != "value") return input_error("'by' must be key or value");
  if (!subject.is(Kind::kDict))
    return input_error("expected a dict, found " + std::string(subject.type_name()));
  OUTRIDER_TRY(const Value pairs, items_of(runtime, subject, {}));
  const Value part = int64_t{by == "key" ? 0 : 1};
  OUTRIDER_TRY(auto keyed, key_items(runtime, pairs.list().items, &part, parameters.flag(0, false)));
  OUTRIDER_RETURN_IF_ERROR(merge_sort(runtime, keyed, parameters.flag(2, false)));
  return make_item_list(std::move(keyed));
}

template <bool greatest>
Result<Value> extreme(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  OUTRIDER_TRY(const Parameters parameters, Parameters::bind(arguments, {"case_sensitive", "attribute"}));
  OUTRIDER_TRY(const auto items, iterate(runtime, subject));
  if (items->items.empty()) return Value::undefined("the sequence is empty");
  OUTRIDER_TRY(const auto keyed,
               key_items(runtime, items->items, optional(parameters, 1), parameters.flag(0, false)));
  const Keyed* best = keyed.data();
  for (const Keyed& entry : keyed) {
    OUTRIDER_TRY(const bool better,
                 greatest ? less(runtime, best->key, entry.key) : less(runtime, entry.key, best->key));
    if (better) best = &entry;
  }
  return best->item;
}

Result<Value> unique(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  OUTRIDER_TRY(const Parameters parameters, Parameters::bind(arguments, {"case_sensitive", "attribute"}));
  OUTRIDER_TRY(const auto items, iterate(runtime, subject));
  OUTRIDER_TRY(auto keyed,
               key_items(runtime, items->items, optional(parameters, 1), parameters.flag(0, false)));
  Dict seen;
  std::vector<Keyed> kept;
  for (Keyed& entry : keyed) {
    if (seen.find(entry.key) != nullptr) continue;
    OUTRIDER_RETURN_IF_ERROR(seen.set(entry.key, Value(true)));
    kept.push_back(std::move(entry));
  }
  return make_item_list(std::move(kept));
}

Result<Value> map_attribute(Runtime& runtime, const List& items, const Arguments& arguments) {
  OUTRIDER_TRY(const Parameters parameters, Parameters::bind(arguments, {"attribute", "default"}));
  std::vector<Value> mapped;
  for (const Value& item : items.items) {
    OUTRIDER_TRY(Value part, follow_path(runtime, item, optional(parameters, 0)));
    mapped.push_back(part.is(Kind::kUndefined) && parameters.given(1) ? parameters[1] : std::move(part));
  }
  return make_list(std::move(mapped));
}

// The arguments after the first `count` positional ones.
Arguments without_first(const Arguments& arguments, size_t count) {
  const auto from =
      arguments.positional.begin() + static_cast<ptrdiff_t>(std::min(count, arguments.positional.size()));
  return {{from, arguments.positional.end()}, arguments.named};
}

Result<Value> map(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  if (!subject.truthy()) return make_list({});  // none and 0 included, as in Jinja
  OUTRIDER_TRY(const auto items, iterate(runtime, subject));
  OUTRIDER_RETURN_IF_ERROR(runtime.spend_bytes(items->items.size() * sizeof(Value)));
  if (arguments.positional.empty()) return map_attribute(runtime, *items, arguments);
  if (!arguments.positional[0].is(Kind::kString)) return input_error("expected the name of a filter");
  const Arguments rest = without_first(arguments, 1);
  std::vector<Value> mapped;
  for (const Value& item : items->items) {
    OUTRIDER_TRY(Value value, apply_filter(runtime, arguments.positional[0].string(), item, rest));
    mapped.push_back(std::move(value));
  }
  return make_list(std::move(mapped));
}

// select, reject, selectattr and rejectattr take ([attribute], [test, arguments of the test...]).
template <bool keep, bool by_attribute>
Result<Value> filter_items(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  if (!subject.truthy()) return make_list({});  // none and 0 included, as in Jinja
  constexpr size_t kTestPlace = by_attribute ? 1 : 0;
  if (arguments.positional.size() < kTestPlace) return input_error("the argument 'attribute' is missing");
  const Value* path = by_attribute ? &arguments.positional[0] : nullptr;
  const bool has_test = arguments.positional.size() > kTestPlace;
  if (has_test && !arguments.positional[kTestPlace].is(Kind::kString)) {
    return input_error("expected the name of a test");
  }
  OUTRIDER_TRY(const auto items, iterate(runtime, subject));
  OUTRIDER_RETURN_IF_ERROR(runtime.spend_bytes(items->items.size() * sizeof(Value)));
  const Arguments rest = without_first(arguments, kTestPlace + 1);
  std::vector<Value> kept;
  for (const Value& item : items->items) {
    OUTRIDER_TRY(const Value part, follow_path(runtime, item, path));
    bool passed = part.truthy();
    if (has_test) {
      OUTRIDER_TRY(passed, apply_test(runtime, arguments.positional[kTestPlace].string(), part, rest));
    }
    if (passed == keep) kept.push_back(item);
  }
  return make_list(std::move(kept));
}

constexpr Builtin kSequenceFilters[] = {
    {"count", count},
    {"d", default_value},
    {"default", default_value},
    {"dictsort", dictsort},
    {"first", edge_item<false>},
    {"items", items_of},
    {"join", join},
    {"last", edge_item<true>},
    {"length", count},
    {"list", to_list},
    {"map", map},
    {"max", extreme<true>},
    {"min", extreme<false>},
    {"reject", filter_items<false, false>},
    {"rejectattr", filter_items<false, true>},
    {"reverse", reverse},
    {"select", filter_items<true, false>},
    {"selectattr", filter_items<true, true>},
    {"sort", sort},
    {"sum", sum},
    {"unique", unique},
};

}  // namespace

const Builtin* find_sequence_filter(std::string_view name) {
  for (const Builtin& filter : kSequenceFilters) {
    if (filter.name == name) return &filter;
  }
  return nullptr;
}

}  // namespace outrider::jinja
