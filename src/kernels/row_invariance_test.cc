// SPDX-License-Identifier: Apache-2.0
// A row's bits depend on that row only: every operation of every table, compared bit by bit with a call for
// only this row.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <map>

#include "base/sanitized.h"
#include "kernels/attention_test_data.h"

namespace outrider {
namespace {

const std::vector<int64_t> kRowCounts =
    kIsSanitized
        ? std::vector<int64_t>{1, 3, 5, 8, 13, 16, 33}
        : std::vector<int64_t>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 31, 32, 33, 64};

enum class Neighbours { kRandom, kNaN, kHuge };
constexpr Neighbours kAllNeighbours[] = {Neighbours::kRandom, Neighbours::kNaN, Neighbours::kHuge};

Floats neighbour_rows(Neighbours kind, int64_t count) {
  switch (kind) {
    case Neighbours::kRandom:
      return random_floats(static_cast<size_t>(count), 99);
    case Neighbours::kNaN:
      return Floats(static_cast<size_t>(count), std::numeric_limits<float>::quiet_NaN());
    case Neighbours::kHuge:
      return Floats(static_cast<size_t>(count), 1e30F);
  }
  return {};
}

bool same_bits(const float* a, const float* b, int64_t count) {
  return std::memcmp(a, b, static_cast<size_t>(count) * sizeof(float)) == 0;
}

// An operation that maps rows of `in` numbers to rows of `out` numbers.
struct RowOperation {
  int64_t in = 0;
  int64_t out = 0;
  std::function<void(const float* x, float* y, int64_t rows, Worker worker)> run;
};

// Describes the first call in which a row's bits change with its surroundings; empty when there is none.
std::string first_variance(const RowOperation& operation) {
  const Floats row = random_floats(static_cast<size_t>(operation.in), 42);
  Floats alone(static_cast<size_t>(operation.out));
  operation.run(row.data(), alone.data(), 1, {});
  for (const float number : alone) {
    if (!std::isfinite(number)) return "the row alone is not finite";
  }
  for (const Neighbours kind : kAllNeighbours) {
    for (const int64_t rows : kRowCounts) {
      for (const int64_t place : {int64_t{0}, rows / 2, rows - 1}) {
        Floats x = neighbour_rows(kind, rows * operation.in);
        std::copy(row.begin(), row.end(), x.begin() + place * operation.in);
        for (const int workers : {1, 2, 3}) {
          Floats y(static_cast<size_t>(rows * operation.out), std::numeric_limits<float>::quiet_NaN());
          run_shares(workers, [&](Worker worker) { operation.run(x.data(), y.data(), rows, worker); });
          if (same_bits(y.data() + place * operation.out, alone.data(), operation.out)) continue;
          return "row " + std::to_string(place) + " of " + std::to_string(rows) + ", " +
                 std::to_string(workers) + " workers, neighbours of kind " +
                 std::to_string(static_cast<int>(kind));
        }
      }
    }
  }
  return "";
}

TEST(RowInvariance, Linear) {
  for (const KernelTable* table : tables_to_test()) {
    for (const DType dtype : kAllDTypes) {
      const int64_t block = block_elements(dtype);
      const int64_t k = block == 1 ? 545 : block == 32 ? 544 : 768;  // over every stretch, with tails
      const int64_t n = 35;
      const auto packed = pack_matrix(*table, random_matrix(dtype, n, k, 7).view());
      ASSERT_TRUE(packed.ok());
      const RowOperation linear = {
          k, n, [&](const float* x, float* y, int64_t rows, Worker worker) {
            Buffer packed_x(static_cast<size_t>(input_bytes(packed->inputs, rows, k)));
            const LinearArgs args{&*packed, x, packed_x.data(), y, rows};
            run_shares(worker.count, [&](Worker w) { table->pack_inputs(args, w); });
            table->linear(args, worker);
          }};
      EXPECT_EQ(first_variance(linear), "") << table->name << " " << dtype_name(dtype);
    }
  }
}

// Products take rows in tiles and in chunks of tiles; the borders depend on their number.
TEST(RowInvariance, EveryRowOfManyTiles) {
  for (const KernelTable* table : tables_to_test()) {
    for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16, DType::kF8, DType::kQ8_0, DType::kQ4_0,
                              DType::kQ4_K, DType::kI8}) {
      const int64_t n = 35, k = block_elements(dtype) == 1 ? 300 : 768;
      const auto packed = pack_matrix(*table, random_matrix(dtype, n, k, 7).view());
      ASSERT_TRUE(packed.ok());
      for (const int64_t rows : {25, 119, 120, 121, 133, 241}) {
        const Floats x = random_floats(static_cast<size_t>(rows * k), 9);
        const Floats y = product(*table, *packed, x, rows, 2);
        for (int64_t r = 0; r < rows; ++r) {
          const Floats row(x.begin() + r * k, x.begin() + (r + 1) * k);
          const Floats alone = product(*table, *packed, row, 1, 1);
          ASSERT_TRUE(same_bits(y.data() + r * n, alone.data(), n))
              << table->name << " " << dtype_name(dtype) << ", row " << r << " of " << rows;
        }
      }
    }
  }
}

