// SPDX-License-Identifier: Apache-2.0
#include "formats/torch/torch_file.h"

#include <optional>
#include <string>
#include <utility>

#include "base/quote.h"
#include "formats/torch/state_dict.h"
#include "formats/torch/stored_zip.h"

namespace outrider {
namespace {

constexpr std::string_view kPickleEntry = "/data.pkl";
// The magic number, pickled, of the format before PyTorch 1.6.
constexpr std::string_view kLegacyStart = "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19";

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

class TorchFileParser {
 public:
  TorchFileParser(std::span<const std::byte> bytes, std::string_view name) : bytes_(bytes), name_(name) {}

  Result<std::vector<int64_t>> parse_list() {
    OUTRIDER_TRY(const std::span<const std::byte> pickle, open_pickle());
    return read_integer_list(pickle, name_);
  }

  Result<StoredTensors> parse() {
    OUTRIDER_TRY(const std::span<const std::byte> pickle, open_pickle());
    OUTRIDER_RETURN_IF_ERROR(check_byte_order());
    OUTRIDER_TRY(const std::vector<PickledTensor> pickled, read_state_dict(pickle, name_));
    StoredTensors tensors;
    for (const PickledTensor& tensor : pickled) {
      OUTRIDER_TRY(StoredTensor stored, find_data(tensor));
      if (!tensors.emplace(tensor.name, std::move(stored)).second)
        return fail("tensor " + quote(tensor.name) + " appears twice");
    }
    return tensors;
  }

 private:
  Error fail(const std::string& what) const { return input_error(std::string(name_) + ": " + what); }

  Result<std::span<const std::byte>> open_pickle() {
    OUTRIDER_RETURN_IF_ERROR(check_start());
    OUTRIDER_TRY(entries_, read_stored_zip(bytes_, name_));
    return find_pickle();
  }
  Status check_start() const;
  Result<std::span<const std::byte>> find_pickle();
  Status check_byte_order() const;
  Result<StoredTensor> find_data(const PickledTensor& tensor) const;

  std::span<const std::byte> bytes_;
  std::string_view name_;
  ZipEntries entries_;
  std::string folder_;  // of all entries
};

Status TorchFileParser::check_start() const {
  const std::string_view text = text_of(bytes_);
  if (text.starts_with("PK\x03\x04")) return {};
  if (!text.starts_with(kLegacyStart))
    return fail("expected a checkpoint of torch.save(), found another file");
  return fail(
      "the format before PyTorch 1.6 is not supported; write it anew: python -c \"import torch; "
      "torch.save(torch.load('OLD', map_location='cpu', weights_only=True), 'NEW')\"");
}

Result<std::span<const std::byte>> TorchFileParser::find_pickle() {
  for (const auto& [name, data] : entries_) {
    if (!name.ends_with(kPickleEntry)) continue;
    folder_ = name.substr(0, name.size() - kPickleEntry.size());
    return data;
  }
  return fail("expected a checkpoint of torch.save(), found a zip archive without data.pkl");
}

Status TorchFileParser::check_byte_order() const {
  const auto order = entries_.find(folder_ + "/byteorder");
  if (order == entries_.end() || text_of(order->second) == "little") return {};
  return fail("its numbers are " + quote(text_of(order->second)) +
              "-endian, expected little-endian; save it again on such a machine");
}

// Whether the numbers follow one another row by row. Strides of dimensions of size 1 do not matter.
bool is_contiguous(const PickledTensor& tensor) {
  int64_t expected = 1;
  for (size_t i = tensor.shape.size(); i-- > 0;) {
    if (tensor.shape[i] != 1 && tensor.strides[i] != expected) return false;
    expected *= tensor.shape[i];
  }
  return true;
}

Result<StoredTensor> TorchFileParser::find_data(const PickledTensor& tensor) const {
  const std::string shown = "tensor " + quote(tensor.name);
  const StoredType& type = *find_stored_type(tensor.dtype_name);
  const uint64_t element_bytes = type.bits / 8;
  const auto storage = entries_.find(folder_ + "/data/" + std::string(tensor.storage));
  if (storage == entries_.end())
    return fail(shown + " lies in storage " + quote(tensor.storage) + ", which the file does not have");
  const std::span<const std::byte> data = storage->second;
  if (data.size() % element_bytes != 0 || data.size() / element_bytes != tensor.storage_elements) {
    return fail("storage " + quote(tensor.storage) + " must have " + std::to_string(tensor.storage_elements) +
                " numbers of type " + std::string(type.name) + ", found " + std::to_string(data.size()) +
                " bytes");
  }
  const auto bytes = stored_bytes(tensor.shape, type.bits);
  if (!bytes || tensor.offset > tensor.storage_elements ||
      *bytes > data.size() - tensor.offset * element_bytes)
    return fail(shown + " lies beyond the end of its storage");
  if (*bytes > 0 && !is_contiguous(tensor))
    return fail(shown + " has strides; save it again as tensor.contiguous()");
  return StoredTensor{std::string(type.name), type.dtype, tensor.shape,
                      data.subspan(tensor.offset * element_bytes, *bytes)};
}

}  // namespace

Result<StoredTensors> parse_torch_file(std::span<const std::byte> bytes, std::string_view name) {
  return TorchFileParser(bytes, name).parse();
}

Result<std::vector<int64_t>> parse_torch_list(std::span<const std::byte> bytes, std::string_view name) {
  return TorchFileParser(bytes, name).parse_list();
}

}  // namespace outrider
