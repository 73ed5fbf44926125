// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "base/quote.h"
#include "formats/quantized/quantization.h"

namespace outrider {
namespace {

struct MethodName {
  std::string_view name;
  QuantizationMethod method;
};

constexpr MethodName kMethodNames[] = {
    {"fp8", QuantizationMethod::kFp8},     {"compressed-tensors", QuantizationMethod::kCompressedTensors},
    {"awq", QuantizationMethod::kAwq},     {"gptq", QuantizationMethod::kGptq},
    {"mxfp4", QuantizationMethod::kMxfp4}, {"modelopt", QuantizationMethod::kModelopt},
};

// A text of `config` that must be one of few; an absent one is the first.
Result<size_t> read_choice(const JsonObject& config, std::string_view key,
                           std::initializer_list<std::string_view> choices) {
  OUTRIDER_TRY(const auto found, config.string(key));
  if (!found) return size_t{0};
  std::string list;
  for (const std::string_view& choice : choices) {
    if (choice == *found) return static_cast<size_t>(&choice - choices.begin());
    list.append(list.empty() ? "" : ", ").append(choice);
  }
  return config.fail("quantization_config: " + std::string(key) + " " + quote(*found) +
                     " is not supported; supported: " + list);
}

Status read_bits(const JsonObject& config, bool allows_8, Quantization* quantization) {
  OUTRIDER_TRY(const auto bits, config.integer("bits"));
  quantization->bits = static_cast<int>(bits.value_or(4));
  if (!bits || *bits == 4 || (*bits == 8 && allows_8)) return {};
  return config.fail("quantization_config: " + std::to_string(*bits) + " bits are not supported; " +
                     (allows_8 ? "4 and 8 are" : "4 are"));
}

Status read_fp8(const JsonObject& config, Quantization* quantization) {
  OUTRIDER_TRY(const size_t ignored, read_choice(config, "fmt", {"e4m3"}));
  static_cast<void>(ignored);
  OUTRIDER_TRY(const auto block, config.array("weight_block_size"));
  if (!block) return {};
  constexpr int64_t kMaxBlock = 1 << 20;
  int64_t sizes[2] = {};
  for (size_t i = 0; i < 2; ++i) {
    if (block->size() != 2 || block->at(i).get(sizes[i]) != simdjson::SUCCESS || sizes[i] < 1 ||
        sizes[i] > kMaxBlock)
      return config.wrong_type("weight_block_size", "a list of two positive whole numbers");
  }
  quantization->block_rows = sizes[0];
  quantization->block_cols = sizes[1];
  return {};
}

Status read_compressed_tensors(const JsonObject& config) {
  OUTRIDER_TRY(const size_t format,
               read_choice(config, "format",
                           {"pack-quantized", "float-quantized", "int-quantized", "nvfp4-pack-quantized"}));
  static_cast<void>(format);
  OUTRIDER_TRY(const auto sparsity, config.object("sparsity_config"));
  if (!sparsity) return {};
  OUTRIDER_TRY(const auto kind, sparsity->string("format"));
  if (!kind || *kind == "dense") return {};
  return config.fail("quantization_config: sparsity " + quote(*kind) + " is not supported; dense is");
}

Status read_modelopt(const JsonObject& config) {
  OUTRIDER_TRY(const size_t algorithm, read_choice(config, "quant_algo", {"FP8", "NVFP4"}));
  static_cast<void>(algorithm);
  return {};
}

Status read_method(const JsonObject& config, Quantization* quantization) {
  switch (quantization->method) {
    case QuantizationMethod::kFp8:
      return read_fp8(config, quantization);
    case QuantizationMethod::kCompressedTensors:
      return read_compressed_tensors(config);
    case QuantizationMethod::kModelopt:
      return read_modelopt(config);
    case QuantizationMethod::kAwq: {
      OUTRIDER_TRY(const size_t version, read_choice(config, "version", {"gemm", "GEMM"}));
      static_cast<void>(version);
      return read_bits(config, /*allows_8=*/false, quantization);
    }
    case QuantizationMethod::kGptq: {
      OUTRIDER_TRY(const size_t format, read_choice(config, "checkpoint_format", {"gptq", "gptq_v2"}));
      quantization->zeros_are_one_less = format == 0;
      return read_bits(config, /*allows_8=*/true, quantization);
    }
    default:
      return {};
  }
}

}  // namespace

Result<Quantization> read_quantization(const JsonObject& root) {
  Quantization quantization;
  OUTRIDER_TRY(const auto config, root.object("quantization_config"));
  if (!config) return quantization;
  OUTRIDER_TRY(const auto name, config->string("quant_method"));
  std::string names;
  for (const MethodName& method : kMethodNames) {
    names.append(names.empty() ? "" : ", ").append(method.name);
    if (name == method.name) quantization.method = method.method;
  }
  // transformers leaves this in models that it made of a GGUF file; their weights are plain.
  if (name == "gguf") return quantization;
  if (quantization.method == QuantizationMethod::kNone) {
    return root.fail("quantization " + quote(name.value_or("")) + " is not supported; supported: " + names);
  }
  OUTRIDER_RETURN_IF_ERROR(read_method(*config, &quantization));
  return quantization;
}

Result<Quantization> read_modelopt_quantization(const JsonObject& root) {
  OUTRIDER_TRY(const auto config, root.object("quantization"));
  if (!config) return root.fail("quantization is missing");
  OUTRIDER_RETURN_IF_ERROR(read_modelopt(*config));
  return Quantization{.method = QuantizationMethod::kModelopt};
}

}  // namespace outrider
