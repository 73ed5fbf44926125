// SPDX-License-Identifier: Apache-2.0
// The processors that this process may use, and which of them share a core or a NUMA node.
#pragma once

#include <filesystem>
#include <span>
#include <vector>

namespace outrider {

// One logical processor.
struct CpuPlace {
  int cpu = 0;
  int core = 0;         // the lowest of the processors that share its core
  int node = 0;         // its NUMA node
  int capacity = 1024;  // work per time; the fastest processors of a machine have 1024
};

// Processors the calling thread may run on, ascending.
std::vector<int> allowed_cpus();

// Places of the processors as the kernel describes them below `devices`; one without description is a core of
// node 0.
std::vector<CpuPlace> places_of(std::span<const int> cpus,
                                const std::filesystem::path& devices = "/sys/devices/system");

int node_count(std::span<const CpuPlace> places);

// The number of workers that equal shares of work suit best, at least 1. Most processors for ARM have slow
// cores beside fast ones. Slow cores take part only where the slowest worker times their number gains by it.
int best_worker_count(std::span<const CpuPlace> places);

// The processors of `count` workers, 0 <= count <= places.size(): one of every core before the second of any,
// fast ones first, spread over the nodes. They are ordered by node, so that neighbouring workers, who read
// neighbouring memory, share one.
std::vector<int> cpus_for_workers(std::vector<CpuPlace> places, int count);

}  // namespace outrider
