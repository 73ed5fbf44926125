// SPDX-License-Identifier: Apache-2.0
#include "kernels/kernel_table.h"

#include <array>
#include <cmath>

#include "device/cpu_features.h"
#include "kernels/isa_ops.h"
#include "kernels/packing.h"

namespace outrider {
namespace {

// Rotation is the same code in every table: few numbers, and cosines that agree to the last bit.
// Angle, cosine and sine are rounded to f32 one after the other, as Hugging Face's models compute them.
void rope(const RopeArgs& args, Worker worker) {
  constexpr int64_t kPairs = 64;
  float cosines[kPairs];
  float sines[kPairs];
  const int64_t half = args.head_dim / 2;
  const Range rows = share_of(worker, args.rows);
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    for (int64_t begin = 0; begin < half; begin += kPairs) {
      const int64_t count = half - begin < kPairs ? half - begin : kPairs;
      for (int64_t i = 0; i < count; ++i) {
        const float angle = static_cast<float>(args.positions[r]) * args.inverse_frequency[begin + i];
        cosines[i] = static_cast<float>(std::cos(static_cast<double>(angle)));
        sines[i] = static_cast<float>(std::sin(static_cast<double>(angle)));
      }
      for (int64_t head = 0; head < args.heads; ++head) {
        float* first = args.x + (r * args.heads + head) * args.head_dim + begin;
        float* second = first + half;
        for (int64_t i = 0; i < count; ++i) {
          const float a = first[i];
          const float b = second[i];
          first[i] = a * cosines[i] - b * sines[i];
          second[i] = b * cosines[i] + a * sines[i];
        }
      }
    }
  }
}

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
          rope,
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
