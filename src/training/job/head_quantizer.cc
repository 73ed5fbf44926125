// SPDX-License-Identifier: Apache-2.0
#include "training/job/head_quantizer.h"

#include <ATen/ATen.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "platform/durable_file.h"
#include "training/core/safetensors_file.h"

namespace outrider::training {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr int64_t kGroup = 32;           // numbers with one scale in 4 bits
constexpr int64_t kLeastNumbers = 4096;  // of a matrix that is stored so

bool is_quantized(const std::string& name, const at::Tensor& tensor, int bits) {
  return name.ends_with(".weight") && tensor.dim() == 2 && tensor.numel() >= kLeastNumbers &&
         (bits == 8 || tensor.size(1) % kGroup == 0);
}

json quantization_config(int bits) {
  json weights = {{"num_bits", bits}, {"type", "int"}, {"symmetric", true}, {"dynamic", false}};
  weights["strategy"] = bits == 8 ? "channel" : "group";
  if (bits == 4) weights["group_size"] = kGroup;
  return {{"quant_method", "compressed-tensors"},
          {"format", bits == 8 ? "int-quantized" : "pack-quantized"},
          {"quantization_status", "compressed"},
          {"config_groups", {{"group_0", {{"targets", {"Linear"}}, {"weights", weights}}}}}};
}

// Divides; where the scale is 0, all numbers are.
at::Tensor in_units_of(const at::Tensor& values, const at::Tensor& scale) {
  return values / at::where(scale == 0, at::ones({}), scale);
}

}  // namespace

NamedTensors in_8_bits(const at::Tensor& matrix) {
  const at::Tensor scale = matrix.abs().amax(1, /*keepdim=*/true) / 127;
  return {{"", in_units_of(matrix, scale).round().to(at::kChar)}, {"_scale", scale}};
}

// The scale of a group is, of several, the one with the least squares of errors: the number of the largest
// magnitude gets a code between -9.5 and -6.5.
NamedTensors in_4_bits(const at::Tensor& matrix) {
  const int64_t rows = matrix.size(0), columns = matrix.size(1);
  const at::Tensor groups = matrix.view({rows, columns / kGroup, kGroup});
  const at::Tensor largest = groups.gather(2, groups.abs().argmax(2, /*keepdim=*/true));
  at::Tensor least = at::full(largest.sizes(), INFINITY), codes = at::zeros(groups.sizes()),
             scales = at::zeros(largest.sizes(), at::kHalf);
  for (int step = 0; step <= 12; ++step) {
    const at::Tensor scale = (largest / (-9.5 + 0.25 * step)).to(at::kHalf), wide = scale.to(at::kFloat);
    const at::Tensor tried = in_units_of(groups, wide).round().clamp(-8, 7);
    const at::Tensor errors = (tried * wide - groups).square().sum(2, /*keepdim=*/true);
    const at::Tensor is_better = errors < least;
    least = at::where(is_better, errors, least);
    scales = at::where(is_better, scale, scales);
    codes = at::where(is_better, tried, codes);
  }
  const at::Tensor nibbles = (codes + 8).to(at::kLong).view({rows, columns / 8, 8});
  const at::Tensor packed = nibbles.bitwise_left_shift(at::arange(0, 32, 4, at::kLong)).sum(2);
  return {{"_packed", packed.to(at::kInt)},
          {"_scale", scales.view({rows, columns / kGroup})},
          {"_shape", at::tensor({rows, columns}, at::kLong)}};
}

Result<int64_t> quantize_head(const fs::path& from, const fs::path& to, int bits) {
  OUTRIDER_TRY(const NamedTensors stored, read_safetensors(from / "model.safetensors"));
  std::ifstream in(from / "config.json");
  json config = json::parse(in, nullptr, /*allow_exceptions=*/false);
  if (!config.is_object()) return input_error((from / "config.json").string() + ": not a head's config");
  NamedTensors tensors;
  int64_t count = 0;
  for (const auto& [name, tensor] : stored) {
    if (!is_quantized(name, tensor, bits)) {
      tensors.emplace_back(name, tensor);
      continue;
    }
    ++count;
    const at::Tensor values = tensor.to(at::kFloat).contiguous();
    for (auto& [ending, part] : bits == 8 ? in_8_bits(values) : in_4_bits(values))
      tensors.emplace_back(name + ending, part);
  }
  if (count == 0) return 0;
  config["quantization_config"] = quantization_config(bits);
  OUTRIDER_RETURN_IF_ERROR(make_directories(to));
  OUTRIDER_RETURN_IF_ERROR(write_safetensors(to / "model.safetensors", tensors));
  OUTRIDER_RETURN_IF_ERROR(write_durably(to / "config.json", config.dump(2) + "\n"));
  return count;
}

}  // namespace outrider::training
