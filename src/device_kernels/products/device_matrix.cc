// SPDX-License-Identifier: Apache-2.0
#include "device_kernels/products/device_matrix.h"

#include <cstring>
#include <string>

#include "base/check.h"
#include "kernels/isa_ops.h"
#include "kernels/packing_layout.h"
#include "kernels/weight_codes.h"

namespace outrider {
namespace {

using simt::kChunk;
using simt::kPanelFeatures;
using simt::kTileWords;

WeightForm form_of(const CodeType& type) {
  const bool is_narrow = type.group == 16;
  if (type.bits == 8 && type.has_min) return WeightForm::kMinBytes;
  if (type.bits == 8) return is_narrow ? WeightForm::kNarrowBytes : WeightForm::kBytes;
  if (type.has_min) return is_narrow ? WeightForm::kNarrowMinNibbles : WeightForm::kMinNibbles;
  if (is_narrow) return WeightForm::kNarrowTableNibbles;
  return type.values == NibbleValues::kCentred ? WeightForm::kCentredNibbles : WeightForm::kTableNibbles;
}

// One panel of 16 features as tables of vectors have it (packing_layout.h).
class PackedPanel {
 public:
  PackedPanel(const std::byte* panel, const CodeType& type) : panel_(panel), type_(type) {}

  float unit() const {
    float unit;
    std::memcpy(&unit, panel_, sizeof(unit));
    return unit;
  }
  uint16_t scale(int64_t group, int64_t feature) const { return half(group, feature, 0); }
  uint16_t min(int64_t group, int64_t feature) const { return half(group, feature, 1); }
  // The code of input i, as the lowest bits of a byte.
  uint32_t code(int64_t i, int64_t feature) const {
    const int64_t group = i / type_.group, place = i % type_.group;
    const std::byte* codes = block(group) + plane_bytes() * (type_.has_min ? 2 : 1) +
                             group % groups() * (type_.group * kPanelFeatures * type_.bits / 8);
    if (type_.bits == 8) return byte(codes, place, feature);
    const int64_t half = type_.group / 2;
    const uint32_t both = byte(codes, place % half, feature);
    return place < half ? both & 15 : both >> 4;
  }

 private:
  int64_t groups() const { return kCodeBlock / type_.group; }  // of a block
  int64_t plane_bytes() const { return groups() * kPanelFeatures * 2; }
  const std::byte* block(int64_t group) const {
    return panel_ + kPanelHeader + group / groups() * code_block_bytes(type_);
  }
  static uint32_t byte(const std::byte* codes, int64_t i, int64_t feature) {
    return std::to_integer<uint32_t>(codes[i / 4 * kPanelFeatures * 4 + feature * 4 + i % 4]);
  }
  uint16_t half(int64_t group, int64_t feature, int64_t plane) const {
    uint16_t bits;
    std::memcpy(&bits,
                block(group) + plane * plane_bytes() + (group % groups() * kPanelFeatures + feature) * 2,
                sizeof(bits));
    return bits;
  }

