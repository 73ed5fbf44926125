// SPDX-License-Identifier: Apache-2.0
#include "open/device_choice.h"

#include <gtest/gtest.h>

#include <span>
#include <string>
#include <vector>

#include "device/fake_cuda_driver.h"
#include "models/backend/device/make_backends.h"
#include "open/parts.h"

namespace outrider {
namespace {

std::string model(const std::string& name) { return OUTRIDER_SOURCE_DIR "/tests/data/models/" + name; }

EngineOptions options_for(const std::string& name, ComputeDevice device) {
  EngineOptions options;
  options.model = model(name);
  options.device = device;
  options.cache_dir = "none";
  options.threads = 1;
  return options;
}

// The device that an engine got, or the line that says why it was not opened.
std::string opened_on(EngineOptions options) {
  auto engine = open_engine(Names(std::move(options)));
  return engine.ok() ? (*engine)->info().device : engine.error().message;
}

TEST(DeviceChoice, AutoIsTheProcessorWhereThereIsNoGpu) {
  if (found_cuda().device) GTEST_SKIP() << "this machine has a GPU";
  EXPECT_EQ(opened_on(options_for("llama", ComputeDevice::kAuto)), "cpu");
  EXPECT_EQ(opened_on(options_for("llama", ComputeDevice::kCpu)), "cpu");
}

TEST(DeviceChoice, AGpuThatIsAskedForAndNotThereIsOneLine) {
  if (found_cuda().device) GTEST_SKIP() << "this machine has a GPU";
  const std::string line = opened_on(options_for("llama", ComputeDevice::kCuda));
  EXPECT_EQ(line.find("--device cuda: " + found_cuda().problem), 0U) << line;
  EXPECT_EQ(line.find('\n'), std::string::npos);
}

// The meaning of kAuto for a model on a machine with a fake GPU of capability 9.0.
DeviceChoice chosen_for(const std::string& name, std::span<const ComputeCapability> checked,
                        size_t memory = size_t{1} << 30) {
  const char code[] = "sm_90";
  const CudaImage image{.major = 9, .code = code};
  const CudaDriver driver = fake_cuda_driver();
  fake_cuda().memory = memory;
  const FoundCuda gpu = find_cuda_device(driver, std::span(&image, 1), 13000);
  EXPECT_EQ(gpu.problem, "");
  const auto file = open_model(model(name));
  EXPECT_TRUE(file.ok());
  return choose_gpu(options_for(name, ComputeDevice::kAuto), *file, gpu, checked);
}

TEST(DeviceChoice, AutoTakesNoGpuThatNobodyHasTried) {
  const DeviceChoice untried = chosen_for("llama", {});
  EXPECT_EQ(untried.device, ComputeDevice::kCpu);
  EXPECT_EQ(
      untried.reason,
      "tools/device_check.sh has not passed on a GPU of compute capability 9.0 yet; --device cuda takes it "
      "all the same");
  const std::vector<ComputeCapability> other = {{8, 0}, {9, 1}}, same = {{8, 0}, {9, 0}};
  EXPECT_EQ(chosen_for("llama", other).device, ComputeDevice::kCpu);
  EXPECT_EQ(chosen_for("llama", same).device, ComputeDevice::kCuda);
  EXPECT_EQ(chosen_for("llama", same).reason, "");
}

// A part of the model needs less.
TEST(DeviceChoice, AutoTakesNoGpuThatIsTooSmallForALayer) {
  const std::vector<ComputeCapability> checked = {{9, 0}};
  EXPECT_EQ(chosen_for("mixtral", checked).device, ComputeDevice::kCuda);
  EXPECT_EQ(chosen_for("llama", checked, 1000).reason.find("it has 0 MB free, and the model needs"), 0U);
  EXPECT_EQ(chosen_for("llama", checked, 1000).device, ComputeDevice::kCpu);
}

TEST(DeviceChoice, TheEmulatedDeviceRunsModels) {
  if (!select_device_kernels().ok()) GTEST_SKIP() << "no table has the arithmetic of devices";
  EXPECT_EQ(opened_on(options_for("llama", ComputeDevice::kEmulated)), "emulated");
}

TEST(DeviceChoice, WhatStaysOnTheProcessorIsNamed) {
  if (!select_device_kernels().ok()) GTEST_SKIP() << "no table has the arithmetic of devices";
  EngineOptions options = options_for("llama", ComputeDevice::kEmulated);
  options.kernels = "reference";
  EXPECT_NE(opened_on(options).find("found reference"), std::string::npos);
  options = options_for("llama", ComputeDevice::kEmulated);
  options.tensor_parallel = 2;
  options.gpu_layers = 1;
  EXPECT_NE(opened_on(options).find("found both"), std::string::npos);
  options = options_for("llama", ComputeDevice::kEmulated);
  options.gpu_layers = 0;
  EXPECT_EQ(opened_on(options), "cpu");
}

}  // namespace
}  // namespace outrider
