// SPDX-License-Identifier: Apache-2.0
// Quantised matrices against the arithmetic of their formats (tools/make_quantization_goldens.py).
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "formats/hf/safetensors.h"
#include "formats/quantized/float_rows.h"
#include "formats/quantized/quantization.h"
#include "formats/test_outcome.h"
#include "platform/mapped_file.h"

namespace outrider {
namespace {

struct QuantizedCase {
  std::string file;
  std::string config;
  DType dtype;
};

const std::vector<QuantizedCase>& quantized_cases() {
  const std::string gptq4 = R"({"quant_method":"gptq","bits":4})";
  const std::string gptq8 = R"({"quant_method":"gptq","bits":8,"checkpoint_format":"gptq"})";
  const std::string gptq_v2 = R"({"quant_method":"gptq","bits":4,"checkpoint_format":"gptq_v2"})";
  const std::string packed = R"({"quant_method":"compressed-tensors","format":"pack-quantized"})";
  const std::string fp8 = R"({"quant_method":"fp8","fmt":"e4m3","weight_block_size":[8,8]})";
  static const std::vector<QuantizedCase> cases = {
      {"gptq_4", gptq4, DType::kQ4_0},
      {"gptq_4_zeros", gptq4, DType::kQ8_0},
      {"gptq_4_act_order", gptq4, DType::kF32},
      {"gptq_8", gptq8, DType::kQ8_0},
      {"gptq_8_zeros", gptq8, DType::kF32},
      {"gptq_v2_4_zeros", gptq_v2, DType::kQ8_0},
      {"awq_4", R"({"quant_method":"awq","bits":4,"version":"gemm"})", DType::kQ8_0},
      {"packed_4", packed, DType::kQ4_0},
      {"packed_4_zeros", packed, DType::kQ8_0},
      {"packed_4_channel", packed, DType::kF32},
      {"packed_4_act_order", packed, DType::kF32},
      {"packed_8", packed, DType::kQ8_0},
      {"packed_8_zeros", packed, DType::kF32},
      {"int_8", R"({"quant_method":"compressed-tensors","format":"int-quantized"})", DType::kQ8_0},
      {"fp8_block", fp8, DType::kBF16},
      {"fp8_channel", R"({"quant_method":"compressed-tensors","format":"float-quantized"})", DType::kBF16},
      {"fp8_tensor", fp8, DType::kBF16},
      {"fp8_wide", fp8, DType::kF8},
      {"mxfp4", R"({"quant_method":"mxfp4"})", DType::kMXFP4},
      {"nvfp4_packed", R"({"quant_method":"compressed-tensors","format":"nvfp4-pack-quantized"})",
       DType::kNVFP4F},
      {"nvfp4_modelopt", R"({"quant_method":"modelopt","quant_algo":"NVFP4"})", DType::kNVFP4F},
  };
  return cases;
}

Result<Quantization> read_config(const std::string& config) {
  OUTRIDER_TRY(const JsonFile file,
               JsonFile::parse("{\"quantization_config\":" + config + "}", "config.json"));
  return read_quantization(file.root());
}

template <typename T>
T read_at(const std::byte* data, int64_t index) {
  T value;
  std::memcpy(&value, data + index * static_cast<int64_t>(sizeof(T)), sizeof(T));
  return value;
}

constexpr double kE2M1[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};

double number_of_f8(const std::byte* row, int64_t i) {
  const std::byte* block = row + i / 128 * block_bytes(DType::kF8);
  return static_cast<double>(read_at<float>(block, 0)) * e4m3_to_f32(read_at<uint8_t>(block + 4, i % 128));
}

double number_of_nvfp4(const std::byte* row, int64_t i) {
  const std::byte* block = row + i / 64 * block_bytes(DType::kNVFP4F);
  const int64_t group = i % 64 / 16;
  const double scale =
      static_cast<double>(read_at<float>(block, 0)) * e4m3_to_f32(read_at<uint8_t>(block + 4, group));
  const int byte = read_at<uint8_t>(block + 8, group * 8 + i % 8);
  const int code = i % 16 < 8 ? byte & 15 : byte >> 4;
  return scale * (code < 8 ? kE2M1[code] : -kE2M1[code - 8]);
}

// Number `i` of a row, by the definition of its type.
double number_of_row(DType dtype, const std::byte* row, int64_t i) {
  if (dtype == DType::kF32) return read_at<float>(row, i);
  if (dtype == DType::kBF16) return bf16_to_f32(read_at<uint16_t>(row, i));
  if (dtype == DType::kF8) return number_of_f8(row, i);
  if (dtype == DType::kNVFP4F) return number_of_nvfp4(row, i);
  const std::byte* block = row + i / 32 * block_bytes(dtype);
  const std::byte* codes = block + block_bytes(dtype) - (dtype == DType::kQ8_0 ? 32 : 16);
  const double scale = f16_to_f32(read_at<uint16_t>(block, 0));
  if (dtype == DType::kQ8_0) return scale * read_at<int8_t>(codes, i % 32);
  const int byte = read_at<uint8_t>(codes, i % 16);
  const int code = i % 32 < 16 ? byte & 15 : byte >> 4;
  if (dtype == DType::kQ4_0) return scale * (code - 8);
  return std::ldexp(code < 8 ? kE2M1[code] : -kE2M1[code - 8], read_at<uint8_t>(block, 0) - 127);
}

// Largest error of the numbers relative to what they should be; the error of bf16 is half a unit in the last
// place.
double tolerance(DType dtype) {
  if (dtype == DType::kBF16) return 0x1.0p-8;
  // The inverse of a factor is rounded.
  return dtype == DType::kF32 || dtype == DType::kNVFP4F ? 0x1.0p-23 : 0;
}

class QuantizedFile {
 public:
  explicit QuantizedFile(const std::string& name)
      : mapped_(MappedFile::open(OUTRIDER_SOURCE_DIR "/tests/data/quantization/" + name + ".safetensors")
                    .value()),
        parts(parse_safetensors(mapped_.bytes(), name)->tensors) {}

