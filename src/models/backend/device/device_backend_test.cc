// SPDX-License-Identifier: Apache-2.0
// Whole passes on an emulated device, with race checks, have the bits of this machine.
#include "models/backend/device/device_backend.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <variant>

#include "device/compared_device.h"
#include "device/cuda_device.h"
#include "device/emulated_device.h"
#include "device/fake_cuda_driver.h"
#include "device_kernels/rows/activation.h"
#include "models/backend/device/launcher.h"
#include "models/backend/device/make_backends.h"
#include "models/decoder.h"
#include "models/model_test_data.h"
#include "platform/resident_pages.h"

namespace outrider {
namespace {

// The tables of this machine with the arithmetic of devices.
std::vector<const KernelTable*> device_tables() {
  std::vector<const KernelTable*> tables;
  for (const std::string_view name : available_kernels()) {
    if (has_portable_bits(name)) tables.push_back(*select_kernels(name));
  }
  return tables;
}

struct DeviceCase {
  std::string model;
  std::optional<DType> weights;
  DType kv_type;
};

// The numbers of a run of a model on a device, or on this machine where there is none.
std::vector<float> numbers_of(const DeviceCase& one, const KernelTable& table, Device* device) {
  ThreadPool pool(1);
  auto file = open_model(model_data(one.model));
  EXPECT_TRUE(file.ok()) << file.error().message;
  const ModelOptions options{.kernels = &table, .pool = &pool, .weights = one.weights};
  const auto load = [&] { return load_decoder_weights(*file, options); };
  auto backend = device == nullptr ? make_host_backend(file->config, options, load)
                                   : make_device_backend(*device, file->config, options, load);
  EXPECT_TRUE(backend.ok()) << backend.error().message;
  if (!backend.ok()) return {};
  Decoder model(file->config, options, std::move(*backend));
  KvShape shape = small_cache_shape(model);
  shape.type = one.kv_type;
  KvCache cache(shape, KvOptions{.poison = true}, model.make_storage(shape));
  return numbers_of_run(model, cache);
}

void expect_bits_of_host(const DeviceCase& one) {
  for (const KernelTable* table : device_tables()) {
    SCOPED_TRACE(one.model + ", " + std::string(table->name) + ", " + std::string(dtype_name(one.kv_type)));
    EmulatedDevice device({.seed = 7, .checks_races = true});
    EXPECT_EQ(numbers_of(one, *table, &device), numbers_of(one, *table, nullptr));
    EXPECT_GT(device.launches(), 0);
    EXPECT_EQ(device.allocated_bytes(), 0);
  }
}

TEST(DeviceBackend, EveryFamilyHasTheBitsOfThisMachine) {
  if (device_tables().empty()) GTEST_SKIP() << "this machine has no table with the arithmetic of devices";
  for (const std::string& name : all_models()) expect_bits_of_host({name, std::nullopt, DType::kF32});
}

// The pages of matrices, and of the table of embeddings, that are in this machine's memory.
std::pair<int64_t, int64_t> resident(const DecoderWeights& weights) {
  const auto of = [](const PackedMatrix& matrix) {
    return resident_pages({matrix.data.data(), matrix.data.size()});
  };
  int64_t matrices = 0;
  for (const Projection* projection : weights.list().projections) {
    for (const PackedMatrix& part : projection->parts)
      matrices += &part == &weights.embedding() ? 0 : of(part);
  }
  return {matrices, of(weights.embedding())};
}

TEST(DeviceBackend, WeightsOfTheDeviceLeaveTheMemoryOfThisMachine) {
  if (device_tables().empty()) GTEST_SKIP() << "this machine has no table with the arithmetic of devices";
  for (const char* name : {"llama", "llama_tied"}) {
    ThreadPool pool(1);
    auto file = open_model(model_data(name));
    ASSERT_TRUE(file.ok());
    const ModelOptions options{.kernels = device_tables().front(), .pool = &pool, .weights = {}};
    const auto load = [&] { return load_decoder_weights(*file, options); };
    auto loaded = load();
    ASSERT_TRUE(loaded.ok());
    EXPECT_GT(resident(*loaded).first, 0) << name;
    EmulatedDevice device({});
    const auto backend = make_device_backend(device, file->config, options, load);
    ASSERT_TRUE(backend.ok());
    const auto [matrices, embedding] = resident((*backend)->weights());
    EXPECT_EQ(matrices, 0) << name;
    EXPECT_GT(embedding, 0) << name;
  }
}

TEST(DeviceBackend, EveryTypeOfWeightsAndEntries) {
  if (device_tables().empty()) GTEST_SKIP() << "this machine has no table with the arithmetic of devices";
  for (const DType weights :
       {DType::kF32, DType::kBF16, DType::kF16, DType::kF8, DType::kI8, DType::kQ8_0, DType::kQ4_0}) {
    for (const DType entries : {DType::kF32, DType::kBF16, DType::kF16, DType::kE4M3, DType::kQ8_0})
      expect_bits_of_host({"llama", weights, entries});
  }
}

// Tensor cores round inputs of products to 16 bits, and change nothing else.
TEST(DeviceBackend, TensorCoresGiveNearlyTheNumbersOfThisMachine) {
  if (device_tables().empty()) GTEST_SKIP() << "this machine has no table with the arithmetic of devices";
  const KernelTable& table = **select_device_kernels(kTensorCoreProfile);
  for (const char* model : {"llama", "llama_tied", "qwen2_moe", "gemma3"}) {
    for (const DType weights : {DType::kBF16, DType::kF16}) {
      SCOPED_TRACE(std::string(model) + ", " + std::string(dtype_name(weights)));
      const DeviceCase one{model, weights, DType::kF32};
      EmulatedDevice device({.seed = 7, .checks_races = true});
      const std::vector<float> there = numbers_of(one, table, &device),
                               here = numbers_of(one, table, nullptr);
      ASSERT_EQ(there.size(), here.size());
      float largest = 0, difference = 0;
      for (size_t i = 0; i < here.size(); ++i) {
        largest = std::max(largest, std::abs(here[i]));
        difference = std::max(difference, std::abs(here[i] - there[i]));
      }
      EXPECT_GT(difference, 0);
      EXPECT_LT(difference, largest * 0.05F);
    }
  }
}

// Passes as a GPU gets them from the driver, whose launches are emulated.
TEST(DeviceBackend, AGpuGetsTheSameLaunches) {
  if (device_tables().empty()) GTEST_SKIP() << "this machine has no table with the arithmetic of devices";
  const CudaDriver driver = fake_cuda_driver();
  fake_cuda().kernel = [](std::string_view name) {
    for (int i = 0; i <= static_cast<int>(KernelName::kAttentionE4m3); ++i) {
      const DeviceKernel& kernel = device_kernel(static_cast<KernelName>(i));
      if (kernel.name == name) return &kernel;
    }
    return static_cast<const DeviceKernel*>(nullptr);
  };
  const std::vector<CudaImage> images = {{.major = 9, .code = "code"}};
  FoundCuda found = find_cuda_device(driver, images, 13000);
  ASSERT_NE(found.device, nullptr) << found.problem;
  for (const auto& [weights, entries] :
       {std::pair(DType::kQ4_0, DType::kBF16), {DType::kI8, DType::kQ8_0}, {DType::kBF16, DType::kF32}}) {
    const DeviceCase one{"gemma2", weights, entries};
    EXPECT_EQ(numbers_of(one, *device_tables().back(), found.device.get()),
              numbers_of(one, *device_tables().back(), nullptr));
  }
  EXPECT_GT(fake_cuda().launches.size(), 100U);
  EXPECT_EQ(fake_cuda().allocated, 0U);
}

TEST(DeviceBackend, TooLittleMemoryIsOneLine) {
  if (device_tables().empty()) GTEST_SKIP() << "this machine has no table with the arithmetic of devices";
  const CudaDriver driver = fake_cuda_driver();
  const std::vector<CudaImage> images = {{.major = 9, .code = "code"}};
  FoundCuda found = find_cuda_device(driver, images, 13000);
  ASSERT_NE(found.device, nullptr) << found.problem;
  ThreadPool pool(1);
  auto file = open_model(model_data("llama"));
  ASSERT_TRUE(file.ok());
  const ModelOptions options{.kernels = device_tables().front(), .pool = &pool, .weights = {}};
  fake_cuda().memory = 1000;
  const auto backend = make_device_backend(*found.device, file->config, options,
                                           [&] { return load_decoder_weights(*file, options); });
  ASSERT_FALSE(backend.ok());
  EXPECT_NE(backend.error().message.find("the cuda device has 0 MB free, and the weights need 1 MB"),
            std::string::npos)
      << backend.error().message;
}

// A model of each kind of layer.
TEST(DeviceBackend, EveryTypeOfWeightsInEveryKindOfLayer) {
  if (device_tables().empty()) GTEST_SKIP() << "this machine has no table with the arithmetic of devices";
  const DType types[] = {DType::kBF16, DType::kF16, DType::kI8, DType::kQ8_0, DType::kQ4_0};
  size_t turn = 0;
  for (const char* name : {"mixtral", "gpt_oss", "deepseek_v3", "lfm2", "qwen3_next"}) {
    for (const DType entries : {DType::kBF16, DType::kE4M3, DType::kQ8_0})
      expect_bits_of_host({name, types[turn++ % std::size(types)], entries});
  }
}

// Arguments name all memory that a kernel reads, so that a check on a GPU can emulate each launch beside it.
TEST(DeviceBackend, EveryLaunchCanBeCompared) {
  if (device_tables().empty()) GTEST_SKIP() << "this machine has no table with the arithmetic of devices";
  for (const char* name : {"gpt2", "mixtral", "deepseek_v3", "lfm2", "qwen3_5_moe"}) {
    EmulatedDevice tested({.seed = 11});
    ComparedDevice device(tested);
    const DeviceCase one{name, DType::kQ8_0, DType::kBF16};
    EXPECT_EQ(numbers_of(one, *device_tables().back(), &device),
              numbers_of(one, *device_tables().back(), nullptr));
    EXPECT_GT(device.comparisons().size(), 5U);
    for (const auto& [kernel, comparison] : device.comparisons())
      EXPECT_EQ(comparison.differing, 0) << name << ", " << kernel << ": " << comparison.first;
  }
}

// The bytes of a launch's arguments depend only on their numbers.
TEST(Launcher, PaddingIsCleared) {
#if defined(__has_builtin) && __has_builtin(__builtin_clear_padding)
  EmulatedDevice device({});
  DeviceList list;
  Launcher launcher(device);
  launcher.record_into(&list);
  for (const int old : {0x00, 0xFF}) {
    simt::ActivationArgs args;
    std::memset(static_cast<void*>(&args), old, sizeof(args));
    args.x = {};
    args.y = {};
    args.rows = args.dim = args.is_gated = 1;
    args.packed = {};
    launcher.launch(KernelName::kSilu, args, {});
  }
  const auto bytes_of = [&](size_t entry) {
    return std::get<DeviceList::Launch>(list.entries()[entry]).args;
  };
  EXPECT_EQ(bytes_of(0), bytes_of(1));
#else
  GTEST_SKIP() << "this compiler cannot clear padding";
#endif
}

TEST(DeviceBackend, ExpertsOfSeveralTypesAreRefused) {
  if (device_tables().empty()) GTEST_SKIP() << "this machine has no table with the arithmetic of devices";
  ThreadPool pool(1);
  auto file = open_model(model_data("mixtral"));
  ASSERT_TRUE(file.ok());
  const ModelOptions options{.kernels = device_tables().front(), .pool = &pool, .weights = {}};
  const auto load = [&] {
    auto weights = load_decoder_weights(*file, options);
    if (weights.ok()) {
      const WeightList list = weights->list();
      const_cast<Projection*>(list.stacks.front().back())->parts.front().dtype = DType::kQ8_0;
    }
    return weights;
  };
  EmulatedDevice device({});
  const auto backend = make_device_backend(device, file->config, options, load);
  ASSERT_FALSE(backend.ok());
  EXPECT_NE(backend.error().message.find("all experts of a layer in one type"), std::string::npos)
      << backend.error().message;
}

// More operations than a device keeps moments for.
TEST(DeviceBackend, EveryOperationIsMeasured) {
  if (device_tables().empty()) GTEST_SKIP() << "this machine has no table with the arithmetic of devices";
  ThreadPool pool(1);
  auto file = open_model(model_data("llama"));
  ASSERT_TRUE(file.ok());
  const ModelOptions options{.kernels = device_tables().front(), .pool = &pool, .weights = {}};
  EmulatedDevice device({});
  const auto backend = make_device_backend(device, file->config, options,
                                           [&] { return load_decoder_weights(*file, options); });
  ASSERT_TRUE(backend.ok());
  constexpr int64_t kNumbers = 1000, kCalls = 3 * Device::kKeptEvents;
  const FloatAddress numbers = (*backend)->allocate(kNumbers);
  (*backend)->clear(numbers, kNumbers);
  PassProfile profile;
  (*backend)->measure_into(&profile);
  for (int64_t i = 0; i < kCalls; ++i) (*backend)->scale(0.5F, numbers, kNumbers);
  (*backend)->measure_into(nullptr);
  (*backend)->scale(0.5F, numbers, kNumbers);
  ASSERT_EQ(profile.operations().size(), 1u);
  const OperationTimes& times = profile.operations().front();
  EXPECT_EQ(times.calls, kCalls);
  EXPECT_EQ(times.cost.bytes, kCalls * 2 * kNumbers * 4);
  EXPECT_GT(times.seconds, 0.0);
}

TEST(DeviceBackend, OtherTablesAreRefused) {
  ThreadPool pool(1);
  EmulatedDevice device({});
  const auto backend = make_device_backend(
      device, ModelConfig(), {.kernels = *select_kernels("reference"), .pool = &pool, .weights = {}},
      [] { return Result<DecoderWeights>(DecoderWeights()); });
  ASSERT_FALSE(backend.ok());
  EXPECT_NE(backend.error().message.find("found reference"), std::string::npos) << backend.error().message;
}

}  // namespace
}  // namespace outrider
