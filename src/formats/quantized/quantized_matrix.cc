// SPDX-License-Identifier: Apache-2.0
// The tensors of each method, in the words of its reference implementation. Every part is checked for its
// type and for the shape that the other parts call for.
#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "formats/quantized/float_rows.h"
#include "formats/quantized/integer_rows.h"
#include "formats/quantized/quantization.h"

namespace outrider {
namespace {

constexpr std::string_view kWeight = ".weight";

std::string shape_in_words(const Shape& shape) {
  std::string text = "[";
  for (const int64_t size : shape) text += (text.size() > 1 ? ", " : "") + std::to_string(size);
  return text + "]";
}

int64_t divided_up(int64_t count, int64_t unit) { return (count + unit - 1) / unit; }

// The parts of one matrix: tensors with names that begin alike.
class MatrixParts {
 public:
  MatrixParts(const QuantizedCheckpoint& checkpoint, std::string_view module)
      : checkpoint_(checkpoint), module_(module) {}

  Error fail(std::string_view part, const std::string& what) const {
    return input_error(checkpoint_.path + ": tensor " + module_ + std::string(part) + " " + what);
  }
  const StoredTensor* find(std::string_view part) const {
    const auto found = checkpoint_.tensors.find(module_ + std::string(part));
    return found == checkpoint_.tensors.end() ? nullptr : &found->second;
  }
  // A part of this type and rank, without dimensions of size 0.
  Result<const StoredTensor*> get(std::string_view part, std::string_view type, size_t rank) const {
    const StoredTensor* tensor = find(part);
    if (tensor == nullptr) return fail(part, "is missing");
    if (tensor->dtype_name != type)
      return fail(part, "must have dtype " + std::string(type) + ", found " + tensor->dtype_name);
    if (tensor->shape.size() != rank || std::ranges::count(tensor->shape, 0) != 0)
      return fail(part, "must have " + std::to_string(rank) + " dimensions above 0, found shape " +
                            shape_in_words(tensor->shape));
    return tensor;
  }
  Result<const StoredTensor*> get(std::string_view part, std::string_view type, const Shape& shape) const {
    OUTRIDER_TRY(const StoredTensor* tensor, get(part, type, shape.size()));
    if (tensor->shape == shape) return tensor;
    return fail(part,
                "must have shape " + shape_in_words(shape) + ", found " + shape_in_words(tensor->shape));
  }
  Result<NumberTable> get_numbers(std::string_view part, const Shape& shape) const {
    const StoredTensor* tensor = find(part);
    if (tensor == nullptr) return fail(part, "is missing");
    if (!tensor->dtype) return fail(part, "must be F32, F16 or BF16, found " + tensor->dtype_name);
    if (tensor->shape != shape)
      return fail(part,
                  "must have shape " + shape_in_words(shape) + ", found " + shape_in_words(tensor->shape));
    return NumberTable{.dtype = *tensor->dtype,
                       .data = tensor->data.data(),
                       .line = shape.empty() || shape.size() == 1 ? 0 : shape.back()};
  }

  TensorView add(std::unique_ptr<const RowSource> source, DType dtype, Shape shape) const {
    const RowSource* rows = checkpoint_.sources.emplace_back(std::move(source)).get();
    return {.dtype = dtype, .shape = std::move(shape), .source = rows};
  }
  TensorView add(GroupedIntegers matrix) const {
    const Shape shape = {matrix.rows, matrix.cols};
    auto source = std::make_unique<IntegerRows>(std::move(matrix));
    const DType dtype = source->dtype();
    return add(std::move(source), dtype, shape);
  }
  const Quantization& quantization() const { return checkpoint_.quantization; }

