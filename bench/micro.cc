// SPDX-License-Identifier: Apache-2.0
#include "micro.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <string>
#include <thread>

#include "base/counter_rng.h"
#include "cli/memory_reader.h"
#include "peaks.h"

namespace outrider {
namespace {

constexpr int kTries = 7;

template <typename Work>
double seconds(const Work& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double measure_read() {
  constexpr int64_t kBytes = 512 << 20;
  MemoryReader reader(kBytes);
  double best = 0;
  for (int i = 0; i < kTries; ++i) {
    best = std::max(best, static_cast<double>(kBytes) / (reader.time(bench_pool()) * 1e-3));
  }
  return best;
}

double measure_operations(int64_t (*multiply_add)(int64_t), ThreadPool& pool) {
  constexpr int64_t kRounds = 1 << 20;
  double best = 0;
  for (int i = 0; i < kTries; ++i) {
    int64_t operations = 0;
    const double time = seconds([&] {
      pool.run([&](Worker worker) {
        const int64_t done = multiply_add(kRounds);
        if (worker.index == 0) operations = done * worker.count;
      });
    });
    best = std::max(best, static_cast<double>(operations) / time);
  }
  return best;
}

Peaks measure_peaks(std::string_view kernels) {
  static const double read = measure_read();
  const auto multiply_add = kernels == "amx"           ? multiply_add_amx
                            : kernels == "avx512_bf16" ? multiply_add_avx512_bf16
                            : kernels == "avx512"      ? multiply_add_avx512
                                                       : multiply_add_avx2;
  ThreadPool alone(1);
  return {read, measure_operations(multiply_add, bench_pool()), measure_operations(multiply_add, alone)};
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