TEST(RowInvariance, RmsNorm) {
  const int64_t dim = 301;
  const Floats weight = random_floats(dim, 8);
  for (const KernelTable* table : tables_to_test()) {
    const RowOperation norm = {dim, dim, [&](const float* x, float* y, int64_t rows, Worker worker) {
                                 table->rms_norm({x, weight.data(), y, rows, dim, 1e-5F}, worker);
                               }};
    EXPECT_EQ(first_variance(norm), "") << table->name;
  }
}

TEST(RowInvariance, LayerNorm) {
  const int64_t dim = 301;
  const Floats weight = random_floats(dim, 8), bias = random_floats(dim, 9);
  for (const KernelTable* table : tables_to_test()) {
    const RowOperation norm = {
        dim, dim, [&](const float* x, float* y, int64_t rows, Worker worker) {
          table->layer_norm({x, weight.data(), y, rows, dim, 1e-5F, bias.data()}, worker);
        }};
    EXPECT_EQ(first_variance(norm), "") << table->name;
  }
}

TEST(RowInvariance, Activate) {
  const int64_t dim = 77;
  for (const KernelTable* table : tables_to_test()) {
    for (const Activation activation : {Activation::kSilu, Activation::kGelu, Activation::kGeluTanh,
                                        Activation::kRelu, Activation::kClampedSwiglu}) {
      for (const bool is_gated : {false, true}) {
        const RowOperation activate = {is_gated ? 2 * dim : dim, dim,
                                       [&](const float* x, float* y, int64_t rows, Worker worker) {
                                         table->activate({x, y, rows, dim, activation, is_gated}, worker);
                                       }};
        EXPECT_EQ(first_variance(activate), "") << table->name;
      }
    }
  }
}

TEST(RowInvariance, Softcap) {
  const int64_t dim = 77;
  for (const KernelTable* table : tables_to_test()) {
    const RowOperation softcap = {dim, dim, [&](const float* x, float* y, int64_t rows, Worker worker) {
                                    if (worker.index == 0) std::copy_n(x, rows * dim, y);
                                    if (worker.index == 0) table->softcap({y, rows * dim, 1.5F}, {});
                                  }};
    EXPECT_EQ(first_variance(softcap), "") << table->name;
  }
}

TEST(RowInvariance, Rope) {
  const int64_t heads = 3, head_dim = 36, rotated = 22, width = heads * head_dim;
  const Floats frequency = random_floats(rotated / 2, 9);
  for (const KernelTable* table : tables_to_test()) {
    // A row's position must come from the row itself: its first number says which.
    const RowOperation rope = {width, width, [&](const float* x, float* y, int64_t rows, Worker worker) {
                                 const Range own = share_of(worker, rows);
                                 Floats rotations(static_cast<size_t>(rows * rotated));
                                 for (int64_t r = 0; r < rows; ++r)
                                   fill_rotations(x[r * width] > 0 ? 1234 : 77, frequency, 1.5F,
                                                  rotations.data() + r * rotated);
                                 std::copy(x + own.begin * width, x + own.end * width, y + own.begin * width);
                                 table->rope({y, rotations.data(), rows, heads, head_dim, rotated}, worker);
                               }};
    EXPECT_EQ(first_variance(rope), "") << table->name;
  }
}

