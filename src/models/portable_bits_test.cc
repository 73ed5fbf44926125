// SPDX-License-Identifier: Apache-2.0
// Hashes of the logits of models with integer weights. Every table with portable bits must give them, so a
// machine with AVX-512 and one with NEON are compared with the AVX2 that gave them first.
#include <array>
#include <bit>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <iterator>

#include "kernels/kernel_table.h"
#include "models/model_test_data.h"

namespace outrider {
namespace {

// Any NaN counts alike.
uint64_t hash_of(std::span<const float> numbers) {
  uint64_t hash = static_cast<uint64_t>(numbers.size());
  for (const float number : numbers) {
    const uint32_t bits = std::isnan(number) ? 0x7FC00000 : std::bit_cast<uint32_t>(number);
    hash = (hash ^ bits) * 0x9E3779B97F4A7C15;
    hash ^= hash >> 29;
  }
  return hash;
}

std::string line_of(std::string_view table, const TestModelOptions& options, const std::string& title) {
  TestModelOptions all = options;
  all.kernels = table;
  TestModel model(all);
  if (!model.ok()) return {};
  const auto cache = model.make_cache(4, 128);
  std::array<char, 17> text = {};
  std::snprintf(text.data(), text.size(), "%016llx",
                static_cast<unsigned long long>(hash_of(numbers_of_run(*model, *cache))));
  return title + " " + text.data() + "\n";
}

// A line for each family and type of weights, and for each type of files.
std::string lines_of(std::string_view table) {
  std::string lines;
  for (const std::string& name : all_models()) {
    for (const DType type : {DType::kI8, DType::kQ8_0, DType::kQ4_0}) {
      lines += line_of(table, {.name = name, .weights = type, .kv_type = DType::kBF16},
                       name + " " + std::string(dtype_name(type)));
    }
  }
  for (int type = 0; type < kDTypeCount; ++type) {
    const auto dtype = static_cast<DType>(type);
    if (block_elements(dtype) == 1) continue;
    lines += line_of(table, {.name = shape_path("llama-68m@1", dtype, 512).string(), .kv_type = DType::kQ8_0},
                     "llama-68m@1 " + std::string(dtype_name(dtype)));
  }
  return lines;
}

// Whether the table is compared here. ./dev slow compares every table with portable bits; a machine with
// AVX-512 or NEON has not shown yet that all lines hold.
bool is_compared(std::string_view table) {
#ifdef OUTRIDER_SLOW_TEST
  return has_portable_bits(table);
#else
  return table == "avx2_portable";
#endif
}

// A failure prints the lines that differ. New lines are added by hand, from a table that had the old ones.
TEST(PortableBits, IntegerWeightsGiveTheKeptHashes) {
  std::ifstream file(OUTRIDER_SOURCE_DIR "/tests/data/portable_bits.txt");
  const std::string kept((std::istreambuf_iterator<char>(file)), {});
  int tables = 0;
  for (const std::string_view table : available_kernels()) {
    if (!is_compared(table)) continue;
    EXPECT_EQ(lines_of(table), kept) << table;
    ++tables;
  }
  if (tables == 0) GTEST_SKIP() << "this machine has no table with portable bits";
}

}  // namespace
}  // namespace outrider
