// SPDX-License-Identifier: Apache-2.0
// Time of one matrix product against the number of rows, per table and weight type. The matrices together
// exceed the second-level cache, so that weights stream as they do in a forward pass.
#include <benchmark/benchmark.h>

#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "kernels/kernel_table.h"

namespace outrider {
namespace {

constexpr int64_t kOutputs = 2048;
constexpr int64_t kInputs = 2048;
constexpr int kMatrices = 8;

// K-quants get blocks of zeros: the work does not depend on the numbers.
std::vector<PackedMatrix> make_matrices(const KernelTable& kernels, DType dtype) {
  std::vector<std::byte> stored(static_cast<size_t>(kOutputs * row_bytes(dtype, kInputs)));
  if (dtype < DType::kQ4_K) {
    std::mt19937 engine(1);
    std::normal_distribution<float> normal(0, 0.02F);
    std::vector<float> numbers(static_cast<size_t>(kOutputs * kInputs));
    for (float& number : numbers) number = normal(engine);
    quantize_row(dtype, numbers.data(), stored.data(), kOutputs * kInputs);
  }
  std::vector<PackedMatrix> matrices;
  for (int i = 0; i < kMatrices; ++i) {
    auto packed = kernels.pack({dtype, {kOutputs, kInputs}, stored.data()});
    if (packed.ok()) matrices.push_back(std::move(*packed));
  }
  return matrices;
}

void time_linear(benchmark::State& state, const KernelTable& kernels, DType dtype) {
  const int64_t rows = state.range(0);
  ThreadPool pool(static_cast<int>(state.range(1)));
  const std::vector<PackedMatrix> matrices = make_matrices(kernels, dtype);
  if (matrices.empty()) return state.SkipWithError("packing failed");
  const std::vector<float> x(static_cast<size_t>(rows * kInputs), 0.5F);
  std::vector<float> y(static_cast<size_t>(rows * kOutputs));
  size_t next = 0;
  for ([[maybe_unused]] auto iteration : state) {
    const PackedMatrix& weights = matrices[next++ % matrices.size()];
    pool.run([&](Worker worker) { kernels.linear({&weights, x.data(), y.data(), rows}, worker); });
  }
  state.SetBytesProcessed(state.iterations() * kOutputs * row_bytes(dtype, kInputs));
}

void register_benchmarks() {
  for (const std::string_view name : available_kernels()) {
    if (name == "reference") continue;
    const KernelTable* kernels = *select_kernels(name);
    for (const DType dtype :
         {DType::kF32, DType::kBF16, DType::kQ8_0, DType::kQ4_0, DType::kQ4_K, DType::kQ6_K}) {
      const std::string title = std::string(name) + "/" + std::string(dtype_name(dtype));
      benchmark::RegisterBenchmark(
          title.c_str(), [kernels, dtype](benchmark::State& state) { time_linear(state, *kernels, dtype); })
          ->ArgsProduct({{1, 4, 8, 16, 32, 64}, {2}})
          ->ArgNames({"rows", "threads"})
          ->UseRealTime();
    }
  }
}

}  // namespace
}  // namespace outrider

int main(int argc, char** argv) {
  outrider::register_benchmarks();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