  Result<std::optional<TensorView>> find(const std::string& config) {
    OUTRIDER_TRY(const Quantization quantization, read_config(config));
    const bool has_weight = !parts.contains("m_blocks");
    return find_quantized({parts, quantization, "x", sources_}, has_weight ? "m.weight" : "m");
  }

 private:
  MappedFile mapped_;
  std::vector<std::unique_ptr<const RowSource>> sources_;

 public:
  StoredTensors parts;
};

class QuantizedFormat : public testing::TestWithParam<QuantizedCase> {};

TEST_P(QuantizedFormat, MeansWhatItsFormatSays) {
  QuantizedFile file(GetParam().file);
  const auto found = file.find(GetParam().config);
  ASSERT_TRUE(found.ok()) << found.error().message;
  const TensorView& view = found->value();
  const StoredTensor& expected = file.parts.at("expected");
  EXPECT_EQ(view.dtype, GetParam().dtype) << dtype_name(view.dtype);
  ASSERT_EQ(view.shape, expected.shape);
  std::vector<std::byte> made;
  for (int64_t row = 0; row < view.rows(); ++row) {
    const std::byte* bytes = view.row(row, made);
    for (int64_t i = 0; i < view.cols(); ++i) {
      const auto exact = read_at<double>(expected.data.data(), row * view.cols() + i);
      ASSERT_NEAR(number_of_row(view.dtype, bytes, i), exact, std::abs(exact) * tolerance(view.dtype));
    }
  }
}

void read_rows_if_valid(const Result<std::optional<TensorView>>& found) {
  expect_refused_or_valid(found);
  std::vector<std::byte> made;
  if (!found.ok() || !found->has_value()) return;
  for (int64_t row = 0; row < (*found)->rows(); ++row) (*found)->row(row, made);
}

// Every part that is missing, cut, or of another type must be named; none of them may be read beyond its end.
TEST_P(QuantizedFormat, DamagedPartsAreRefused) {
  QuantizedFile file(GetParam().file);
  const StoredTensors whole = file.parts;
  for (const auto& [name, part] : whole) {
    if (name == "expected") continue;
    SCOPED_TRACE(name);
    file.parts = whole;
    file.parts.at(name).shape.push_back(0);
    read_rows_if_valid(file.find(GetParam().config));
    for (size_t i = 0; i < part.shape.size(); ++i) {
      for (const int64_t size : {int64_t{0}, int64_t{1}, part.shape[i] - 1, part.shape[i] / 2}) {
        file.parts = whole;
        StoredTensor& cut = file.parts.at(name);
        cut.shape[i] = size;
        cut.data = cut.data.first(*stored_bytes(cut.shape, find_stored_type(cut.dtype_name)->bits));
        read_rows_if_valid(file.find(GetParam().config));
      }
    }
    file.parts = whole;
    file.parts.at(name).dtype_name = "F64";
    file.parts.at(name).dtype.reset();
    const auto other_type = file.find(GetParam().config);
    EXPECT_TRUE(!other_type.ok() || !other_type->has_value());
  }
}

INSTANTIATE_TEST_SUITE_P(All, QuantizedFormat, testing::ValuesIn(quantized_cases()),
                         [](const auto& info) { return info.param.file; });

TEST(QuantizedCheckpoint, PartsThatDoNotFitAreNamed) {
  const std::string gptq = R"({"quant_method":"gptq","bits":4})";
  QuantizedFile file("gptq_4_act_order");
  const StoredTensors whole = file.parts;
  file.parts.erase("m.scales");
  expect_refused(file.find(gptq), "x: tensor m.scales is missing");
  file.parts = whole;
  file.parts.at("m.qweight").dtype_name = "F32";
  expect_refused(file.find(gptq), "tensor m.qweight must have dtype I32, found F32");
  file.parts = whole;
  std::vector<int32_t> groups(64, 1);
  groups[5] = 2;
  file.parts.at("m.g_idx").data = std::as_bytes(std::span(groups));
  expect_refused(file.find(gptq), "tensor m.g_idx must hold groups 0 to 1, found 2");
  file.parts.erase("m.qweight");
  EXPECT_FALSE(file.find(gptq)->has_value());
}

TEST(QuantizedCheckpoint, ModelsMadeOfGgufFilesArePlain) {
  const auto quantization = read_config(R"({"quant_method":"gguf","gguf_file":"x.gguf","dequantize":false})");
  ASSERT_TRUE(quantization.ok());
  EXPECT_EQ(quantization->method, QuantizationMethod::kNone);
}

TEST(QuantizedCheckpoint, OtherKindsAreRefusedByName) {
  const auto refused = [](const std::string& config, std::string_view part) {
    SCOPED_TRACE(config);
    expect_refused(read_config(config), part);
  };
  refused("{}",
          "quantization '' is not supported; supported: fp8, compressed-tensors, awq, gptq, mxfp4, modelopt");
  refused(R"({"quant_method":"bitsandbytes"})", "quantization 'bitsandbytes' is not supported");
  refused(R"({"quant_method":7})", "must be a string");
  refused(R"({"quant_method":"gptq","bits":3})", "3 bits are not supported; 4 and 8 are");
  refused(R"({"quant_method":"awq","bits":8})", "8 bits are not supported; 4 are");
  refused(R"({"quant_method":"awq","version":"gemv"})", "version 'gemv' is not supported; supported: gemm");
  refused(R"({"quant_method":"gptq","checkpoint_format":"marlin"})", "checkpoint_format 'marlin'");
  refused(R"({"quant_method":"fp8","fmt":"e5m2"})", "fmt 'e5m2' is not supported");
  refused(R"({"quant_method":"fp8","weight_block_size":[128]})", "a list of two positive whole numbers");
  refused(R"({"quant_method":"fp8","weight_block_size":[0,128]})", "a list of two positive whole numbers");
  refused(R"({"quant_method":"compressed-tensors","format":"marlin-24"})",
          "format 'marlin-24' is not supported");
  refused(R"({"quant_method":"modelopt","quant_algo":"W4A8_AWQ"})", "quant_algo 'W4A8_AWQ' is not supported");
  refused(R"({"quant_method":"compressed-tensors","sparsity_config":{"format":"sparse-24-bitmask"}})",
          "sparsity 'sparse-24-bitmask' is not supported");
}

// Tiles of 128 x 128 numbers stay as they are; NaN of a tile shows in its rows.
TEST(QuantizedCheckpoint, TilesOfFloatsStayAsStored) {
  constexpr int64_t kRows = 160, kCols = 256;
  std::vector<uint8_t> numbers(kRows * kCols);
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<uint8_t>(i * 37 % 127 + i % 2 * 128);
  numbers[5 * kCols + 140] = 0x7F;
  const std::vector<float> scales = {0.5F, 0.25F, 3.0F, 0.0625F};
  Float8Matrix matrix{.rows = kRows,
                      .cols = kCols,
                      .block_rows = 128,
                      .block_cols = 128,
                      .numbers = std::as_bytes(std::span(numbers)),
                      .scales = {DType::kF32, std::as_bytes(std::span(scales)).data(), 2}};
  ASSERT_TRUE(Float8Rows::fits(matrix));
  const Float8Rows rows(matrix);
  std::vector<std::byte> made(static_cast<size_t>(row_bytes(DType::kF8, kCols)));
  for (const int64_t row : {0, 5, 127, 128, 159}) {
    rows.read_row(row, made.data());
    for (int64_t i = 0; i < kCols; ++i) {
      const std::byte* block = made.data() + i / 128 * block_bytes(DType::kF8);
      const float scale = read_at<float>(block, 0);
      if (row == 5 && i >= 128) {
        ASSERT_TRUE(std::isnan(scale));
      } else {
        ASSERT_EQ(scale, scales[static_cast<size_t>(row / 128 * 2 + i / 128)]);
        ASSERT_EQ(static_cast<uint8_t>(block[4 + i % 128]), numbers[static_cast<size_t>(row * kCols + i)]);
      }
    }
  }
  matrix.block_cols = 64;
  EXPECT_FALSE(Float8Rows::fits(matrix));
  matrix.block_cols = kCols;
  EXPECT_TRUE(Float8Rows::fits(matrix));
}

}  // namespace
}  // namespace outrider
