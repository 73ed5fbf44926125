// SPDX-License-Identifier: Apache-2.0
// The part of tools/device_check.sh that runs on the GPU by itself: every launch of passes of all families
// beside its emulation, and the rates of copies and launches. It runs in the folder of tests/data.
#include <gtest/gtest.h>

#include <cstdio>
#include <functional>
#include <map>
#include <string>

#include "base/clock.h"
#include "device/compared_device.h"
#include "device_kernels/kernel_names.h"
#include "models/backend/device/device_loop.h"
#include "models/backend/device/make_backends.h"
#include "models/decoder.h"
#undef OUTRIDER_SOURCE_DIR
#define OUTRIDER_SOURCE_DIR "."
#include "models/model_test_data.h"

namespace outrider {
namespace {

#define OUTRIDER_REQUIRE_GPU() \
  if (!found_cuda().device) GTEST_SKIP() << found_cuda().problem

// Runs steps that the device makes by itself.
void run_loop(Model& model, KvCache& cache) {
  const int64_t vocab = model.config().vocab_size;
  const auto loop = DeviceLoop::make(
      model, cache, {.max_rows = 1, .max_steps = 4, .max_length = 32, .vocab_size = vocab, .unused = {}});
  ASSERT_TRUE(loop.ok()) << loop.error().message;
  const std::vector<TokenId> prompt = random_tokens(5, vocab, 7);
  KvSequence sequence = cache.open(prompt);
  run_chunk(model, cache, sequence, std::span(prompt).first(4));
  const auto transaction = cache.stage(sequence, 4);
  SamplingParams sampling;
  sampling.temperature = 0.8;
  sampling.top_k = 40;
  const DeviceLoop::Row row{
      .kv = &sequence, .token = prompt.back(), .choice = {&sampling, 0}, .stops = {}, .remaining = 4};
  (*loop)->start(std::span(&row, 1), 4);
  EXPECT_FALSE((*loop)->outcomes_of(3).empty());
  (*loop)->stop();
}

// Runs a model on the device.
void run_on(Device& device, const std::string& name, std::optional<DType> weights, DType entries,
            std::string_view profile = {}) {
  ThreadPool pool(1);
  auto file = open_model(model_data(name));
  ASSERT_TRUE(file.ok()) << file.error().message;
  const ModelOptions options{.kernels = *select_device_kernels(profile), .pool = &pool, .weights = weights};
  auto backend = make_device_backend(device, file->config, options,
                                     [&] { return load_decoder_weights(*file, options); });
  ASSERT_TRUE(backend.ok()) << backend.error().message;
  Decoder model(file->config, options, std::move(*backend));
  KvShape shape = small_cache_shape(model);
  shape.type = entries;
  KvCache cache(shape, KvOptions{.poison = true}, model.make_storage(shape));
  numbers_of_run(model, cache);
  if (part_without_loop(file->config).empty()) run_loop(model, cache);
}

void report(const ComparedDevice& device) {
  std::printf("%-28s %9s %12s %10s\n", "kernel", "launches", "words", "differing");
  int64_t words = 0, differing = 0;
  for (const auto& [kernel, comparison] : device.comparisons()) {
    std::printf("%-28s %9lld %12lld %10lld %s\n", std::string(kernel).c_str(),
                static_cast<long long>(comparison.launches), static_cast<long long>(comparison.words),
                static_cast<long long>(comparison.differing), comparison.first.c_str());
    words += comparison.words;
    differing += comparison.differing;
  }
  std::printf("all: %lld words, %lld differ\n", static_cast<long long>(words),
              static_cast<long long>(differing));
  EXPECT_GT(words, 0);
  EXPECT_EQ(differing, 0);
}

TEST(DeviceCheck, KernelsHaveTheBitsOfTheirEmulation) {
  OUTRIDER_REQUIRE_GPU();
  ComparedDevice device(*found_cuda().device);
  for (const std::string& name : all_models()) run_on(device, name, std::nullopt, DType::kF32);
  for (const DType weights :
       {DType::kF32, DType::kBF16, DType::kF16, DType::kI8, DType::kQ8_0, DType::kQ4_0}) {
    for (const DType entries : {DType::kF32, DType::kBF16, DType::kF16, DType::kE4M3, DType::kQ8_0})
      run_on(device, "llama", weights, entries);
    for (const char* name : {"mixtral", "deepseek_v3", "qwen3_next"})
      run_on(device, name, weights, DType::kBF16);
  }
  for (int type = 0; type < kDTypeCount; ++type) {
    const auto dtype = static_cast<DType>(type);
    if (block_elements(dtype) > 1)
      run_on(device, shape_path("llama-68m@1", dtype, 512).string(), {}, DType::kBF16);
  }
  report(device);
}

// The emulation has the sums of Hopper's tensor cores.
TEST(DeviceCheck, TensorCoresHaveTheBitsOfTheirEmulation) {
  OUTRIDER_REQUIRE_GPU();
  if (found_cuda().device->capability().major != 9) GTEST_SKIP() << "other tensor cores than Hopper's";
  ComparedDevice device(*found_cuda().device);
  for (const char* name : {"llama", "llama_tied", "mixtral"}) {
    for (const DType weights : {DType::kBF16, DType::kF16})
      run_on(device, name, weights, DType::kBF16, kTensorCoreProfile);
  }
  run_on(device, shape_path("llama-68m@1", DType::kF8, 512).string(), {}, DType::kBF16, kTensorCoreProfile);
  for (const DType cached : {DType::kF16, DType::kE4M3, DType::kQ8_0})
    run_on(device, "llama", DType::kBF16, cached, kTensorCoreProfile);
  report(device);
}

// A small pass and nothing else, for compute-sanitizer.
TEST(DeviceCheck, OnePass) {
  OUTRIDER_REQUIRE_GPU();
  run_on(*found_cuda().device, "llama", DType::kQ4_0, DType::kBF16);
}

double ms_of(Device& device, const std::function<void()>& work) {
  const int64_t before = device.record_event();
  work();
  return device.ms_between(before, device.record_event());
}

TEST(DeviceCheck, Rates) {
  OUTRIDER_REQUIRE_GPU();
  CudaDevice& device = *found_cuda().device;
  constexpr int64_t kBytes = int64_t{1} << 30;
  const DeviceBuffer from(device, kBytes), to(device, kBytes);
  device.fill(from.address(), std::byte{1}, kBytes);
  double best = 1e9;
  for (int i = 0; i < 20; ++i)
    best = std::min(best, ms_of(device, [&] { device.copy(from.address(), to.address(), kBytes); }));
  const double copied = 2 * static_cast<double>(kBytes) / best / 1e6;  // read and written
  constexpr int kLaunches = 10'000;
  const simt::ElementwiseArgs args{.x = {reinterpret_cast<float*>(from.address()), 32},
                                   .y = {reinterpret_cast<const float*>(to.address()), 32},
                                   .rows = 1,
                                   .dim = 32,
                                   .x_stride = 32,
                                   .y_stride = 32,
                                   .number = 0};
  const double launches = ms_of(device, [&] {
    for (int i = 0; i < kLaunches; ++i) device.launch(device_kernel(KernelName::kAddRows), &args, {});
  });
  std::printf("gpu: %s\ncapability: %s\ncopy_gb_per_s: %.0f\nlaunch_us: %.2f\n", device.model().c_str(),
              device.capability().text().c_str(), copied, 1e3 * launches / kLaunches);
}

}  // namespace
}  // namespace outrider
