// SPDX-License-Identifier: Apache-2.0
#include "kernels/kernel_table.h"

#include <utility>

#include "base/portable_math.h"
#include "kernels/packing.h"
#include "platform/cpu_features.h"

namespace outrider {
namespace {

struct Level {
  KernelTable table;
  std::string refusal;  // empty: this machine can run it
};

// `make_ops` is compiled for the level's own processors, so that only they may call it.
template <WeightLayout (*layout_of)(DType)>
Level make_level(std::string_view name, IsaOps (*make_ops)(), const std::string& refusal) {
  const auto layout = [](const MatrixSource& source) {
    return packed_layout(source, layout_of(source.dtype));
  };
  return {{refusal.empty() ? make_ops() : IsaOps{}, name, layout, pack_panels}, refusal};
}

#if defined(__x86_64__)
// Products use the instructions for bytes that the processor has; the bits are the same with any of them.
IsaOps fitting_avx2_ops() { return cpu_features().avx_vnni ? avx2_vnni_ops() : avx2_ops(); }
IsaOps fitting_avx512_ops() { return cpu_features().avx512_vnni ? avx512_vnni_ops() : avx512_ops(); }
IsaOps fitting_portable_ops() {
  IsaOps ops = fitting_avx2_ops();
  ops.attention = avx2_portable_ops().attention;
  return ops;
}

std::vector<Level> make_levels() {
  const CpuFeatures& cpu = cpu_features();
  std::vector<Level> all = {
      make_level<stored_layout>("reference", reference_ops, ""),
      make_level<dot_layout>("avx2_portable", fitting_portable_ops, cpu.avx2_refusal),
      make_level<dot_layout>("avx2", fitting_avx2_ops, cpu.avx2_refusal),
      make_level<dot_layout>("avx512", fitting_avx512_ops, cpu.avx512_refusal),
      make_level<pair_layout>("avx512_bf16", avx512_bf16_ops, cpu.avx512_bf16_refusal),
      make_level<tile_layout>("amx", amx_ops, cpu.amx_refusal),
  };
  if (!cpu.fast_bf16_pairs) std::swap(all[3], all[4]);
  return all;
}
#else
std::vector<Level> make_levels() {
  const CpuFeatures& cpu = cpu_features();
  return {make_level<stored_layout>("reference", reference_ops, ""),
          make_level<dot_layout>("neon", neon_ops, cpu.neon_refusal),
          make_level<dot_layout>("i8mm", i8mm_ops, cpu.i8mm_refusal),
          make_level<pair_layout>("bf16", bf16_ops, cpu.bf16_refusal)};
}
#endif

// Slowest first.
const std::vector<Level>& levels() {
  static const std::vector<Level> all = make_levels();
  return all;
}

}  // namespace

void fill_rotations(int32_t position, std::span<const float> inverse_frequency, float factor,
                    float* rotations) {
  const size_t half = inverse_frequency.size();
  for (size_t i = 0; i < half; ++i) {
    const float angle = static_cast<float>(position) * inverse_frequency[i];
    const auto [sine, cosine] = portable_sine_and_cosine(static_cast<double>(angle));
    rotations[i] = static_cast<float>(cosine) * factor;
    rotations[half + i] = static_cast<float>(sine) * factor;
  }
}

bool has_portable_bits(std::string_view name) {
  return name == "avx2_portable" || name == "avx512" || name == "neon" || name == "i8mm";
}

std::vector<std::string_view> available_kernels() {
  std::vector<std::string_view> names;
  for (const Level& level : levels()) {
    if (level.refusal.empty()) names.push_back(level.table.name);
  }
  return names;
}

Result<const KernelTable*> select_kernels(std::string_view name) {
  const KernelTable* fastest = nullptr;
  std::string known;
  for (const Level& level : levels()) {
    if (level.table.name == name && !level.refusal.empty()) {
      return usage_error("kernels '" + std::string(name) + "' cannot run here: " + level.refusal +
                         "; choose " + std::string(available_kernels().back()));
    }
    if (level.table.name == name) return &level.table;
    if (level.refusal.empty()) fastest = &level.table;
    known += (known.empty() ? "" : ", ") + std::string(level.table.name);
  }
  if (name.empty()) return fastest;
  return usage_error("unknown kernels '" + std::string(name) + "'; choose one of: " + known);
}

int64_t input_bytes(InputLayout layout, int64_t rows, int64_t k) {
  switch (layout) {
    case InputLayout::kF32:
      return 0;
    case InputLayout::kInt8Groups:
      return rows * units_of(k, kInputGroup) * static_cast<int64_t>(sizeof(InputGroup));
    case InputLayout::kInt8Rows:
      return units_of(rows, kInputRows) * (static_cast<int64_t>(sizeof(InputRowsHead)) +
                                           units_of(k, kChannelDepth) * kChannelDepth * kInputRows);
    case InputLayout::kBF16Pairs:
      return rows * units_of(k, 2) * 4;
    case InputLayout::kBF16Tiles:
      // Rows are padded to whole tiles, except in a chunk of fewer rows than one tile has.
      return (rows / kChunkRows * kChunkRows +
              (rows % kChunkRows < 16 ? rows % kChunkRows : units_of(rows % kChunkRows, 16) * 16)) *
             units_of(k, kTileDepth) * kTileDepth * 2;
    case InputLayout::kF32Tiles:
      return rows <= kUntiledRows ? 0 : rows * k * static_cast<int64_t>(sizeof(float));
  }
  return 0;
}

Result<PackedMatrix> pack_matrix(const KernelTable& kernels, const TensorView& matrix) {
  const MatrixSource source{{&matrix, 1}, matrix.dtype};
  OUTRIDER_TRY(PackedMatrix packed, kernels.layout(source));
  OUTRIDER_RETURN_IF_ERROR(allocate(packed));
  kernels.pack(source, packed, Worker{});
  return packed;
}

}  // namespace outrider
