// SPDX-License-Identifier: Apache-2.0
#include "training/core/safetensors_file.h"

#include <ATen/ATen.h>

#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "formats/hf/safetensors.h"
#include "platform/durable_file.h"
#include "platform/mapped_file.h"

namespace outrider::training {
namespace {

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
    case at::kHalf:
      return "F16";
    case at::kInt:
      return "I32";
    case at::kChar:
      return "I8";
    default:
      return nullptr;
  }
}

std::optional<at::ScalarType> dtype_from_name(std::string_view name) {
  for (const at::ScalarType type :
       {at::kFloat, at::kBFloat16, at::kLong, at::kBool, at::kHalf, at::kInt, at::kChar}) {
    if (name == dtype_name(type)) return type;
  }
  return std::nullopt;
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
  OUTRIDER_TRY(const MappedFile file, MappedFile::open(path));
  OUTRIDER_TRY(const SafetensorsFile stored, parse_safetensors(file.bytes(), path.string()));
  NamedTensors tensors;
  for (const auto& [name, tensor] : stored.tensors) {
    const auto type = dtype_from_name(tensor.dtype_name);
    if (!type)
      return input_error(path.string() + ": tensor " + name +
                         ": expected F32, BF16, F16, I64, I32, I8 or BOOL, found " + tensor.dtype_name);
    at::Tensor values = at::empty(tensor.shape, *type);
    std::memcpy(values.data_ptr(), tensor.data.data(), tensor.data.size());
    tensors.emplace_back(name, std::move(values));
  }
  return tensors;
}

}  // namespace outrider::training
