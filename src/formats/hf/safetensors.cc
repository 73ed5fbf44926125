// SPDX-License-Identifier: Apache-2.0
#include "formats/hf/safetensors.h"

#include <simdjson.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>
#include <vector>

#include "base/quote.h"

namespace outrider {
namespace {

namespace ondemand = simdjson::ondemand;

constexpr uint64_t kMaxHeaderBytes = 100'000'000;
constexpr size_t kMaxRank = 16;

// One entry of the header before it is checked against the data.
struct Description {
  std::optional<std::string> dtype;
  std::optional<Shape> shape;
  std::optional<std::pair<uint64_t, uint64_t>> offsets;
};

class SafetensorsParser {
 public:
  SafetensorsParser(std::span<const std::byte> bytes, std::string_view name) : bytes_(bytes), name_(name) {}

  Result<SafetensorsFile> parse() {
    OUTRIDER_TRY(const std::string_view header, find_header());
    data_ = bytes_.subspan(sizeof(uint64_t) + header.size());
    OUTRIDER_RETURN_IF_ERROR(read_header(header));
    OUTRIDER_RETURN_IF_ERROR(check_extents());
    return std::move(file_);
  }

 private:
  Error fail(const std::string& what) const { return input_error(name_ + ": " + what); }
  Error bad_json(simdjson::error_code error) const {
    return fail(std::string("the header is not valid: ") + simdjson::error_message(error));
  }

  Result<std::string_view> find_header() const;
  Status read_header(std::string_view header);
  Status read_metadata(ondemand::value value);
  Result<Description> read_description(const std::string& shown, ondemand::value value) const;
  Result<Shape> read_shape(const std::string& shown, ondemand::value value) const;
  Result<std::pair<uint64_t, uint64_t>> read_offsets(const std::string& shown, ondemand::value value) const;
  Status add_tensor(std::string_view name, ondemand::value value);
  Status check_extents() const;

