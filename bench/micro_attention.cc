// SPDX-License-Identifier: Apache-2.0
// Time of one layer's attention against rows and context: rows are a chain drafted behind a committed
// context, whose pages lie scattered. Several layers' caches take turns, as in a pass.
#include <numeric>
#include <string>
#include <vector>

#include "micro.h"

namespace outrider {
namespace {

constexpr int64_t kHeads = 32;
constexpr int64_t kKvHeads = 4;
constexpr int64_t kHeadDim = 64;
constexpr int64_t kPageSize = 16;
constexpr int kLayers = 8;

struct Layer {
  std::vector<float> keys, values;  // [slots, kKvHeads, kHeadDim]
};

// Every row sees the context and its ancestors among the rows.
Cost cost_of(int64_t rows, int64_t context) {
  const int64_t entries_read = context + rows;
  const int64_t pairs = rows * context + rows * (rows + 1) / 2;
  const int64_t numbers = 2 * entries_read * kKvHeads * kHeadDim + 2 * rows * kHeads * kHeadDim;
  return {.bytes = numbers * static_cast<int64_t>(sizeof(float)),
          .operations = 4 * pairs * kHeads * kHeadDim};
}

void time_attention(benchmark::State& state, const KernelTable& kernels) {
  const int64_t rows = state.range(0);
  const int64_t context = state.range(1);
  const int64_t pages = (context + rows + kPageSize - 1) / kPageSize;
  std::vector<Layer> layers;
  for (int i = 0; i < kLayers; ++i) {
    const int64_t numbers = pages * kPageSize * kKvHeads * kHeadDim;
    layers.push_back({random_floats(numbers), random_floats(numbers)});
  }
  std::vector<int32_t> page_table(static_cast<size_t>(pages));
  for (size_t i = 0; i < page_table.size();
       ++i) {  // 7 pages apart, a permutation as long as 7 does not divide
    page_table[i] = static_cast<int32_t>(pages % 7 == 0 ? i : i * 7 % page_table.size());
  }
  std::vector<int32_t> tail(static_cast<size_t>(rows));
  std::iota(tail.begin(), tail.end(), static_cast<int32_t>(context));
  std::vector<AttentionRow> views;
  for (int32_t r = 0; r < rows; ++r) {
    views.push_back({page_table.data(), static_cast<int32_t>(context), tail.data(), r + 1});
  }
  const std::vector<float> q = random_floats(rows * kHeads * kHeadDim);
  std::vector<float> y(q.size());
  size_t next = 0;
  for ([[maybe_unused]] auto iteration : state) {
    const Layer& layer = layers[next++ % layers.size()];
    const AttentionArgs args{.q = q.data(),
                             .k = layer.keys.data(),
                             .v = layer.values.data(),
                             .y = y.data(),
                             .rows = views,
                             .head_count = kHeads,
                             .kv_head_count = kKvHeads,
                             .head_dim = kHeadDim,
                             .page_size = kPageSize,
                             .window = 0};
    bench_pool().run([&](Worker worker) { kernels.attention(args, worker); });
  }
  report(state, cost_of(rows, context), kernels.name);
}

void register_attention() {
  for (const KernelTable* kernels : timed_tables()) {
    const std::string title = "attention/" + std::string(kernels->name);
    benchmark::RegisterBenchmark(title.c_str(),
                                 [kernels](benchmark::State& state) { time_attention(state, *kernels); })
        ->ArgsProduct({{1, 4, 16, 64, 256}, {128, 512, 2048}})
        ->ArgNames({"rows", "context"})
        ->Unit(benchmark::kMicrosecond)
        ->UseRealTime();
  }
}

}  // namespace
}  // namespace outrider

int main(int argc, char** argv) { return outrider::run_micro(argc, argv, outrider::register_attention); }
