// SPDX-License-Identifier: Apache-2.0
// Time of one matrix product against the number of rows, per table and weight type. The matrices together
// exceed the second-level caches many times over, so that weights stream as they do in a forward pass.
#include <string>
#include <vector>

#include "micro.h"
#include "tensor/buffer.h"

namespace outrider {
namespace {

constexpr int64_t kOutputs = 5632;
constexpr int64_t kInputs = 2048;
constexpr int kMatrices = 8;

// K-quants get blocks of zeros: the work does not depend on the numbers.
std::vector<PackedMatrix> make_matrices(const KernelTable& kernels, DType dtype) {
  Buffer stored(static_cast<size_t>(kOutputs * row_bytes(dtype, kInputs)));
  if (dtype < DType::kQ4_K) {
    const std::vector<float> numbers = random_floats(kOutputs * kInputs);
    quantize_row(dtype, numbers.data(), stored.data(), kOutputs * kInputs);
  }
  std::vector<PackedMatrix> matrices;
  for (int i = 0; i < kMatrices; ++i) {
    auto packed = kernels.pack({dtype, {kOutputs, kInputs}, stored.data()});
    if (packed.ok()) matrices.push_back(std::move(*packed));
  }
  return matrices;
}

Cost cost_of(DType dtype, int64_t rows) {
  const int64_t activations = rows * (kInputs + kOutputs) * static_cast<int64_t>(sizeof(float));
  return {.bytes = kOutputs * row_bytes(dtype, kInputs) + activations,
          .operations = 2 * rows * kInputs * kOutputs};
}

void time_linear(benchmark::State& state, const KernelTable& kernels, DType dtype) {
  const int64_t rows = state.range(0);
  const std::vector<PackedMatrix> matrices = make_matrices(kernels, dtype);
  if (matrices.empty()) return state.SkipWithError("packing failed");
  const std::vector<float> x = random_floats(rows * kInputs);
  std::vector<float> y(static_cast<size_t>(rows * kOutputs));
  size_t next = 0;
  for ([[maybe_unused]] auto iteration : state) {
    const PackedMatrix& weights = matrices[next++ % matrices.size()];
    bench_pool().run([&](Worker worker) { kernels.linear({&weights, x.data(), y.data(), rows}, worker); });
  }
  report(state, cost_of(dtype, rows), kernels.name);
}

void register_linear() {
  for (const KernelTable* kernels : timed_tables()) {
    for (const DType dtype :
         {DType::kF32, DType::kBF16, DType::kQ8_0, DType::kQ4_0, DType::kQ4_K, DType::kQ5_K, DType::kQ6_K}) {
      const std::string title = "linear/" + std::string(kernels->name) + "/" + std::string(dtype_name(dtype));
      benchmark::RegisterBenchmark(
          title.c_str(), [kernels, dtype](benchmark::State& state) { time_linear(state, *kernels, dtype); })
          ->ArgsProduct({{1, 4, 8, 16, 32, 64, 256}})
          ->ArgNames({"rows"})
          ->Unit(benchmark::kMicrosecond)
          ->UseRealTime();
    }
  }
}

}  // namespace
}  // namespace outrider

int main(int argc, char** argv) { return outrider::run_micro(argc, argv, outrider::register_linear); }
