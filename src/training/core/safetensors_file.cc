// SPDX-License-Identifier: Apache-2.0
#include "training/core/safetensors_file.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>

#include "platform/durable_file.h"

namespace outrider::training {
namespace {

using json = nlohmann::json;
using ordered_json = nlohmann::ordered_json;

constexpr size_t kAlignment = 8;

const char* dtype_name(at::ScalarType type) {
  switch (type) {
    case at::kFloat:
      return "F32";
    case at::kBFloat16:
      return "BF16";
    case at::kLong:
      return "I64";
    case at::kBool:
      return "BOOL";
    default:
      return nullptr;
  }
}

std::optional<at::ScalarType> dtype_from_name(std::string_view name) {
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16, at::kLong, at::kBool}) {
    if (name == dtype_name(type)) return type;
  }
  return std::nullopt;
}

// A tensor from `entry` of the header, its bytes taken from `data`.
Result<at::Tensor> read_tensor(const std::string& name, const json& entry, std::string_view data) {
  const auto type = dtype_from_name(entry.at("dtype").get<std::string>());
  if (!type)
    return input_error("tensor " + name + ": F32, BF16, I64 or BOOL expected, found " +
                       entry.at("dtype").dump());
  const auto shape = entry.at("shape").get<std::vector<int64_t>>();
  const auto offsets = entry.at("data_offsets").get<std::vector<uint64_t>>();
  if (offsets.size() != 2 || offsets[0] > offsets[1] || offsets[1] > data.size()) {
    return input_error("tensor " + name + ": its data lies outside the file");
  }
  const std::string_view bytes = data.substr(offsets[0], offsets[1] - offsets[0]);
  uint64_t elements = 1;
  for (const int64_t size : shape) {
    if (size < 0 || (size > 0 && elements > data.size() / static_cast<uint64_t>(size))) {
      return input_error("tensor " + name + ": its shape does not fit its data");
    }
    elements *= static_cast<uint64_t>(size);
  }
  if (elements * c10::elementSize(*type) != bytes.size()) {
    return input_error("tensor " + name + ": its shape does not fit its data");
  }
  at::Tensor tensor = at::empty(shape, *type);
  std::memcpy(tensor.data_ptr(), bytes.data(), bytes.size());
  return tensor;
}

Result<std::string> read_whole_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary | std::ios::ate);
  if (!in) return io_error("cannot read " + path.string());
  std::string bytes(static_cast<size_t>(in.tellg()), '\0');
  in.seekg(0);
  in.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  if (!in) return io_error("cannot read " + path.string() + " to its end");
  return bytes;
}

}  // namespace

Status write_safetensors(const std::filesystem::path& path, const NamedTensors& tensors) {
  ordered_json header = {{"__metadata__", {{"format", "pt"}}}};
  uint64_t offset = 0;
  for (const auto& [name, tensor] : tensors) {
    const char* dtype = dtype_name(tensor.scalar_type());
    if (dtype == nullptr)
      return usage_error("tensor " + name + " has a type that safetensors files here do not hold");
    header[name] = {{"dtype", dtype},
                    {"shape", tensor.sizes().vec()},
                    {"data_offsets", {offset, offset + tensor.nbytes()}}};
    offset += tensor.nbytes();
  }
  std::string text = header.dump();
  text.resize((text.size() + kAlignment - 1) / kAlignment * kAlignment, ' ');
  return write_durably(path, [&](const ByteSink& sink) -> Status {
    const uint64_t size = text.size();
    OUTRIDER_RETURN_IF_ERROR(sink({reinterpret_cast<const char*>(&size), sizeof size}));
    OUTRIDER_RETURN_IF_ERROR(sink(text));
    for (const auto& [name, tensor] : tensors) {
      const at::Tensor bytes = tensor.detach().cpu().contiguous();
      OUTRIDER_RETURN_IF_ERROR(sink({static_cast<const char*>(bytes.data_ptr()), bytes.nbytes()}));
    }
    return {};
  });
}

Result<NamedTensors> read_safetensors(const std::filesystem::path& path) {
  OUTRIDER_TRY(const std::string file, read_whole_file(path));
  uint64_t header_size = 0;
  if (file.size() >= sizeof header_size) std::memcpy(&header_size, file.data(), sizeof header_size);
  if (header_size == 0 || header_size > file.size() - sizeof header_size) {
    return input_error(path.string() + ": not a safetensors file, or cut short");
  }
  const std::string_view whole = file;
  const std::string_view data = whole.substr(sizeof header_size + header_size);
  NamedTensors tensors;
  try {
    const json header = json::parse(whole.substr(sizeof header_size, header_size));
    for (const auto& [name, entry] : header.items()) {
      if (name == "__metadata__") continue;
      Result<at::Tensor> tensor = read_tensor(name, entry, data);
      if (!tensor.ok()) return input_error(path.string() + ": " + tensor.error().message);
      tensors.emplace_back(name, std::move(tensor).value());
    }
  } catch (const json::exception& error) {
    return input_error(path.string() + ": " + error.what());
  }
  return tensors;
}

}  // namespace outrider::training
