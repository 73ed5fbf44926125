// SPDX-License-Identifier: Apache-2.0
// Time of one matrix product against the number of rows, per table and weight type. The matrices of `linear`
// together exceed the second-level caches many times over, so that weights stream as they do in a forward
// pass. The matrices of `linear_cached` are one thread's features of one call, which show what the kernel
// does when nothing keeps it waiting.
#include <string>
#include <vector>

#include "micro.h"
#include "tensor/buffer.h"

namespace outrider {
namespace {

struct Shape {
  int64_t outputs;
  int64_t inputs;
};

constexpr Shape kStreamed = {5632, 2048};
constexpr int kMatrices = 8;
constexpr int64_t kCachedOutputs = 32;
constexpr int kCachedCalls = 100;  // per iteration, so that its own cost does not count

// Types that cannot be written get blocks of zeros: the work does not depend on the numbers.
std::vector<PackedMatrix> make_matrices(const KernelTable& kernels, DType dtype, Shape shape, int count) {
  const int64_t row = row_bytes(dtype, shape.inputs);
  Buffer stored(static_cast<size_t>(shape.outputs * row));
  if (can_quantize(dtype)) {
    const std::vector<float> numbers = random_floats(shape.inputs);
    for (int64_t j = 0; j < shape.outputs; ++j)
      quantize_row(dtype, numbers.data(), stored.data() + j * row, shape.inputs);
  }
  std::vector<PackedMatrix> matrices;
  for (int i = 0; i < count; ++i) {
    auto packed = pack_matrix(kernels, {dtype, {shape.outputs, shape.inputs}, stored.data()});
    if (packed.ok()) matrices.push_back(std::move(*packed));
  }
  return matrices;
}

Cost cost_of(DType dtype, Shape shape, int64_t rows) {
  const int64_t activations = rows * (shape.inputs + shape.outputs) * static_cast<int64_t>(sizeof(float));
  return {.bytes = shape.outputs * row_bytes(dtype, shape.inputs) + activations,
          .operations = 2 * rows * shape.inputs * shape.outputs};
}

// The input of one product, its packed copy, and the output.
struct Activations {
  Activations(const PackedMatrix& weights, Shape shape, int64_t row_count)
      : rows(row_count),
        x(random_floats(rows * shape.inputs)),
        packed(static_cast<size_t>(input_bytes(weights.inputs, rows, shape.inputs))),
        y(static_cast<size_t>(rows * shape.outputs)) {}

  LinearArgs args(const PackedMatrix& weights) { return {&weights, x.data(), packed.data(), y.data(), rows}; }

  int64_t rows;
  std::vector<float> x;
  Buffer packed;
  std::vector<float> y;
};

// The time includes packing the inputs, which a pass does for every product with a new input.
void time_linear(benchmark::State& state, const KernelTable& kernels, DType dtype) {
  const int64_t rows = state.range(0);
  const std::vector<PackedMatrix> matrices = make_matrices(kernels, dtype, kStreamed, kMatrices);
  if (matrices.empty()) return state.SkipWithError("packing failed");
  Activations activations(matrices.front(), kStreamed, rows);
  size_t next = 0;
  for ([[maybe_unused]] auto iteration : state) {
    const LinearArgs args = activations.args(matrices[next++ % matrices.size()]);
    bench_pool().run([&](Worker worker) { kernels.pack_inputs(args, worker); });
    bench_pool().run([&](Worker worker) { kernels.linear(args, worker); });
  }
  report(state, cost_of(dtype, kStreamed, rows), kernels.name);
}

// One thread, without packing the inputs.
void time_cached(benchmark::State& state, const KernelTable& kernels, DType dtype) {
  const int64_t rows = state.range(0);
  const Shape shape = {kCachedOutputs, state.range(1)};
  const std::vector<PackedMatrix> matrices = make_matrices(kernels, dtype, shape, 1);
  if (matrices.empty()) return state.SkipWithError("packing failed");
  Activations activations(matrices.front(), shape, rows);
  const LinearArgs args = activations.args(matrices.front());
  kernels.pack_inputs(args, Worker{});
  for ([[maybe_unused]] auto iteration : state) {
    for (int call = 0; call < kCachedCalls; ++call) kernels.linear(args, Worker{});
  }
  const Cost cost = cost_of(dtype, shape, rows);
  report(state, {cost.bytes * kCachedCalls, cost.operations * kCachedCalls}, kernels.name);
}

void time_pack_inputs(benchmark::State& state, const KernelTable& kernels, DType dtype) {
  const int64_t rows = state.range(0);
  const std::vector<PackedMatrix> matrices = make_matrices(kernels, dtype, kStreamed, 1);
  if (matrices.empty()) return state.SkipWithError("packing failed");
  Activations activations(matrices.front(), kStreamed, rows);
  const LinearArgs args = activations.args(matrices.front());
  for ([[maybe_unused]] auto iteration : state) {
    bench_pool().run([&](Worker worker) { kernels.pack_inputs(args, worker); });
  }
  const int64_t read = rows * kStreamed.inputs * static_cast<int64_t>(sizeof(float));
  report(state, {read + static_cast<int64_t>(activations.packed.size()), 0}, kernels.name);
}

void register_linear() {
  struct Operation {
    const char* name;
    void (*time)(benchmark::State&, const KernelTable&, DType);
    std::vector<int64_t> inputs;
  };
  const Operation operations[] = {{"linear", time_linear, {kStreamed.inputs}},
                                  {"linear_cached", time_cached, {576, 1536, 2048}},
                                  {"pack_inputs", time_pack_inputs, {kStreamed.inputs}}};
  for (const KernelTable* kernels : timed_tables()) {
    for (int type = 0; type < kDTypeCount; ++type) {
      const auto dtype = static_cast<DType>(type);
      for (const Operation& operation : operations) {
        const std::string title = std::string(operation.name) + "/" + std::string(kernels->name) + "/" +
                                  std::string(dtype_name(dtype));
        const auto time = operation.time;
        benchmark::RegisterBenchmark(title.c_str(),
                                     [=](benchmark::State& state) { time(state, *kernels, dtype); })
            ->ArgsProduct({{1, 4, 8, 16, 32, 64, 256}, operation.inputs})
            ->ArgNames({"rows", "inputs"})
            ->Unit(benchmark::kMicrosecond)
            ->UseRealTime();
      }
    }
  }
}

}  // namespace
}  // namespace outrider

int main(int argc, char** argv) { return outrider::run_micro(argc, argv, outrider::register_linear); }
