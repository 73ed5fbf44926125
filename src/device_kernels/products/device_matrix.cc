// SPDX-License-Identifier: Apache-2.0
#include "device_kernels/products/device_matrix.h"

#include <algorithm>
#include <cstring>
#include <span>
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
  // Copies the scales of all groups, 16 each; plane 1 has the mins.
  void read_scales(int64_t plane, std::span<uint16_t> out) const {
    const int64_t of_block = plane_bytes() / static_cast<int64_t>(sizeof(uint16_t));
    for (int64_t i = 0; i < std::ssize(out); i += of_block) {
      const std::byte* begin = block(i / of_block) + plane * plane_bytes();
      std::memcpy(&out[static_cast<size_t>(i)], begin,
                  static_cast<size_t>(std::min(of_block, std::ssize(out) - i)) * sizeof(uint16_t));
    }
  }
  // The codes of a chunk: [four inputs][16] words, a word for the four codes of a feature.
  const std::byte* codes(int64_t chunk) const {
    const int64_t input = chunk * kChunk;
    return block(input / kCodeBlock) + plane_bytes() * (type_.has_min ? 2 : 1) +
           input % kCodeBlock * kPanelFeatures * type_.bits / 8;
  }

 private:
  // Scales of a block.
  int64_t plane_bytes() const {
    return kCodeBlock / type_.group * kPanelFeatures * int64_t{sizeof(uint16_t)};
  }
  const std::byte* block(int64_t index) const {
    return panel_ + kPanelHeader + index * code_block_bytes(type_);
  }

  const std::byte* panel_;
  const CodeType& type_;
};

uint32_t word_at(const std::byte* words, int64_t quad, int64_t feature) {
  uint32_t word;
  std::memcpy(&word, words + (quad * kPanelFeatures + feature) * int64_t{sizeof(word)}, sizeof(word));
  return word;
}

// The codes of inputs 4t to 4t + 3 of a chunk, and of the inputs 16 after them in the high nibbles. A group
// of 32 has them so; a group of 16 has inputs that are eight apart in a byte.
uint32_t nibbles_of(const std::byte* codes, const CodeType& type, int64_t t, int64_t feature) {
  if (type.group == kChunk) return word_at(codes, t, feature);
  constexpr uint32_t kLow = 0x0F0F0F0F;
  const int shift = t < 2 ? 0 : 4;
  const uint32_t first = word_at(codes, t % 2, feature) >> shift & kLow;
  return first | (word_at(codes, 2 + t % 2, feature) >> shift & kLow) << 4;
}

// The two words of a chunk of 4-bit codes that each lane has, see GroupedWeights.
void put_nibbles(const std::byte* codes, const CodeType& type, int32_t* lanes) {
  for (int64_t lane = 0; lane < simt::kWarp; ++lane) {
    for (int64_t f = 0; f < 2; ++f)
      lanes[lane * 4 + f] = static_cast<int32_t>(nibbles_of(codes, type, lane % 4, lane / 4 + f * 8));
  }
}

// The four words of a chunk of 8-bit codes.
void put_bytes(const std::byte* codes, int32_t* lanes) {
  for (int64_t lane = 0; lane < simt::kWarp; ++lane) {
    for (int64_t w = 0; w < 4; ++w)
      lanes[lane * 4 + w] = static_cast<int32_t>(word_at(codes, w / 2 * 4 + lane % 4, lane / 4 + w % 2 * 8));
  }
}

void put_panel(const PackedPanel& panel, const CodeType& type, int64_t index, DeviceMatrix& out) {
  const int64_t scales = out.k / type.group * kPanelFeatures, chunks = out.k / kChunk;
  const auto of_panel = [&](std::vector<uint16_t>& all) {
    return std::span(all).subspan(static_cast<size_t>(index * scales), static_cast<size_t>(scales));
  };
  panel.read_scales(0, of_panel(out.scales));
  if (type.has_min) panel.read_scales(1, of_panel(out.mins));
  out.units[static_cast<size_t>(index)] = panel.unit();
  const int64_t chunks_of_tile = type.bits == 4 ? 2 : 1;
  const int64_t tiles = (chunks + chunks_of_tile - 1) / chunks_of_tile;
  int32_t* words = out.codes.data() + index * tiles * kTileWords;
  for (int64_t chunk = 0; chunk < chunks; ++chunk) {
    int32_t* tile = words + chunk / chunks_of_tile * kTileWords;
    type.bits == 4 ? put_nibbles(panel.codes(chunk), type, tile + chunk % 2 * 2)
                   : put_bytes(panel.codes(chunk), tile);
  }
}

template <typename T>
simt::Weights<T> weights_of(const std::vector<T>& numbers) {
  return {numbers.empty() ? nullptr : numbers.data(), std::ssize(numbers)};
}