  const std::byte* panel_;
  const CodeType& type_;
};

// Four codes from input i on, `shift` bits up in each byte.
uint32_t word_of(const PackedPanel& panel, int64_t i, int64_t feature, int shift) {
  uint32_t word = 0;
  for (int byte = 0; byte < 4; ++byte) word |= panel.code(i + byte, feature) << (8 * byte + shift);
  return word;
}

// The four words of a lane, see GroupedWeights; chunk is the first of the tile.
void put_lane(const PackedPanel& panel, const CodeType& type, int64_t chunk, int64_t k, int lane,
              int32_t* words) {
  const int feature = lane / 4, first = lane % 4 * 4;
  for (int w = 0; w < 4; ++w) {
    if (type.bits == 8) {
      words[w] =
          static_cast<int32_t>(word_of(panel, chunk * kChunk + w / 2 * 16 + first, feature + w % 2 * 8, 0));
      continue;
    }
    const int64_t begin = (chunk + w / 2) * kChunk + first;
    if (begin >= k) continue;  // the last tile has one chunk
    const uint32_t low = word_of(panel, begin, feature + w % 2 * 8, 0);
    words[w] = static_cast<int32_t>(low | word_of(panel, begin + 16, feature + w % 2 * 8, 4));
  }
}

void put_panel(const PackedPanel& panel, const CodeType& type, int64_t index, DeviceMatrix& out) {
  const int64_t groups = out.k / type.group;
  for (int64_t g = 0; g < groups; ++g) {
    for (int f = 0; f < kPanelFeatures; ++f) {
      const auto place = static_cast<size_t>((index * groups + g) * kPanelFeatures + f);
      out.scales[place] = panel.scale(g, f);
      if (type.has_min) out.mins[place] = panel.min(g, f);
    }
  }
  const int64_t chunks_of_tile = type.bits == 4 ? 2 : 1;
  const int64_t tiles = (out.k / kChunk + chunks_of_tile - 1) / chunks_of_tile;
  for (int64_t tile = 0; tile < tiles; ++tile) {
    int32_t* words = out.codes.data() + (index * tiles + tile) * kTileWords;
    for (int lane = 0; lane < simt::kWarp; ++lane)
      put_lane(panel, type, tile * chunks_of_tile, out.k, lane, words + lane * 4);
  }
  out.units[static_cast<size_t>(index)] = panel.unit();
}

template <typename T>
simt::Weights<T> weights_of(const std::vector<T>& numbers) {
  return {numbers.empty() ? nullptr : numbers.data(), std::ssize(numbers)};
}

DeviceMatrix grouped_matrix(const PackedMatrix& packed) {
  const CodeType type = code_type(packed.dtype);
  const int64_t panels = packed.panel_count(), chunks = packed.k / kChunk;
  const int64_t tiles = type.bits == 4 ? (chunks + 1) / 2 : chunks;
  DeviceMatrix out{.form = form_of(type), .n = packed.n, .k = packed.k};
  out.codes.resize(static_cast<size_t>(panels * tiles * kTileWords));
  out.scales.resize(static_cast<size_t>(panels * packed.k / type.group * kPanelFeatures));
  if (type.has_min) out.mins.resize(out.scales.size());
  out.units.resize(static_cast<size_t>(panels));
  if (type.bits == 4) std::memcpy(out.numbers, nibble_numbers(type.values), sizeof(out.numbers));
  for (int64_t panel = 0; panel < panels; ++panel)
    put_panel(PackedPanel(packed.data.data() + panel * packed.panel_bytes, type), type, panel, out);
  return out;
}

// A panel has its scales, then [four inputs][16][4] codes.
DeviceMatrix channel_matrix(const PackedMatrix& packed) {
  const int64_t panels = packed.panel_count(), chunks = (packed.k + kChunk - 1) / kChunk;
  DeviceMatrix out{.form = WeightForm::kChannels, .n = packed.n, .k = packed.k};
  out.codes.resize(static_cast<size_t>(panels * chunks * kTileWords));
  out.units.resize(static_cast<size_t>(panels * kPanelFeatures));
  for (int64_t panel = 0; panel < panels; ++panel) {
    const std::byte* from = packed.data.data() + panel * packed.panel_bytes;
    std::memcpy(&out.units[static_cast<size_t>(panel * kPanelFeatures)], from,
                kPanelFeatures * sizeof(float));
    int32_t* words = out.codes.data() + panel * chunks * kTileWords;
    for (int64_t i = 0; i < chunks * kTileWords; ++i) {
      const int64_t chunk = i / kTileWords, lane = i / 4 % simt::kWarp, word = i % 4;
      const int64_t input = chunk * 8 + word / 2 * 4 + lane % 4, feature = lane / 4 + word % 2 * 8;
      std::memcpy(&words[i], from + kPanelHeader + (input * kPanelFeatures + feature) * 4, sizeof(int32_t));
    }
  }
  return out;
}

DeviceMatrix plain_matrix(const PackedMatrix& packed) {
  const WeightForm form = packed.dtype == DType::kF32   ? WeightForm::kF32
                          : packed.dtype == DType::kF16 ? WeightForm::kF16
                                                        : WeightForm::kBF16;
  DeviceMatrix out{.form = form, .n = packed.n, .k = packed.k};
  out.codes.resize(static_cast<size_t>(packed.bytes()) / sizeof(int32_t));
  std::memcpy(out.codes.data(), packed.data.data(), static_cast<size_t>(packed.bytes()));
  return out;
}

}  // namespace

simt::GroupedWeights DeviceMatrix::grouped() const {
  return {.codes = weights_of(codes),
          .scales = weights_of(scales),
          .mins = weights_of(mins),
          .units = weights_of(units),
          .numbers = {numbers[0], numbers[1], numbers[2], numbers[3]},
          .n = static_cast<int>(n),
          .k = static_cast<int>(k)};
}

simt::ChannelWeights DeviceMatrix::channels() const {
  return {.codes = weights_of(codes),
          .scales = weights_of(units),
          .n = static_cast<int>(n),
          .k = static_cast<int>(k)};
}

Result<DeviceMatrix> device_matrix(const PackedMatrix& packed) {
  switch (packed.layout) {
    case WeightLayout::kDotNibbles:
    case WeightLayout::kDotBytes:
      return grouped_matrix(packed);
    case WeightLayout::kChannels:
      return channel_matrix(packed);
    case WeightLayout::kPanels:
      return plain_matrix(packed);
    default:
      return input_error("expected a matrix that is packed for vectors");
  }
}

int64_t device_matrix_bytes(DType dtype, int64_t n, int64_t k) {
  const int64_t panels = (n + kPanelFeatures - 1) / kPanelFeatures, chunks = (k + kChunk - 1) / kChunk;
  constexpr int64_t kTileBytes = kTileWords * sizeof(int32_t), kHalf = sizeof(uint16_t);
  if (dtype == DType::kI8) return panels * (chunks * kTileBytes + kPanelFeatures * int64_t{sizeof(float)});
  if (block_elements(dtype) == 1)
    return panels * kPanelFeatures * k * static_cast<int64_t>(block_bytes(dtype));
  const CodeType type = code_type(dtype);
  const int64_t tiles = type.bits == 4 ? (chunks + 1) / 2 : chunks;
  const int64_t scales = k / type.group * kPanelFeatures * kHalf;
  return panels * (tiles * kTileBytes + scales * (type.has_min ? 2 : 1) + int64_t{sizeof(float)});
}

}  // namespace outrider
