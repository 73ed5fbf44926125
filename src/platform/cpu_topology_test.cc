// SPDX-License-Identifier: Apache-2.0
#include "platform/cpu_topology.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <fstream>
#include <string>
#include <thread>

namespace outrider {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Two nodes of two cores with two threads each: cpu c and c + 4 share a core, cores 0 and 1 are on node 0.
class CpuTopologyTest : public testing::Test {
 protected:
  CpuTopologyTest() : devices_(testing::TempDir() + "outrider_cpu_topology_test") {
    write("node/online", "0-1\n");
    write("node/node0/cpulist", "0-1,4-5\n");
    write("node/node1/cpulist", "2-3,6,7\n");
    for (int cpu = 0; cpu < 8; ++cpu) {
      const int core = cpu % 4;
      write("cpu/cpu" + std::to_string(cpu) + "/topology/thread_siblings_list",
            std::to_string(core) + "," + std::to_string(core + 4) + "\n");
    }
  }
  ~CpuTopologyTest() override { std::filesystem::remove_all(devices_); }

  void write(const std::string& name, const std::string& text) {
    std::filesystem::create_directories((devices_ / name).parent_path());
    std::ofstream(devices_ / name) << text;
  }
  std::vector<CpuPlace> places(const std::vector<int>& cpus) const { return places_of(cpus, devices_); }

  std::filesystem::path devices_;
};

TEST_F(CpuTopologyTest, ReadsCoresAndNodes) {
  const auto found = places({1, 6});
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].core, 1);
  EXPECT_EQ(found[0].node, 0);
  EXPECT_EQ(found[1].core, 2);
  EXPECT_EQ(found[1].node, 1);
  EXPECT_EQ(node_count(found), 2);
  EXPECT_EQ(node_count(places({0, 1, 5})), 1);
}

TEST_F(CpuTopologyTest, OneThreadOfEveryCoreComesFirstAndNodesTakeTurns) {
  const auto all = places({0, 1, 2, 3, 4, 5, 6, 7});
  EXPECT_THAT(cpus_for_workers(all, 0), IsEmpty());
  EXPECT_THAT(cpus_for_workers(all, 2), ElementsAre(0, 2));
  EXPECT_THAT(cpus_for_workers(all, 3), ElementsAre(0, 1, 2));
  EXPECT_THAT(cpus_for_workers(all, 4), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(cpus_for_workers(all, 5), ElementsAre(0, 4, 1, 2, 3));
  EXPECT_THAT(cpus_for_workers(all, 8), ElementsAre(0, 4, 1, 5, 2, 6, 3, 7));
}

TEST_F(CpuTopologyTest, OnlyAllowedProcessorsCount) {
  // Only the second thread of core 1 is there.
  EXPECT_THAT(cpus_for_workers(places({0, 4, 5}), 2), ElementsAre(0, 5));
}

// Four fast cores and four of less than half their pace, slow ones first, as on an Apple M1.
TEST_F(CpuTopologyTest, SlowCoresComeLastAndOnlyWhereTheyGain) {
  std::vector<int> cpus;
  for (int cpu = 0; cpu < 8; ++cpu) {
    cpus.push_back(10 + cpu);
    write("cpu/cpu" + std::to_string(10 + cpu) + "/cpu_capacity", cpu < 4 ? "466\n" : "1024\n");
  }
  EXPECT_THAT(cpus_for_workers(places(cpus), 3), ElementsAre(14, 15, 16));
  EXPECT_THAT(cpus_for_workers(places(cpus), 5), ElementsAre(10, 14, 15, 16, 17));
  EXPECT_EQ(best_worker_count(places(cpus)), 4);
  write("cpu/cpu10/cpu_capacity", "900\n");
  EXPECT_EQ(best_worker_count(places(cpus)), 5);
  EXPECT_EQ(best_worker_count(places({0, 1, 4})), 3);
  EXPECT_EQ(best_worker_count({}), 1);
}

TEST_F(CpuTopologyTest, WithoutNewsOfTheKernelEveryProcessorIsACore) {
  const std::vector<int> cpus = {3, 9};
  const auto found = places_of(cpus, devices_ / "absent");
  EXPECT_EQ(node_count(found), 1);
  EXPECT_THAT(cpus_for_workers(found, 2), ElementsAre(3, 9));
  write("node/online", "x");
  write("cpu/cpu3/topology/thread_siblings_list", "-");
  EXPECT_THAT(cpus_for_workers(places(cpus), 2), ElementsAre(3, 9));
}

TEST(AllowedCpus, IsTheMaskOfTheThread) {
  const std::vector<int> all = allowed_cpus();
  ASSERT_FALSE(all.empty());
  EXPECT_EQ(all.size(), std::thread::hardware_concurrency());
  std::thread([&] {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(all.back(), &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
    EXPECT_THAT(allowed_cpus(), ElementsAre(all.back()));
  }).join();
  EXPECT_EQ(allowed_cpus(), all);
}

}  // namespace
}  // namespace outrider
