// SPDX-License-Identifier: Apache-2.0
#include "device_kernels/attention/tensor_attention.h"

#include <gtest/gtest.h>

#include <array>
#include <ostream>
#include <string>

#include "device_kernels/attention/attention_test_lists.h"
#include "device_kernels/products/tensor_test_core.h"

namespace outrider::tensor_attention {
namespace {

struct CacheCase {
  const char* name;
  DType type;
  KernelName kernel;
  bool is_f16;  // on tensor cores; else bf16

  float rounded(float x) const { return is_f16 ? f16_to_f32(f32_to_f16(x)) : bf16_to_f32(f32_to_bf16(x)); }
  ReferenceCore core() const { return {is_f16 ? -14 : -126}; }
};
void PrintTo(const CacheCase& one, std::ostream* out) { *out << one.name; }

const CacheCase kCaches[] = {{"bf16", DType::kBF16, KernelName::kTensorAttentionBf16, false},
                             {"f16", DType::kF16, KernelName::kTensorAttentionF16, true},
                             {"e4m3", DType::kE4M3, KernelName::kTensorAttentionE4m3, false},
                             {"q8_0", DType::kQ8_0, KernelName::kTensorAttentionQ8, false}};

float exp_of(float x) { return simt::exp_of_negative(simt::Floats(x)).v[0]; }

// The keys and values of a sequence, and a cache that holds them.
struct Sequence {
  Sequence(const CacheCase& of, const AttentionTestShape& attention, int entries, uint64_t seed)
      : cache_case(of),
        shape(attention),
        keys(random_floats(static_cast<size_t>(entries * shape.entry_size()), seed, 1.5F)),
        values(random_floats(keys.size(), seed + 1)),
        cache(shape, keys, values) {}

  const CacheCase& cache_case;
  AttentionTestShape shape;
  Floats keys, values;  // [entries, kv_head_count, head_dim]
  PagedCache cache;
};

// Attention as tensor_attention.h says, one entry after another.
class ReferenceAttention {
 public:
  explicit ReferenceAttention(const Sequence& of)
      : of_(of),
        shape_(of.shape),
        core_(of.cache_case.core()),
        keys_(on_tensor_cores(of.keys)),
        values_(on_tensor_cores(of.values)) {}

  // The outputs of a row [head_count, head_dim].
  Floats attend(const AttentionRow& row, const float* q) const {
    Floats y;
    for (int64_t head = 0; head < shape_.head_count; ++head) {
      const Floats of_head = attend_head(row, q + head * shape_.head_dim, head);
      y.insert(y.end(), of_head.begin(), of_head.end());
    }
    return y;
  }

 private:
  struct Sums {
    float largest, total;
    Floats y;
  };

