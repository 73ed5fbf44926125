// SPDX-License-Identifier: Apache-2.0
#include "device/emulated_device.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "device/device_list.h"

namespace outrider {
namespace {

std::string emulate_nothing(const DeviceKernel&, const void* args, const LaunchShape& shape,
                            const EmulationOptions& options) {
  auto* seeds = *static_cast<std::vector<uint64_t>* const*>(args);
  seeds->push_back(options.seed);
  return shape.warps == 3 ? "out of bounds: numbers of lanes" : "";
}

constexpr DeviceKernel kNothing{"Nothing", sizeof(void*), emulate_nothing};

TEST(EmulatedDevice, FreshMemoryIsNan) {
  EmulatedDevice device({});
  const DeviceBuffer memory(device, 100);
  std::vector<std::byte> bytes(100);
  device.download(memory.address(), bytes);
  EXPECT_EQ(bytes, std::vector<std::byte>(100, std::byte{0xFF}));
  EXPECT_EQ(memory.address() % 256, 0U);
}

TEST(EmulatedDevice, CopiesBytes) {
  EmulatedDevice device({});
  const DeviceBuffer memory(device, 64);
  device.fill(memory.address(), std::byte{1}, 64);
  device.upload(std::vector<std::byte>(8, std::byte{2}), memory.address() + 8);
  device.copy(memory.address() + 8, memory.address() + 40, 4);
  std::vector<std::byte> bytes(64), expected(64, std::byte{1});
  device.download(memory.address(), bytes);
  std::memset(expected.data() + 8, 2, 8);
  std::memset(expected.data() + 40, 2, 4);
  EXPECT_EQ(bytes, expected);
}

TEST(EmulatedDevice, GivesMemoryBack) {
  EmulatedDevice device({});
  DeviceBuffer memory(device, 10);
  memory.reserve(5);
  EXPECT_EQ(device.allocated_bytes(), 10);
  memory.reserve(30);
  EXPECT_EQ(device.allocated_bytes(), 30);
  DeviceBuffer other(std::move(memory));
  EXPECT_EQ(device.allocated_bytes(), 30);
  other = DeviceBuffer(device);
  EXPECT_EQ(device.allocated_bytes(), 0);
}

TEST(EmulatedDevice, EveryLaunchHasAnotherSeed) {
  EmulatedDevice device({.seed = 5});
  std::vector<uint64_t> seeds;
  auto* args = &seeds;
  for (int i = 0; i < 3; ++i) device.launch(kNothing, &args, {});
  EXPECT_EQ(seeds, (std::vector<uint64_t>{5, 6, 7}));
  EXPECT_EQ(device.launches(), 3);
}

TEST(EmulatedDevice, MomentsPass) {
  EmulatedDevice device({});
  const int64_t first = device.record_event(), second = device.record_event();
  EXPECT_GE(device.ms_between(first, second), 0);
}

// An emulated device computes in the time in which this machine waits for it.
TEST(EmulatedDevice, WaitsAreCounted) {
  static constexpr DeviceKernel kSleeps = {
      "Sleeps", 1, [](const DeviceKernel&, const void*, const LaunchShape&, const EmulationOptions&) {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        return std::string();
      }};
  EmulatedDevice device({});
  EXPECT_EQ(device.counts().waited_ms, 0);
  device.launch(kSleeps, "", {});
  const DeviceCounts launched = device.counts();
  EXPECT_GE(launched.waited_ms, 20);
  DeviceList list;
  list.launch(kSleeps, "", {});
  const auto loaded = device.load(std::move(list));
  ASSERT_TRUE(loaded.ok());
  (*loaded)->run();
  EXPECT_EQ(device.counts().waited_ms, launched.waited_ms) << "a list runs beside this machine";
  device.wait();
  EXPECT_GT(device.counts().waited_ms, launched.waited_ms);
}

TEST(EmulatedDeviceDeathTest, FaultsEndTheProgram) {
  EmulatedDevice device({});
  std::vector<uint64_t> seeds;
  auto* args = &seeds;
  EXPECT_DEATH(device.launch(kNothing, &args, {.warps = 3}), "device kernel Nothing: out of bounds");
  const DeviceBuffer memory(device, 16);
  EXPECT_DEATH(device.fill(memory.address() + 8, std::byte{0}, 9), "bytes");
  EXPECT_DEATH(device.fill(memory.address() - 1, std::byte{0}, 1), "");
}

}  // namespace
}  // namespace outrider
