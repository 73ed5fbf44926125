// SPDX-License-Identifier: Apache-2.0
// Whole passes of every family, divided between a device and this machine in every way, have the bits of this
// machine.
#include "models/backend/split/split_backend.h"

#include <gtest/gtest.h>

#include "device/emulated_device.h"
#include "models/backend/device/make_backends.h"
#include "models/decoder.h"
#include "models/model_test_data.h"
#include "ranks/thread_ranks.h"

namespace outrider {
namespace {

// The numbers of a run on this machine, or divided.
std::vector<float> numbers_of_division(const ModelFile& file, ModelOptions options, Device* device) {
  const auto load = [&] { return load_decoder_weights(file, options); };
  auto backend = device == nullptr ? make_host_backend(file.config, options, load)
                                   : make_placed_backend(*device, file.config, options, load);
  EXPECT_TRUE(backend.ok()) << backend.error().message;
  if (!backend.ok()) return {};
  EXPECT_EQ(dynamic_cast<SplitBackend*>(backend->get()) != nullptr, device != nullptr);
  Decoder model(file.config, options, std::move(*backend));
  const KvShape shape = small_cache_shape(model);
  KvCache cache(shape, KvOptions{.poison = true}, model.make_storage(shape));
  return numbers_of_run(model, cache);
}

// The placements of a model of so many layers.
std::vector<Placement> placements(int64_t layers, bool has_experts) {
  std::vector<Placement> placements;
  for (int64_t i = 1; i <= layers; ++i) placements.push_back({.host_layers = i});
  for (int64_t i = 1; has_experts && i <= layers; ++i) placements.push_back({.host_experts = i});
  if (has_experts) placements.push_back({.host_layers = 1, .host_experts = layers});
  return placements;
}

TEST(SplitBackend, EveryFamilyHasTheBitsOfThisMachine) {
  const auto kernels = select_device_kernels();
  if (!kernels.ok()) GTEST_SKIP() << "this machine has no table with the arithmetic of devices";
  for (const std::string& name : all_models()) {
    auto file = open_model(model_data(name));
    ASSERT_TRUE(file.ok());
    ThreadPool pool(1);
    ModelOptions options{.kernels = *kernels, .pool = &pool, .weights = {}};
    const std::vector<float> expected = numbers_of_division(*file, options, nullptr);
    for (const Placement& placement : placements(file->config.layer_count, file->config.experts.count > 0)) {
      SCOPED_TRACE(name + ", " + std::to_string(placement.host_layers) + " layers and " +
                   std::to_string(placement.host_experts) + " layers' experts on the host");
      EmulatedDevice device({.seed = 7, .checks_races = true});
      options.placement = placement;
      EXPECT_EQ(numbers_of_division(*file, options, &device), expected);
      EXPECT_GT(device.launches(), 0);
      EXPECT_EQ(device.allocated_bytes(), 0);
      if (HasFailure()) return;
    }
  }
}

// Weights and entries that stay take no memory of the device.
TEST(SplitBackend, KeptWeightsAndEntriesAreNotOnTheDevice) {
  const auto kernels = select_device_kernels();
  if (!kernels.ok()) GTEST_SKIP() << "this machine has no table with the arithmetic of devices";
  auto file = open_model("shape:moe-20m@4,q4_0,512");
  ASSERT_TRUE(file.ok());
  ThreadPool pool(1);
  const auto bytes_with = [&](const Placement& placement) {
    EmulatedDevice device({});
    const ModelOptions options{.kernels = *kernels, .pool = &pool, .weights = {}, .placement = placement};
    auto backend = make_placed_backend(device, file->config, options,
                                       [&] { return load_decoder_weights(*file, options); });
    EXPECT_TRUE(backend.ok()) << backend.error().message;
    Decoder model(file->config, options, std::move(*backend));
    const int64_t weights = device.allocated_bytes();
    const KvShape shape = small_cache_shape(model);
    const auto storage = model.make_storage(shape);
    return std::pair(weights, device.allocated_bytes() - weights);
  };
  const auto [all, all_entries] = bytes_with({});
  const auto [half, half_entries] = bytes_with({.host_layers = 2});
  const auto [without_experts, same_entries] = bytes_with({.host_experts = 4});
  const auto [ends, no_entries] = bytes_with({.host_layers = 4});
  EXPECT_NEAR(static_cast<double>(half - ends), 0.5 * static_cast<double>(all - ends), 1000);
  EXPECT_LT(without_experts, half);
  EXPECT_EQ(half_entries, all_entries / 2);
  EXPECT_EQ(same_entries, all_entries);
  EXPECT_LE(no_entries, 256);
}

TEST(SplitBackend, RanksAreRefused) {
  const auto kernels = select_device_kernels();
  if (!kernels.ok()) GTEST_SKIP() << "this machine has no table with the arithmetic of devices";
  auto file = open_model(model_data("llama"));
  ThreadPool pool(1);
  ThreadRanks job(2);
  const ModelOptions options{.kernels = *kernels,
                             .pool = &pool,
                             .weights = {},
                             .part = part_of(job.of(0), 2, 1),
                             .placement = {.host_layers = 1}};
  EmulatedDevice device({});
  const auto backend = make_placed_backend(device, file->config, options,
                                           [&] { return load_decoder_weights(*file, options); });
  ASSERT_FALSE(backend.ok());
  EXPECT_NE(backend.error().message.find("--gpu-layers"), std::string::npos);
}

}  // namespace
}  // namespace outrider
