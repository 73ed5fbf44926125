// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "device/cuda_graph.h"
#include "outrider/result.h"

namespace outrider {

// The functions of NVIDIA's driver that the program calls, as its reference describes them. The library is
// opened when it is asked for, so that the program starts on any machine. 0 means success.
struct CudaDriver {
  // Handles are pointers, devices numbers, and addresses integers.
  using Handle = void*;
  using Address = uint64_t;

  int (*init)(unsigned flags) = nullptr;
  int (*driver_version)(int* version) = nullptr;  // 13000: CUDA 13.0
  int (*error_string)(int code, const char** text) = nullptr;
  int (*device_count)(int* count) = nullptr;
  int (*device_get)(int* device, int number) = nullptr;
  int (*device_name)(char* name, int size, int device) = nullptr;
  int (*device_attribute)(int* value, int attribute, int device) = nullptr;
  int (*retain_primary_context)(Handle* context, int device) = nullptr;
  int (*set_current_context)(Handle context) = nullptr;
  int (*synchronize)() = nullptr;
  int (*memory_info)(size_t* free, size_t* total) = nullptr;
  int (*allocate)(Address* address, size_t bytes) = nullptr;
  int (*release)(Address address) = nullptr;
  int (*upload)(Address to, const void* from, size_t bytes) = nullptr;
  // Takes the bytes, which are pinned, after all calls before; they stay until then.
  int (*start_upload)(Address to, const void* from, size_t bytes, Handle stream) = nullptr;
  int (*download)(void* to, Address from, size_t bytes) = nullptr;
  int (*copy)(Address to, Address from, size_t bytes, Handle stream) = nullptr;
  int (*fill)(Address to, unsigned char value, size_t bytes, Handle stream) = nullptr;
  int (*load_module)(Handle* module, const void* image) = nullptr;
  int (*get_function)(Handle* function, Handle module, const char* name) = nullptr;
  int (*set_function_attribute)(Handle function, int attribute, int value) = nullptr;
  int (*launch)(Handle function, unsigned blocks_x, unsigned blocks_y, unsigned blocks_z, unsigned threads_x,
                unsigned threads_y, unsigned threads_z, unsigned shared_bytes, Handle stream,
                void** arguments, void** more) = nullptr;
  int (*create_event)(Handle* event, unsigned flags) = nullptr;
  int (*record_event)(Handle event, Handle stream) = nullptr;
  int (*wait_for_event)(Handle event) = nullptr;
  int (*elapsed_ms)(float* ms, Handle first, Handle second) = nullptr;
  int (*allocate_host)(void** memory, size_t bytes, unsigned flags) = nullptr;
  int (*device_address)(Address* address, void* memory, unsigned flags) = nullptr;
  int (*release_host)(void* memory) = nullptr;
  // Graphs; drivers before CUDA 12.4 lack some of these.
  int (*create_graph)(Handle* graph, unsigned flags) = nullptr;
  int (*destroy_graph)(Handle graph) = nullptr;
  int (*add_node)(Handle* node, Handle graph, const Handle* after, const void* edges, size_t after_count,
                  CudaNodeParams* params) = nullptr;
  int (*create_condition)(uint64_t* condition, Handle graph, Handle context, unsigned value,
                          unsigned flags) = nullptr;
  int (*instantiate_graph)(Handle* ready, Handle graph, unsigned long long flags) = nullptr;
  // Gives a ready graph the parameters of another graph with the same nodes.
  int (*update_graph)(Handle ready, Handle graph, CudaUpdateResult* result) = nullptr;
  int (*launch_graph)(Handle ready, Handle stream) = nullptr;
  int (*destroy_ready_graph)(Handle ready) = nullptr;
  // Adds a copy of another graph as one node.
  int (*add_child_graph)(Handle* node, Handle graph, const Handle* after, size_t after_count,
                         Handle child) = nullptr;
  int (*create_stream)(Handle* stream, unsigned flags) = nullptr;
  // Between the two, calls on the stream become nodes of a new graph and do not run.
  int (*begin_capture)(Handle stream, int mode) = nullptr;
  int (*end_capture)(Handle stream, Handle* graph) = nullptr;

  bool has_graphs() const {
    return create_graph && destroy_graph && add_node && create_condition && instantiate_graph &&
           launch_graph && destroy_ready_graph;
  }
  bool has_captures() const { return add_child_graph && create_stream && begin_capture && end_capture; }

  // The driver's text for an error.
  std::string text_of(int code) const;
};

inline constexpr unsigned kCudaMappedMemory = 3;  // of allocate_host(): all contexts and the device see it
inline constexpr int kCudaNoDevice = 100;         // there is a driver and no GPU
inline constexpr int kCudaOutOfMemory = 2;        // of allocate()
inline constexpr int kCudaNotSupported = 801;
inline constexpr int kCudaMajor = 75;  // attributes of a device: its compute capability
inline constexpr int kCudaMinor = 76;
inline constexpr int kCudaSharedBytes = 8;      // attribute of a function: the most shared memory of a launch
inline constexpr unsigned kCudaFreeStream = 1;  // of create_stream(): it does not wait for the usual stream
inline constexpr int kCudaFreeCapture = 2;      // of begin_capture(): it forbids no calls of any thread

// Errors: there is no such library, or it lacks a function. It stays open.
Result<CudaDriver> open_cuda_driver(const char* library = "libcuda.so.1");

}  // namespace outrider
