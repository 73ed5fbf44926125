// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "device/cuda_driver.h"
#include "device/cuda_upload_ring.h"
#include "device/device.h"

namespace outrider {

// Some kernels, compiled for GPUs of a compute capability and later ones of the same major version; PTX, for
// all later ones.
struct CudaImage {
  int major = 0;
  int minor = 0;
  bool is_ptx = false;
  const void* code = nullptr;
  bool has_loops = false;  // a driver without loops may refuse this code
};

// The generation of a GPU in the words of NVIDIA: an H100 has 9.0. Machine code is for one generation.
struct ComputeCapability {
  int major = 0;
  int minor = 0;
  bool operator==(const ComputeCapability&) const = default;
  std::string text() const { return std::to_string(major) + "." + std::to_string(minor); }
};

// A GPU behind NVIDIA's driver. Kernels, copies and fills run in the order of the calls, on one stream.
class CudaDevice final : public Device {
 public:
  // GPU `number` of the machine. Errors: it is too old for the images; the driver refuses.
  static Result<std::unique_ptr<CudaDevice>> open(const CudaDriver& driver, std::span<const CudaImage> images,
                                                  int number);
  ~CudaDevice() override = default;

  std::string_view name() const override { return "cuda"; }
  const std::string& model() const { return model_; }  // "NVIDIA H100 80GB HBM3"
  ComputeCapability capability() const { return capability_; }
  // Makes it the device of this thread, which has none at first.
  void enter() const;
  // Runs calls of another library, which order their work on the stream that they get. Returns their result.
  int order(const std::function<int(CudaDriver::Handle stream)>& calls);
  std::optional<int64_t> free_bytes() const override;
  DeviceAddress allocate(int64_t bytes) override;
  void release(DeviceAddress memory) override;
  void upload(std::span<const std::byte> bytes, DeviceAddress to) override;
  void download(DeviceAddress from, std::span<std::byte> bytes) override;
  void copy(DeviceAddress from, DeviceAddress to, int64_t bytes) override;
  void fill(DeviceAddress to, std::byte value, int64_t bytes) override;
  void launch(const DeviceKernel& kernel, const void* args, const LaunchShape& shape) override;
  Result<std::unique_ptr<LoadedList>> load(DeviceList list) override;
  MappedMemory allocate_mapped(int64_t bytes) override;
  void release_mapped(const MappedMemory& memory) override;
  void wait() override;
  int64_t record_event() override;
  double ms_between(int64_t first, int64_t second) override;

 private:
  CudaDevice(const CudaDriver& driver, std::string model, ComputeCapability capability,
             CudaDriver::Handle context)
      : driver_(driver),
        model_(std::move(model)),
        capability_(capability),
        context_(context),
        uploads_(driver_, *this) {}

  Status load_images(std::span<const CudaImage> images);
  // Ends the program with the driver's own words unless the call succeeded.
  void expect(int code, std::string_view call) const;
  // Null: no image has it.
  CudaDriver::Handle find_function(const std::string& name) const;
  // Precondition: it is kept.
  CudaDriver::Handle event_of(int64_t moment) const;
  CudaDriver::Handle function_of(const DeviceKernel& kernel, int shared_bytes);
  // The work that is ordered meanwhile, as a graph. Returns 0 or the driver's error.
  int capture(CudaDriver::Handle* graph, const std::function<void()>& calls);

  CudaDriver driver_;
  std::string model_;
  ComputeCapability capability_;
  CudaDriver::Handle context_;
  std::vector<CudaDriver::Handle> modules_;
  CudaUploadRing uploads_;
  CudaDriver::Handle stream_ = nullptr;          // of order(); null: the usual one
  CudaDriver::Handle capture_stream_ = nullptr;  // null: nothing was captured
  std::mutex mutex_;                             // of the next four
  std::map<std::string_view, CudaDriver::Handle> functions_;
  std::map<std::string_view, int> shared_bytes_;  // the most of a launch, above the usual ones
  std::vector<CudaDriver::Handle> events_;        // a ring, once there are kKeptEvents
  int64_t moments_ = 0;                           // that were recorded
};

// A GPU, or the reason why there is none.
struct FoundCuda {
  bool has_driver = false;  // false: this machine has none, or no GPU
  std::string problem = {};
  std::unique_ptr<CudaDevice> device = nullptr;
};

// `version`: of CUDA, for which the images were compiled; 0: this program has no images. `number`: of the
// GPU, from 0 on.
FoundCuda find_cuda_device(const Result<CudaDriver>& driver, std::span<const CudaImage> images, int version,
                           int number = 0);

}  // namespace outrider
