// SPDX-License-Identifier: Apache-2.0
#include "micro.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <string>
#include <thread>

#include "base/counter_rng.h"
#include "cli/memory_reader.h"
#include "cli/product_peak.h"

namespace outrider {
namespace {

constexpr int kTries = 7;

double measure_read() {
  constexpr int64_t kBytes = 512 << 20;
  MemoryReader reader(kBytes);
  double best = 0;
  for (int i = 0; i < kTries; ++i) {
    best = std::max(best, static_cast<double>(kBytes) / (reader.time(bench_pool()) * 1e-3));
  }
  return best;
}

Peaks measure_peaks(std::string_view name) {
  static const double read = measure_read();
  const InputLayout inputs = name == "amx"           ? InputLayout::kBF16Tiles
                             : name == "avx512_bf16" ? InputLayout::kBF16Pairs
                                                     : InputLayout::kF32;
  const KernelTable& kernels = **select_kernels(name);
  ThreadPool alone(1);
  return {read, measure_product_peaks(kernels, bench_pool()).at(inputs),
          measure_product_peaks(kernels, alone).at(inputs)};
}

}  // namespace

ThreadPool& bench_pool() {
  static ThreadPool pool(static_cast<int>(std::max(1U, std::thread::hardware_concurrency())));
  return pool;
}

const Peaks& peaks_of(std::string_view kernels) {
  static std::map<std::string, Peaks, std::less<>> known;
  const auto found = known.find(kernels);
  if (found != known.end()) return found->second;
  return known.emplace(kernels, measure_peaks(kernels)).first->second;
}

void report(benchmark::State& state, const Cost& cost, std::string_view kernels) {
  using benchmark::Counter;
  const Peaks& peaks = peaks_of(kernels);
  const auto rate = [&](double per_launch) {
    return Counter(per_launch, Counter::kIsIterationInvariantRate);
  };
  const auto bytes = static_cast<double>(cost.bytes);
  const auto operations = static_cast<double>(cost.operations);
  state.counters["GB/s"] = rate(bytes * 1e-9);
  state.counters["GFLOP/s"] = rate(operations * 1e-9);
  state.counters["%read"] = rate(100 * bytes / peaks.read_bytes);
  state.counters["%peak"] = rate(100 * operations / peaks.operations);
  state.counters["MB"] = bytes * 1e-6;
  state.counters["MFLOP"] = operations * 1e-6;
}

std::vector<const KernelTable*> timed_tables() {
  std::vector<const KernelTable*> tables;
  for (const std::string_view name : available_kernels()) {
    if (name != "reference") tables.push_back(*select_kernels(name));
  }
  return tables;
}

std::vector<float> random_floats(int64_t count) {
  std::vector<float> numbers(static_cast<size_t>(count));
  for (size_t i = 0; i < numbers.size(); ++i) {
    numbers[i] = static_cast<float>(static_cast<int64_t>(mix64(i) >> 40) - (1 << 23)) / (1 << 23);
  }
  return numbers;
}

int run_micro(int argc, char** argv, const std::function<void()>& register_benchmarks) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  for (const KernelTable* table : timed_tables()) {
    const Peaks& peaks = peaks_of(table->name);
    char text[128];
    std::snprintf(text, sizeof(text),
                  "reads %.1f GB/s, multiplies and adds %.0f GFLOP/s; one thread alone %.0f",
                  peaks.read_bytes * 1e-9, peaks.operations * 1e-9, peaks.operations_alone * 1e-9);
    benchmark::AddCustomContext("peak_" + std::string(table->name), text);
  }
  register_benchmarks();
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}

}  // namespace outrider
