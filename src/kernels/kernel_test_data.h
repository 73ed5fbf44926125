// SPDX-License-Identifier: Apache-2.0
// Random matrices of every type and the list of tables, for the tests of this folder.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <iostream>
#include <random>
#include <string>
#include <vector>

#include "kernels/kernel_table.h"
#include "kernels/weight_codes.h"

namespace outrider {

// All types of weights.
inline constexpr auto kAllDTypes = [] {
  std::array<DType, kWeightTypeCount> all{};
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<DType>(i);
  return all;
}();

// Types where scales of groups are products, which packing rounds to half precision.
inline bool has_rounded_scales(DType dtype) {
  return block_elements(dtype) > 1 && code_type(dtype).products > 0 && dtype != DType::kMXFP4;
}

// Tables of a test program that stand in for tables of the same name which this machine cannot run.
inline std::vector<const KernelTable*>& stand_ins() {
  static std::vector<const KernelTable*> tables;
  return tables;
}

// The tables this machine can run; says which ones of its architecture are left out and why.
inline std::vector<const KernelTable*> tables_to_test() {
  std::vector<const KernelTable*> tables;
#if defined(__aarch64__)
  const auto names = {"reference", "neon", "i8mm", "bf16"};
#else
  const auto names = {"reference", "avx2_portable", "avx2", "avx512", "avx512_bf16", "amx"};
#endif
  for (const char* name : names) {
    auto table = select_kernels(name);
    const auto stand_in = std::ranges::find(stand_ins(), name, &KernelTable::name);
    if (table.ok()) {
      tables.push_back(*table);
    } else if (stand_in != stand_ins().end()) {
      tables.push_back(*stand_in);
    } else {
      std::cout << "not tested: " << table.error().message << "\n";
    }
  }
  return tables;
}

using Floats = std::vector<float>;

// Nearly normal with this deviation: a sum of four uniform numbers. std::normal_distribution took most of the
// tests' time.
inline Floats random_floats(size_t count, uint64_t seed, float scale = 1) {
  std::mt19937_64 engine(seed);
  Floats numbers(count);
  for (float& number : numbers) {
    const uint64_t bits = engine();
    const auto sum =
        static_cast<float>((bits & 0xffff) + (bits >> 16 & 0xffff) + (bits >> 32 & 0xffff) + (bits >> 48));
    number = scale * (sum / 65536 - 2) * 1.7320508F;
  }
  return numbers;
}

// A stored matrix with the memory it lives in.
struct StoredMatrix {
  DType dtype = DType::kF32;
  int64_t n = 0;
  int64_t k = 0;
  std::vector<std::byte> bytes;

  TensorView view() const { return {dtype, {n, k}, bytes.data()}; }
  Floats values() const {
    Floats out(static_cast<size_t>(n * k));
    for (int64_t j = 0; j < n; ++j) {
      dequantize_row(dtype, bytes.data() + j * row_bytes(dtype, k), out.data() + j * k, k);
    }
    return out;
  }
};

// 16-bit words of a block that hold its scales.
struct ScaleWords {
  DType dtype;
  std::vector<size_t> offsets;
};

inline const std::vector<ScaleWords>& scale_words() {
  static const std::vector<ScaleWords> all = {
      {DType::kQ2_K, {80, 82}}, {DType::kQ3_K, {108}},  {DType::kQ4_K, {0, 2}}, {DType::kQ5_K, {0, 2}},
      {DType::kQ6_K, {208}},    {DType::kIQ1_S, {0}},   {DType::kIQ2_XXS, {0}}, {DType::kIQ2_XS, {0}},
      {DType::kIQ2_S, {0}},     {DType::kIQ3_XXS, {0}}, {DType::kIQ3_S, {0}},   {DType::kIQ4_NL, {0}},
      {DType::kIQ4_XS, {0}},    {DType::kTQ1_0, {52}},  {DType::kTQ2_0, {64}},
  };
  return all;
}

// Gives a block of random bytes small finite scales.
inline void put_scales(DType dtype, std::mt19937_64& engine, std::byte* block) {
  const auto word = static_cast<uint16_t>(f32_to_f16(1e-5F * static_cast<float>(1 + engine() % 16)));
  const auto put_word = [&](size_t offset, int bits) {
    block[offset] = static_cast<std::byte>(bits & 0xFF);
    block[offset + 1] = static_cast<std::byte>(bits >> 8);
  };
  for (const ScaleWords& scales : scale_words()) {
    if (scales.dtype != dtype) continue;
    for (const size_t offset : scales.offsets) {
      put_word(offset, f32_to_f16(1e-5F * static_cast<float>(1 + engine() % 16)));
    }
  }
  if (dtype == DType::kF8 || dtype == DType::kNVFP4F) {
    const float scale = 1e-4F * static_cast<float>(dtype == DType::kF8 ? 1 + engine() % 16 : 1);
    std::memcpy(block, &scale, sizeof(scale));
  }
  if (dtype == DType::kMXFP4) block[0] = static_cast<std::byte>(110 + engine() % 8);
  for (size_t i = 0; dtype == DType::kIQ1_M && i < 4; ++i) {  // a nibble of the scale on top of each word
    const auto low = static_cast<int>(engine() & 0x0FFF);
    put_word(48 + 2 * i, low | (word >> (4 * i) & 15) << 12);
  }
}

// Blocks of Q2_K and all later types are random bytes with small finite scales, so that every scale and code
// occurs.
inline StoredMatrix random_matrix(DType dtype, int64_t n, int64_t k, uint64_t seed) {
  StoredMatrix matrix{dtype, n, k, std::vector<std::byte>(static_cast<size_t>(n * row_bytes(dtype, k)))};
  if (dtype < DType::kQ2_K || dtype == DType::kI8) {
    const Floats numbers = random_floats(static_cast<size_t>(n * k), seed, 0.05F);
    for (int64_t j = 0; j < n; ++j) {
      quantize_row(dtype, numbers.data() + j * k, matrix.bytes.data() + j * row_bytes(dtype, k), k);
    }
    return matrix;
  }
  std::mt19937_64 engine(seed);
  for (std::byte& byte : matrix.bytes) byte = static_cast<std::byte>(engine() & 0xFF);
  const auto size = static_cast<size_t>(block_bytes(dtype));
  for (size_t block = 0; block < matrix.bytes.size(); block += size)
    put_scales(dtype, engine, &matrix.bytes[block]);
  return matrix;
}

// Runs the shares of `workers` workers one after the other.
template <typename Kernel>
void run_shares(int workers, Kernel kernel) {
  for (int index = 0; index < workers; ++index) kernel(Worker{index, workers});
}

// x times the matrix, inputs packed first.
inline Floats product(const KernelTable& table, const PackedMatrix& weights, const Floats& x, int64_t rows,
                      int workers) {
  Floats y(static_cast<size_t>(rows * weights.n), std::nanf(""));
  Buffer packed_x(static_cast<size_t>(input_bytes(weights.inputs, rows, weights.k)));
  const LinearArgs args{&weights, x.data(), packed_x.data(), y.data(), rows};
  if (args.packed_x != nullptr) run_shares(workers, [&](Worker worker) { table.pack_inputs(args, worker); });
  run_shares(workers, [&](Worker worker) { table.linear(args, worker); });
  return y;
}

}  // namespace outrider
