// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "device/cuda_driver.h"
#include "device/cuda_graph.h"
#include "device/device_list.h"

namespace outrider {

// A list as a graph of NVIDIA's driver: each entry is a node that follows the one before it. A loop is a
// conditional node, and an exchange is a graph that was captured. The driver keeps whatever the nodes need.
class CudaList final : public LoadedList {
 public:
  // The device of a graph.
  struct Site {
    const CudaDriver* driver = nullptr;
    CudaDriver::Handle context = nullptr;
    std::function<CudaDriver::Handle(const DeviceKernel&, int shared_bytes)> function_of;
    std::function<DeviceAddress(int64_t bytes)> allocate;
    std::function<void(DeviceAddress)> release;
    std::function<void()> count_run;
    // Calls on the device become nodes of a new graph. Returns 0 or the driver's error.
    std::function<int(CudaDriver::Handle* graph, const std::function<void()>& calls)> capture;
  };

  // Error: the driver has no conditional nodes, or refuses the graph.
  static Result<std::unique_ptr<LoadedList>> make(Site site, const DeviceList& list);
  ~CudaList() override;
  void run() override;
  // Lists with loops and exchanges cannot be changed: conditions and captures belong to their graphs.
  bool update(DeviceList list) override;

 private:
  using Handle = CudaDriver::Handle;

  explicit CudaList(Site site) : site_(std::move(site)) {}
  // These append to a graph, after `last`. They return 0 or the driver's error.
  int add_entries(Handle graph, const DeviceList& list, Handle& last);
  int add(Handle graph, CudaNodeParams& params, Handle& last);
  int add_launch(Handle graph, const DeviceList::Launch& launch, Handle& last);
  int add_copy(Handle graph, const DeviceList::Copy& copy, Handle& last);
  int add_fill(Handle graph, const DeviceList::Fill& fill, Handle& last);
  int add_exchange(Handle graph, const DeviceList::Exchange& exchange, Handle& last);
  int add_loop(Handle graph, const DeviceList::Loop& loop, Handle& last);

  Site site_;
  Handle graph_ = nullptr, ready_ = nullptr;
  std::vector<DeviceAddress> counters_;  // of the loops' rounds
};

}  // namespace outrider
