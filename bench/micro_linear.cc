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

// Types that cannot be written get blocks of zeros: the work does not depend on the numbers.
std::vector<PackedMatrix> make_matrices(const KernelTable& kernels, DType dtype) {
  const int64_t row = row_bytes(dtype, kInputs);
  Buffer stored(static_cast<size_t>(kOutputs * row));
  if (can_quantize(dtype)) {
    const std::vector<float> numbers = random_floats(kInputs);
    for (int64_t j = 0; j < kOutputs; ++j)
      quantize_row(dtype, numbers.data(), stored.data() + j * row, kInputs);
  }
  std::vector<PackedMatrix> matrices;
  for (int i = 0; i < kMatrices; ++i) {
    auto packed = pack_matrix(kernels, {dtype, {kOutputs, kInputs}, stored.data()});
    if (packed.ok()) matrices.push_back(std::move(*packed));
  }
  return matrices;
}

Cost cost_of(DType dtype, int64_t rows) {
  const int64_t activations = rows * (kInputs + kOutputs) * static_cast<int64_t>(sizeof(float));
  return {.bytes = kOutputs * row_bytes(dtype, kInputs) + activations,
          .operations = 2 * rows * kInputs * kOutputs};
}

// The input of one product, its packed copy, and the output.
struct Activations {
  Activations(const PackedMatrix& weights, int64_t row_count)
      : rows(row_count),
        x(random_floats(rows * kInputs)),
        packed(static_cast<size_t>(input_bytes(weights.inputs, rows, kInputs))),
        y(static_cast<size_t>(rows * kOutputs)) {}

  LinearArgs args(const PackedMatrix& weights) { return {&weights, x.data(), packed.data(), y.data(), rows}; }

  int64_t rows;
  std::vector<float> x;
  Buffer packed;
  std::vector<float> y;
};

// The time includes packing the inputs, which a pass does for every product whose input is new.
void time_linear(benchmark::State& state, const KernelTable& kernels, DType dtype) {
  const int64_t rows = state.range(0);
  const std::vector<PackedMatrix> matrices = make_matrices(kernels, dtype);
  if (matrices.empty()) return state.SkipWithError("packing failed");
  Activations activations(matrices.front(), rows);
  size_t next = 0;
  for ([[maybe_unused]] auto iteration : state) {
    const LinearArgs args = activations.args(matrices[next++ % matrices.size()]);
    bench_pool().run([&](Worker worker) { kernels.pack_inputs(args, worker); });
    bench_pool().run([&](Worker worker) { kernels.linear(args, worker); });
  }
  report(state, cost_of(dtype, rows), kernels.name);
}

void time_pack_inputs(benchmark::State& state, const KernelTable& kernels, DType dtype) {
  const int64_t rows = state.range(0);
  const std::vector<PackedMatrix> matrices = make_matrices(kernels, dtype);
  if (matrices.empty()) return state.SkipWithError("packing failed");
  Activations activations(matrices.front(), rows);
  const LinearArgs args = activations.args(matrices.front());
  for ([[maybe_unused]] auto iteration : state) {
    bench_pool().run([&](Worker worker) { kernels.pack_inputs(args, worker); });
  }
  const int64_t read = rows * kInputs * static_cast<int64_t>(sizeof(float));
  report(state, {read + static_cast<int64_t>(activations.packed.size()), 0}, kernels.name);
}

void register_linear() {
  struct Operation {
    const char* name;
    void (*time)(benchmark::State&, const KernelTable&, DType);
  };
  constexpr Operation kOperations[] = {{"linear", time_linear}, {"pack_inputs", time_pack_inputs}};
  for (const KernelTable* kernels : timed_tables()) {
    for (int type = 0; type < kDTypeCount; ++type) {
      const auto dtype = static_cast<DType>(type);
      for (const Operation& operation : kOperations) {
        const std::string title = std::string(operation.name) + "/" + std::string(kernels->name) + "/" +
                                  std::string(dtype_name(dtype));
        const auto time = operation.time;
        benchmark::RegisterBenchmark(title.c_str(),
                                     [=](benchmark::State& state) { time(state, *kernels, dtype); })
            ->ArgsProduct({{1, 4, 8, 16, 32, 64, 256}})
            ->ArgNames({"rows"})
            ->Unit(benchmark::kMicrosecond)
            ->UseRealTime();
      }
    }
  }
}

}  // namespace
}  // namespace outrider

int main(int argc, char** argv) { return outrider::run_micro(argc, argv, outrider::register_linear); }
