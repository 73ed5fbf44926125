// SPDX-License-Identifier: Apache-2.0
#include "open/device_placement.h"

#include <gtest/gtest.h>

#include <string>

#include "models/decoder_weights.h"
#include "open/default_context.h"

namespace outrider {
namespace {

ModelFile file_of(const std::string& name) {
  auto file =
      open_model(name.starts_with("shape:") ? name : OUTRIDER_SOURCE_DIR "/tests/data/models/" + name);
  EXPECT_TRUE(file.ok());
  return std::move(*file);
}

EngineOptions short_context() {
  EngineOptions options;
  options.context = 100;
  return options;
}

TEST(DevicePlacement, NeedsAreWeightsAndEntries) {
  const ModelFile file = file_of("llama");
  EngineOptions options = short_context();
  const DeviceNeeds needs = device_needs(options, file);
  EXPECT_EQ(needs.context, 100);
  EXPECT_EQ(needs.cache, 100 * cache_bytes_per_token(file.config, DType::kBF16));
  int64_t matrices = 0;  // as stored
  for (const auto& [name, tensor] : file.tensors) matrices += tensor.shape.size() == 2 ? tensor.bytes() : 0;
  EXPECT_GT(needs.weights, matrices / 2);
  EXPECT_LT(needs.weights, 2 * matrices);
  options.weights = WeightPrecision::kQ4;
  EXPECT_LT(device_needs(options, file).weights, needs.weights / 2);
}

// A state of each sequence in the batch, whatever its length.
TEST(DevicePlacement, NeedsHaveStates) {
  const ModelFile file = file_of("lfm2");
  EngineOptions options = short_context();
  options.max_batch = 4;
  const int64_t few = device_needs(options, file).cache;
  options.max_batch = 9;
  const int64_t more = device_needs(options, file).cache;
  int64_t states = 0;  // numbers of a sequence
  for (const LayerBlocks& layer : make_layers(file.config)) states += layer.mixer->cache().state_size;
  EXPECT_GT(states, 0);
  EXPECT_EQ(more - few, 5 * states * 4);
  // Layers of the processor have their states there.
  const DeviceNeeds rest = device_needs(options, file, {.host_layers = file.config.layer_count});
  EXPECT_EQ(rest.cache, 0);
}

constexpr const char* kDense = "shape:llama-68m@2,q4_0,512";
constexpr const char* kExperts = "shape:moe-20m@4,q4_0,512";

// As in llama.cpp the output head is the last layer.
TEST(DevicePlacement, TheLastLayersAreOnTheDevice) {
  const ModelConfig config = file_of(kExperts).config;
  ASSERT_EQ(config.layer_count, 4);
  EngineOptions options;
  EXPECT_EQ(asked_placement(options, config), Placement());
  for (const auto& [asked, on_host] :
       {std::pair(1, 4), {3, 2}, {5, 0}, {99, 0}, {EngineOptions::kAllLayers, 0}}) {
    options.gpu_layers = asked;
    EXPECT_EQ(asked_placement(options, config), Placement{.host_layers = on_host}) << asked;
  }
  options.gpu_layers.reset();
  for (const auto& [asked, on_host] : {std::pair(0, 0), {3, 3}, {99, 4}, {EngineOptions::kAllLayers, 4}}) {
    options.cpu_experts = asked;
    EXPECT_EQ(asked_placement(options, config), Placement{.host_experts = on_host}) << asked;
  }
  EXPECT_EQ(asked_placement(options, file_of(kDense).config), Placement());
}

// The plan for each memory is the first placement in the order of what stays that fits.
void expect_plans(const ModelFile& file, const std::vector<Placement>& order) {
  const EngineOptions options = short_context();
  const auto planned = [&](int64_t bytes) { return planned_placement(options, file, bytes); };
  EXPECT_EQ(planned(int64_t{1} << 40), order.front());
  int64_t room = 0;
  for (const Placement& placement : order) {
    room = device_needs(options, file, placement).bytes();
    EXPECT_EQ(planned(room * 32 / 31 + 32), placement);
    EXPECT_NE(planned(room), placement);  // a part of memory is always lost
  }
  EXPECT_EQ(planned(room), std::nullopt);
}

TEST(DevicePlacement, LayersStayAsFarAsTheyMust) { expect_plans(file_of(kDense), {{}, {.host_layers = 1}}); }

TEST(DevicePlacement, ExpertsStayBeforeLayers) {
  expect_plans(file_of(kExperts), {{},
                                   {.host_experts = 1},
                                   {.host_experts = 2},
                                   {.host_experts = 3},
                                   {.host_experts = 4},
                                   {.host_layers = 1, .host_experts = 4},
                                   {.host_layers = 2, .host_experts = 4},
                                   {.host_layers = 3, .host_experts = 4}});
}

TEST(DevicePlacement, WhatIsAskedForIsNotPlanned) {
  const ModelFile file = file_of(kExperts);
  EngineOptions options = short_context();
  options.gpu_layers = 3;
  options.cpu_experts = 0;
  EXPECT_EQ(planned_placement(options, file, 1000), Placement{.host_layers = 2});
  ASSERT_TRUE(take_placement(options, file, {}, std::nullopt).ok());
  EXPECT_EQ(asked_placement(options, file.config), Placement{.host_layers = 2});
}

TEST(DevicePlacement, ThePlanIsInTheOptions) {
  const ModelFile file = file_of(kDense);
  EngineOptions options = short_context();
  options.device = ComputeDevice::kCuda;
  const int64_t needed = device_needs(options, file, {.host_layers = 1}).bytes();
  ASSERT_TRUE(take_placement(options, file, {}, needed * 32 / 31 + 32).ok());
  EXPECT_EQ(options.gpu_layers, 2);
  EXPECT_EQ(options.cpu_experts, 0);
  options.gpu_layers.reset();
  const Status too_small = take_placement(options, file, {}, 1000);
  ASSERT_FALSE(too_small.ok());
  EXPECT_NE(too_small.error().message.find("one layer of this model needs"), std::string::npos);
}

// Draft models need rows beside their weights and entries.
TEST(DevicePlacement, DraftsNeedRoomForTheirRows) {
  const ModelFile file = file_of(kDense);
  DraftFiles drafts;
  drafts.models.push_back(file_of(kDense));
  const EngineOptions options = short_context();
  const int64_t needed = device_needs(options, file).bytes() * 32 / 31 + 32;
  const int64_t drafted = draft_bytes(options, drafts, options.context);
  const auto on_device = [&](int64_t free_bytes) {
    EngineOptions taken = options;
    taken.device = ComputeDevice::kCuda;
    return take_placement(taken, file, drafts, free_bytes).ok() ? taken.gpu_layers.value_or(0) : 0;
  };
  const int all = static_cast<int>(file.config.layer_count) + 1;
  EXPECT_LT(on_device(needed + drafted), all);
  EXPECT_EQ(on_device(needed + drafted + device_needs(options, file).scratch), all);
}

TEST(DevicePlacement, TextsNameWhatIsThere) {
  const ModelConfig config = file_of(kExperts).config;
  EXPECT_EQ(placement_text({}, config), "all 5 layers");
  EXPECT_EQ(placement_text({.host_layers = 2}, config), "the last 3 of 5 layers");
  EXPECT_EQ(placement_text({.host_experts = 3}, config), "all 5 layers without the experts of the first 3");
}

}  // namespace
}  // namespace outrider
