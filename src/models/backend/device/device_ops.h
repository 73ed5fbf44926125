// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "device/device.h"
#include "device_kernels/kernel_names.h"
#include "kv/device_pages.h"
#include "models/backend/device/device_weights.h"
#include "models/backend/layer_backend.h"

namespace outrider {

// Numbers of the host that a launch reads. They are uploaded when they differ from the last ones.
template <typename T>
class UploadedList {
 public:
  explicit UploadedList(Device& device) : device_(device), memory_(device) {}
  simt::List<T> view(std::vector<T> numbers) {
    if (numbers != held_) {
      held_ = std::move(numbers);
      memory_.reserve(static_cast<int64_t>(held_.size() * sizeof(T)));
      device_.upload(std::as_bytes(std::span(held_)), memory_.address());
    }
    return {reinterpret_cast<const T*>(memory_.address()), std::ssize(held_)};
  }

 private:
  Device& device_;
  std::vector<T> held_;
  DeviceBuffer memory_;
};

// The operations of a layer as launches of kernels. Rows are places on the device.
class DeviceOps {
 public:
  explicit DeviceOps(Device& device);

  // Brings the matrices to the device, where they would else come with their first product.
  void upload(const Projection& projection);

  // y[rows, n] = x[rows, k] W' + bias
  void project(const Projection& projection, FloatAddress x, FloatAddress y, int64_t rows);

  // x += delta where there is one, and y = norm(x), of parts of rows.
  struct NormOfParts {
    FloatAddress x, delta, y;
    NormKind kind = NormKind::kRms;
    std::span<const float> weight = {};  // empty: nothing is normalized
    std::span<const float> bias = {};
    simt::NormParts of = {};
  };
  void normalize(const NormOfParts& args);
  void activate(const LayerBackend::Activate& args);
  void softcap(FloatAddress x, int64_t count, float cap);
  // x[rows, dim] += y, and the like; see ElementwiseArgs.
  struct Elementwise {
    FloatAddress x, y;
    int64_t rows = 1;
    int64_t dim = 0;
    int64_t x_stride = 0;
    int64_t y_stride = 0;
    float number = 0;
  };
  void run(KernelName kernel, const Elementwise& args);

  void rotate_and_store(const LayerBackend::Attention& attention, const LayerBackend::RowPlaces& places);
  void attend(const LayerBackend::Attention& attention, std::span<const AttentionRow> rows, FloatAddress y);

 private:
  template <typename Args>
  void launch(KernelName kernel, const Args& args, const LaunchShape& shape) {
    OUTRIDER_CHECK(device_kernel(kernel).args_bytes == sizeof(args));
    device_.launch(device_kernel(kernel), &args, shape);
  }
  // A warp for each item.
  template <typename Args>
  void launch_items(KernelName kernel, const Args& args, int64_t items) {
    constexpr int kWarps = 4;
    launch(kernel, args, {.blocks = static_cast<int>((items + kWarps - 1) / kWarps), .warps = kWarps});
  }

  // One matrix of a projection.
  struct Product {
    const UploadedMatrix& matrix;
    const PackedMatrix& part;
    FloatAddress x, y;
    int64_t rows;
    int64_t y_stride;
    int64_t y_count;  // numbers from y on
  };
  simt::GroupedInputs pack_groups(FloatAddress x, int64_t rows, int64_t k);
  simt::ChannelInputs pack_channels(FloatAddress x, int64_t rows, int64_t k);
  void multiply_groups(const Product& product, const simt::GroupedInputs& x);
  void multiply_channels(const Product& product, const simt::ChannelInputs& x);
  template <typename Numbers>
  void multiply_plain(const Product& product, KernelName kernel);

  void normalize_heads(const LayerBackend::Attention& attention, std::span<const float> norm, FloatAddress x,
                       int64_t heads, int64_t rows);
  struct Stored {
    FloatAddress x;
    DeviceAddress cache;
    simt::List<int> slots;
    int64_t rows;
  };
  void store(const LayerBackend::Attention& attention, const Stored& args);
  template <typename Cached>
  void attend_cached(const LayerBackend::Attention& attention, std::span<const AttentionRow> rows,
                     FloatAddress y, KernelName kernel);

  Device& device_;
  DeviceWeights weights_;
  DeviceBuffer codes_, scales_, sums_;  // of packed inputs
  UploadedList<float> rotations_, factors_;
  UploadedList<int> slots_, entries_, pages_, tails_;
};

}  // namespace outrider