// The mistake this suite exists for: a product that splits its sum once there are several rows to fill the
// machine.
TEST(RowInvariance, ASplitReductionIsFound) {
  const int64_t k = 545, n = 35;
  const Floats weights = random_floats(n * k, 10);
  const auto product = [&](bool split) {
    return [&weights, split](const float* x, float* y, int64_t rows, Worker worker) {
      const Range features = share_of(worker, n);
      for (int64_t r = 0; r < rows; ++r) {
        for (int64_t j = features.begin; j < features.end; ++j) {
          float sums[2] = {0, 0};
          for (int64_t i = 0; i < k; ++i)
            sums[split && rows > 32 && i > k / 2] += x[r * k + i] * weights[j * k + i];
          y[r * n + j] = sums[0] + sums[1];
        }
      }
    };
  };
  EXPECT_EQ(first_variance({k, n, product(false)}), "");
  EXPECT_THAT(first_variance({k, n, product(true)}), testing::HasSubstr("of 33"));
}

constexpr int32_t kLengths[] = {1, 15, 16, 17, 31, 32, 33, 63, 64, 65, 255, 256, 257};

// A row of one length among others, in one arrangement of the call.
struct Arrangement {
  int64_t page_size = 16;
  int32_t tail_len = 0;  // how many of the row's entries are listed as tail
  int64_t rows = 1;
  int64_t place = 0;
  Neighbours neighbours = Neighbours::kRandom;
  int workers = 1;
};

std::vector<Arrangement> arrangements(int32_t length) {
  std::vector<Arrangement> all;
  for (const int64_t page_size : {1, 16, 64}) {
    for (const int32_t tail_len : {0, 1, 7, length}) {
      if (tail_len <= length) all.push_back({page_size, tail_len, 3, 1, Neighbours::kRandom, 1});
    }
  }
  for (const int64_t rows : kRowCounts) {
    for (const int64_t place : {int64_t{0}, rows / 2, rows - 1}) {
      const Neighbours kind = kAllNeighbours[(rows + place) % 3];
      all.push_back(
          {16, length > 2 ? 2 : 0, rows, place, kind, static_cast<int>(1 + (rows + place / 2) % 3)});
    }
  }
  for (const Neighbours kind : kAllNeighbours) {
    for (const int workers : {1, 2, 3}) all.push_back({16, 0, 17, 9, kind, workers});
  }
  return all;
}

// A query, and its entries in pages of every size.
class AttentionProbe {
 public:
  AttentionProbe(AttentionKernel kernel, const AttentionTestShape& shape) : kernel_(kernel), shape_(shape) {
    const Floats keys = random_floats(kEntries * shape.entry_size(), 20);
    const Floats values = random_floats(kEntries * shape.entry_size(), 21);
    for (const int64_t page_size : {1, 16, 64}) {
      shape_.page_size = page_size;
      caches_.emplace(page_size, PagedCache(shape_, keys, values));
    }
    query_ = random_floats(static_cast<size_t>(shape.query_size()), 22);
    entries_.resize(kEntries);
    std::iota(entries_.begin(), entries_.end(), 0);
  }

  // The output of the row of that length.
  Floats attend_in(int32_t length, const Arrangement& arrangement) {
    shape_.page_size = arrangement.page_size;
    const PagedCache& cache = caches_.at(arrangement.page_size);
    std::vector<AttentionRow> rows;
    for (int64_t r = 0; r < arrangement.rows; ++r) {
      const auto other = static_cast<int32_t>(1 + r * 37 % (kEntries - 1));
      const int32_t own = r == arrangement.place ? length : other;
      const int32_t tail = r == arrangement.place ? arrangement.tail_len : other / 2;
      rows.push_back({cache.pages.data(), own - tail, entries_.data() + own - tail, tail});
    }
    Floats q = neighbour_rows(arrangement.neighbours, arrangement.rows * shape_.query_size());
    std::copy(query_.begin(), query_.end(), q.begin() + arrangement.place * shape_.query_size());
    const Floats y = attend(kernel_, shape_, cache, q, rows, arrangement.workers);
    const auto begin = y.begin() + arrangement.place * shape_.query_size();
    return {begin, begin + shape_.query_size()};
  }

