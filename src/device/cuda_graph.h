// SPDX-License-Identifier: Apache-2.0
// Parameters of the nodes of graphs, as the reference of NVIDIA's driver lays them out.
// device_kernels/cuda/loop_kernels.cu compares them with the driver's header. No standard library.
#pragma once

#include <cstddef>
#include <cstdint>

namespace outrider {

enum class CudaNodeType : int { kKernel = 0, kCopy = 1, kFill = 2, kConditional = 13 };

struct CudaKernelNode {
  void* function = nullptr;
  unsigned blocks_x = 0, blocks_y = 0, blocks_z = 0;
  unsigned threads_x = 0, threads_y = 0, threads_z = 0;
  unsigned shared_bytes = 0;
  void** arguments = nullptr;
  void** more = nullptr;
  void* library_kernel = nullptr;
  void* context = nullptr;
};

// A place of a copy between arrays of up to three dimensions.
struct CudaPlace {
  static constexpr int kDevice = 2;
  size_t x_bytes = 0, y = 0, z = 0, level = 0;
  int memory_type = 0;
  void* host = nullptr;
  uint64_t device = 0;
  void* array = nullptr;
  void* reserved = nullptr;
  size_t pitch = 0, height = 0;
};
struct CudaCopyNode {
  int flags = 0, reserved = 0;
  void* context = nullptr;
  CudaPlace from = {}, to = {};
  size_t width_bytes = 0, height = 0, depth = 0;
};

struct CudaFillNode {
  uint64_t to = 0;
  size_t pitch = 0;
  unsigned value = 0;
  unsigned value_bytes = 0;
  size_t width = 0, height = 0;
  void* context = nullptr;
};

struct CudaConditionalNode {
  static constexpr int kWhile = 1;
  uint64_t condition = 0;
  int type = 0;
  unsigned bodies = 0;
  void** graphs = nullptr;  // set by the driver, [bodies]
  void* context = nullptr;
};

struct CudaNodeParams {
  explicit CudaNodeParams(CudaNodeType of) : type(of), words{} {}

  CudaNodeType type;
  int reserved0[3] = {};
  union {
    int64_t words[29];
    CudaKernelNode kernel;
    CudaCopyNode copy;
    CudaFillNode fill;
    CudaConditionalNode conditional;
  };
  int64_t reserved1 = 0;
};

// Why a ready graph cannot be updated.
struct CudaUpdateResult {
  int result = 0;
  void* node = nullptr;
  void* edge_from = nullptr;
};

// Sets the condition of a loop before its first round and after each one.
struct ContinueLoopArgs {
  uint64_t condition = 0;
  const int32_t* word = nullptr;
  int32_t* rounds = nullptr;  // that have run
  int32_t limit = 0;
  int32_t is_first = 0;
};

}  // namespace outrider
