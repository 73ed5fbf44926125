// SPDX-License-Identifier: Apache-2.0
#include "kernels/packing.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <string>
#include <vector>

#include "kernels/nibble_values.h"
#include "kernels/packing_layout.h"
#include "kernels/quants.h"
#include "kernels/weight_codes.h"

namespace outrider {
namespace {

// Rows of a source, converted one at a time.
class RowReader {
 public:
  RowReader(const MatrixSource& source, DType dtype) : source_(source), dtype_(dtype) {}

  // Valid until the next call.
  const std::byte* row(int64_t j) {
    size_t part = 0;
    while (j >= source_.parts[part].rows()) j -= source_.parts[part++].rows();
    const TensorView& view = source_.parts[part];
    const std::byte* stored = view.row(j, made_);
    // A matrix of f8 has its numbers also where it is held in bf16.
    const std::byte* wanted = converted(view.dtype, stored, view.cols(), source_.dtype, converted_);
    return converted(source_.dtype, wanted, view.cols(), dtype_, held_);
  }

 private:
  const std::byte* converted(DType from, const std::byte* row, int64_t cols, DType to,
                             std::vector<std::byte>& out) {
    if (from == to) return row;
    numbers_.resize(static_cast<size_t>(cols));
    out.resize(static_cast<size_t>(row_bytes(to, cols)));
    dequantize_row(from, row, numbers_.data(), cols);
    quantize_row(to, numbers_.data(), out.data(), cols);
    return out.data();
  }

