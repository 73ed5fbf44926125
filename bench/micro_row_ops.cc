// SPDX-License-Identifier: Apache-2.0
// Time of what a layer does between its matrix products: norm, rotation, gate, with the sizes of TinyLlama,
// and the steps of a gated delta net, with the sizes of Qwen3.5.
#include <string>
#include <vector>

#include "micro.h"

namespace outrider {
namespace {

constexpr int64_t kHidden = 2048;
constexpr int64_t kFfn = 5632;
constexpr int64_t kHeads = 36;  // of queries and keys
constexpr int64_t kHeadDim = 64;
constexpr int64_t kDeltaHeads = 32;
constexpr int64_t kDeltaDim = 128;  // of keys and values
constexpr auto kFloat = static_cast<int64_t>(sizeof(float));

void time_rms_norm(benchmark::State& state, const KernelTable& kernels) {
  const int64_t rows = state.range(0);
  const std::vector<float> x = random_floats(rows * kHidden);
  const std::vector<float> weight = random_floats(kHidden);
  std::vector<float> y(x.size());
  for ([[maybe_unused]] auto iteration : state) {
    bench_pool().run([&](Worker worker) {
      kernels.rms_norm({x.data(), weight.data(), y.data(), rows, kHidden, 1e-5F}, worker);
    });
  }
  report(state, {(2 * rows + 1) * kHidden * kFloat, 4 * rows * kHidden}, kernels.name);
}

void time_rope(benchmark::State& state, const KernelTable& kernels) {
  const int64_t rows = state.range(0);
  std::vector<float> x = random_floats(rows * kHeads * kHeadDim);
  const std::vector<float> rotations = random_floats(rows * kHeadDim);
  for ([[maybe_unused]] auto iteration : state) {
    bench_pool().run([&](Worker worker) {
      kernels.rope({x.data(), rotations.data(), rows, kHeads, kHeadDim, kHeadDim}, worker);
    });
  }
  const int64_t numbers = rows * kHeads * kHeadDim;
  report(state, {2 * numbers * kFloat, 3 * numbers}, kernels.name);
}

void time_swiglu(benchmark::State& state, const KernelTable& kernels) {
  const int64_t rows = state.range(0);
  const std::vector<float> gate_up = random_floats(rows * 2 * kFfn);
  std::vector<float> y(static_cast<size_t>(rows * kFfn));
  for ([[maybe_unused]] auto iteration : state) {
    bench_pool().run([&](Worker worker) {
      kernels.activate({.x = gate_up.data(), .y = y.data(), .rows = rows, .dim = kFfn}, worker);
    });
  }
  // The exponential counts as one operation, so a percentage of the peak means little here.
  report(state, {3 * rows * kFfn * kFloat, 5 * rows * kFfn}, kernels.name);
}

// Every head takes its state through as many steps as there are rows.
void time_delta_steps(benchmark::State& state, const KernelTable& kernels) {
  const int64_t rows = state.range(0);
  constexpr int64_t kMatrix = kDeltaDim * kDeltaDim;
  std::vector<float> states = random_floats(kDeltaHeads * kMatrix);
  const std::vector<float> q = random_floats(rows * kDeltaDim), v = random_floats(rows * kDeltaDim);
  std::vector<float> k = random_floats(rows * kDeltaDim);
  for (float& number : k) number /= kDeltaDim;  // short keys, so that states stay small
  for ([[maybe_unused]] auto iteration : state) {
    bench_pool().run([&](Worker worker) {
      std::vector<DeltaArgs> steps;
      std::vector<float> own_y(kDeltaDim);
      const Range share = share_of(worker, kDeltaHeads);
      for (int64_t head = share.begin; head < share.end; ++head) {
        float* matrix = states.data() + head * kMatrix;
        steps.clear();
        for (int64_t row = 0; row < rows; ++row) {
          const int64_t at = row * kDeltaDim;
          steps.push_back({matrix, matrix, own_y.data(), q.data() + at, k.data() + at, v.data() + at, 0.9F,
                           0.4F, kDeltaDim, kDeltaDim});
        }
        kernels.delta_steps(steps.data(), std::ssize(steps));
      }
    });
  }
  report(state, {2 * kDeltaHeads * kMatrix * kFloat, 7 * rows * kDeltaHeads * kMatrix}, kernels.name);
}

void register_row_ops() {
  struct Operation {
    const char* name;
    void (*time)(benchmark::State&, const KernelTable&);
  };
  constexpr Operation kOperations[] = {{"rms_norm", time_rms_norm},
                                       {"rope", time_rope},
                                       {"swiglu", time_swiglu},
                                       {"delta_steps", time_delta_steps}};
  for (const KernelTable* kernels : timed_tables()) {
    for (const Operation& operation : kOperations) {
      const std::string title = std::string(operation.name) + "/" + std::string(kernels->name);
      const auto time = operation.time;
      benchmark::RegisterBenchmark(title.c_str(),
                                   [kernels, time](benchmark::State& state) { time(state, *kernels); })
          ->ArgsProduct({{1, 4, 16, 64, 256}})
          ->ArgNames({"rows"})
          ->Unit(benchmark::kMicrosecond)
          ->UseRealTime();
    }
  }
}

}  // namespace
}  // namespace outrider

int main(int argc, char** argv) { return outrider::run_micro(argc, argv, outrider::register_row_ops); }
