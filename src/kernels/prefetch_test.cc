// SPDX-License-Identifier: Apache-2.0
// Prefetches change no bits, so that no other test notices where kernels forget some of the weights. Here the
// kernels of products are compiled once more, with a function in the place of the instruction. Products of
// AMX leave scales to the processor's own prefetcher, on purpose (lab/2026-11-27_kernels.md).
#if defined(__x86_64__)
#include <gtest/gtest.h>

#include <iostream>
#include <map>
#include <span>
#include <vector>

#include "kernels/isa_ops.h"
#include "kernels/kernel_test_data.h"
#include "kernels/packing.h"
#include "platform/cpu_features.h"

namespace outrider {

IsaOps recorded_avx2_ops();
IsaOps recorded_avx512_vnni_ops();
IsaOps recorded_avx512_bf16_ops();
void record_prefetch(const void* address, int for_writing, int locality);

namespace {

constexpr int64_t kLine = 64;  // bytes

// Which lines of a matrix have been prefetched.
struct Record {
  std::span<const std::byte> weights;
  std::vector<bool> lines;
};
Record g_record;

struct RecordedTable {
  IsaOps (*ops)();           // for the table's own processors
  std::vector<DType> types;  // with its own products
};

const std::map<std::string_view, RecordedTable>& recorded_tables() {
  using enum DType;
  static const std::map<std::string_view, RecordedTable> all = {
      {"avx2", {recorded_avx2_ops, {kF32, kF16, kBF16, kF8, kQ8_0, kQ4_0, kQ4_K, kQ6_K, kI8}}},
      {"avx512", {recorded_avx512_vnni_ops, {kF32, kF16, kBF16, kF8, kQ8_0, kQ4_0, kQ4_K, kQ6_K, kI8}}},
      {"avx512_bf16", {recorded_avx512_bf16_ops, {kBF16}}}};
  return all;
}

const RecordedTable* g_table = nullptr;

// Bytes of the matrix that a product of so many rows does not prefetch. The beginning does not count, which
// is read before a prefetch could be of use.
int64_t missed_bytes(const KernelTable& table, const PackedMatrix& weights, int64_t rows) {
  KernelTable recorded = table;
  recorded.linear = g_table->ops().linear;
  g_record = {{weights.data.data(), static_cast<size_t>(weights.bytes())},
              std::vector<bool>(static_cast<size_t>(weights.bytes() / kLine + 1))};
  product(recorded, weights, random_floats(static_cast<size_t>(rows * weights.k), 1), rows, 1);
  const int64_t beginning = 8 * weights.panel_bytes + (128 << 10);
  EXPECT_LT(beginning, weights.bytes());
  int64_t missed = 0;
  for (int64_t at = beginning; at < weights.bytes(); at += kLine)
    missed += g_record.lines[static_cast<size_t>(at / kLine)] ? 0 : kLine;
  return missed;
}

TEST(Prefetch, ProductsPrefetchAllWeights) {
  for (const KernelTable* table : tables_to_test()) {
    const auto recorded = recorded_tables().find(table->name);
    if (recorded == recorded_tables().end()) continue;
    if (table->name == "avx512" && !cpu_features().avx512_vnni) {
      std::cout << "not tested: avx512 is recorded with VNNI, which this processor lacks\n";
      continue;
    }
    g_table = &recorded->second;
    for (const DType type : g_table->types) {
      const int64_t no_whole_stretches = block_elements(type) > 32 ? 768 : 576;
      for (const int64_t k : {no_whole_stretches, int64_t{1536}}) {
        const StoredMatrix stored = random_matrix(type, 1024, k, 1);
        const auto weights = pack_matrix(*table, stored.view());
        ASSERT_TRUE(weights.ok());
        for (const int64_t rows : {1, 3, 5, 8, 24, 64}) {
          EXPECT_EQ(missed_bytes(*table, *weights, rows), 0)
              << table->name << " " << dtype_name(type) << ", " << k << " inputs, " << rows << " rows";
        }
      }
    }
  }
}

}  // namespace

void record_prefetch(const void* address, int, int) {
  const int64_t at = static_cast<const std::byte*>(address) - g_record.weights.data();
  if (at >= 0 && at < std::ssize(g_record.weights)) g_record.lines[static_cast<size_t>(at / kLine)] = true;
}

}  // namespace outrider
#endif