  std::span<const std::byte> bytes_;
  std::span<const std::byte> data_;
  std::string name_;
  SafetensorsFile file_;
  bool metadata_seen_ = false;
};

Result<std::string_view> SafetensorsParser::find_header() const {
  uint64_t length = 0;
  if (bytes_.size() < sizeof(length)) return fail("not a safetensors file (shorter than 8 bytes)");
  std::memcpy(&length, bytes_.data(), sizeof(length));
  if (length > kMaxHeaderBytes) {
    return fail("a header of " + std::to_string(length) + " bytes is beyond the limit of 100000000");
  }
  if (length > bytes_.size() - sizeof(length)) {
    return fail("the header claims " + std::to_string(length) + " bytes, the file has " +
                std::to_string(bytes_.size() - sizeof(length)) + "; the download may be incomplete");
  }
  const std::string_view header(reinterpret_cast<const char*>(bytes_.data()) + sizeof(length), length);
  if (!header.starts_with('{')) return fail("not a safetensors file (the header does not begin with '{')");
  return header;
}

Status SafetensorsParser::read_header(std::string_view header) {
  // The parser reads a little past the end of its text. Only a file with enough data after the header has
  // that padding.
  std::optional<simdjson::padded_string> copy;
  simdjson::padded_string_view padded(header, header.size() + data_.size());
  if (data_.size() < simdjson::SIMDJSON_PADDING) {
    copy.emplace(header);
    padded = *copy;
  }
  ondemand::parser parser;
  ondemand::document document;
  ondemand::object root;
  if (const auto error = parser.iterate(padded).get(document)) return bad_json(error);
  if (const auto error = document.get_object().get(root)) return bad_json(error);
  for (auto field : root) {
    std::string_view key;
    ondemand::value value;
    if (const auto error = field.unescaped_key().get(key)) return bad_json(error);
    if (const auto error = field.value().get(value)) return bad_json(error);
    OUTRIDER_RETURN_IF_ERROR(key == "__metadata__" ? read_metadata(value) : add_tensor(key, value));
  }
  if (document.current_location().error() != simdjson::OUT_OF_BOUNDS)
    return fail("there is something after the header's last brace");
  return {};
}

Status SafetensorsParser::read_metadata(ondemand::value value) {
  if (std::exchange(metadata_seen_, true)) return fail("__metadata__ appears twice");
  ondemand::object object;
  if (const auto error = value.get_object().get(object)) return bad_json(error);
  for (auto field : object) {
    std::string_view key;
    std::string_view text;
    if (const auto error = field.unescaped_key().get(key)) return bad_json(error);
    if (const auto error = field.value().get_string().get(text)) {
      return fail("__metadata__ " + quote(key) + " must be a string: " + simdjson::error_message(error));
    }
    if (!file_.metadata.emplace(key, text).second) {
      return fail("__metadata__ " + quote(key) + " appears twice");
    }
    if (file_.metadata.size() > kMaxStoredTensors) return fail("more than 65536 entries in __metadata__");
  }
  return {};
}

Result<Shape> SafetensorsParser::read_shape(const std::string& shown, ondemand::value value) const {
  ondemand::array list;
  if (const auto error = value.get_array().get(list)) return bad_json(error);
  Shape shape;
  for (auto item : list) {
    uint64_t dimension = 0;
    if (item.get_uint64().get(dimension) != simdjson::SUCCESS || dimension > uint64_t{1} << 62) {
      return fail(shown + " has a dimension that is no whole number up to 2^62");
    }
    if (shape.size() == kMaxRank) return fail(shown + " has more than 16 dimensions");
    shape.push_back(static_cast<int64_t>(dimension));
  }
  return shape;
}

Result<std::pair<uint64_t, uint64_t>> SafetensorsParser::read_offsets(const std::string& shown,
                                                                      ondemand::value value) const {
  ondemand::array list;
  if (const auto error = value.get_array().get(list)) return bad_json(error);
  std::array<uint64_t, 2> offsets = {};
  size_t count = 0;
  for (auto item : list) {
    uint64_t offset = 0;
    if (count == offsets.size() || item.get_uint64().get(offset) != simdjson::SUCCESS) {
      return fail(shown + " must have two data_offsets, both whole numbers");
    }
    offsets[count++] = offset;
  }
  if (count != offsets.size()) return fail(shown + " must have two data_offsets, both whole numbers");
  return std::pair(offsets[0], offsets[1]);
}

Result<Description> SafetensorsParser::read_description(const std::string& shown,
                                                        ondemand::value value) const {
  ondemand::object object;
  if (const auto error = value.get_object().get(object)) return bad_json(error);
  Description description;
  for (auto field : object) {
    std::string_view key;
    ondemand::value item;
    if (const auto error = field.unescaped_key().get(key)) return bad_json(error);
    if (const auto error = field.value().get(item)) return bad_json(error);
    bool duplicate = false;
    if (key == "dtype") {
      std::string_view dtype;
      if (const auto error = item.get_string().get(dtype)) return bad_json(error);
      duplicate = std::exchange(description.dtype, std::string(dtype)).has_value();
    } else if (key == "shape") {
      OUTRIDER_TRY(Shape shape, read_shape(shown, item));
      duplicate = std::exchange(description.shape, std::move(shape)).has_value();
    } else if (key == "data_offsets") {
      OUTRIDER_TRY(const auto offsets, read_offsets(shown, item));
      duplicate = std::exchange(description.offsets, offsets).has_value();
    } else {
      return fail(shown + " has the unknown key " + quote(key));
    }
    if (duplicate) return fail(shown + " states one of its keys twice");
  }
  return description;
}

Status SafetensorsParser::add_tensor(std::string_view name, ondemand::value value) {
  const std::string shown = "tensor " + quote(name);
  OUTRIDER_TRY(Description description, read_description(shown, value));
  if (!description.dtype || !description.shape || !description.offsets) {
    return fail(shown + " must have dtype, shape and data_offsets");
  }
  const StoredType* type = find_stored_type(*description.dtype);
  if (type == nullptr) return fail(shown + " has the unknown dtype " + quote(*description.dtype));
  const auto [begin, end] = *description.offsets;
  if (begin > end || end > data_.size()) {
    return fail(shown + " lies from " + std::to_string(begin) + " to " + std::to_string(end) + " in " +
                std::to_string(data_.size()) + " bytes of data");
  }
  const auto bytes = stored_bytes(*description.shape, type->bits);
  if (!bytes || *bytes != end - begin) {
    return fail(shown + " has a shape that does not match its " + std::to_string(end - begin) + " bytes of " +
                std::string(type->name));
  }
  StoredTensor entry{std::string(type->name), type->dtype, std::move(*description.shape),
                     data_.subspan(begin, end - begin)};
  if (!file_.tensors.emplace(name, std::move(entry)).second) return fail(shown + " appears twice");
  if (file_.tensors.size() > kMaxStoredTensors) return fail("more than 65536 tensors");
  return {};
}

Status SafetensorsParser::check_extents() const {
  std::vector<std::span<const std::byte>> extents;
  extents.reserve(file_.tensors.size());
  for (const auto& [name, entry] : file_.tensors) extents.push_back(entry.data);
  std::sort(extents.begin(), extents.end(), [](const auto& a, const auto& b) {
    return std::pair(a.data(), a.size()) < std::pair(b.data(), b.size());
  });
  const std::byte* next = data_.data();
  for (const auto& extent : extents) {
    if (extent.data() != next) {
      return fail(extent.data() < next ? "two tensors overlap in the data"
                                       : "there is a hole between two tensors");
    }
    next += extent.size();
  }
  if (next != data_.data() + data_.size()) return fail("there are bytes after the last tensor");
  return {};
}

}  // namespace

Result<SafetensorsFile> parse_safetensors(std::span<const std::byte> bytes, std::string_view name) {
  return SafetensorsParser(bytes, name).parse();
}

}  // namespace outrider
