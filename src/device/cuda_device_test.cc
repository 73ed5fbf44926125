// SPDX-License-Identifier: Apache-2.0
#include "device/cuda_device.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <new>
#include <string>
#include <vector>

#include "device/fake_cuda_driver.h"

namespace outrider {
namespace {

constexpr int kVersion = 13000;
const char kOld[] = "sm_80", kNew[] = "sm_90", kText[] = "ptx of sm_90";
const std::vector<CudaImage> kImages = {
    {.major = 8, .code = kOld}, {.major = 9, .code = kNew}, {.major = 9, .is_ptx = true, .code = kText}};

std::string double_numbers(const DeviceKernel&, const void* args, const LaunchShape& shape,
                           const EmulationOptions&) {
  int* numbers = *static_cast<int* const*>(args);
  for (int i = 0; i < shape.blocks * shape.warps; ++i) numbers[i] *= 2;
  return "";
}
constexpr DeviceKernel kDouble{"Double", sizeof(void*), double_numbers};

std::unique_ptr<CudaDevice> open_fake() {
  FoundCuda found = find_cuda_device(fake_cuda_driver(), kImages, kVersion);
  EXPECT_EQ(found.problem, "");
  fake_cuda().kernel = [](std::string_view name) { return name == "Double" ? &kDouble : nullptr; };
  return std::move(found.device);
}

TEST(CudaDevice, CopiesBytes) {
  const auto device = open_fake();
  const DeviceBuffer memory(*device, 64);
  device->fill(memory.address(), std::byte{1}, 64);
  device->upload(std::vector<std::byte>(8, std::byte{2}), memory.address() + 8);
  device->copy(memory.address() + 8, memory.address() + 40, 4);
  std::vector<std::byte> bytes(64), expected(64, std::byte{1});
  device->download(memory.address(), bytes);
  std::fill_n(expected.begin() + 8, 8, std::byte{2});
  std::fill_n(expected.begin() + 40, 4, std::byte{2});
  EXPECT_EQ(bytes, expected);
}

// Bytes of any sizes, several times what the ring of uploads holds, while the memory that they came from
// changes after each call.
TEST(CudaDevice, UploadsLeaveThroughPinnedMemory) {
  const auto device = open_fake();
  constexpr size_t kSizes[] = {1, 1000, 77'777, 3 * CudaUploadRing::kSlotBytes + 5};
  constexpr size_t kBytes = 3 * CudaUploadRing::kSlots * CudaUploadRing::kSlotBytes;
  const DeviceBuffer memory(*device, int64_t{kBytes});
  const auto byte_at = [](size_t i) { return static_cast<std::byte>(i * 2654435761U >> 24); };
  std::vector<std::byte> bytes;
  size_t calls = 0;
  for (size_t begin = 0; begin < kBytes; begin += bytes.size(), ++calls) {
    bytes.resize(std::min(kSizes[calls % std::size(kSizes)], kBytes - begin));
    for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = byte_at(begin + i);
    device->upload(bytes, memory.address() + begin);
  }
  EXPECT_FALSE(fake_cuda().started.empty());  // the host did not wait for the last ones
  std::vector<std::byte> found(kBytes);
  device->download(memory.address(), found);
  size_t differing = 0;
  for (size_t i = 0; i < kBytes; ++i) differing += found[i] != byte_at(i) ? 1 : 0;
  EXPECT_EQ(differing, 0U);
  EXPECT_EQ(fake_cuda().pinned, CudaUploadRing::kSlots * CudaUploadRing::kSlotBytes);
}

TEST(CudaDevice, UploadsNeedNoPinnedMemory) {
  const auto device = open_fake();
  fake_cuda().most_pinned = 1000;
  const DeviceBuffer memory(*device, 8);
  const std::vector<std::byte> bytes(8, std::byte{7});
  device->upload(bytes, memory.address());
  std::vector<std::byte> found(8);
  device->download(memory.address(), found);
  EXPECT_EQ(found, bytes);
  EXPECT_EQ(fake_cuda().pinned, 0U);
}

TEST(CudaDevice, LaunchesKernelsByName) {
  const auto device = open_fake();
  const DeviceBuffer memory(*device, 64);
  const std::vector<int> numbers = {1, 2, 3, 4, 5, 6};
  device->upload(std::as_bytes(std::span(numbers)), memory.address());
  const DeviceAddress address = memory.address();
  device->launch(kDouble, &address, {.blocks = 2, .warps = 3, .shared_bytes = 100'000});
  std::vector<int> result(6);
  device->download(memory.address(), std::as_writable_bytes(std::span(result)));
  EXPECT_EQ(result, (std::vector<int>{2, 4, 6, 8, 10, 12}));
  EXPECT_EQ(fake_cuda().most_shared_bytes, 100'000);
  device->launch(kDouble, &address, {.blocks = 0});  // is none
  EXPECT_EQ(fake_cuda().launches.size(), 1U);
}

TEST(CudaDevice, MemoryEnds) {
  const auto device = open_fake();
  fake_cuda().memory = 1000;
  EXPECT_EQ(device->free_bytes(), 1000);
  const DeviceBuffer memory(*device, 600);
  EXPECT_EQ(device->free_bytes(), 400);
  EXPECT_THROW(device->allocate(500), std::bad_alloc);
}

TEST(CudaDevice, MomentsPass) {
  const auto device = open_fake();
  const int64_t first = device->record_event(), second = device->record_event();
  EXPECT_EQ(device->ms_between(first, second), 0.5);
}

TEST(CudaDevice, EventsOfOldMomentsServeAgain) {
  const auto device = open_fake();
  std::vector<int64_t> moments;
  for (int64_t i = 0; i < 3 * Device::kKeptEvents; ++i) moments.push_back(device->record_event());
  EXPECT_EQ(std::ssize(fake_cuda().events), Device::kKeptEvents);
  const std::span<const int64_t> kept = std::span(moments).last(Device::kKeptEvents);
  for (size_t i = 1; i < kept.size(); ++i)
    EXPECT_EQ(device->ms_between(kept.front(), kept[i]), 0.5 * static_cast<double>(i));
}

TEST(CudaDevice, TheImageFitsTheGpu) {
  const auto loaded_for = [](int major, int minor) {
    CudaDriver driver = fake_cuda_driver();
    fake_cuda().major = major;
    fake_cuda().minor = minor;
    return find_cuda_device(driver, kImages, kVersion).device ? fake_cuda().images
                                                              : std::vector<const void*>();
  };
  EXPECT_EQ(loaded_for(8, 0), std::vector<const void*>{kOld});
  EXPECT_EQ(loaded_for(8, 9), std::vector<const void*>{kOld});
  EXPECT_EQ(loaded_for(9, 0), std::vector<const void*>{kNew});
  EXPECT_EQ(loaded_for(12, 0), std::vector<const void*>{kText});
  EXPECT_TRUE(loaded_for(7, 5).empty());
}

// Sets something of a fresh driver; returns what is found with it.
FoundCuda found_with(const std::function<void(FakeCuda&)>& change, int version = kVersion) {
  CudaDriver driver = fake_cuda_driver();
  change(fake_cuda());
  return find_cuda_device(driver, kImages, version);
}

TEST(FindCudaDevice, OneLineSaysWhyThereIsNone) {
  const FoundCuda none = find_cuda_device(open_cuda_driver("libno_such_driver.so"), kImages, kVersion);
  EXPECT_FALSE(none.has_driver);
  EXPECT_NE(none.problem.find("there is no driver of NVIDIA: libno_such_driver.so"), std::string::npos);

  const FoundCuda no_gpu = found_with([](FakeCuda& cuda) { cuda.init_code = kCudaNoDevice; });
  EXPECT_FALSE(no_gpu.has_driver);
  EXPECT_EQ(no_gpu.problem, "there is a driver of NVIDIA and no GPU");
  EXPECT_EQ(found_with([](FakeCuda& cuda) { cuda.devices = 0; }).problem, no_gpu.problem);

  const FoundCuda failing = found_with([](FakeCuda& cuda) { cuda.init_code = 999; });
  EXPECT_TRUE(failing.has_driver);
  EXPECT_EQ(failing.problem, "NVIDIA's driver fails: a fake error");

  EXPECT_EQ(found_with([](FakeCuda& cuda) { cuda.version = 12040; }).problem,
            "NVIDIA's driver is for CUDA 12.4, expected 13.0 or later; update the driver");
  EXPECT_EQ(found_with([](FakeCuda& cuda) { cuda.major = 7; }).problem,
            "Fake GPU has compute capability 7.0, expected 8.0 or later");
  EXPECT_EQ(found_with([](FakeCuda&) {}, 0).problem,
            "this program was built without code for GPUs; build it where nvcc is");
}

TEST(FindCudaDevice, EachRankOfAMachineTakesAGpu) {
  CudaDriver driver = fake_cuda_driver();
  fake_cuda().devices = 2;
  EXPECT_NE(find_cuda_device(driver, kImages, kVersion, 1).device, nullptr);
  EXPECT_EQ(fake_cuda().opened, std::vector<int>{1});
  EXPECT_EQ(find_cuda_device(driver, kImages, kVersion, 2).problem,
            "expected a GPU for each rank of this machine, found 2 and no one for rank 2; lower the number "
            "of ranks");
}

TEST(FindCudaDevice, ALibraryThatLacksFunctionsIsNamed) {
  const auto driver = open_cuda_driver("libm.so.6");
  ASSERT_FALSE(driver.ok());
  EXPECT_NE(driver.error().message.find("libm.so.6 lacks cuInit, cuDriverGetVersion"), std::string::npos);
}

TEST(CudaDeviceDeathTest, ErrorsEndTheProgramWithTheDriversWords) {
  const auto device = open_fake();
  EXPECT_DEATH(device->release(12345), "the GPU failed at cuMemFree: a fake error");
  constexpr DeviceKernel kOther{"Other", sizeof(void*), double_numbers};
  const DeviceAddress address = 0;
  EXPECT_DEATH(device->launch(kOther, &address, {}), "the GPU's code has no outrider_Other");
}

}  // namespace
}  // namespace outrider
