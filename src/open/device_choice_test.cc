// SPDX-License-Identifier: Apache-2.0
#include "open/device_choice.h"

#include <gtest/gtest.h>

#include <string>

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

TEST(DeviceChoice, TheEmulatedDeviceRunsModels) {
  if (!select_device_kernels().ok()) GTEST_SKIP() << "no table has the arithmetic of devices";
  EXPECT_EQ(opened_on(options_for("llama", ComputeDevice::kEmulated)), "emulated");
}

TEST(DeviceChoice, WhatStaysOnTheProcessorIsNamed) {
  if (!select_device_kernels().ok()) GTEST_SKIP() << "no table has the arithmetic of devices";
  EngineOptions options = options_for("mixtral", ComputeDevice::kEmulated);
  EXPECT_NE(opened_on(options).find("has no kernels for experts layers, which this mixtral model has"),
            std::string::npos);
  options = options_for("llama", ComputeDevice::kEmulated);
  options.kernels = "reference";
  EXPECT_NE(opened_on(options).find("found reference"), std::string::npos);
  options = options_for("llama", ComputeDevice::kEmulated);
  options.tensor_parallel = 2;
  EXPECT_NE(opened_on(options).find("--tensor-parallel"), std::string::npos);
}

TEST(DeviceChoice, NeedsAreWeightsAndEntries) {
  const auto file = open_model(model("llama"));
  ASSERT_TRUE(file.ok());
  EngineOptions options = options_for("llama", ComputeDevice::kCpu);
  options.context = 100;
  const DeviceNeeds needs = device_needs(options, *file);
  EXPECT_EQ(needs.context, 100);
  EXPECT_EQ(needs.cache, 100 * cache_bytes_per_token(file->config, DType::kBF16));
  int64_t matrices = 0;  // as stored
  for (const auto& [name, tensor] : file->tensors) matrices += tensor.shape.size() == 2 ? tensor.bytes() : 0;
  EXPECT_GT(needs.weights, matrices / 2);
  EXPECT_LT(needs.weights, 2 * matrices);
  options.weights = WeightPrecision::kQ4;
  EXPECT_LT(device_needs(options, *file).weights, needs.weights / 2);
}

}  // namespace
}  // namespace outrider
