// SPDX-License-Identifier: Apache-2.0
#include "formats/torch/state_dict.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <optional>
#include <utility>

#include "base/quote.h"
#include "formats/stored_tensor.h"

namespace outrider {
namespace {

constexpr size_t kMaxPickleBytes = size_t{32} << 20;
constexpr size_t kMaxValues = size_t{1}
                              << 19;  // values, marks and indices of the memo; enough for 30,000 tensors
constexpr size_t kMaxDimensions = 16;
constexpr uint8_t kProtocol = 2;

// A Value by its place in PickleMachine::values_, where it stays. Values therefore share and contain one
// another without owning, and no function follows them by recursion.
using ValueIndex = uint32_t;

enum class ValueKind : uint8_t {
  kNone,
  kInteger,  // booleans as well
  kFloat,    // without its number, which no tensor needs
  kString,
  kTuple,
  kList,
  kDictionary,  // its items are key, value, key, value
  kRebuildTensor,
  kRebuildParameter,
  kDictionaryType,
  kStorageType,  // its text is the type of its elements
  kStorage,      // its items are type, key and number of elements
  kTensor,       // its item is the tuple of arguments of _rebuild_tensor_v2
};

struct Value {
  ValueKind kind = ValueKind::kNone;
  int64_t integer = 0;
  std::string_view text = {};
  std::vector<ValueIndex> items = {};
};

struct AllowedName {
  std::string_view module;
  std::string_view name;
  ValueKind kind;
  std::string_view dtype_name;
};

constexpr std::array<AllowedName, 13> kAllowedNames = {{
    {"collections", "OrderedDict", ValueKind::kDictionaryType, {}},
    {"torch._utils", "_rebuild_tensor_v2", ValueKind::kRebuildTensor, {}},
    {"torch._utils", "_rebuild_parameter", ValueKind::kRebuildParameter, {}},
    {"torch", "FloatStorage", ValueKind::kStorageType, "F32"},
    {"torch", "HalfStorage", ValueKind::kStorageType, "F16"},
    {"torch", "BFloat16Storage", ValueKind::kStorageType, "BF16"},
    {"torch", "DoubleStorage", ValueKind::kStorageType, "F64"},
    {"torch", "LongStorage", ValueKind::kStorageType, "I64"},
    {"torch", "IntStorage", ValueKind::kStorageType, "I32"},
    {"torch", "ShortStorage", ValueKind::kStorageType, "I16"},
    {"torch", "CharStorage", ValueKind::kStorageType, "I8"},
    {"torch", "ByteStorage", ValueKind::kStorageType, "U8"},
    {"torch", "BoolStorage", ValueKind::kStorageType, "BOOL"},
}};

// The stack machine, reduced to what a dictionary of tensors needs.
class PickleMachine {
 public:
  PickleMachine(std::span<const std::byte> pickle, std::string_view file_name)
      : rest_(reinterpret_cast<const char*>(pickle.data()), pickle.size()), file_name_(file_name) {}

  // Runs to the end and gives the value on top of the stack, which points into this machine.
  Result<const Value*> run() {
    if (rest_.size() > kMaxPickleBytes) return fail("the pickle is larger than the limit of 32 MiB");
    if (!rest_.starts_with('\x80')) return fail("no pickle of protocol 2, which torch.save() writes");
    while (!stopped_) {
      OUTRIDER_TRY(const uint8_t opcode, number<uint8_t>());
      OUTRIDER_RETURN_IF_ERROR(step(opcode));
    }
    if (stack_.empty()) return damaged();
    return &at(stack_.back());
  }

  const Value& at(ValueIndex index) const { return values_[index]; }
  Error fail(const std::string& what) const { return input_error(std::string(file_name_) + ": " + what); }
  Error damaged() const { return fail("the pickle is cut or damaged; download the file again"); }

 private:
  // Takes bytes off the pickle.
  Result<std::string_view> take(uint64_t bytes);
  Result<std::string_view> take_line();
  template <typename T>
  Result<T> number() {
    OUTRIDER_TRY(const std::string_view bytes, take(sizeof(T)));
    T value;
    std::memcpy(&value, bytes.data(), sizeof(value));
    return value;
  }

  Status step(uint8_t opcode);
  Status step_on_stack(uint8_t opcode);

