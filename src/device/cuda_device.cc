// SPDX-License-Identifier: Apache-2.0
#include "device/cuda_device.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <new>

#include "base/check.h"
#include "base/log.h"
#include "device/cuda_list.h"

namespace outrider {
namespace {

constexpr int kUsualSharedBytes = 48 << 10;  // a function that uses more must say so
constexpr int kThreads = 32;                 // of a warp

std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

// The images that run on a GPU: of the closest capability below its own.
std::vector<CudaImage> fitting_images(std::span<const CudaImage> images, ComputeCapability of) {
  const auto fits = [&](const CudaImage& image) {
    if (image.is_ptx && image.major < of.major) return true;
    return image.major == of.major && image.minor <= of.minor;
  };
  const auto rank = [](const CudaImage& image) {
    return (image.is_ptx ? 0 : 1000) + image.major * 10 + image.minor;
  };
  int best = -1;
  for (const CudaImage& image : images) {
    if (fits(image)) best = std::max(best, rank(image));
  }
  std::vector<CudaImage> chosen;
  std::ranges::copy_if(images, std::back_inserter(chosen),
                       [&](const CudaImage& image) { return fits(image) && rank(image) == best; });
  return chosen;
}

}  // namespace

Result<std::unique_ptr<CudaDevice>> CudaDevice::open(const CudaDriver& driver,
                                                     std::span<const CudaImage> images, int number) {
  int device = 0;
  ComputeCapability capability;
  std::array<char, 128> name = {};
  CudaDriver::Handle context = nullptr;
  int code = driver.device_get(&device, number);
  if (code == 0) code = driver.device_name(name.data(), static_cast<int>(name.size()) - 1, device);
  if (code == 0) code = driver.device_attribute(&capability.major, kCudaMajor, device);
  if (code == 0) code = driver.device_attribute(&capability.minor, kCudaMinor, device);
  if (code == 0) code = driver.retain_primary_context(&context, device);
  if (code == 0) code = driver.set_current_context(context);
  if (code != 0) return resource_error("the GPU cannot be used: " + driver.text_of(code));
  const std::vector<CudaImage> fitting = fitting_images(images, capability);
  if (fitting.empty()) {
    return resource_error(std::string(name.data()) + " has compute capability " + capability.text() +
                          ", expected 8.0 or later");
  }
  std::unique_ptr<CudaDevice> opened(new CudaDevice(driver, name.data(), capability, context));
  OUTRIDER_RETURN_IF_ERROR(opened->load_images(fitting));
  return opened;
}

Status CudaDevice::load_images(std::span<const CudaImage> images) {
  for (const CudaImage& image : images) {
    CudaDriver::Handle module = nullptr;
    const int code = driver_.load_module(&module, image.code);
    if (code == 0) modules_.push_back(module);
    if (code != 0 && !image.has_loops)
      return resource_error("the GPU does not take the kernels: " + driver_.text_of(code));
  }
  return {};
}

void CudaDevice::expect(int code, std::string_view call) const {
  if (code == 0) return;
  log_warning("the GPU failed at " + std::string(call) + ": " + driver_.text_of(code));
  OUTRIDER_CHECK(code == 0);
}

void CudaDevice::enter() const { expect(driver_.set_current_context(context_), "cuCtxSetCurrent"); }

std::optional<int64_t> CudaDevice::free_bytes() const {
  enter();
  size_t free = 0, total = 0;
  expect(driver_.memory_info(&free, &total), "cuMemGetInfo");
  return static_cast<int64_t>(free);
}

DeviceAddress CudaDevice::allocate(int64_t bytes) {
  enter();
  count_allocation();
  CudaDriver::Address address = 0;
  const int code = driver_.allocate(&address, static_cast<size_t>(bytes));
  if (code == kCudaOutOfMemory) throw std::bad_alloc();
  expect(code, "cuMemAlloc");
  return static_cast<DeviceAddress>(address);
}

void CudaDevice::release(DeviceAddress memory) {
  if (memory == 0) return;
  enter();
  expect(driver_.release(memory), "cuMemFree");
}

void CudaDevice::upload(std::span<const std::byte> bytes, DeviceAddress to) {
  if (bytes.empty()) return;
  enter();
  count_upload(bytes);
  expect(uploads_.upload(bytes, to), "an upload");
}

void CudaDevice::download(DeviceAddress from, std::span<std::byte> bytes) {
  if (bytes.empty()) return;
  enter();
  count_download(bytes);
  const DeviceWait wait(*this);
  expect(driver_.download(bytes.data(), from, bytes.size()), "cuMemcpyDtoH");
}

void CudaDevice::copy(DeviceAddress from, DeviceAddress to, int64_t bytes) {
  if (bytes <= 0 || from == to) return;
  enter();
  count_write();
  expect(driver_.copy(to, from, static_cast<size_t>(bytes), nullptr), "cuMemcpyDtoD");
}

void CudaDevice::fill(DeviceAddress to, std::byte value, int64_t bytes) {
  if (bytes <= 0) return;
  enter();
  count_write();
  expect(driver_.fill(to, std::to_integer<unsigned char>(value), static_cast<size_t>(bytes), nullptr),
         "cuMemsetD8");
}

CudaDriver::Handle CudaDevice::find_function(const std::string& name) const {
  CudaDriver::Handle function = nullptr;
  for (size_t i = 0; i < modules_.size() && function == nullptr; ++i) {
    if (driver_.get_function(&function, modules_[i], name.c_str()) != 0) function = nullptr;
  }
  return function;
}

CudaDriver::Handle CudaDevice::function_of(const DeviceKernel& kernel, int shared_bytes) {
  const std::lock_guard lock(mutex_);
  CudaDriver::Handle& function = functions_[kernel.name];
  const std::string name = "outrider_" + std::string(kernel.name);
  if (function == nullptr) function = find_function(name);
  if (function == nullptr) log_warning("the GPU's code has no " + name);
  OUTRIDER_CHECK(function != nullptr);
  int& most = shared_bytes_[kernel.name];
  if (shared_bytes > std::max(most, kUsualSharedBytes)) {
    expect(driver_.set_function_attribute(function, kCudaSharedBytes, shared_bytes), "cuFuncSetAttribute");
    most = shared_bytes;
  }
  return function;
}

void CudaDevice::launch(const DeviceKernel& kernel, const void* args, const LaunchShape& shape) {
  if (shape.blocks == 0) return;  // which the driver refuses
  enter();
  count_launch();
  const CudaDriver::Handle function = function_of(kernel, shape.shared_bytes);
  void* arguments[] = {const_cast<void*>(args)};
  expect(driver_.launch(function, static_cast<unsigned>(shape.blocks), 1, 1,
                        static_cast<unsigned>(shape.warps * kThreads), 1, 1,
                        static_cast<unsigned>(shape.shared_bytes), nullptr, arguments, nullptr),
         kernel.name);
}

int CudaDevice::order(const std::function<int(CudaDriver::Handle stream)>& calls) {
  enter();
  count_write();
  return calls(stream_);
}

int CudaDevice::capture(CudaDriver::Handle* graph, const std::function<void()>& calls) {
  if (!driver_.has_captures()) return kCudaNotSupported;
  int code = capture_stream_ == nullptr ? driver_.create_stream(&capture_stream_, kCudaFreeStream) : 0;
  if (code == 0) code = driver_.begin_capture(capture_stream_, kCudaFreeCapture);
  if (code != 0) return code;
  stream_ = capture_stream_;
  calls();
  stream_ = nullptr;
  return driver_.end_capture(capture_stream_, graph);
}

Result<std::unique_ptr<LoadedList>> CudaDevice::load(DeviceList list) {
  enter();
  if (list.has_loops() && find_function("outrider_ContinueLoop") == nullptr)
    return resource_error("NVIDIA's driver refuses the code of loops; update it");
  return CudaList::make(
      {.driver = &driver_,
       .context = context_,
       .function_of = [this](const DeviceKernel& kernel,
                             int shared_bytes) { return function_of(kernel, shared_bytes); },
       .allocate = [this](int64_t bytes) { return allocate(bytes); },
       .release = [this](DeviceAddress memory) { release(memory); },
       .count_run = [this] { count_list(); },
       .capture = [this](CudaDriver::Handle* graph,
                         const std::function<void()>& calls) { return capture(graph, calls); }},
      list);
}

MappedMemory CudaDevice::allocate_mapped(int64_t bytes) {
  enter();
  void* memory = nullptr;
  const int code = driver_.allocate_host(&memory, static_cast<size_t>(bytes), kCudaMappedMemory);
  if (code == kCudaOutOfMemory) throw std::bad_alloc();
  expect(code, "cuMemHostAlloc");
  std::memset(memory, 0, static_cast<size_t>(bytes));
  CudaDriver::Address address = 0;
  expect(driver_.device_address(&address, memory, 0), "cuMemHostGetDevicePointer");
  return {static_cast<std::byte*>(memory), static_cast<DeviceAddress>(address)};
}

void CudaDevice::release_mapped(const MappedMemory& memory) {
  enter();
  expect(driver_.release_host(memory.host), "cuMemFreeHost");
}

void CudaDevice::wait() {
  enter();
  const DeviceWait wait(*this);
  expect(driver_.synchronize(), "cuCtxSynchronize");
}

int64_t CudaDevice::record_event() {
  enter();
  const std::lock_guard lock(mutex_);
  if (moments_ < kKeptEvents) expect(driver_.create_event(&events_.emplace_back(), 0), "cuEventCreate");
  const int64_t moment = moments_++;
  expect(driver_.record_event(event_of(moment), nullptr), "cuEventRecord");
  return moment;
}

CudaDriver::Handle CudaDevice::event_of(int64_t moment) const {
  OUTRIDER_CHECK(moment < moments_ && moment >= moments_ - kKeptEvents);
  return events_[static_cast<size_t>(moment % kKeptEvents)];
}

double CudaDevice::ms_between(int64_t first, int64_t second) {
  enter();
  const std::lock_guard lock(mutex_);
  const CudaDriver::Handle from = event_of(first), to = event_of(second);
  {
    const DeviceWait wait(*this);
    expect(driver_.wait_for_event(to), "cuEventSynchronize");
  }
  float ms = 0;
  expect(driver_.elapsed_ms(&ms, from, to), "cuEventElapsedTime");
  return static_cast<double>(ms);
}

FoundCuda find_cuda_device(const Result<CudaDriver>& driver, std::span<const CudaImage> images, int version,
                           int number) {
  if (!driver.ok()) return {.problem = driver.error().message};
  const int code = driver->init(0);
  int count = 0;
  if (code == 0) driver->device_count(&count);
  if (code == kCudaNoDevice || (code == 0 && count == 0))
    return {.problem = "there is a driver of NVIDIA and no GPU"};
  if (code != 0) return {.has_driver = true, .problem = "NVIDIA's driver fails: " + driver->text_of(code)};
  if (number >= count) {
    return {.has_driver = true,
            .problem = "expected a GPU for each rank of this machine, found " + std::to_string(count) +
                       " and no one for rank " + std::to_string(number) + "; lower the number of ranks"};
  }
  if (version == 0) {
    return {.has_driver = true,
            .problem = "this program was built without code for GPUs; build it where nvcc is"};
  }
  int found = 0;
  driver->driver_version(&found);
  if (found / 1000 < version / 1000) {
    return {.has_driver = true,
            .problem = "NVIDIA's driver is for CUDA " + version_text(found) + ", expected " +
                       version_text(version / 1000 * 1000) + " or later; update the driver"};
  }
  auto device = CudaDevice::open(*driver, images, number);
  if (!device.ok()) return {.has_driver = true, .problem = device.error().message};
  return {.has_driver = true, .device = std::move(*device)};
}

}  // namespace outrider
