// SPDX-License-Identifier: Apache-2.0
// Shared by the micro benchmarks: every time is reported with the bytes and operations of the launch, also as
// percentages of the machine's peaks.
#pragma once

#include <benchmark/benchmark.h>

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/kernel_table.h"

namespace outrider {

// The work of one launch: bytes that move from or to memory at least once, and arithmetic operations.
struct Cost {
  int64_t bytes = 0;
  int64_t operations = 0;
};

// Peaks per second, measured when the program starts. Operations use the widest multiply-add of the kernel
// table: f32 vectors, pairs of bf16 for avx512_bf16, bf16 tiles for amx.
struct Peaks {
  double read_bytes = 0;        // with all threads
  double operations = 0;        // with all threads
  double operations_alone = 0;  // with one thread; more than its share where threads share a core
};

// The pool of the whole program, one thread per core.
ThreadPool& bench_pool();
const Peaks& peaks_of(std::string_view kernels);

// Sets the counters GB/s and GFLOP/s, and their percentages of the machine's peaks.
void report(benchmark::State& state, const Cost& cost, std::string_view kernels);

// Tables worth timing: all but the reference.
std::vector<const KernelTable*> timed_tables();

// Reproducible numbers in [-1, 1).
std::vector<float> random_floats(int64_t count);

// The main() of each program: registers, prints the peaks, runs.
int run_micro(int argc, char** argv, const std::function<void()>& register_benchmarks);

}  // namespace outrider
