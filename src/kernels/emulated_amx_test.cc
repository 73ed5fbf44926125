// SPDX-License-Identifier: Apache-2.0
// The kernels of AMX, compiled once more for emulated tiles: all tests of this folder run them where the
// processor has everything else that they need.
#if defined(__x86_64__)
#include <gtest/gtest.h>

#include <algorithm>

#include "kernels/kernel_test_data.h"
#include "kernels/packing.h"
#include "platform/cpu_features.h"

namespace outrider {

IsaOps emulated_amx_ops();

namespace {

const KernelTable* emulated_amx() {
  static const KernelTable table = [] {
    const KernelTable& avx512 = **select_kernels("avx512");
    const auto layout = [](const MatrixSource& source) {
      return packed_layout(source, tile_layout(source.dtype));
    };
    return KernelTable{emulated_amx_ops(), "amx", layout, avx512.pack};
  }();
  return &table;
}

bool needs_emulation() {
  __builtin_cpu_init();
  const CpuFeatures& cpu = cpu_features();
  return !cpu.amx_refusal.empty() && cpu.avx512_bf16_refusal.empty() &&
         __builtin_cpu_supports("avx512vbmi2") != 0;
}

const bool kIsEmulated = [] {
  if (!needs_emulation()) return false;
  stand_ins().push_back(emulated_amx());
  return true;
}();

TEST(EmulatedTiles, StandInForThoseThatTheProcessorLacks) {
  const auto tables = tables_to_test();
  if (!kIsEmulated && !cpu_features().amx_refusal.empty()) {
    GTEST_SKIP() << "this processor lacks AVX512-BF16, -VNNI or -VBMI2";
  }
  EXPECT_EQ(std::ranges::count(tables, "amx", &KernelTable::name), 1);
}

}  // namespace
}  // namespace outrider
#endif
