// SPDX-License-Identifier: Apache-2.0
// Time of the attention of one pass, all layers of a Llama of 1.1 billion parameters over a context of 512,
// per table and type of the KV cache. Rows are a chunk of a prompt, or a tree of branches of eight.
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "micro.h"

namespace outrider {
namespace {

constexpr int64_t kLayers = 22;
constexpr int64_t kHeads = 32;
constexpr int64_t kKvHeads = 4;
constexpr int64_t kHeadDim = 64;
constexpr int32_t kContext = 512;  // entries that the last row of a chunk sees
constexpr int64_t kPageSize = 16;
constexpr int32_t kBranch = 8;

// Keys and values of all layers, [layer][2][entries], in one piece as in the engine.
Buffer make_cache(const KernelTable& kernels, DType type, int64_t entries) {
  std::mt19937 engine(1);
  std::normal_distribution<float> normal;
  const int64_t row = kKvHeads * cached_head_bytes(type, kHeadDim);
  std::vector<float> numbers(kKvHeads * kHeadDim);
  Buffer cache(static_cast<size_t>(2 * kLayers * entries * row));
  for (int64_t r = 0; r < 2 * kLayers * entries; ++r) {
    for (float& number : numbers) number = normal(engine);
    kernels.store_kv({numbers.data(), cache.data() + r * row, type, kKvHeads, kHeadDim});
  }
  return cache;
}

// Rows of a chunk that ends at the context, or of a tree after the context with branches that start at the
// first row.
std::vector<AttentionRow> make_rows(bool tree, int32_t count, const std::vector<int32_t>& pages,
                                    std::vector<std::vector<int32_t>>& tails) {
  std::vector<AttentionRow> rows;
  tails.resize(static_cast<size_t>(count));
  for (int32_t r = 0; r < count; ++r) {
    if (!tree) {
      rows.push_back({pages.data(), kContext - count + r + 1, nullptr, 0});
      continue;
    }
    auto& tail = tails[static_cast<size_t>(r)];
    if (r > 0) tail = tails[r % kBranch == 1 ? 0 : static_cast<size_t>(r) - 1];
    tail.push_back(kContext - 1 + r);
    rows.push_back({pages.data(), kContext - 1, tail.data(), static_cast<int32_t>(tail.size())});
  }
  return rows;
}

Cost cost_of(const std::vector<AttentionRow>& rows, DType type) {
  int64_t pairs = 0;  // pairs of a row and an entry that it sees
  for (const AttentionRow& row : rows) pairs += row.prefix_len + row.tail_len;
  const int64_t entries = kContext + static_cast<int64_t>(rows.size());
  const int64_t outputs = 2 * static_cast<int64_t>(rows.size()) * kHeads * kHeadDim * 4;
  return {.bytes = kLayers * (2 * entries * kKvHeads * cached_head_bytes(type, kHeadDim) + outputs),
          .operations = kLayers * 4 * pairs * kHeads * kHeadDim};
}

void time_attention(benchmark::State& state, const KernelTable& kernels, DType type, bool tree) {
  const auto count = static_cast<int32_t>(state.range(0));
  const int64_t entries = (kContext + count + kPageSize) / kPageSize * kPageSize;
  const Buffer cache = make_cache(kernels, type, entries);
  const int64_t layer_bytes = entries * kKvHeads * cached_head_bytes(type, kHeadDim);
  std::vector<int32_t> pages;
  for (auto page = static_cast<int32_t>(entries / kPageSize); page > 0; --page) pages.push_back(page - 1);
  std::vector<std::vector<int32_t>> tails;
  const std::vector<AttentionRow> rows = make_rows(tree, count, pages, tails);
  std::mt19937 engine(2);
  std::normal_distribution<float> normal;
  std::vector<float> q(static_cast<size_t>(count * kHeads * kHeadDim));
  for (float& number : q) number = normal(engine);
  std::vector<float> y(q.size());
  for ([[maybe_unused]] auto iteration : state) {
    for (int64_t layer = 0; layer < kLayers; ++layer) {
      AttentionArgs args;
      args.q = q.data();
      args.q_stride = kHeads * kHeadDim;
      args.k = cache.data() + 2 * layer * layer_bytes;
      args.v = args.k + layer_bytes;
      args.kv_type = type;
      args.y = y.data();
      args.rows = rows;
      args.head_count = kHeads;
      args.kv_head_count = kKvHeads;
      args.head_dim = kHeadDim;
      args.page_size = kPageSize;
      args.scale = 1.0F / std::sqrt(static_cast<float>(kHeadDim));
      bench_pool().run([&](Worker worker) { kernels.attention(args, worker); });
    }
  }
  report(state, cost_of(rows, type), kernels.name);
}

void register_benchmarks() {
  for (const KernelTable* kernels : timed_tables()) {
    for (const DType type : {DType::kF32, DType::kBF16, DType::kF16, DType::kQ8_0}) {
      for (const bool tree : {false, true}) {
        const std::string title = "attention/" + std::string(kernels->name) + "/" +
                                  std::string(dtype_name(type)) + (tree ? "/tree" : "/chunk");
        benchmark::RegisterBenchmark(
            title.c_str(), [=](benchmark::State& state) { time_attention(state, *kernels, type, tree); })
            ->ArgsProduct({tree ? std::vector<int64_t>{9, 17, 64} : std::vector<int64_t>{1, 64, 256}})
            ->ArgNames({"rows"})
            ->Unit(benchmark::kMillisecond)
            ->UseRealTime();
      }
    }
  }
}

}  // namespace
}  // namespace outrider

int main(int argc, char** argv) { return outrider::run_micro(argc, argv, outrider::register_benchmarks); }