  const MatrixSource& source_;
  const DType dtype_;
  std::vector<float> numbers_;
  std::vector<std::byte> made_, converted_, held_;
};

Status check_source(const MatrixSource& source) {
  const int64_t block = block_elements(source.dtype);
  for (const TensorView& part : source.parts) {
    if (part.shape.size() != 2 || part.shape[0] <= 0 || part.shape[1] <= 0) {
      return input_error("expected a weight matrix of two positive dimensions, found a tensor of " +
                         std::to_string(part.shape.size()) + " dimensions with " +
                         std::to_string(part.rows()) + " rows of " + std::to_string(part.cols()));
    }
    if (part.cols() % block != 0) {
      return input_error("expected rows of a multiple of " + std::to_string(block) + " elements for type " +
                         std::string(dtype_name(source.dtype)) + ", found " + std::to_string(part.cols()) +
                         "; convert the matrix to another type");
    }
  }
  return {};
}

// [input][16]
template <int64_t kBytes>
void pack_numbers(const PanelRow& row) {
  for (int64_t i = 0; i < row.k; ++i) {
    std::memcpy(row.panel + (i * kDotFeatures + row.index) * kBytes, row.stored + i * kBytes, kBytes);
  }
}

// Blocks of kF8Block inputs: 16 scales, then [input][16]
void pack_f8(const PanelRow& row) {
  const std::byte* from = row.stored;
  for (int64_t begin = 0; begin < row.k; begin += kF8Block, from += kF8Block) {
    std::byte* block = row.panel + begin / kF8Block * kF8PanelBlock;
    float scale;
    std::memcpy(&scale, from, sizeof(scale));
    from += sizeof(scale);
    scale *= kF8Unit;
    std::memcpy(block + row.index * static_cast<int64_t>(sizeof(scale)), &scale, sizeof(scale));
    block += kF8Scales;
    for (int64_t i = 0; i < kF8Block; ++i) block[i * kDotFeatures + row.index] = from[i];
  }
}

// [two inputs][16][2]
void pack_pairs(const PanelRow& row) {
  std::byte* to = row.panel + row.index * 4;
  for (int64_t i = 0; i < row.k; i += 2, to += kDotFeatures * 4) {
    std::memcpy(to, row.stored + i * 2, static_cast<size_t>(std::min<int64_t>(2, row.k - i) * 2));
  }
}

// [step][tile of the panel][16][kTileDepth]
void pack_tile_row(const PanelRow& row) {
  constexpr int64_t kTileBytes = 16 * kTileDepth * 2;
  std::byte* to = row.panel + row.index / 16 * kTileBytes + row.index % 16 * kTileDepth * 2;
  for (int64_t i = 0; i < row.k; i += kTileDepth, to += 2 * kTileBytes) {
    std::memcpy(to, row.stored + i * 2, static_cast<size_t>(std::min(kTileDepth, row.k - i) * 2));
  }
}

// [four inputs][16][4], after the scales of the features
void pack_channel(const PanelRow& row) {
  std::memcpy(row.panel + row.index * static_cast<int64_t>(sizeof(float)), row.stored, sizeof(float));
  std::byte* to = row.panel + kPanelHeader + row.index * 4;
  const std::byte* codes = row.stored + row_header_bytes(row.dtype);
  for (int64_t i = 0; i < row.k; i += 4, to += kDotFeatures * 4) {
    std::memcpy(to, codes + i, static_cast<size_t>(std::min<int64_t>(4, row.k - i)));
  }
}

// Byte i of a group holds codes i and group / 2 + i in its nibbles; or the bytes as they are.
void put_dot_codes(const CodeType& type, const int8_t* codes, std::byte* to) {
  if (type.bits == 8) {
    for (int i = 0; i < type.group; i += 4) std::memcpy(to + i / 4 * kDotFeatures * 4, codes + i, 4);
    return;
  }
  const int half = type.group / 2;
  for (int i = 0; i < half; ++i) {
    to[i / 4 * kDotFeatures * 4 + i % 4] = static_cast<std::byte>(codes[i] | codes[half + i] << 4);
  }
}

void put_half(float value, std::byte* to) {
  const uint16_t half = f32_to_f16(value);
  std::memcpy(to, &half, sizeof(half));
}

void pack_dot_codes(const PanelRow& row, float unit) {
  const CodeType type = code_type(row.dtype);
  const int64_t groups_of_block = kCodeBlock / type.group;
  const int64_t scale_bytes = groups_of_block * kDotFeatures * 2;
  const int64_t code_bytes = type.group * kDotFeatures * type.bits / 8;
  WeightCodes codes;
  for (int64_t begin = 0; begin < row.k; begin += kCodesPerStretch) {
    read_codes(row.dtype, row.stored, begin, row.k, codes);
    const int64_t groups = std::min<int64_t>(kCodesPerStretch, row.k - begin) / type.group;
    for (int64_t g = 0; g < groups; ++g) {
      const int64_t block = begin / kCodeBlock + g / groups_of_block;
      const int64_t place = g % groups_of_block;
      std::byte* to = row.panel + kPanelHeader + block * code_block_bytes(type);
      put_half(codes.scales[g] / unit, to + (place * kDotFeatures + row.index) * 2);
      to += scale_bytes;
      if (type.has_min) {
        put_half(codes.mins[g] / unit, to + (place * kDotFeatures + row.index) * 2);
        to += scale_bytes;
      }
      put_dot_codes(type, codes.codes + g * type.group, to + place * code_bytes + row.index * 4);
    }
  }
}

// A row of a block: word i holds codes i, 32 + i, 64 + i and 96 + i in its nibbles; or the bytes as they are.
void put_tile_codes(const CodeType& type, const int8_t* codes, std::byte* to) {
  if (type.bits == 8) {
    std::memcpy(to, codes, kCodeBlock);
    return;
  }
  uint16_t words[32];
  for (int i = 0; i < 32; ++i) {
    words[i] =
        static_cast<uint16_t>(codes[i] | codes[32 + i] << 4 | codes[64 + i] << 8 | codes[96 + i] << 12);
  }
  std::memcpy(to, words, sizeof(words));
}

// The scales of a row's block, then its mins, 16 rows after one another; returns where the codes begin.
std::byte* put_tile_scales(const CodeType& type, const WeightCodes& codes, int64_t block, float unit,
                           const PanelRow& row, std::byte* to) {
  const int64_t groups = kCodeBlock / type.group;
  const int64_t first = block * groups;
  const int64_t place = row.index % 16 * groups;
  for (int64_t g = 0; g < groups; ++g) {
    const uint16_t half = f32_to_f16(codes.scales[first + g] / unit);
    const uint16_t stored = type.bits == 4 && !type.has_min ? table_scale(half) : half;
    std::memcpy(to + (place + g) * 2, &stored, sizeof(stored));
    if (type.has_min) put_half(codes.mins[first + g] / unit, to + (16 * groups + place + g) * 2);
  }
  return to + 16 * groups * 2 * (type.has_min ? 2 : 1);
}

void pack_tile_codes(const PanelRow& row, float unit) {
  const CodeType type = code_type(row.dtype);
  const int64_t block_bytes = code_block_bytes(type);
  WeightCodes codes;
  for (int64_t begin = 0; begin < row.k; begin += kCodesPerStretch) {
    read_codes(row.dtype, row.stored, begin, row.k, codes);
    const int64_t blocks = units_of(std::min<int64_t>(kCodesPerStretch, row.k - begin), kCodeBlock);
    for (int64_t b = 0; b < blocks; ++b) {
      std::byte* to =
          row.panel + kPanelHeader + ((begin / kCodeBlock + b) * 2 + row.index / 16) * block_bytes;
      to = put_tile_scales(type, codes, b, unit, row, to);
      put_tile_codes(type, codes.codes + b * kCodeBlock, to + row.index % 16 * kCodeBlock * type.bits / 8);
    }
  }
}

void pack_row(WeightLayout layout, const PanelRow& row, float unit) {
  switch (layout) {
    case WeightLayout::kRows:
      std::memcpy(row.panel, row.stored, static_cast<size_t>(row_bytes(row.dtype, row.k)));
      return;
    case WeightLayout::kPanels:
      if (row.dtype == DType::kF8) return pack_f8(row);
      return row.dtype == DType::kF32 ? pack_numbers<4>(row) : pack_numbers<2>(row);
    case WeightLayout::kPairs:
      return pack_pairs(row);
    case WeightLayout::kDotNibbles:
    case WeightLayout::kDotBytes:
      return pack_dot_codes(row, unit);
    case WeightLayout::kChannels:
      return pack_channel(row);
    case WeightLayout::kTiles:
      return pack_tile_row(row);
    case WeightLayout::kTileNibbles:
    case WeightLayout::kTileBytes:
      return pack_tile_codes(row, unit);
  }
}

bool has_unit(WeightLayout layout) {
  return layout == WeightLayout::kDotNibbles || layout == WeightLayout::kDotBytes ||
         layout == WeightLayout::kTileNibbles || layout == WeightLayout::kTileBytes;
}

// The largest unit of the panel's rows serves them all.
float panel_unit(RowReader& reader, const PackedMatrix& packed, Range features) {
  if (code_type(packed.dtype).products == 0) return 1;
  float unit = 0;
  for (int64_t j = features.begin; j < features.end; ++j) {
    unit = std::max(unit, scale_unit(packed.dtype, reader.row(j), packed.k));
  }
  return unit;
}

int64_t panel_bytes(WeightLayout layout, DType dtype, int64_t k) {
  const CodeType type = code_type(dtype);
  const int64_t absent = units_of(k, kCodeBlock) * kCodeBlock - k;  // inputs of the last block
  switch (layout) {
    case WeightLayout::kRows:
      return row_bytes(dtype, k);
    case WeightLayout::kPanels:
      return kDotFeatures * row_bytes(dtype, k);
    case WeightLayout::kPairs:
      return units_of(k, 2) * kDotFeatures * 4;
    case WeightLayout::kDotNibbles:
    case WeightLayout::kDotBytes:
      return kPanelHeader + units_of(k, kCodeBlock) * code_block_bytes(type) -
             absent * kDotFeatures * type.bits / 8;
    case WeightLayout::kChannels:
      return kPanelHeader + units_of(k, kChannelDepth) * kChannelDepth * kDotFeatures;
    case WeightLayout::kTiles:
      return units_of(k, kTileDepth) * kTileDepth * kTileFeatures * 2;
    case WeightLayout::kTileNibbles:
    case WeightLayout::kTileBytes:
      return kPanelHeader + units_of(k, kCodeBlock) * 2 * code_block_bytes(type);
  }
  return 0;
}

int64_t panel_features(WeightLayout layout) {
  switch (layout) {
    case WeightLayout::kRows:
      return 1;
    case WeightLayout::kTiles:
    case WeightLayout::kTileNibbles:
    case WeightLayout::kTileBytes:
      return kTileFeatures;
    default:
      return kDotFeatures;
  }
}

InputLayout inputs_of(WeightLayout layout) {
  switch (layout) {
    case WeightLayout::kRows:
      return InputLayout::kF32;
    case WeightLayout::kPanels:
      return InputLayout::kF32Tiles;
    case WeightLayout::kPairs:
      return InputLayout::kBF16Pairs;
    case WeightLayout::kDotNibbles:
    case WeightLayout::kDotBytes:
      return InputLayout::kInt8Groups;
    case WeightLayout::kChannels:
      return InputLayout::kInt8Rows;
    default:
      return InputLayout::kBF16Tiles;
  }
}

// Where products have two bf16 inputs at a time, f8 becomes bf16.
bool is_multiplied_as_bf16(DType dtype) { return dtype == DType::kBF16 || dtype == DType::kF8; }

}  // namespace

WeightLayout stored_layout(DType) { return WeightLayout::kRows; }

WeightLayout dot_layout(DType dtype) {
  if (dtype == DType::kI8) return WeightLayout::kChannels;
  if (!has_codes(dtype)) return WeightLayout::kPanels;
  return code_type(dtype).bits == 4 ? WeightLayout::kDotNibbles : WeightLayout::kDotBytes;
}

WeightLayout pair_layout(DType dtype) {
  return is_multiplied_as_bf16(dtype) ? WeightLayout::kPairs : dot_layout(dtype);
}

// F32 and F16 weights have more bits than a bf16 tile holds. Decoding 8-bit codes to it costs more than the
// memory they save, so codes that 8-bit tiles can multiply (Q8_0, Q5_0) are multiplied as they are.
WeightLayout tile_layout(DType dtype) {
  if (is_multiplied_as_bf16(dtype)) return WeightLayout::kTiles;
  if (!has_codes(dtype)) return dot_layout(dtype);
  const CodeType type = code_type(dtype);
  if (type.bits == 4) return WeightLayout::kTileNibbles;
  return type.group == kInputGroup && !type.has_min ? WeightLayout::kDotBytes : WeightLayout::kTileBytes;
}

Result<PackedMatrix> row_layout(const MatrixSource& source) {
  return packed_layout(source, WeightLayout::kRows);
}

Result<PackedMatrix> packed_layout(const MatrixSource& source, WeightLayout layout) {
  OUTRIDER_RETURN_IF_ERROR(check_source(source));
  const bool is_bf16 = layout == WeightLayout::kPairs || layout == WeightLayout::kTiles;
  PackedMatrix packed{.layout = layout,
                      .inputs = inputs_of(layout),
                      .dtype = is_bf16 ? DType::kBF16 : source.dtype,
                      .n = 0,
                      .k = source.parts.front().cols(),
                      .panel_features = panel_features(layout),
                      .panel_bytes = 0,
                      .data = {}};
  for (const TensorView& part : source.parts) packed.n += part.rows();
  packed.panel_bytes = panel_bytes(layout, packed.dtype, packed.k);
  return packed;
}

Status allocate(PackedMatrix& packed) {
  try {
    packed.data = Buffer(static_cast<size_t>(packed.bytes()));
  } catch (const std::bad_alloc&) {
    return resource_error("out of memory: packing a weight matrix needs " + std::to_string(packed.bytes()) +
                          " bytes; use a smaller model or a smaller weight type");
  }
  return {};
}

LinearShare linear_share(const LinearArgs& args, Range features) {
  const PackedMatrix& weights = *args.weights;
  const CodeType codes = code_type(weights.dtype);
  return {.layout = weights.layout,
          .dtype = weights.dtype,
          .code_group = codes.group,
          .has_min = codes.has_min,
          .code_values = codes.values,
          .code_numbers = nibble_numbers(codes.values),
          .weights = weights.data.data(),
          .panel_bytes = weights.panel_bytes,
          .n = weights.n,
          .k = weights.k,
          .x = args.x,
          .packed_x = args.packed_x,
          .y = args.y,
          .rows = args.rows,
          .features = features};
}

void pack_panels(const MatrixSource& source, PackedMatrix& packed, Worker worker) {
  RowReader reader(source, packed.dtype);
  const Range share = share_of(worker, packed.n, packed.panel_features);
  for (int64_t begin = share.begin; begin < share.end; begin += packed.panel_features) {
    const Range features = {begin, std::min(begin + packed.panel_features, share.end)};
    std::byte* panel = packed.data.data() + begin / packed.panel_features * packed.panel_bytes;
    float unit = 1;
    if (has_unit(packed.layout)) {
      unit = panel_unit(reader, packed, features);
      std::memcpy(panel, &unit, sizeof(unit));
    }
    for (int64_t j = features.begin; j < features.end; ++j) {
      pack_row(packed.layout, {packed.dtype, packed.k, reader.row(j), panel, j - begin}, unit);
    }
  }
}

}  // namespace outrider