 private:
  const QuantizedCheckpoint& checkpoint_;
  std::string module_;
};

// Sets the groups of columns by an index of each, or by their number.
Status set_groups(const MatrixParts& parts, std::string_view index_part, GroupedIntegers* matrix) {
  const bool divides = matrix->cols % matrix->groups == 0;
  if (parts.find(index_part) == nullptr) {
    return divides ? Status() : parts.fail(index_part, "is missing, and groups do not divide the columns");
  }
  OUTRIDER_TRY(const StoredTensor* index, parts.get(index_part, "I32", Shape{matrix->cols}));
  std::vector<int32_t> group_of(static_cast<size_t>(matrix->cols));
  std::memcpy(group_of.data(), index->data.data(), index->data.size());
  // compressed-tensors marks the lack of an order in this way.
  if (divides && std::ranges::all_of(group_of, [](int32_t group) { return group == -1; })) return {};
  bool is_in_order = divides;
  for (int64_t col = 0; col < matrix->cols; ++col) {
    const int32_t group = group_of[static_cast<size_t>(col)];
    if (group < 0 || group >= matrix->groups)
      return parts.fail(index_part, "must hold groups 0 to " + std::to_string(matrix->groups - 1) +
                                        ", found " + std::to_string(group));
    is_in_order = is_in_order && group == col / (matrix->cols / matrix->groups);
  }
  if (!is_in_order) matrix->group_of = std::move(group_of);
  return {};
}

// qweight [cols / n][rows], qzeros [groups][rows / n], scales [groups][rows]; n codes share a word.
Result<TensorView> make_gptq(const MatrixParts& parts) {
  const int bits = parts.quantization().bits;
  const int64_t per_word = 32 / bits;
  OUTRIDER_TRY(const StoredTensor* codes, parts.get(".qweight", "I32", 2));
  OUTRIDER_TRY(const StoredTensor* zeros, parts.get(".qzeros", "I32", 2));
  const int64_t rows = codes->shape[1];
  const int64_t groups = zeros->shape[0];
  if (zeros->shape[1] * per_word != rows)
    return parts.fail(".qzeros", "must have a zero for each of " + std::to_string(rows) + " rows");
  OUTRIDER_TRY(const NumberTable scales, parts.get_numbers(".scales", {groups, rows}));
  GroupedIntegers matrix{.rows = rows, .cols = codes->shape[0] * per_word, .groups = groups};
  matrix.codes = {.words = codes->data.data(), .line_words = rows, .bits = bits, .packs_first = true};
  matrix.codes_by_column = true;
  matrix.zeros = {.words = zeros->data.data(), .line_words = zeros->shape[1], .bits = bits};
  matrix.zero_offset = parts.quantization().zeros_are_one_less ? 1 : 0;
  matrix.scales = scales;
  matrix.groups_first = true;
  matrix.stored = codes->data;
  OUTRIDER_RETURN_IF_ERROR(set_groups(parts, ".g_idx", &matrix));
  return parts.add(std::move(matrix));
}

// qweight [cols][rows / 8], qzeros [groups][rows / 8], scales [groups][rows].
Result<TensorView> make_awq(const MatrixParts& parts) {
  constexpr int64_t kPerWord = 8;
  OUTRIDER_TRY(const StoredTensor* codes, parts.get(".qweight", "I32", 2));
  const int64_t words = codes->shape[1];
  OUTRIDER_TRY(const StoredTensor* zeros, parts.get(".qzeros", "I32", 2));
  if (zeros->shape[1] != words)
    return parts.fail(".qzeros", "must have shape [groups, " + std::to_string(words) + "]");
  OUTRIDER_TRY(const NumberTable scales, parts.get_numbers(".scales", {zeros->shape[0], words * kPerWord}));
  GroupedIntegers matrix{.rows = words * kPerWord, .cols = codes->shape[0], .groups = zeros->shape[0]};
  matrix.codes = {.words = codes->data.data(), .line_words = words, .is_interleaved = true};
  matrix.codes_by_column = true;
  matrix.zeros = {.words = zeros->data.data(), .line_words = words, .is_interleaved = true};
  matrix.scales = scales;
  matrix.groups_first = true;
  matrix.stored = codes->data;
  OUTRIDER_RETURN_IF_ERROR(set_groups(parts, ".g_idx", &matrix));
  return parts.add(std::move(matrix));
}

// The scales of compressed-tensors: one for all, one for each row, or one for each group of a row.
Result<NumberTable> read_scales(const MatrixParts& parts, int64_t rows, int64_t* groups) {
  const StoredTensor* scales = parts.find(".weight_scale");
  if (scales == nullptr) return parts.fail(".weight_scale", "is missing");
  *groups = 1;
  if (scales->shape.empty() || scales->shape == Shape{1})
    return parts.get_numbers(".weight_scale", scales->shape);
  if (scales->shape.size() == 2) *groups = scales->shape[1];
  if (*groups < 1) return parts.fail(".weight_scale", "has no groups");
  return parts.get_numbers(".weight_scale", {rows, *groups});
}

// The number of columns that weight_shape states beside the number of rows.
Result<int64_t> read_columns(const MatrixParts& parts, int64_t rows, int64_t words) {
  OUTRIDER_TRY(const StoredTensor* shape, parts.get(".weight_shape", "I64", Shape{2}));
  std::array<int64_t, 2> sizes;
  std::memcpy(sizes.data(), shape->data.data(), sizeof(sizes));
  if (sizes[0] == rows && sizes[1] > 0 && sizes[1] <= words * 8) return sizes[1];
  return parts.fail(".weight_shape", "states " + std::to_string(sizes[0]) + " x " + std::to_string(sizes[1]) +
                                         ", which does not fit " + std::to_string(rows) + " x " +
                                         std::to_string(words) + " words");
}

// weight_packed [rows][cols / n], weight_scale [rows][groups], weight_zero_point [rows / n][groups].
Result<TensorView> make_pack_quantized(const MatrixParts& parts) {
  OUTRIDER_TRY(const StoredTensor* codes, parts.get(".weight_packed", "I32", 2));
  const int64_t words = codes->shape[1];
  GroupedIntegers matrix{.rows = codes->shape[0]};
  OUTRIDER_TRY(matrix.cols, read_columns(parts, matrix.rows, words));
  const int bits = words == divided_up(matrix.cols, 8) ? 4 : 8;
  if (words != divided_up(matrix.cols, 32 / bits))
    return parts.fail(".weight_packed", "must hold 4 or 8 bits for each of " + std::to_string(matrix.cols) +
                                            " columns, found " + std::to_string(words) + " words");
  OUTRIDER_TRY(matrix.scales, read_scales(parts, matrix.rows, &matrix.groups));
  matrix.codes = {.words = codes->data.data(), .line_words = words, .bits = bits};
  matrix.stored = codes->data;
  matrix.zero_offset = 1 << (bits - 1);
  if (parts.find(".weight_zero_point") != nullptr) {
    OUTRIDER_TRY(
        const StoredTensor* zeros,
        parts.get(".weight_zero_point", "I32", Shape{divided_up(matrix.rows, 32 / bits), matrix.groups}));
    matrix.zeros = {
        .words = zeros->data.data(), .line_words = matrix.groups, .bits = bits, .packs_first = true};
    matrix.zero_offset = 0;
  }
  OUTRIDER_RETURN_IF_ERROR(set_groups(parts, ".weight_g_idx", &matrix));
  return parts.add(std::move(matrix));
}

// weight [rows][cols] of signed bytes.
Result<TensorView> make_int_quantized(const MatrixParts& parts) {
  constexpr int64_t kPerWord = 4;
  OUTRIDER_TRY(const StoredTensor* codes, parts.get(kWeight, "I8", 2));
  GroupedIntegers matrix{.rows = codes->shape[0], .cols = codes->shape[1]};
  if (matrix.cols % kPerWord != 0) return parts.fail(kWeight, "must have a multiple of 4 columns");
  if (parts.find(".weight_zero_point") != nullptr)
    return parts.fail(".weight_zero_point", "is not supported beside signed bytes");
  OUTRIDER_TRY(matrix.scales, read_scales(parts, matrix.rows, &matrix.groups));
  matrix.codes = {
      .words = codes->data.data(), .line_words = matrix.cols / kPerWord, .bits = 8, .flipped_bits = 0x80};
  matrix.zero_offset = 128;
  matrix.stored = codes->data;
  OUTRIDER_RETURN_IF_ERROR(set_groups(parts, ".weight_g_idx", &matrix));
  return parts.add(std::move(matrix));
}

// weight [rows][cols] in E4M3; weight_scale_inv or weight_scale has one scale for all, for each row or for
// each block.
Result<TensorView> make_float8(const MatrixParts& parts) {
  OUTRIDER_TRY(const StoredTensor* numbers, parts.get(kWeight, "F8_E4M3", 2));
  const std::string_view part =
      parts.find(".weight_scale_inv") != nullptr ? ".weight_scale_inv" : ".weight_scale";
  const StoredTensor* scales = parts.find(part);
  if (scales == nullptr) return parts.fail(part, "is missing");
  Float8Matrix matrix{.rows = numbers->shape[0], .cols = numbers->shape[1], .numbers = numbers->data};
  matrix.block_rows = matrix.rows;
  matrix.block_cols = matrix.cols;
  Shape shape = scales->shape;
  if (shape == Shape{matrix.rows, 1}) {
    matrix.block_rows = 1;
  } else if (shape.size() == 2 && shape != Shape{1, 1}) {
    matrix.block_rows = parts.quantization().block_rows;
    matrix.block_cols = parts.quantization().block_cols;
    shape = {divided_up(matrix.rows, matrix.block_rows), divided_up(matrix.cols, matrix.block_cols)};
  } else if (!shape.empty() && shape != Shape{1, 1}) {
    shape = {1};
  }
  OUTRIDER_TRY(matrix.scales, parts.get_numbers(part, shape));
  if (Float8Rows::fits(matrix))
    return parts.add(std::make_unique<Float8Rows>(matrix), DType::kF8, numbers->shape);
  return parts.add(std::make_unique<BF16Rows>(matrix), DType::kBF16, numbers->shape);
}

// numbers [rows][cols / 2] of two E2M1 each, weight_scale [rows][cols / 16] in E4M3, and a factor for all, or
// its inverse.
Result<TensorView> make_nvfp4(const MatrixParts& parts, std::string_view numbers_part,
                              std::string_view factor_part, bool is_inverse) {
  constexpr int64_t kGroup = 16;
  OUTRIDER_TRY(const StoredTensor* numbers, parts.get(numbers_part, "U8", 2));
  const Shape shape = {numbers->shape[0], numbers->shape[1] * 2};
  if (shape[1] % block_elements(DType::kNVFP4F) != 0)
    return parts.fail(numbers_part, "must have a multiple of 64 numbers in a row");
  OUTRIDER_TRY(const StoredTensor* scales,
               parts.get(".weight_scale", "F8_E4M3", Shape{shape[0], shape[1] / kGroup}));
  const StoredTensor* factor = parts.find(factor_part);
  OUTRIDER_TRY(
      const NumberTable number,
      parts.get_numbers(factor_part, factor != nullptr && factor->shape.empty() ? Shape{} : Shape{1}));
  const float stored = number.at(0, 0);
  const Nvfp4Matrix matrix{.cols = shape[1],
                           .numbers = numbers->data,
                           .scales = scales->data,
                           .factor = is_inverse ? 1 / stored : stored};
  return parts.add(std::make_unique<Nvfp4Rows>(matrix), DType::kNVFP4F, shape);
}

Result<TensorView> make_nvfp4_pack_quantized(const MatrixParts& parts) {
  return make_nvfp4(parts, ".weight_packed", ".weight_global_scale", /*is_inverse=*/true);
}

Result<TensorView> make_nvfp4_modelopt(const MatrixParts& parts) {
  return make_nvfp4(parts, kWeight, ".weight_scale_2", /*is_inverse=*/false);
}

// X_blocks [...][cols / 32][16] and X_scales [...][cols / 32] of a tensor X.
Result<TensorView> make_mxfp4(const MatrixParts& parts) {
  constexpr int64_t kGroup = 32;
  const StoredTensor* found = parts.find("_blocks");
  const size_t rank = std::max<size_t>(found->shape.size(), 3);
  OUTRIDER_TRY(const StoredTensor* numbers, parts.get("_blocks", "U8", rank));
  Shape shape(numbers->shape.begin(), numbers->shape.end() - 1);
  if (numbers->shape.back() != kGroup / 2) return parts.fail("_blocks", "must have blocks of 16 bytes");
  OUTRIDER_TRY(const StoredTensor* scales, parts.get("_scales", "U8", shape));
  shape.back() *= kGroup;
  const Mxfp4Matrix matrix{.cols = shape.back(), .numbers = numbers->data, .scales = scales->data};
  return parts.add(std::make_unique<Mxfp4Rows>(matrix), DType::kMXFP4, shape);
}

using MakeMatrix = Result<TensorView> (*)(const MatrixParts& parts);

// The maker of a matrix by the parts that are there; nullptr: it is not quantised.
MakeMatrix maker_of(const MatrixParts& parts) {
  const StoredTensor* weight = parts.find(kWeight);
  const auto has_type = [&](std::string_view type) {
    return weight != nullptr && weight->dtype_name == type;
  };
  switch (parts.quantization().method) {
    case QuantizationMethod::kNone:
      return nullptr;
    case QuantizationMethod::kFp8:
      return has_type("F8_E4M3") ? make_float8 : nullptr;
    case QuantizationMethod::kModelopt:
      if (has_type("U8")) return make_nvfp4_modelopt;
      return has_type("F8_E4M3") ? make_float8 : nullptr;
    case QuantizationMethod::kCompressedTensors:
      if (parts.find(".weight_global_scale") != nullptr) return make_nvfp4_pack_quantized;
      if (parts.find(".weight_packed") != nullptr) return make_pack_quantized;
      if (has_type("I8")) return make_int_quantized;
      return has_type("F8_E4M3") ? make_float8 : nullptr;
    case QuantizationMethod::kAwq:
      return parts.find(".qweight") != nullptr ? make_awq : nullptr;
    case QuantizationMethod::kGptq:
      return parts.find(".qweight") != nullptr ? make_gptq : nullptr;
    case QuantizationMethod::kMxfp4:
      return parts.find("_blocks") != nullptr ? make_mxfp4 : nullptr;
  }
  return nullptr;
}

// A name without the ".weight" that most have.
std::string_view module_of(std::string_view name) {
  if (name.ends_with(kWeight)) name.remove_suffix(kWeight.size());
  return name;
}

}  // namespace

bool has_quantized(const QuantizedCheckpoint& checkpoint, std::string_view name) {
  return maker_of(MatrixParts(checkpoint, module_of(name))) != nullptr;
}

Result<std::optional<TensorView>> find_quantized(const QuantizedCheckpoint& checkpoint,
                                                 std::string_view name) {
  const MatrixParts parts(checkpoint, module_of(name));
  const MakeMatrix make = maker_of(parts);
  if (make == nullptr) return std::optional<TensorView>();
  OUTRIDER_TRY(TensorView view, make(parts));
  return std::optional(std::move(view));
}

}  // namespace outrider