  Status check_protocol();
  Status push(ValueIndex index);
  Status push_new(Value value);
  template <typename T>
  Status push_number() {
    OUTRIDER_TRY(const T value, number<T>());
    return push_new({.kind = ValueKind::kInteger, .integer = value});
  }
  Status push_float();
  Status push_long();
  Status push_string();
  Status push_allowed_name();
  Status push_tuple(Result<size_t> count);
  Status push_storage();
  Status call();
  Status append(ValueKind kind, Result<size_t> count);
  Status drop_state();
  template <typename Index>
  Status put_memo() {
    OUTRIDER_TRY(const Index index, number<Index>());
    return put_memo_at(index);
  }
  Status put_memo_at(uint32_t index);
  template <typename Index>
  Status get_memo() {
    OUTRIDER_TRY(const Index index, number<Index>());
    if (index >= memo_.size() || !memo_[index]) return damaged();
    return push(*memo_[index]);
  }

  Result<size_t> take_mark();  // the number of values above it
  Result<std::vector<ValueIndex>> pop(size_t count);

  std::string_view rest_;
  std::string_view file_name_;
  std::deque<Value> values_;  // so that no copy is made while it grows
  std::vector<ValueIndex> stack_;
  std::vector<size_t> marks_;  // heights of the stack
  std::vector<std::optional<ValueIndex>> memo_;
  bool stopped_ = false;
};

Result<std::string_view> PickleMachine::take(uint64_t bytes) {
  if (bytes > rest_.size()) return damaged();
  const std::string_view taken = rest_.substr(0, bytes);
  rest_.remove_prefix(bytes);
  return taken;
}

Result<std::string_view> PickleMachine::take_line() {
  const size_t end = rest_.find('\n');
  if (end == std::string_view::npos) return damaged();
  OUTRIDER_TRY(const std::string_view line, take(end + 1));
  return line.substr(0, end);
}

// The opcodes that push a value. Letters and codes are named as in Python's pickletools.
Status PickleMachine::step(uint8_t opcode) {
  switch (opcode) {
    case 0x80:  // PROTO
      return check_protocol();
    case 'N':  // NONE
      return push_new({});
    case 0x88:  // NEWTRUE
    case 0x89:  // NEWFALSE
      return push_new({.kind = ValueKind::kInteger, .integer = opcode == 0x88});
    case 'K':  // BININT1
      return push_number<uint8_t>();
    case 'M':  // BININT2
      return push_number<uint16_t>();
    case 'J':  // BININT
      return push_number<int32_t>();
    case 0x8a:  // LONG1
      return push_long();
    case 'G':  // BINFLOAT
      return push_float();
    case 'X':  // BINUNICODE
      return push_string();
    case 'c':  // GLOBAL
      return push_allowed_name();
    case ')':  // EMPTY_TUPLE
      return push_new({.kind = ValueKind::kTuple});
    case ']':  // EMPTY_LIST
      return push_new({.kind = ValueKind::kList});
    case '}':  // EMPTY_DICT
      return push_new({.kind = ValueKind::kDictionary});
    case 'h':  // BINGET
      return get_memo<uint8_t>();
    case 'j':  // LONG_BINGET
      return get_memo<uint32_t>();
    default:
      return step_on_stack(opcode);
  }
}

// The opcodes that work on what is on the stack.
Status PickleMachine::step_on_stack(uint8_t opcode) {
  switch (opcode) {
    case '(':  // MARK
      if (marks_.size() == kMaxValues) return fail("more than 2^19 marks in the pickle");
      marks_.push_back(stack_.size());
      return {};
    case 't':  // TUPLE
      return push_tuple(take_mark());
    case 0x85:  // TUPLE1
    case 0x86:  // TUPLE2
    case 0x87:  // TUPLE3
      return push_tuple(size_t{opcode} - 0x84);
    case 'a':  // APPEND
      return append(ValueKind::kList, size_t{1});
    case 'e':  // APPENDS
      return append(ValueKind::kList, take_mark());
    case 's':  // SETITEM
      return append(ValueKind::kDictionary, size_t{2});
    case 'u':  // SETITEMS
      return append(ValueKind::kDictionary, take_mark());
    case 'Q':  // BINPERSID
      return push_storage();
    case 'R':  // REDUCE
      return call();
    case 'b':  // BUILD
      return drop_state();
    case 'q':  // BINPUT
      return put_memo<uint8_t>();
    case 'r':  // LONG_BINPUT
      return put_memo<uint32_t>();
    case '.':  // STOP
      stopped_ = true;
      return {};
    default:
      return fail("opcode " + std::to_string(opcode) +
                  " is not allowed in the pickle of a checkpoint; it may want to run code");
  }
}

Status PickleMachine::check_protocol() {
  OUTRIDER_TRY(const uint8_t protocol, number<uint8_t>());
  if (protocol == kProtocol) return {};
  return fail("the pickle has protocol " + std::to_string(protocol) +
              ", expected 2; save it again with torch.save() and its default protocol");
}

Status PickleMachine::push(ValueIndex index) {
  if (stack_.size() == kMaxValues) return fail("more than 2^19 values on the stack of the pickle");
  stack_.push_back(index);
  return {};
}

Status PickleMachine::push_new(Value value) {
  if (values_.size() == kMaxValues) return fail("more than 2^19 values in the pickle");
  values_.push_back(std::move(value));
  return push(static_cast<ValueIndex>(values_.size() - 1));
}

Status PickleMachine::push_float() {
  OUTRIDER_TRY(const double ignored, number<double>());
  static_cast<void>(ignored);
  return push_new({.kind = ValueKind::kFloat});
}

// A signed little-endian number of any length; sizes need at most 8 bytes.
Status PickleMachine::push_long() {
  OUTRIDER_TRY(const uint8_t length, number<uint8_t>());
  OUTRIDER_TRY(const std::string_view bytes, take(length));
  Value value{.kind = ValueKind::kInteger};
  if (length > sizeof(value.integer)) return fail("an integer of the pickle has more than 64 bits");
  if (length > 0 && bytes.back() < 0) value.integer = -1;
  std::memcpy(&value.integer, bytes.data(), length);
  return push_new(std::move(value));
}

Status PickleMachine::push_string() {
  OUTRIDER_TRY(const uint32_t length, number<uint32_t>());
  OUTRIDER_TRY(const std::string_view text, take(length));
  return push_new({.kind = ValueKind::kString, .text = text});
}

Status PickleMachine::push_allowed_name() {
  OUTRIDER_TRY(const std::string_view module, take_line());
  OUTRIDER_TRY(const std::string_view name, take_line());
  const auto found = std::ranges::find_if(kAllowedNames, [&](const AllowedName& allowed) {
    return allowed.module == module && allowed.name == name;
  });
  if (found != kAllowedNames.end()) return push_new({.kind = found->kind, .text = found->dtype_name});
  return fail("the pickle names " + quote(std::string(module) + "." + std::string(name)) +
              ", which is not allowed: only tensors of plain types are read; save the state dict alone");
}

Status PickleMachine::push_tuple(Result<size_t> count) {
  if (!count.ok()) return std::move(count).error();
  OUTRIDER_TRY(std::vector<ValueIndex> items, pop(*count));
  return push_new({.kind = ValueKind::kTuple, .items = std::move(items)});
}

// The name of a storage is the tuple ('storage', type, key, device, elements).
Status PickleMachine::push_storage() {
  OUTRIDER_TRY(const std::vector<ValueIndex> name, pop(1));
  const Value& tuple = at(name.front());
  constexpr std::array kKinds = {ValueKind::kString, ValueKind::kStorageType, ValueKind::kString,
                                 ValueKind::kString, ValueKind::kInteger};
  const auto kind_of = [this](ValueIndex index) { return at(index).kind; };
  if (tuple.kind != ValueKind::kTuple || !std::ranges::equal(tuple.items, kKinds, {}, kind_of) ||
      at(tuple.items[0]).text != "storage")
    return damaged();
  return push_new({.kind = ValueKind::kStorage, .items = {tuple.items[1], tuple.items[2], tuple.items[4]}});
}

Status PickleMachine::call() {
  OUTRIDER_TRY(const std::vector<ValueIndex> operands, pop(2));
  const Value& arguments = at(operands[1]);
  if (arguments.kind != ValueKind::kTuple) return damaged();
  switch (at(operands[0]).kind) {
    case ValueKind::kDictionaryType:
      return arguments.items.empty() ? push_new({.kind = ValueKind::kDictionary}) : damaged();
    case ValueKind::kRebuildTensor:
      return push_new({.kind = ValueKind::kTensor, .items = {operands[1]}});
    case ValueKind::kRebuildParameter:
      return arguments.items.empty() ? damaged() : push(arguments.items.front());
    default:
      return damaged();
  }
}

Status PickleMachine::append(ValueKind kind, Result<size_t> count) {
  if (!count.ok()) return std::move(count).error();
  OUTRIDER_TRY(const std::vector<ValueIndex> items, pop(*count));
  if (stack_.empty()) return damaged();
  Value& container = values_[stack_.back()];
  if (container.kind != kind || (kind == ValueKind::kDictionary && items.size() % 2 != 0)) return damaged();
  container.items.insert(container.items.end(), items.begin(), items.end());
  return {};
}

// A dictionary may carry attributes, such as the versions of modules; no tensor is among them.
Status PickleMachine::drop_state() {
  OUTRIDER_TRY(const std::vector<ValueIndex> state, pop(1));
  return !stack_.empty() && at(stack_.back()).kind == ValueKind::kDictionary ? Status() : damaged();
}

Status PickleMachine::put_memo_at(uint32_t index) {
  if (stack_.empty()) return damaged();
  if (index >= kMaxValues) return fail("the pickle remembers more than 2^19 values");
  if (index >= memo_.size()) memo_.resize(index + 1);
  memo_[index] = stack_.back();
  return {};
}

Result<size_t> PickleMachine::take_mark() {
  if (marks_.empty() || marks_.back() > stack_.size()) return damaged();
  const size_t count = stack_.size() - marks_.back();
  marks_.pop_back();
  return count;
}

Result<std::vector<ValueIndex>> PickleMachine::pop(size_t count) {
  if (count > stack_.size()) return damaged();
  std::vector<ValueIndex> values(stack_.end() - static_cast<std::ptrdiff_t>(count), stack_.end());
  stack_.resize(stack_.size() - count);
  return values;
}

Result<Shape> read_sizes(const PickleMachine& machine, const std::string& shown, const Value& tuple) {
  if (tuple.kind != ValueKind::kTuple || tuple.items.size() > kMaxDimensions)
    return machine.fail(shown + " must have at most 16 dimensions");
  Shape sizes;
  for (const ValueIndex index : tuple.items) {
    const Value& size = machine.at(index);
    if (size.kind != ValueKind::kInteger || size.integer < 0 || size.integer > int64_t{1} << 62)
      return machine.fail(shown + " has a size or a stride that is no whole number up to 2^62");
    sizes.push_back(size.integer);
  }
  return sizes;
}

// The arguments are (storage, offset, sizes, strides, requires_grad, hooks), and metadata in later versions.
Result<PickledTensor> read_tensor(const PickleMachine& machine, std::string_view name, const Value& tensor) {
  const std::string shown = "tensor " + quote(name);
  const std::vector<ValueIndex>& arguments = machine.at(tensor.items.front()).items;
  if (arguments.size() < 6) return machine.damaged();
  const Value& storage = machine.at(arguments[0]);
  const Value& offset = machine.at(arguments[1]);
  if (storage.kind != ValueKind::kStorage || offset.kind != ValueKind::kInteger) return machine.damaged();
  const int64_t elements = machine.at(storage.items[2]).integer;
  if (elements < 0 || offset.integer < 0)
    return machine.fail(shown + " has a negative offset, or a storage of negative size");
  OUTRIDER_TRY(Shape shape, read_sizes(machine, shown, machine.at(arguments[2])));
  OUTRIDER_TRY(Shape strides, read_sizes(machine, shown, machine.at(arguments[3])));
  if (strides.size() != shape.size()) return machine.fail(shown + " must have a stride for every dimension");
  return PickledTensor{.name = name,
                       .dtype_name = machine.at(storage.items[0]).text,
                       .storage = machine.at(storage.items[1]).text,
                       .storage_elements = static_cast<uint64_t>(elements),
                       .offset = static_cast<uint64_t>(offset.integer),
                       .shape = std::move(shape),
                       .strides = std::move(strides)};
}

}  // namespace

Result<std::vector<PickledTensor>> read_state_dict(std::span<const std::byte> pickle,
                                                   std::string_view file_name) {
  PickleMachine machine(pickle, file_name);
  OUTRIDER_TRY(const Value* top, machine.run());
  std::vector<PickledTensor> tensors;
  if (top->kind == ValueKind::kDictionary) {
    for (size_t i = 0; i < top->items.size(); i += 2) {
      const Value& key = machine.at(top->items[i]);
      const Value& value = machine.at(top->items[i + 1]);
      if (value.kind != ValueKind::kTensor) continue;
      if (key.kind != ValueKind::kString) return machine.fail("the name of a tensor is no string");
      if (tensors.size() == kMaxStoredTensors) return machine.fail("more than 65536 tensors");
      OUTRIDER_TRY(tensors.emplace_back(), read_tensor(machine, key.text, value));
    }
  }
  if (!tensors.empty()) return tensors;
  return machine.fail("expected a dictionary of tensors by name, found none; save the state dict alone");
}

Result<std::vector<int64_t>> read_integer_list(std::span<const std::byte> pickle,
                                               std::string_view file_name) {
  PickleMachine machine(pickle, file_name);
  OUTRIDER_TRY(const Value* top, machine.run());
  if (top->kind != ValueKind::kList) return machine.fail("expected a list of whole numbers");
  std::vector<int64_t> numbers;
  for (const ValueIndex index : top->items) {
    const Value& item = machine.at(index);
    if (item.kind != ValueKind::kInteger) return machine.fail("expected a list of whole numbers alone");
    numbers.push_back(item.integer);
  }
  return numbers;
}

}  // namespace outrider
