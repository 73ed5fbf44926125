// SPDX-License-Identifier: Apache-2.0
#include "cli/product_peak.h"

#include <algorithm>
#include <atomic>
#include <chrono>

namespace outrider {
namespace {

constexpr int64_t kRounds = 1 << 21;  // some milliseconds; half of one at times found half of the peak
constexpr int kTries = 7;             // the best one counts

double operations_per_second(const KernelTable& kernels, InputLayout inputs, ThreadPool& pool) {
  std::atomic<int64_t> operations = 0;
  const auto start = std::chrono::steady_clock::now();
  pool.run([&](Worker) { operations += kernels.multiply_add(inputs, kRounds); });
  const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
  return static_cast<double>(operations.load()) / time.count();
}

}  // namespace

std::map<InputLayout, double> measure_product_peaks(const KernelTable& kernels, ThreadPool& pool) {
  std::map<InputLayout, double> peaks;
  for (const InputLayout inputs :
       {InputLayout::kF32, InputLayout::kF32Tiles, InputLayout::kInt8Groups, InputLayout::kInt8Rows,
        InputLayout::kBF16Pairs, InputLayout::kBF16Tiles}) {
    for (int i = 0; i < kTries; ++i)
      peaks[inputs] = std::max(peaks[inputs], operations_per_second(kernels, inputs, pool));
  }
  return peaks;
}

}  // namespace outrider
