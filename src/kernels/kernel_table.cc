// SPDX-License-Identifier: Apache-2.0
#include "kernels/kernel_table.h"

#include <array>
#include <cmath>

#include "device/cpu_features.h"
#include "kernels/isa_ops.h"
#include "kernels/packing.h"

namespace outrider {
namespace {

// Divides the work of a call among workers and hands plain data to the instruction set's loops.
template <IsaOps (*ops)()>
struct Shared {
  static void linear(const LinearArgs& args, Worker worker) {
    const PackedMatrix& weights = *args.weights;
    const Range features = share_of(worker, weights.n, kStripFeatures);
    if (features.begin == features.end || args.rows == 0) return;
    ops().linear(
        {weights.dtype, weights.data.data(), weights.n, weights.k, args.x, args.y, args.rows, features});
  }

  static void attention(const AttentionArgs& args, Worker worker) {
    const auto row_count = static_cast<int64_t>(args.rows.size());
    const Range items = share_of(worker, row_count * args.head_count);
    if (items.begin == items.end) return;
    ops().attention({&args, args.rows.data(), row_count, items});
  }

  static void rms_norm(const NormArgs& args, Worker worker) {
    ops().rms_norm(args, share_of(worker, args.rows));
  }

  static void rope(const RopeArgs& args, Worker worker) { ops().rope(args, share_of(worker, args.rows)); }

  static void store_kv(const StoreKvArgs& args) { ops().store_kv(args); }

  static void swiglu(const float* gate_up, float* y, int64_t rows, int64_t dim, Worker worker) {
    constexpr int64_t kGrain = 64;
    ops().swiglu(gate_up, y, dim, share_of(worker, rows * dim, kGrain));
  }
};

template <IsaOps (*ops)()>
constexpr KernelTable make_table(std::string_view name, Result<PackedMatrix> (*pack)(const TensorView&)) {
  return {name,
          pack,
          Shared<ops>::linear,
          Shared<ops>::attention,
          Shared<ops>::rms_norm,
          Shared<ops>::rope,
          Shared<ops>::store_kv,
          Shared<ops>::swiglu};
}

struct Level {
  KernelTable table;
  std::string refusal;  // empty: this machine can run it
};

// Slowest first.
const std::array<Level, 4>& levels() {
  static const std::array<Level, 4> all = {{
      {make_table<reference_ops>("reference", pack_rows), ""},
      {make_table<avx2_ops>("avx2", pack_strips), cpu_features().avx2_refusal},
      {make_table<avx512_ops>("avx512", pack_strips), cpu_features().avx512_refusal},
      {make_table<amx_ops>("amx", pack_tiles), cpu_features().amx_refusal},
  }};
  return all;
}

}  // namespace

void fill_rotations(int32_t position, std::span<const float> inverse_frequency, float* rotations) {
  const size_t half = inverse_frequency.size();
  for (size_t i = 0; i < half; ++i) {
    const float angle = static_cast<float>(position) * inverse_frequency[i];
    rotations[i] = static_cast<float>(std::cos(static_cast<double>(angle)));
    rotations[half + i] = static_cast<float>(std::sin(static_cast<double>(angle)));
  }
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

}  // namespace outrider
