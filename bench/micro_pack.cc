// SPDX-License-Identifier: Apache-2.0
// Time to pack one weight matrix at load, on one thread: most of what opening a large model costs.
#include <string>

#include "micro.h"
#include "tensor/buffer.h"

namespace outrider {
namespace {

constexpr int64_t kOutputs = 2048;
constexpr int64_t kInputs = 2048;

void time_pack(benchmark::State& state, const KernelTable& kernels, DType dtype) {
  const Buffer stored(static_cast<size_t>(kOutputs * row_bytes(dtype, kInputs)));
  int64_t packed_bytes = 0;
  for ([[maybe_unused]] auto iteration : state) {
    const auto packed = pack_matrix(kernels, {dtype, {kOutputs, kInputs}, stored.data()});
    if (!packed.ok()) return state.SkipWithError("packing failed");
    packed_bytes = static_cast<int64_t>(packed->data.size());
  }
  report(state, {static_cast<int64_t>(stored.size()) + packed_bytes, 0}, kernels.name);
}

void register_pack() {
  for (const KernelTable* kernels : timed_tables()) {
    for (int type = 0; type < kDTypeCount; ++type) {
      const auto dtype = static_cast<DType>(type);
      const std::string title = "pack/" + std::string(kernels->name) + "/" + std::string(dtype_name(dtype));
      benchmark::RegisterBenchmark(
          title.c_str(), [kernels, dtype](benchmark::State& state) { time_pack(state, *kernels, dtype); })
          ->Unit(benchmark::kMillisecond)
          ->UseRealTime();
    }
  }
}

}  // namespace
}  // namespace outrider

int main(int argc, char** argv) { return outrider::run_micro(argc, argv, outrider::register_pack); }
