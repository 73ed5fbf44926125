// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>

#include "device/cuda_device.h"
#include "device/device_links.h"
#include "device/nccl_library.h"

namespace outrider {

// The ways between the GPUs of ranks over NCCL. A thread watches the other ranks: where one has ended,
// nothing waits for it on the GPU any more, and exchanges have failed.
class NcclLinks final : public DeviceLinks {
 public:
  struct Group {
    NcclLibrary::Id id = {};
    int rank = 0;
    int size = 1;
    std::function<bool()> has_ended;  // whether a rank has, asked by any thread
  };
  // All ranks of the group call it. Errors: NCCL refuses; it takes longer than a minute; a rank has ended.
  static Result<std::unique_ptr<NcclLinks>> join(CudaDevice& device, const NcclLibrary& nccl, Group group);
  ~NcclLinks() override;

  void exchange(std::span<const DeviceTransfer> transfers) override;
  std::string failure() const override;

 private:
  NcclLinks(CudaDevice& device, const NcclLibrary& nccl, NcclLibrary::Group joined, Group group);
  int call(std::span<const DeviceTransfer> transfers, NcclLibrary::Stream stream) const;
  void fail(const std::string& reason);
  // Why exchanges will fail; empty: all is well.
  std::string problem() const;
  void watch();

  CudaDevice& device_;
  NcclLibrary nccl_;
  NcclLibrary::Group joined_;
  Group group_;
  std::mutex calls_;  // of NCCL with the group
  std::atomic<bool> has_failed_ = false;
  mutable std::mutex mutex_;  // of the next three
  std::string failure_;
  bool is_over_ = false;
  std::condition_variable end_;
  bool is_aborted_ = false;
  std::thread watcher_;
};

}  // namespace outrider