  Floats on_tensor_cores(const Floats& numbers) const {
    Floats found = rounded_to_cache(shape_, numbers);
    for (float& x : found) x = of_.cache_case.rounded(x);
    return found;
  }
  const float* head_of(const Floats& numbers, const AttentionRow& row, int64_t e, int64_t head) const {
    const int64_t entry = e < row.prefix_len ? e : row.tail[e - row.prefix_len];
    const int64_t kv_head = head / (shape_.head_count / shape_.kv_head_count);
    return numbers.data() + (entry * shape_.kv_head_count + kv_head) * shape_.head_dim;
  }
  float score(const float* q, const float* key) const {
    float sum = 0;
    for (int64_t step = 0; step < (shape_.head_dim + 31) / 32 * 2; ++step) {
      std::array<float, 16> a = {}, b = {};
      for (int64_t i = 0; i < 16; ++i) {
        const int64_t d = step / 2 * 32 + i / 4 * 8 + step % 2 * 4 + i % 4;
        if (d >= shape_.head_dim) continue;
        a[static_cast<size_t>(i)] = of_.cache_case.rounded(q[d]);
        b[static_cast<size_t>(i)] = key[d];
      }
      sum = core_.add(a.data(), b.data(), sum);
    }
    return sum;
  }
  float finished(float product, int64_t head, int64_t from_end) const {
    const float scale = 1.0F / std::sqrt(static_cast<float>(shape_.head_dim));
    const float scaled = shape_.softcap > 0
                             ? simt::softcap_of(simt::Floats(product), scale, shape_.softcap).v[0]
                             : product * scale;
    if (shape_.slopes.empty()) return scaled;
    return scaled + shape_.slopes[static_cast<size_t>(head)] * static_cast<float>(from_end);
  }
  // Entries [from, to) of a block of 32.
  void add_block(const AttentionRow& row, const float* q, int64_t head, int64_t from, int64_t to,
                 Sums& sums) const {
    const int64_t last = row.prefix_len + row.tail_len - 1, begin = from / 32 * 32;
    std::array<float, 32> weights = {};
    std::array<bool, 32> in = {};
    float largest = sums.largest;
    for (int64_t e = from; e < to; ++e) {
      const auto i = static_cast<size_t>(e - begin);
      weights[i] = finished(score(q, head_of(keys_, row, e, head)), head, e - last);
      in[i] = true;
      largest = std::max(largest, weights[i]);
    }
    float of_lanes[4] = {};
    for (size_t i = 0; i < 32; ++i) {
      weights[i] = in[i] ? of_.cache_case.rounded(exp_of(weights[i] - largest)) : 0.0F;
      of_lanes[i % 8 / 2] += weights[i];
    }
    const float shrink = exp_of(sums.largest - largest);
    sums.largest = largest;
    sums.total = std::fma(sums.total, shrink, (of_lanes[0] + of_lanes[2]) + (of_lanes[1] + of_lanes[3]));
    for (int64_t d = 0; d < shape_.head_dim; ++d) {
      float& y = sums.y[static_cast<size_t>(d)];
      y *= shrink;
      for (size_t step = 0; step < 32; step += 16) {
        std::array<float, 16> value = {};
        for (size_t i = 0; i < 16; ++i) {
          const int64_t e = begin + static_cast<int64_t>(step + i);
          if (in[step + i]) value[i] = head_of(values_, row, e, head)[d];
        }
        y = core_.add(&weights[step], value.data(), y);
      }
    }
  }
  void merge(const Sums& chunk, Sums& whole) const {
    if (whole.total == 0) {
      whole = chunk;
      return;
    }
    const float largest = std::max(chunk.largest, whole.largest);
    const float kept = exp_of(whole.largest - largest), added = exp_of(chunk.largest - largest);
    for (size_t d = 0; d < whole.y.size(); ++d) whole.y[d] = std::fma(whole.y[d], kept, chunk.y[d] * added);
    whole.total = std::fma(whole.total, kept, chunk.total * added);
    whole.largest = largest;
  }
  Floats attend_head(const AttentionRow& row, const float* q, int64_t head) const {
    const int64_t end = row.prefix_len + row.tail_len;
    int64_t begin = shape_.window > 0 ? std::max<int64_t>(end - shape_.window, 0) : 0;
    if (shape_.chunk > 0) begin = std::max(begin, (end - 1) / shape_.chunk * shape_.chunk);
    const Floats zeros(static_cast<size_t>(shape_.head_dim));
    const Sums nothing{-std::numeric_limits<float>::infinity(), 0, zeros};
    const Sums sink =
        shape_.sinks.empty() ? nothing : Sums{shape_.sinks[static_cast<size_t>(head)], 1, zeros};
    Sums whole = begin < 256 ? nothing : sink;
    for (int64_t chunk = begin / 256 * 256; chunk < end; chunk += 256) {
      Sums sums = chunk == 0 ? sink : nothing;
      for (int64_t block = chunk; block < std::min(chunk + 256, end); block += 32) {
        if (block + 32 > begin)
          add_block(row, q, head, std::max(block, begin), std::min(block + 32, end), sums);
      }
      merge(sums, whole);
    }
    for (float& y : whole.y) y = y / whole.total;
    return whole.y;
  }

