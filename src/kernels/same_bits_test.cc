// SPDX-License-Identifier: Apache-2.0
// Tables of vectors have the same bits, so that one text comes out of every processor. Each operation runs on
// all of them that this machine has, and on plain vectors of 4 and 16 numbers, as other processors have them.
// Tables with products of bf16 pairs have an arithmetic of their own.
#include <gtest/gtest.h>

#include <cstring>
#include <functional>

#include "kernels/attention_test_data.h"
#include "kernels/packing.h"
#include "kernels/plain_lanes.h"
#include "kernels/simd/ops.h"

namespace outrider {
namespace {

template <typename V>
IsaOps plain_ops() {
  return {.pack_inputs = {simd::pack_inputs<V>},
          .linear = {simd::linear<V>},
          .attention = {simd::attention<V>},
          .rms_norm = {simd::rms_norm<V>},
          .layer_norm = {simd::layer_norm<V>},
          .rope = {simd::rope<V>},
          .store_kv = simd::store_kv<V>,
          .activate = {simd::activate<V>},
          .softcap = {simd::softcap<V>},
          .delta_steps = simd::delta_steps<V>,
          .multiply_add = nullptr};
}

template <int kLanes>
KernelTable plain_table(std::string_view name) {
  const auto layout = [](const MatrixSource& source) {
    return packed_layout(source, dot_layout(source.dtype));
  };
  return {plain_ops<PlainLanes<kLanes>>(), name, layout, (*select_kernels("reference"))->pack};
}

const std::vector<const KernelTable*>& equal_tables() {
  static const std::vector<const KernelTable*> all = [] {
    static const KernelTable wide = plain_table<16>("plain 16"), narrow = plain_table<4>("plain 4");
    std::vector<const KernelTable*> tables = {&wide, &narrow};
    for (const KernelTable* table : tables_to_test()) {
      const bool has_pairs = table->name == "amx" || table->name == "avx512_bf16" || table->name == "bf16";
      if (table->name != "reference" && !has_pairs) tables.push_back(table);
    }
    return tables;
  }();
  return all;
}

// Expects the same numbers of all tables but `other`; NaN is equal to NaN.
void expect_same_bits(const std::function<Floats(const KernelTable&)>& run, std::string_view other = "") {
  Floats expected;
  for (const KernelTable* table : equal_tables()) {
    if (table->name == other) continue;
    const Floats y = run(*table);
    if (expected.empty()) expected = y;
    ASSERT_EQ(y.size(), expected.size());
    for (size_t i = 0; i < y.size(); ++i) {
      const bool same = std::memcmp(&y[i], &expected[i], sizeof(float)) == 0;
      ASSERT_TRUE(same || (std::isnan(y[i]) && std::isnan(expected[i])))
          << table->name << ", number " << i << ": " << y[i] << " and " << expected[i];
    }
  }
}

TEST(SameBits, Products) {
  for (const DType dtype : kAllDTypes) {
    const int64_t block = block_elements(dtype), n = 37;
    for (const int64_t k : {block == 1 ? int64_t{5} : block, block == 1 ? int64_t{601} : 2 * block}) {
      const StoredMatrix stored = random_matrix(dtype, n, k, 7);
      for (const int64_t rows : {1, 2, 14}) {
        SCOPED_TRACE(std::string(dtype_name(dtype)) + ", " + std::to_string(rows) + " rows of " +
                     std::to_string(k));
        const Floats x = random_floats(static_cast<size_t>(rows * k), 9);
        expect_same_bits([&](const KernelTable& table) {
          const auto packed = pack_matrix(table, stored.view());
          return packed.ok() ? product(table, *packed, x, rows, 2) : Floats{};
        });
      }
    }
  }
}

TEST(SameBits, Norms) {
  for (const int64_t dim : {1, 3, 8, 15, 16, 17, 24, 63, 64, 65, 300, 576, 1031}) {
    SCOPED_TRACE(dim);
    constexpr int64_t kRows = 20;
    Floats x = random_floats(kRows * dim, 1, 3);
    for (size_t i = 0; i < x.size(); i += 7) x[i] *= 1e-20F;  // squares that are subnormal or zero
    const Floats weight = random_floats(dim, 2), bias = random_floats(dim, 3);
    expect_same_bits([&](const KernelTable& table) {
      Floats y(x.size()), centred(x.size());
      table.rms_norm({x.data(), weight.data(), y.data(), kRows, dim, 1e-5F}, {});
      table.layer_norm({x.data(), weight.data(), centred.data(), kRows, dim, 1e-5F, bias.data()}, {});
      y.insert(y.end(), centred.begin(), centred.end());
      return y;
    });
  }
}

TEST(SameBits, FunctionsOfNumbers) {
  Floats x = random_floats(6001, 1, 20);
  x.insert(x.end(), {0, -0.0F, 1e-40F, -1e-40F, 88.7F, -88.7F, HUGE_VALF, -HUGE_VALF, NAN});
  const auto size = std::ssize(x);
  expect_same_bits([&](const KernelTable& table) {
    Floats all = x;
    table.softcap({all.data(), size, 30}, {});
    for (const Activation activation : {Activation::kSilu, Activation::kGelu, Activation::kGeluTanh,
                                        Activation::kRelu, Activation::kClampedSwiglu}) {
      Floats y(x.size());
      table.activate({x.data(), y.data(), 1, size, activation, false}, {});
      all.insert(all.end(), y.begin(), y.end());
      table.activate({x.data(), y.data(), 1, size / 2, activation, true}, {});
      all.insert(all.end(), y.begin(), y.begin() + size / 2);
    }
    return all;
  });
}

TEST(SameBits, Rotations) {
  constexpr int64_t kRows = 3, kHeads = 2, kHeadDim = 40, kRotated = 36;
  const Floats x = random_floats(kRows * kHeads * kHeadDim, 1), turns = random_floats(kRows * kRotated, 2);
  expect_same_bits([&](const KernelTable& table) {
    Floats y = x;
    table.rope({y.data(), turns.data(), kRows, kHeads, kHeadDim, kRotated}, {});
    return y;
  });
}

TEST(SameBits, DeltaSteps) {
  constexpr int64_t kKeyDim = 20;
  for (const int64_t value_dim : {1, 12, 64, 129}) {
    const Floats state = random_floats(kKeyDim * value_dim, 1), k = random_floats(kKeyDim, 2, 0.3F);
    const Floats q = random_floats(kKeyDim, 3), v = random_floats(value_dim, 4);
    expect_same_bits([&](const KernelTable& table) {
      Floats all(state.size() + v.size());
      const DeltaArgs step = {.state = state.data(),
                              .new_state = all.data(),
                              .y = all.data() + state.size(),
                              .q = q.data(),
                              .k = k.data(),
                              .v = v.data(),
                              .decay = 0.9F,
                              .rate = 0.4F,
                              .key_dim = kKeyDim,
                              .value_dim = value_dim};
      table.delta_steps(&step, 1);
      return all;
    });
  }
}

TEST(SameBits, StoredKeys) {
  const Floats x = random_floats(3 * 40, 1);
  for (const DType type : kKvTypes) {
    expect_same_bits([&](const KernelTable& table) {
      std::vector<std::byte> out(static_cast<size_t>(3 * cached_head_bytes(type, 40)));
      table.store_kv({x.data(), out.data(), type, 3, 40});
      Floats bytes;
      for (const std::byte byte : out) bytes.push_back(static_cast<float>(std::to_integer<int>(byte)));
      return bytes;
    });
  }
}

// Rows of a prompt, of a tree and alone, on both sides of the first chunks' borders.
Floats attended(const KernelTable& table, const AttentionTestShape& shape, const PagedCache& cache) {
  std::vector<int32_t> entries(700);
  std::iota(entries.begin(), entries.end(), 0);
  const std::vector<int32_t> left = {600, 602, 605}, right = {600, 601};
  std::vector<AttentionRow> rows;
  for (const int32_t length : {1, 17, 64, 65, 255, 256, 257, 512, 700})
    rows.push_back({cache.pages.data(), length, nullptr, 0});
  for (const auto* tail : {&left, &right})
    rows.push_back({cache.pages.data(), 600, tail->data(), static_cast<int32_t>(tail->size())});
  rows.push_back({cache.pages.data(), 200, entries.data() + 200, 100});
  const Floats q = random_floats(rows.size() * static_cast<size_t>(shape.query_size()), 3, 2);
  Floats y = attend(table.attention, shape, cache, q, rows, 2);
  for (size_t r = 0; r < rows.size(); ++r) {  // and each by itself
    const auto at = q.begin() + static_cast<std::ptrdiff_t>(r) * shape.query_size();
    const Floats one = attend(table.attention, shape, cache, {at, at + shape.query_size()}, {rows[r]}, 1);
    y.insert(y.end(), one.begin(), one.end());
  }
  return y;
}

TEST(SameBits, Attention) {
  for (const DType type : kKvTypes) {
    for (const int64_t head_dim : {20, 64, 300}) {
      for (const int64_t window : {0, 100, 400}) {
        AttentionTestShape shape = {3, 1, head_dim, 16, window, type};
        if (window == 100) shape.sinks = {-2, 3, 20};
        if (window == 400) shape.softcap = 1.5F;
        if (head_dim == 20) shape.slopes = {0.5F, 0.25F, 0.0078125F};
        SCOPED_TRACE(std::string(dtype_name(type)) + ", " + std::to_string(head_dim) + ", window " +
                     std::to_string(window));
        const auto count = static_cast<size_t>(700 * shape.entry_size());
        const PagedCache cache(shape, random_floats(count, 1), random_floats(count, 2));
        expect_same_bits([&](const KernelTable& table) { return attended(table, shape, cache); }, "avx2");
      }
    }
  }
}

}  // namespace
}  // namespace outrider
