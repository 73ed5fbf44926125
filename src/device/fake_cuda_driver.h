// SPDX-License-Identifier: Apache-2.0
// NVIDIA's driver for tests, on a machine without a GPU: memory of the device is memory of this machine, and
// launches are emulated.
#pragma once

#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "device/cuda_driver.h"
#include "device/device.h"

namespace outrider {

// The state of the fake driver. There is one, as the driver's functions have no object.
struct FakeCuda {
  int init_code = 0;
  int version = 13000;
  int devices = 1;
  int major = 9, minor = 0;
  size_t memory = size_t{1} << 30;
  // The kernel of that name without "outrider_"; null: the code has none.
  std::function<const DeviceKernel*(std::string_view)> kernel = [](std::string_view) { return nullptr; };

  size_t allocated = 0;
  std::map<CudaDriver::Address, size_t> allocations = {};
  std::vector<const void*> images = {};  // that were loaded
  std::vector<LaunchShape> launches = {};
  int most_shared_bytes = 0;
  int contexts_set = 0;
};

inline FakeCuda& fake_cuda() {
  static FakeCuda fake;
  return fake;
}

namespace fake {

constexpr int kInvalid = 1;

inline int allocate(CudaDriver::Address* address, size_t bytes) {
  FakeCuda& cuda = fake_cuda();
  if (cuda.allocated + bytes > cuda.memory) return kCudaOutOfMemory;
  *address = reinterpret_cast<CudaDriver::Address>(operator new(bytes, std::align_val_t(256)));
  std::memset(reinterpret_cast<void*>(*address), 0xFF, bytes);
  cuda.allocated += bytes;
  cuda.allocations[*address] = bytes;
  return 0;
}

inline int release(CudaDriver::Address address) {
  FakeCuda& cuda = fake_cuda();
  const auto found = cuda.allocations.find(address);
  if (found == cuda.allocations.end()) return kInvalid;
  cuda.allocated -= found->second;
  cuda.allocations.erase(found);
  operator delete(reinterpret_cast<void*>(address), std::align_val_t(256));
  return 0;
}

inline int launch(CudaDriver::Handle function, unsigned blocks, unsigned, unsigned, unsigned threads,
                  unsigned, unsigned, unsigned shared_bytes, CudaDriver::Handle, void** arguments, void**) {
  const auto& kernel = *static_cast<const DeviceKernel*>(function);
  const LaunchShape shape{.blocks = static_cast<int>(blocks),
                          .warps = static_cast<int>(threads / 32),
                          .shared_bytes = static_cast<int>(shared_bytes)};
  FakeCuda& cuda = fake_cuda();
  cuda.launches.push_back(shape);
  if (blocks == 0 || (shared_bytes > 48 << 10 && cuda.most_shared_bytes < shape.shared_bytes))
    return kInvalid;
  return kernel.emulate(kernel, arguments[0], shape, {}).empty() ? 0 : kInvalid;
}

inline int get_function(CudaDriver::Handle* function, CudaDriver::Handle module, const char* name) {
  constexpr std::string_view kPrefix = "outrider_";
  if (module != fake_cuda().images.front() || !std::string_view(name).starts_with(kPrefix)) return kInvalid;
  const DeviceKernel* kernel = fake_cuda().kernel(std::string_view(name).substr(kPrefix.size()));
  *function = const_cast<DeviceKernel*>(kernel);
  return kernel == nullptr ? kInvalid : 0;
}

inline int memory_info(size_t* free, size_t* total) {
  *free = fake_cuda().memory - fake_cuda().allocated;
  *total = fake_cuda().memory;
  return 0;
}

// Its kernels are all in the first image.
inline int load_module(CudaDriver::Handle* module, const void* image) {
  fake_cuda().images.push_back(image);
  *module = const_cast<void*>(image);
  return 0;
}

}  // namespace fake

// The functions of a driver of this kind, which is as new.
inline CudaDriver fake_cuda_driver() {
  fake_cuda() = FakeCuda();
  CudaDriver driver;
  driver.init = [](unsigned) { return fake_cuda().init_code; };
  driver.driver_version = [](int* version) { return *version = fake_cuda().version, 0; };
  driver.error_string = [](int, const char** text) { return *text = "a fake error", 0; };
  driver.device_count = [](int* count) { return *count = fake_cuda().devices, 0; };
  driver.device_get = [](int* device, int number) { return *device = number, 0; };
  driver.device_name = [](char* name, int size, int) {
    return std::strncpy(name, "Fake GPU", static_cast<size_t>(size)), 0;
  };
  driver.device_attribute = [](int* value, int attribute, int) {
    *value = attribute == kCudaMajor ? fake_cuda().major : fake_cuda().minor;
    return 0;
  };
  driver.retain_primary_context = [](CudaDriver::Handle* context, int) { return *context = &fake_cuda(), 0; };
  driver.set_current_context = [](CudaDriver::Handle context) {
    ++fake_cuda().contexts_set;
    return context == &fake_cuda() ? 0 : fake::kInvalid;
  };
  driver.memory_info = fake::memory_info;
  driver.allocate = fake::allocate;
  driver.release = fake::release;
  driver.upload = [](CudaDriver::Address to, const void* from, size_t bytes) {
    return std::memcpy(reinterpret_cast<void*>(to), from, bytes), 0;
  };
  driver.download = [](void* to, CudaDriver::Address from, size_t bytes) {
    return std::memcpy(to, reinterpret_cast<const void*>(from), bytes), 0;
  };
  driver.copy = [](CudaDriver::Address to, CudaDriver::Address from, size_t bytes, CudaDriver::Handle) {
    return std::memcpy(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes), 0;
  };
  driver.fill = [](CudaDriver::Address to, unsigned char value, size_t bytes, CudaDriver::Handle) {
    return std::memset(reinterpret_cast<void*>(to), value, bytes), 0;
  };
  driver.load_module = fake::load_module;
  driver.get_function = fake::get_function;
  driver.set_function_attribute = [](CudaDriver::Handle, int attribute, int value) {
    if (attribute != kCudaSharedBytes) return fake::kInvalid;
    return fake_cuda().most_shared_bytes = value, 0;
  };
  driver.launch = fake::launch;
  driver.create_event = [](CudaDriver::Handle* event, unsigned) { return *event = &fake_cuda(), 0; };
  driver.record_event = [](CudaDriver::Handle, CudaDriver::Handle) { return 0; };
  driver.wait_for_event = [](CudaDriver::Handle) { return 0; };
  driver.elapsed_ms = [](float* ms, CudaDriver::Handle, CudaDriver::Handle) { return *ms = 0.5F, 0; };
  return driver;
}

}  // namespace outrider
