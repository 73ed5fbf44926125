// SPDX-License-Identifier: Apache-2.0
#include "formats/gguf/gguf.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <utility>

#include "base/quote.h"

namespace outrider {
namespace {

static_assert(std::endian::native == std::endian::little, "GGUF is read in place");

constexpr uint64_t kMaxEntries = 65536;  // limit of keys, and of tensors
constexpr uint64_t kMaxNameBytes = 64 << 10;
constexpr uint64_t kMaxStringBytes = 64 << 20;
constexpr uint32_t kMaxDimensions = 4;
constexpr uint64_t kMaxDimension = uint64_t{1} << 40;
constexpr uint64_t kMaxAlignment = 1 << 20;
constexpr uint64_t kDefaultAlignment = 32;
// The smallest number of bytes of a description, which bounds the counts by the size of the file.
constexpr uint64_t kMinKeyBytes = 8 + 4 + 1;
constexpr uint64_t kMinTensorBytes = 8 + 4 + 4 + 8;

// The bytes of one element; 0 for strings and arrays, which have no fixed size.
constexpr std::array<uint8_t, 13> kElementBytes = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};

// The names of ggml's other tensor types by number, for messages.
std::string tensor_type_name(uint32_t type) {
  static constexpr std::pair<uint32_t, std::string_view> kNames[] = {
      {9, "Q8_1"}, {15, "Q8_K"}, {24, "I8"}, {25, "I16"}, {26, "I32"}, {28, "F64"}, {41, "Q1_0"},
  };
  for (const auto& [number, name] : kNames) {
    if (number == type) return std::string(name);
  }
  return "number " + std::to_string(type);
}

// ggml's number of each DType up to NVFP4.
constexpr std::array<uint32_t, 26> kTensorTypes = {0,  1,  30, 8,  2,  3,  6,  7,  10, 11, 12, 13, 14,
                                                   19, 29, 16, 17, 22, 18, 21, 20, 23, 34, 35, 39, 40};
static_assert(static_cast<size_t>(DType::kNVFP4) + 1 == kTensorTypes.size());

constexpr uint32_t kIntegerType = 27;  // I64

std::optional<DType> dtype_of(uint32_t type) {
  const auto found = std::find(kTensorTypes.begin(), kTensorTypes.end(), type);
  if (found == kTensorTypes.end()) return std::nullopt;
  return static_cast<DType>(found - kTensorTypes.begin());
}

// Reads forward through the file and never past its end.
class Cursor {
 public:
  explicit Cursor(std::span<const std::byte> bytes) : bytes_(bytes) {}

  uint64_t position() const { return position_; }
  uint64_t remaining() const { return bytes_.size() - position_; }

  template <typename T>
  std::optional<T> take() {
    if (remaining() < sizeof(T)) return std::nullopt;
    T value;
    std::memcpy(&value, bytes_.data() + position_, sizeof(T));
    position_ += sizeof(T);
    return value;
  }

  bool skip(uint64_t count) {
    if (count > remaining()) return false;
    position_ += count;
    return true;
  }

  // Reads a u64 length and that many bytes; nullopt when the length exceeds `limit` or the file.
  std::optional<std::string_view> take_string(uint64_t limit) {
    const auto length = take<uint64_t>();
    if (!length || *length > limit || *length > remaining()) return std::nullopt;
    const std::string_view text(reinterpret_cast<const char*>(bytes_.data()) + position_, *length);
    position_ += *length;
    return text;
  }

  std::span<const std::byte> since(uint64_t start) const { return bytes_.subspan(start, position_ - start); }

 private:
  std::span<const std::byte> bytes_;
  uint64_t position_ = 0;
};

struct TensorExtent {
  uint64_t offset = 0;  // from the start of the data section
  uint64_t bytes = 0;
  const std::byte** data = nullptr;  // takes the address
  std::string_view name;
};

class GgufParser {
 public:
  GgufParser(std::span<const std::byte> bytes, std::string_view name)
      : bytes_(bytes), cursor_(bytes), name_(name) {}

  Result<GgufFile> parse() {
    OUTRIDER_RETURN_IF_ERROR(read_header());
    for (uint64_t i = 0; i < key_count_; ++i) OUTRIDER_RETURN_IF_ERROR(read_key());
    OUTRIDER_RETURN_IF_ERROR(read_alignment());
    for (uint64_t i = 0; i < tensor_count_; ++i) OUTRIDER_RETURN_IF_ERROR(read_tensor());
    OUTRIDER_RETURN_IF_ERROR(place_tensors());
    return std::move(file_);
  }

 private:
  Error fail(const std::string& what) const { return input_error(name_ + ": " + what); }
  Error truncated(const std::string& where) const {
    return fail("the file ends, or a length is beyond its limit, in " + where + " at byte " +
                std::to_string(cursor_.position()) + " of " + std::to_string(bytes_.size()));
  }

