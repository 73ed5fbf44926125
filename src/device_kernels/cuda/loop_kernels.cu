// SPDX-License-Identifier: Apache-2.0
// The condition of a loop of launches (device/cuda_list.cc). Emulated devices read the word themselves.
#include <cuda.h>

#include "device/cuda_graph.h"

using namespace outrider;

static_assert(sizeof(CudaNodeParams) == sizeof(CUgraphNodeParams));
static_assert(offsetof(CudaNodeParams, kernel) == offsetof(CUgraphNodeParams, kernel));
static_assert(static_cast<int>(CudaNodeType::kCopy) == CU_GRAPH_NODE_TYPE_MEMCPY);
static_assert(static_cast<int>(CudaNodeType::kFill) == CU_GRAPH_NODE_TYPE_MEMSET);
static_assert(static_cast<int>(CudaNodeType::kConditional) == CU_GRAPH_NODE_TYPE_CONDITIONAL);
static_assert(sizeof(CudaKernelNode) == sizeof(CUDA_KERNEL_NODE_PARAMS_v3));
static_assert(offsetof(CudaKernelNode, arguments) == offsetof(CUDA_KERNEL_NODE_PARAMS_v3, kernelParams));
static_assert(offsetof(CudaKernelNode, context) == offsetof(CUDA_KERNEL_NODE_PARAMS_v3, ctx));
static_assert(sizeof(CudaCopyNode) == sizeof(CUDA_MEMCPY_NODE_PARAMS));
static_assert(offsetof(CudaCopyNode, from) == offsetof(CUDA_MEMCPY_NODE_PARAMS, copyParams));
static_assert(offsetof(CudaPlace, device) == offsetof(CUDA_MEMCPY3D_v2, srcDevice));
static_assert(sizeof(CudaPlace) == offsetof(CUDA_MEMCPY3D_v2, dstXInBytes));
static_assert(CudaPlace::kDevice == CU_MEMORYTYPE_DEVICE);
static_assert(sizeof(CudaFillNode) == sizeof(CUDA_MEMSET_NODE_PARAMS_v2));
static_assert(offsetof(CudaFillNode, width) == offsetof(CUDA_MEMSET_NODE_PARAMS_v2, width));
static_assert(sizeof(CudaConditionalNode) == sizeof(CUDA_CONDITIONAL_NODE_PARAMS));
static_assert(offsetof(CudaConditionalNode, graphs) == offsetof(CUDA_CONDITIONAL_NODE_PARAMS, phGraph_out));
static_assert(CudaConditionalNode::kWhile == CU_GRAPH_COND_TYPE_WHILE);
static_assert(sizeof(CudaUpdateResult) == sizeof(CUgraphExecUpdateResultInfo));

// One thread of the warp works.
extern "C" __global__ void outrider_ContinueLoop(const __grid_constant__ ContinueLoopArgs args) {
  if (threadIdx.x != 0) return;
  const int rounds = args.is_first != 0 ? 0 : *args.rounds + 1;
  *args.rounds = rounds;
  cudaGraphSetConditional(args.condition, *args.word != 0 && rounds < args.limit ? 1 : 0);
}