template <typename Job>
void for_panels(ThreadPool* pool, int64_t panels, const Job& job) {
  const auto run = [&](Worker worker) {
    const Range own = share_of(worker, panels);
    for (int64_t panel = own.begin; panel < own.end; ++panel) job(panel);
  };
  pool == nullptr ? run(Worker()) : pool->run(run);
}

DeviceMatrix grouped_matrix(const PackedMatrix& packed, ThreadPool* pool) {
  const CodeType type = code_type(packed.dtype);
  const int64_t panels = packed.panel_count(), chunks = packed.k / kChunk;
  const int64_t tiles = type.bits == 4 ? (chunks + 1) / 2 : chunks;
  DeviceMatrix out{.form = form_of(type), .n = packed.n, .k = packed.k};
  out.codes.resize(static_cast<size_t>(panels * tiles * kTileWords));
  out.scales.resize(static_cast<size_t>(panels * packed.k / type.group * kPanelFeatures));
  if (type.has_min) out.mins.resize(out.scales.size());
  out.units.resize(static_cast<size_t>(panels));
  if (type.bits == 4) std::memcpy(out.numbers, nibble_numbers(type.values), sizeof(out.numbers));
  for_panels(pool, panels, [&](int64_t panel) {
    put_panel(PackedPanel(packed.data.data() + panel * packed.panel_bytes, type), type, panel, out);
  });
  return out;
}

// A panel has its scales, then [four inputs][16][4] codes.
DeviceMatrix channel_matrix(const PackedMatrix& packed, ThreadPool* pool) {
  const int64_t panels = packed.panel_count(), chunks = (packed.k + kChunk - 1) / kChunk;
  DeviceMatrix out{.form = WeightForm::kChannels, .n = packed.n, .k = packed.k};
  out.codes.resize(static_cast<size_t>(panels * chunks * kTileWords));
  out.units.resize(static_cast<size_t>(panels * kPanelFeatures));
  for_panels(pool, panels, [&](int64_t panel) {
    const std::byte* from = packed.data.data() + panel * packed.panel_bytes;
    std::memcpy(&out.units[static_cast<size_t>(panel * kPanelFeatures)], from,
                kPanelFeatures * sizeof(float));
    int32_t* words = out.codes.data() + panel * chunks * kTileWords;
    for (int64_t i = 0; i < chunks * kTileWords; ++i) {
      const int64_t chunk = i / kTileWords, lane = i / 4 % simt::kWarp, word = i % 4;
      const int64_t input = chunk * 8 + word / 2 * 4 + lane % 4, feature = lane / 4 + word % 2 * 8;
      std::memcpy(&words[i], from + kPanelHeader + (input * kPanelFeatures + feature) * 4, sizeof(int32_t));
    }
  });
  return out;
}

// Takes the scales of a panel's blocks; returns the numbers [k][16] of block after block.
std::vector<std::byte> read_f8_panel(const PackedMatrix& packed, int64_t panel, DeviceMatrix& out) {
  const std::byte* from = packed.data.data() + panel * packed.panel_bytes;
  float* scales = out.units.data() + panel * packed.k / kF8Block * kPanelFeatures;
  std::vector<std::byte> numbers(static_cast<size_t>(packed.k * kPanelFeatures));
  for (int64_t block = 0; block < packed.k / kF8Block; ++block, from += kF8PanelBlock) {
    std::memcpy(scales + block * kPanelFeatures, from, static_cast<size_t>(kF8Scales));
    constexpr int64_t kNumbers = kF8PanelBlock - kF8Scales;
    std::memcpy(&numbers[static_cast<size_t>(block * kNumbers)], from + kF8Scales, kNumbers);
  }
  return numbers;
}

// Room for the words and scales of a matrix of F8.
DeviceMatrix empty_f8_matrix(const PackedMatrix& packed, WeightForm form) {
  DeviceMatrix out{.form = form, .n = packed.n, .k = packed.k};
  const int64_t numbers = packed.panel_count() * packed.k * kPanelFeatures;
  out.codes.resize(static_cast<size_t>(numbers) / sizeof(int32_t));
  out.units.resize(static_cast<size_t>(numbers / kF8Block));
  return out;
}

DeviceMatrix f8_matrix(const PackedMatrix& packed, ThreadPool* pool) {
  DeviceMatrix out = empty_f8_matrix(packed, WeightForm::kF8);
  for_panels(pool, packed.panel_count(), [&](int64_t panel) {
    const std::vector<std::byte> numbers = read_f8_panel(packed, panel, out);
    std::memcpy(reinterpret_cast<std::byte*>(out.codes.data()) + panel * std::ssize(numbers), numbers.data(),
                numbers.size());
  });
  return out;
}