  Status read_header();
  Status read_key();
  Result<GgufValue> read_value(const std::string& key);
  Result<GgufValue> read_array(const std::string& key);
  Status check_booleans(const std::string& key, std::span<const std::byte> payload) const;
  Status read_alignment();
  Status read_tensor();
  Result<Shape> read_shape(const std::string& tensor);
  Status place_tensors();

  std::span<const std::byte> bytes_;
  Cursor cursor_;
  std::string name_;
  GgufFile file_;
  uint64_t key_count_ = 0;
  uint64_t tensor_count_ = 0;
  uint64_t alignment_ = kDefaultAlignment;
  std::vector<TensorExtent> extents_;
};

Status GgufParser::read_header() {
  const auto magic = cursor_.take<uint32_t>();
  if (!magic || *magic != 0x46554747) return fail("not a GGUF file (it does not begin with 'GGUF')");
  const auto version = cursor_.take<uint32_t>();
  if (!version) return truncated("the header");
  if (*version != 0 && (*version & 0xFFFF) == 0)
    return fail("big-endian GGUF is not supported; convert it again");
  if (*version != 2 && *version != 3) {
    return fail("GGUF version " + std::to_string(*version) + " is not supported; versions 2 and 3 are");
  }
  const auto tensors = cursor_.take<uint64_t>();
  const auto keys = cursor_.take<uint64_t>();
  if (!tensors || !keys) return truncated("the header");
  if (*tensors > kMaxEntries || *tensors > bytes_.size() / kMinTensorBytes) {
    return fail("claims " + std::to_string(*tensors) +
                " tensors, more than fit the file or the limit of 65536");
  }
  if (*keys > kMaxEntries || *keys > bytes_.size() / kMinKeyBytes) {
    return fail("claims " + std::to_string(*keys) +
                " metadata keys, more than fit the file or the limit of 65536");
  }
  tensor_count_ = *tensors;
  key_count_ = *keys;
  return {};
}

Status GgufParser::read_key() {
  const auto key = cursor_.take_string(kMaxNameBytes);
  if (!key) return truncated("a metadata key");
  if (key->empty()) return fail("a metadata key is empty");
  OUTRIDER_TRY(GgufValue value, read_value(quote(*key)));
  if (!file_.metadata.emplace(*key, value).second)
    return fail("metadata key " + quote(*key) + " appears twice");
  return {};
}

Result<GgufValue> GgufParser::read_value(const std::string& key) {
  const auto type = cursor_.take<uint32_t>();
  if (!type) return truncated("the value of " + key);
  if (*type >= kElementBytes.size())
    return fail("value of " + key + " has unknown type " + std::to_string(*type));
  const auto value_type = static_cast<GgufType>(*type);
  if (value_type == GgufType::kArray) return read_array(key);
  const uint64_t start = cursor_.position();
  const bool complete = value_type == GgufType::kString ? cursor_.take_string(kMaxStringBytes).has_value()
                                                        : cursor_.skip(kElementBytes[*type]);
  if (!complete) return truncated("the value of " + key);
  const auto payload = cursor_.since(start);
  if (value_type == GgufType::kBool) OUTRIDER_RETURN_IF_ERROR(check_booleans(key, payload));
  return GgufValue(value_type, 1, false, payload);
}

Result<GgufValue> GgufParser::read_array(const std::string& key) {
  const auto type = cursor_.take<uint32_t>();
  const auto count = cursor_.take<uint64_t>();
  if (!type || !count) return truncated("the array " + key);
  if (*type >= kElementBytes.size())
    return fail("array " + key + " has unknown element type " + std::to_string(*type));
  const auto element = static_cast<GgufType>(*type);
  if (element == GgufType::kArray) return fail("array " + key + " holds arrays, which is not supported");
  const uint64_t start = cursor_.position();
  const uint64_t min = element == GgufType::kString ? sizeof(uint64_t) : kElementBytes[*type];
  if (*count > cursor_.remaining() / min) {
    return fail("array " + key + " claims " + std::to_string(*count) + " elements, more than the file holds");
  }
  if (element == GgufType::kString) {
    for (uint64_t i = 0; i < *count; ++i) {
      if (!cursor_.take_string(kMaxStringBytes)) return truncated("the array " + key);
    }
  } else {
    cursor_.skip(*count * min);
  }
  const auto payload = cursor_.since(start);
  if (element == GgufType::kBool) OUTRIDER_RETURN_IF_ERROR(check_booleans(key, payload));
  return GgufValue(element, *count, true, payload);
}

Status GgufParser::check_booleans(const std::string& key, std::span<const std::byte> payload) const {
  const bool valid =
      std::all_of(payload.begin(), payload.end(), [](std::byte b) { return b <= std::byte{1}; });
  return valid ? Status() : fail("value of " + key + " is a bool that is neither 0 nor 1");
}

Status GgufParser::read_alignment() {
  const GgufValue* value = file_.find("general.alignment");
  if (value == nullptr) return {};
  const auto alignment = value->integer();
  if (!alignment || *alignment < 1 || static_cast<uint64_t>(*alignment) > kMaxAlignment ||
      !std::has_single_bit(static_cast<uint64_t>(*alignment))) {
    return fail("general.alignment must be a power of two up to 1048576, found " + value->printable());
  }
  alignment_ = static_cast<uint64_t>(*alignment);
  return {};
}

Status GgufParser::read_tensor() {
  const auto name = cursor_.take_string(kMaxNameBytes);
  if (!name) return truncated("a tensor's name");
  if (name->empty()) return fail("a tensor's name is empty");
  const std::string shown = "tensor " + quote(*name);
  OUTRIDER_TRY(Shape shape, read_shape(shown));
  const auto type = cursor_.take<uint32_t>();
  const auto offset = cursor_.take<uint64_t>();
  if (!type || !offset) return truncated(shown);
  if (*offset % alignment_ != 0)
    return fail(shown + " is not aligned to " + std::to_string(alignment_) + " bytes");
  const auto dtype = dtype_of(*type);
  if (!dtype && *type != kIntegerType) {
    return fail(shown + " has type " + tensor_type_name(*type) +
                ", which is not supported; F32, F16, BF16 and llama.cpp's quantised types up to NVFP4 are");
  }
  if (dtype && shape.back() % block_elements(*dtype) != 0) {
    return fail(shown + " has rows of " + std::to_string(shape.back()) + " elements, not a multiple of the " +
                std::to_string(block_elements(*dtype)) + " of a " + std::string(dtype_name(*dtype)) +
                " block");
  }
  const auto row = dtype ? row_bytes(*dtype, shape.back()) : shape.back() * int64_t{sizeof(int64_t)};
  uint64_t bytes = static_cast<uint64_t>(row);  // at most 2^43
  for (size_t i = 0; i + 1 < shape.size(); ++i) {
    if (__builtin_mul_overflow(bytes, static_cast<uint64_t>(shape[i]), &bytes)) {
      return fail(shown + " is larger than any file");
    }
  }
  if (file_.tensors.contains(*name) || file_.integers.contains(*name)) return fail(shown + " appears twice");
  if (dtype) {
    const auto entry = file_.tensors.emplace(*name, TensorView{*dtype, std::move(shape), nullptr}).first;
    extents_.push_back({*offset, bytes, &entry->second.data, entry->first});
  } else {
    const auto entry = file_.integers.emplace(*name, GgufIntegers{std::move(shape)}).first;
    extents_.push_back({*offset, bytes, &entry->second.data, entry->first});
  }
  return {};
}

Result<Shape> GgufParser::read_shape(const std::string& tensor) {
  const auto rank = cursor_.take<uint32_t>();
  if (!rank) return truncated(tensor);
  if (*rank < 1 || *rank > kMaxDimensions) {
    return fail(tensor + " must have 1 to 4 dimensions, found " + std::to_string(*rank));
  }
  Shape shape(*rank);
  for (uint32_t i = 0; i < *rank; ++i) {
    const auto dimension = cursor_.take<uint64_t>();
    if (!dimension) return truncated(tensor);
    if (*dimension < 1 || *dimension > kMaxDimension) {
      return fail(tensor + " has a dimension of " + std::to_string(*dimension) + ", outside 1 to 2^40");
    }
    shape[*rank - 1 - i] = static_cast<int64_t>(*dimension);
  }
  return shape;
}

Status GgufParser::place_tensors() {
  if (extents_.empty()) return {};
  const uint64_t padding = (alignment_ - cursor_.position() % alignment_) % alignment_;
  if (!cursor_.skip(padding)) return truncated("the padding before the tensor data");
  const uint64_t data_start = cursor_.position();
  const uint64_t data_bytes = cursor_.remaining();
  std::sort(extents_.begin(), extents_.end(),
            [](const TensorExtent& a, const TensorExtent& b) { return a.offset < b.offset; });
  uint64_t free_from = 0;
  for (const TensorExtent& extent : extents_) {
    const std::string shown = "tensor " + quote(extent.name);
    if (extent.offset < free_from) return fail(shown + " overlaps another tensor");
    if (extent.offset > data_bytes || extent.bytes > data_bytes - extent.offset) {
      return fail(shown + " ends beyond the file; the download may be incomplete");
    }
    *extent.data = bytes_.data() + data_start + extent.offset;
    free_from = extent.offset + extent.bytes;
  }
  return {};
}

}  // namespace

const GgufValue* GgufFile::find(std::string_view key) const {
  const auto it = metadata.find(key);
  return it == metadata.end() ? nullptr : &it->second;
}

uint32_t gguf_tensor_type(DType dtype) { return kTensorTypes[static_cast<size_t>(dtype)]; }

Result<GgufFile> parse_gguf(std::span<const std::byte> bytes, std::string_view name) {
  return GgufParser(bytes, name).parse();
}

}  // namespace outrider