  std::string first_variance() {
    for (const int32_t length : kLengths) {
      const Floats alone = attend_in(length, {});
      for (const float number : alone) {
        if (!std::isfinite(number)) return "the row alone is not finite";
      }
      for (const Arrangement& a : arrangements(length)) {
        const Floats together = attend_in(length, a);
        if (same_bits(together.data(), alone.data(), shape_.query_size())) continue;
        return "length " + std::to_string(length) + ", pages of " + std::to_string(a.page_size) +
               ", tail of " + std::to_string(a.tail_len) + ", row " + std::to_string(a.place) + " of " +
               std::to_string(a.rows) + ", " + std::to_string(a.workers) + " workers, neighbours of kind " +
               std::to_string(static_cast<int>(a.neighbours));
      }
    }
    return "";
  }

 private:
  static constexpr int32_t kEntries = 300;
  AttentionKernel kernel_;
  AttentionTestShape shape_;
  std::map<int64_t, PagedCache> caches_;
  Floats query_;
  std::vector<int32_t> entries_;
};

TEST(RowInvariance, Attention) {
  for (const KernelTable* table : tables_to_test()) {
    for (const DType type : kKvTypes) {
      const bool brief =
          type == DType::kF16 || type == DType::kE4M3 || type == DType::kQ8_0 || table->name == "reference";
      for (const int64_t window : brief ? std::vector<int64_t>{20} : std::vector<int64_t>{0, 20, 100}) {
        const bool in_pairs = type == DType::kBF16 || type == DType::kQ8_0;
        const int64_t head_dim = in_pairs ? 32 : 24;  // pairs need a multiple of 32
        EXPECT_EQ(AttentionProbe(table->attention, {6, 2, head_dim, 16, window, type}).first_variance(), "")
            << table->name << " " << dtype_name(type) << " window " << window;
      }
    }
  }
}

TEST(RowInvariance, AttentionWithDistanceBias) {
  for (const KernelTable* table : tables_to_test()) {
    for (const DType type : {DType::kF32, DType::kBF16}) {
      const AttentionTestShape shape = {6, 2, 32, 16, 0, type, {0.5F, 0.25F, 0.125F, 0.06F, 0.03F, 0.01F}};
      EXPECT_EQ(AttentionProbe(table->attention, shape).first_variance(), "") << table->name;
    }
  }
}

TEST(RowInvariance, AttentionWithSinksAndChunks) {
  for (const KernelTable* table : tables_to_test()) {
    for (const DType type : {DType::kF32, DType::kBF16}) {
      for (const int64_t chunk : {0, 50}) {
        AttentionTestShape shape = {6, 2, 32, 16, 0, type};
        shape.sinks = {-2, 0.5F, 1, 3, -40, 20};
        shape.chunk = chunk;
        EXPECT_EQ(AttentionProbe(table->attention, shape).first_variance(), "") << table->name;
      }
    }
  }
}

// Sums values page by page: right, but its rounding depends on where pages end.
void attention_by_pages(const AttentionArgs& args, Worker worker) {
  constexpr int64_t kPaddedDim = 32;
  const Range rows = share_of(worker, static_cast<int64_t>(args.rows.size()));
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    for (int64_t i = 0; i < args.head_count * args.head_dim; ++i) {
      float total = 0;
      float of_page = 0;
      const int64_t end = args.rows[r].prefix_len + args.rows[r].tail_len;
      for (int64_t e = 0; e < end; ++e) {
        const int64_t slot = args.rows[r].pages[e / args.page_size] * args.page_size + e % args.page_size;
        const auto* v = reinterpret_cast<const float*>(args.v);
        of_page += v[slot * args.kv_head_count * kPaddedDim + i % args.head_dim];
        if ((e + 1) % args.page_size == 0 || e + 1 == end) {
          total += of_page;
          of_page = 0;
        }
      }
      args.y[r * args.head_count * args.head_dim + i] = total;
    }
  }
}

TEST(RowInvariance, ASumByPagesIsFound) {
  EXPECT_THAT(AttentionProbe(attention_by_pages, {6, 2, 24, 16, 0}).first_variance(),
              testing::HasSubstr("pages of 1,"));
}

}  // namespace
}  // namespace outrider