// See TensorF8. Its numbers have the scales of E4M3.
DeviceMatrix tensor_f8_matrix(const PackedMatrix& packed, ThreadPool* pool) {
  DeviceMatrix out = empty_f8_matrix(packed, WeightForm::kTensorF8);
  const int64_t words_of_panel = packed.k * kPanelFeatures / int64_t{sizeof(int32_t)};
  for_panels(pool, packed.panel_count(), [&](int64_t panel) {
    const std::vector<std::byte> numbers = read_f8_panel(packed, panel, out);
    const auto byte = [&](int64_t input, int64_t feature) {
      return static_cast<uint32_t>(numbers[static_cast<size_t>(input * kPanelFeatures + feature)]);
    };
    for (int64_t i = 0; i < words_of_panel; ++i) {
      const int64_t lane = i / 4 % simt::kWarp, word = i % 4;
      const int64_t input = (i / kTileWords * 2 + word / 2) * simt::kTileInputs + lane % 4 * 2 + word % 2 * 8;
      const int64_t feature = lane / 4;
      out.codes[static_cast<size_t>(panel * words_of_panel + i)] =
          static_cast<int32_t>(byte(input, feature) << 8 | byte(input + 1, feature) << 24 |
                               byte(input, feature + 8) | byte(input + 1, feature + 8) << 16);
    }
  });
  for (float& scale : out.units) scale /= kF8Unit;
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

// A panel has 16-bit numbers [k][16]. See TensorProductArgs.
DeviceMatrix tensor_matrix(const PackedMatrix& packed, ThreadPool* pool) {
  const int64_t panels = packed.panel_count(), tiles = (packed.k + simt::kTileInputs - 1) / simt::kTileInputs;
  DeviceMatrix out{.form = packed.dtype == DType::kF16 ? WeightForm::kTensorF16 : WeightForm::kTensorBf16,
                   .n = packed.n,
                   .k = packed.k};
  out.codes.resize(static_cast<size_t>(panels * tiles * kTileWords));
  for_panels(pool, panels, [&](int64_t panel) {
    const std::byte* from = packed.data.data() + panel * packed.panel_bytes;
    const auto number = [&](int64_t input, int64_t feature) {
      uint16_t bits = 0;
      const int64_t place = (input * kPanelFeatures + feature) * int64_t{sizeof(bits)};
      if (input < packed.k) std::memcpy(&bits, from + place, sizeof(bits));
      return uint32_t{bits};
    };
    int32_t* words = out.codes.data() + panel * tiles * kTileWords;
    for (int64_t i = 0; i < tiles * kTileWords; ++i) {
      const int64_t lane = i / 4 % simt::kWarp, word = i % 4;
      const int64_t feature = lane / 4 + word % 2 * 8;
      const int64_t input = i / kTileWords * simt::kTileInputs + lane % 4 * 2 + word / 2 * 8;
      words[i] = static_cast<int32_t>(number(input, feature) | number(input + 1, feature) << 16);
    }
  });
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

simt::Weights<float> DeviceMatrix::block_scales() const {
  const bool has_blocks = form == WeightForm::kF8 || form == WeightForm::kTensorF8;
  return has_blocks ? weights_of(units) : simt::Weights<float>{nullptr, 0};
}

Result<DeviceMatrix> device_matrix(const PackedMatrix& packed, ThreadPool* pool, ProductProfile profile) {
  switch (packed.layout) {
    case WeightLayout::kDotNibbles:
    case WeightLayout::kDotBytes:
      return grouped_matrix(packed, pool);
    case WeightLayout::kChannels:
      return channel_matrix(packed, pool);
    case WeightLayout::kPanels:
      if (packed.dtype == DType::kF8) {
        return profile == ProductProfile::kTensorCores ? tensor_f8_matrix(packed, pool)
                                                       : f8_matrix(packed, pool);
      }
      if (profile == ProductProfile::kTensorCores && packed.dtype != DType::kF32)
        return tensor_matrix(packed, pool);
      return plain_matrix(packed);
    default:
      return input_error("expected a matrix that is packed for vectors");
  }
}

int64_t device_matrix_bytes(DType dtype, int64_t n, int64_t k) {
  const int64_t panels = (n + kPanelFeatures - 1) / kPanelFeatures, chunks = (k + kChunk - 1) / kChunk;
  constexpr int64_t kTileBytes = kTileWords * sizeof(int32_t), kHalf = sizeof(uint16_t);
  if (dtype == DType::kI8) return panels * (chunks * kTileBytes + kPanelFeatures * int64_t{sizeof(float)});
  if (dtype == DType::kF8) return panels * kPanelFeatures * (k + k / kF8Block * int64_t{sizeof(float)});
  if (!has_codes(dtype)) return panels * kPanelFeatures * k * static_cast<int64_t>(block_bytes(dtype));
  const CodeType type = code_type(dtype);
  const int64_t tiles = type.bits == 4 ? (chunks + 1) / 2 : chunks;
  const int64_t scales = k / type.group * kPanelFeatures * kHalf;
  return panels * (tiles * kTileBytes + scales * (type.has_min ? 2 : 1) + int64_t{sizeof(float)});
}

}  // namespace outrider