  const Sequence& of_;
  const AttentionTestShape& shape_;
  ReferenceCore core_;
  Floats keys_, values_;
};

template <typename Cached>
Floats attend_on(const Sequence& of, const RowLists& lists, const Floats& q, uint64_t seed) {
  AttentionLaunches<Cached> launches(of.shape, of.cache, lists);
  Floats y(q.size(), std::nanf(""));
  const auto report = launches.attend({.kernel = of.cache_case.kernel,
                                       .blocks = static_cast<int>(seed % 3),
                                       .options = {.seed = seed, .checks_races = true},
                                       .warps = simt::kTileWarps,
                                       .warp_bytes = simt::query_bytes(static_cast<int>(of.shape.head_dim))},
                                      q, y);
  EXPECT_TRUE(report.is_clean()) << report.first;
  EXPECT_EQ(std::ranges::count(launches.arrivals, 0), std::ssize(launches.arrivals));
  return y;
}
Floats attend(const Sequence& of, const RowLists& lists, const Floats& q, uint64_t seed = 1) {
  switch (of.shape.type) {
    case DType::kBF16:
      return attend_on<simt::CachedBf16>(of, lists, q, seed);
    case DType::kF16:
      return attend_on<simt::CachedF16>(of, lists, q, seed);
    case DType::kE4M3:
      return attend_on<simt::CachedE4m3>(of, lists, q, seed);
    default:
      return attend_on<simt::CachedQ8>(of, lists, q, seed);
  }
}
Floats queries_of(const AttentionTestShape& shape, size_t rows, uint64_t seed) {
  return random_floats(rows * static_cast<size_t>(shape.query_size()), seed);
}
std::vector<AttentionTestShape> shapes(DType type) {
  std::vector<AttentionTestShape> all = {
      {.head_count = 8, .kv_head_count = 2, .head_dim = 128},
      {.head_count = 4, .kv_head_count = 2, .head_dim = 16, .window = 70},
      {.head_count = 6, .kv_head_count = 6, .head_dim = 80, .slopes = random_floats(6, 3)},
      {.head_count = 3, .kv_head_count = 1, .head_dim = 160, .softcap = 20},
      {.head_count = 4, .kv_head_count = 4, .head_dim = 40, .window = 300, .sinks = random_floats(4, 5)},
      {.head_count = 5, .kv_head_count = 1, .head_dim = 64, .chunk = 96},
      {.head_count = 18, .kv_head_count = 1, .head_dim = 288},  // latent vectors
  };
  for (AttentionTestShape& shape : all) {
    shape.type = type;
    shape.page_size = shape.head_dim % 32 == 0 ? 16 : 1;
  }
  return all;
}

class TensorAttention : public testing::TestWithParam<CacheCase> {};
INSTANTIATE_TEST_SUITE_P(Caches, TensorAttention, testing::ValuesIn(kCaches),
                         [](const auto& info) { return std::string(info.param.name); });

// Compares the rows of a tree with the reference.
void compare_tree(const CacheCase& of, const AttentionTestShape& shape, int length, int nodes, uint64_t seed,
                  BitComparison& comparison) {
  SCOPED_TRACE("heads of " + std::to_string(shape.head_dim));
  const Sequence sequence(of, shape, length + nodes, seed);
  const TreeRows tree(sequence.cache, length, nodes, seed);
  const Floats q = queries_of(shape, tree.rows.size(), seed + 2);
  const ReferenceAttention reference(sequence);
  Floats expected;
  for (size_t row = 0; row < tree.rows.size(); ++row) {
    const Floats y =
        reference.attend(tree.rows[row], q.data() + row * static_cast<size_t>(shape.query_size()));
    expected.insert(expected.end(), y.begin(), y.end());
  }
  comparison.add(expected, attend(sequence, RowLists(tree.rows, sequence.cache.pages), q, seed));
}

// Rows of a tree and of a prompt, of texts that end anywhere in a block and in a chunk.
TEST_P(TensorAttention, EqualsTheReference) {
  BitComparison comparison;
  for (uint64_t seed = 1; comparison.compared() < kLeastOutputs; ++seed) {
    for (const AttentionTestShape& shape : shapes(GetParam().type)) {
      const int lengths[] = {1, 31, 33, 130, 250, 256, 300, 530};
      const int length = lengths[(seed + static_cast<uint64_t>(shape.head_dim / 8)) % 8];
      compare_tree(GetParam(), shape, length, 9, seed, comparison);
    }
  }
  EXPECT_EQ(comparison.differing(), 0);
}

TEST_P(TensorAttention, LongTextsEqualTheReference) {
  const AttentionTestShape shape{
      .head_count = 2, .kv_head_count = 1, .head_dim = 64, .type = GetParam().type};
  BitComparison comparison;
  compare_tree(GetParam(), shape, kLongText, 2, 1, comparison);
  EXPECT_EQ(comparison.differing(), 0);
}

// Rows of a prompt and of a tree, rows without entries, and rows of another text, in one launch. Some queries
// and the newest entry of the prompt are NaN. Every seventh row, in the slow suite each, is
// computed by itself, too.
TEST_P(TensorAttention, RowsDoNotSeeEachOther) {
  constexpr bool kIsSlow = kLeastOutputs > 10'000;
  constexpr int kPrompt = kIsSlow ? 512 : 70, kLength = kPrompt + 230, kNodes = 12, kApart = kIsSlow ? 1 : 7;
  std::vector<AttentionTestShape> all = shapes(GetParam().type);
  // Each cache has another shape.
  const auto own = std::ranges::find(kCaches, GetParam().type, &CacheCase::type) - kCaches;
  if (!kIsSlow) all = {all[static_cast<size_t>(own)], all[4]};
  for (const AttentionTestShape& shape : all) {
    SCOPED_TRACE("heads of " + std::to_string(shape.head_dim));
    Sequence sequence(GetParam(), shape, kLength + kNodes, 7);
    std::fill_n(sequence.values.begin() + (kLength - 1) * shape.entry_size(), shape.entry_size(),
                std::nanf(""));
    sequence.cache = PagedCache(shape, sequence.keys, sequence.values);
    const TreeRows tree(sequence.cache, kLength - 40, kNodes, 3);
    std::vector<AttentionRow> rows;
    for (int row = 0; row < kPrompt; ++row)
      rows.push_back({sequence.cache.pages.data(), kLength - kPrompt + row + 1, nullptr, 0});
    rows.insert(rows.end(), tree.rows.begin(), tree.rows.end());
    RowLists lists(rows, sequence.cache.pages);
    // The other text has the same pages in another order.
    const int page = static_cast<int>(std::ssize(lists.pages)), texts = static_cast<int>(std::ssize(rows));
    const int64_t whole_pages = kLength / shape.page_size;
    for (int64_t i = 0; i < whole_pages; ++i)
      lists.pages.push_back(sequence.cache.pages[static_cast<size_t>((i + 3) % whole_pages)]);
    for (int i = 0; i < 9; ++i) lists.entries.insert(lists.entries.end(), {page, i * 17, 0, 0});
    Floats q = queries_of(shape, static_cast<size_t>(texts + 9), 11);
    for (const int row : {2, 71, texts + 1})
      std::fill_n(q.begin() + row * shape.query_size(), shape.query_size(), std::nanf(""));
    const Floats together = attend(sequence, lists, q, 2);
    BitComparison comparison;
    int finite = 0;
    for (int row = 0; row < texts + 9; row += kApart) {
      RowLists alone = lists;
      alone.entries.assign(lists.entries.begin() + row * 4, lists.entries.begin() + row * 4 + 4);
      const auto begin = static_cast<size_t>(row * shape.query_size()),
                 end = begin + static_cast<size_t>(shape.query_size());
      const std::span all(together);
      const Floats own(q.begin() + static_cast<int64_t>(begin), q.begin() + static_cast<int64_t>(end));
      comparison.add(attend(sequence, alone, own), all.subspan(begin, end - begin));
      finite += std::isfinite(together[begin]) ? 1 : 0;
    }
    EXPECT_EQ(comparison.differing(), 0);
    EXPECT_GE(finite, texts / kApart);  // but for the rows that see NaN
  }
}

// Rounding loses what 16-bit numbers do.
TEST_P(TensorAttention, IsNearTheTables) {
  for (const AttentionTestShape& shape : shapes(GetParam().type)) {
    SCOPED_TRACE("heads of " + std::to_string(shape.head_dim));
    const Sequence sequence(GetParam(), shape, 400, 5);
    std::vector<AttentionRow> rows;
    for (const int length : {400, 399, 257, 64, 1})
      rows.push_back({sequence.cache.pages.data(), length, nullptr, 0});
    const Floats q = queries_of(shape, rows.size(), 6);
    const Floats expected =
        outrider::attend((*select_kernels("reference"))->attention, shape, sequence.cache, q, rows, 1);
    const Floats found = attend(sequence, RowLists(rows, sequence.cache.pages), q);
    for (size_t i = 0; i < found.size(); ++i) ASSERT_NEAR(found[i], expected[i], 0.03F) << i;
  }
}

TEST(PackedTensorAttention, CodesAreCodesOfTheOutputs) {
  const CacheCase& bf16 = kCaches[0];
  const AttentionTestShape shape{.head_count = 4, .kv_head_count = 2, .head_dim = 40, .type = bf16.type};
  const Sequence sequence(bf16, shape, 609, 1);
  const TreeRows tree(sequence.cache, 600, 9, 3);
  const RowLists lists(tree.rows, sequence.cache.pages);
  const auto rows = static_cast<int>(tree.rows.size()), dim = static_cast<int>(shape.query_size());
  const Floats q = queries_of(shape, tree.rows.size(), 4);
  AttentionLaunches<simt::CachedBf16> launches(shape, sequence.cache, lists);
  Floats whole(q.size());
  PackedInputs packed(rows, dim);
  EXPECT_TRUE(launches
                  .attend({.kernel = bf16.kernel,
                           .options = {.seed = 5, .checks_races = true},
                           .packed = &packed,
                           .warps = simt::kTileWarps,
                           .warp_bytes = simt::query_bytes(40)},
                          q, whole)
                  .is_clean());
  EXPECT_EQ(whole, attend(sequence, lists, q));
  const PackedInputs expected(whole, rows, dim, 1);
  EXPECT_EQ(packed.codes, expected.codes);
  EXPECT_EQ(packed.scales, expected.scales);
  EXPECT_EQ(packed.sums, expected.sums);
}

}  // namespace
}  // namespace outrider::tensor_attention
