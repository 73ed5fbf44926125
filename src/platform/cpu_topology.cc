// SPDX-License-Identifier: Apache-2.0
#include "platform/cpu_topology.h"

#include <sched.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <tuple>

namespace outrider {
namespace {

constexpr int kMaxCpus = 8192;  // the most that Linux can be built for

// Parses text like "0-3,8,10-11" up to the first part that is no number or range.
std::vector<int> parse_cpu_list(std::istream& text) {
  std::vector<int> cpus;
  int first = 0;
  while (text >> first) {
    int last = first;
    if (text.peek() == '-') {
      text.get();
      if (!(text >> last)) break;
    }
    for (int cpu = std::max(first, 0); cpu <= std::min(last, kMaxCpus); ++cpu) cpus.push_back(cpu);
    if (text.get() != ',') break;
  }
  return cpus;
}

std::vector<int> read_cpu_list(const std::filesystem::path& path) {
  std::ifstream file(path);
  return parse_cpu_list(file);
}

// Linux writes it where cores differ (Apple's, most other ARM processors, Intel's hybrids); Graviton has
// equal ones.
int capacity_of(const std::filesystem::path& cpu) {
  std::ifstream file(cpu / "cpu_capacity");
  int capacity = 0;
  return file >> capacity && capacity > 0 ? capacity : CpuPlace().capacity;
}

std::map<int, int> nodes_of_cpus(const std::filesystem::path& nodes) {
  std::map<int, int> node_of;
  for (const int node : read_cpu_list(nodes / "online")) {
    for (const int cpu : read_cpu_list(nodes / ("node" + std::to_string(node)) / "cpulist"))
      node_of[cpu] = node;
  }
  return node_of;
}

}  // namespace

std::vector<int> allowed_cpus() {
  std::vector<cpu_set_t> mask(kMaxCpus / CPU_SETSIZE);
  const size_t bytes = mask.size() * sizeof(cpu_set_t);
  std::vector<int> cpus;
  if (sched_getaffinity(0, bytes, mask.data()) != 0) return cpus;
  for (int cpu = 0; cpu < kMaxCpus; ++cpu) {
    if (CPU_ISSET_S(cpu, bytes, mask.data())) cpus.push_back(cpu);
  }
  return cpus;
}

std::vector<CpuPlace> places_of(std::span<const int> cpus, const std::filesystem::path& devices) {
  const std::map<int, int> node_of = nodes_of_cpus(devices / "node");
  std::vector<CpuPlace> places;
  for (const int cpu : cpus) {
    const std::filesystem::path folder = devices / "cpu" / ("cpu" + std::to_string(cpu));
    const auto siblings = read_cpu_list(folder / "topology" / "thread_siblings_list");
    const auto node = node_of.find(cpu);
    places.push_back({.cpu = cpu,
                      .core = siblings.empty() ? cpu : siblings.front(),
                      .node = node == node_of.end() ? 0 : node->second,
                      .capacity = capacity_of(folder)});
  }
  return places;
}

int node_count(std::span<const CpuPlace> places) {
  std::set<int> nodes;
  for (const CpuPlace& place : places) nodes.insert(place.node);
  return static_cast<int>(nodes.size());
}

int best_worker_count(std::span<const CpuPlace> places) {
  std::vector<int> capacities;
  for (const CpuPlace& place : places) capacities.push_back(place.capacity);
  std::sort(capacities.rbegin(), capacities.rend());
  int best = 1;
  int64_t most = 0;
  for (int count = 1; count <= static_cast<int>(capacities.size()); ++count) {
    const int64_t pace = int64_t{count} * capacities[static_cast<size_t>(count) - 1];
    if (pace >= most) best = count;
    most = std::max(most, pace);
  }
  return best;
}

std::vector<int> cpus_for_workers(std::vector<CpuPlace> places, int count) {
  struct Choice {
    CpuPlace place;
    int thread;  // of its core
    int turn;    // of its node, among places with the same `thread`
  };
  std::sort(places.begin(), places.end(), [](auto& a, auto& b) { return a.cpu < b.cpu; });
  std::map<int, int> threads;                // by core
  std::map<std::pair<int, int>, int> turns;  // by thread and node
  std::vector<Choice> choices;
  for (const CpuPlace& place : places) {
    const int thread = threads[place.core]++;
    choices.push_back({place, thread, turns[{thread, place.node}]++});
  }
  std::sort(choices.begin(), choices.end(), [](auto& a, auto& b) {
    return std::tie(a.thread, b.place.capacity, a.turn, a.place.node) <
           std::tie(b.thread, a.place.capacity, b.turn, b.place.node);
  });
  choices.resize(static_cast<size_t>(count));
  std::sort(choices.begin(), choices.end(), [](auto& a, auto& b) {
    return std::tie(a.place.node, a.place.core, a.thread) < std::tie(b.place.node, b.place.core, b.thread);
  });
  std::vector<int> cpus;
  for (const Choice& choice : choices) cpus.push_back(choice.place.cpu);
  return cpus;
}

}  // namespace outrider
