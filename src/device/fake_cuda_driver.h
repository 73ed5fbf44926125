// SPDX-License-Identifier: Apache-2.0
// NVIDIA's driver for tests, on a machine without a GPU: memory of the device is memory of this machine, and
// launches are emulated.
#pragma once

#include <algorithm>
#include <cstring>
#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "device/cuda_driver.h"
#include "device/device.h"

namespace outrider {

// The state of the fake driver, of which each thread has one, as the driver's functions have no object. A
// thread may set the context of another's.
struct FakeCuda {
  int init_code = 0;
  int version = 13000;
  int devices = 1;
  int major = 9, minor = 0;
  size_t memory = size_t{1} << 30;
  // The kernel of that name without "outrider_"; null: the code has none.
  std::function<const DeviceKernel*(std::string_view)> kernel = [](std::string_view) { return nullptr; };

  size_t allocated = 0;  // of the device
  size_t pinned = 0;     // of this machine
  size_t most_pinned = std::numeric_limits<size_t>::max();
  std::map<CudaDriver::Address, size_t> allocations = {};
  std::vector<const void*> images = {};  // that were loaded
  std::vector<LaunchShape> launches = {};
  int most_shared_bytes = 0;
  int contexts_set = 0;
  std::vector<int> opened = {};  // numbers of devices
  std::deque<int> events = {};   // that were created: the record that each had last
  int records = 0;               // of events, half a millisecond apart
  // Copies from pinned memory take place as late as they may.
  struct StartedUpload {
    CudaDriver::Address to;
    const void* from;
    size_t bytes;
    int records;  // before it
  };
  std::deque<StartedUpload> started = {};

  // A graph is a list of nodes, of which each follows the one before it.
  struct Graph;
  struct Node {
    CudaNodeParams params = CudaNodeParams(CudaNodeType::kKernel);
    std::vector<std::byte> args = {};              // of a kernel
    std::unique_ptr<Graph> body = nullptr;         // of a loop
    std::vector<void*> graphs = {};                // the body as the driver shows it
    std::vector<std::function<int()>> calls = {};  // of a captured graph
  };
  struct Graph {
    std::vector<std::unique_ptr<Node>> nodes;
  };
  int graphs = 0;  // that exist, also ready ones
  int updated_graphs = 0;
  std::map<uint64_t, unsigned> conditions = {};
  // Calls of other libraries while a stream is captured; null: none is.
  std::unique_ptr<Graph> captured = nullptr;
};

inline FakeCuda*& fake_cuda_of_thread() {
  static thread_local FakeCuda own;
  static thread_local FakeCuda* current = &own;
  return current;
}

inline FakeCuda& fake_cuda() { return *fake_cuda_of_thread(); }

namespace fake {

constexpr int kInvalid = 1;

// Completes uploads that were started before that record.
inline void complete_uploads(int record = std::numeric_limits<int>::max()) {
  std::deque<FakeCuda::StartedUpload>& started = fake_cuda().started;
  for (; !started.empty() && started.front().records < record; started.pop_front())
    std::memcpy(reinterpret_cast<void*>(started.front().to), started.front().from, started.front().bytes);
}

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
  complete_uploads();
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
  complete_uploads();
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

inline int add_node(CudaDriver::Handle* node, CudaDriver::Handle graph, const CudaDriver::Handle* after,
                    const void*, size_t after_count, CudaNodeParams* params) {
  auto& nodes = static_cast<FakeCuda::Graph*>(graph)->nodes;
  const bool follows = nodes.empty() ? after_count == 0 : after_count == 1 && *after == nodes.back().get();
  if (!follows) return kInvalid;
  FakeCuda::Node& added = *nodes.emplace_back(std::make_unique<FakeCuda::Node>());
  if (params->type == CudaNodeType::kKernel) {
    const auto& kernel = *static_cast<const DeviceKernel*>(params->kernel.function);
    const auto* args = static_cast<const std::byte*>(params->kernel.arguments[0]);
    added.args.assign(args, args + kernel.args_bytes);
  }
  if (params->type == CudaNodeType::kConditional) {
    if (!fake_cuda().conditions.contains(params->conditional.condition)) return kInvalid;
    added.body = std::make_unique<FakeCuda::Graph>();
    added.graphs = {added.body.get()};
    params->conditional.graphs = added.graphs.data();
  }
  added.params = *params;
  return *node = &added, 0;
}

inline int run_graph(const FakeCuda::Graph& graph);

inline int run_node(const FakeCuda::Node& node) {
  for (const auto& call : node.calls) {
    if (const int code = call(); code != 0) return code;
  }
  if (!node.calls.empty()) return 0;
  const CudaNodeParams& params = node.params;
  switch (params.type) {
    case CudaNodeType::kKernel: {
      const CudaKernelNode& kernel = params.kernel;
      void* arguments[] = {const_cast<std::byte*>(node.args.data())};
      return launch(kernel.function, kernel.blocks_x, kernel.blocks_y, kernel.blocks_z, kernel.threads_x,
                    kernel.threads_y, kernel.threads_z, kernel.shared_bytes, nullptr, arguments, nullptr);
    }
    case CudaNodeType::kCopy: {
      const CudaCopyNode& copy = params.copy;
      if (copy.height != 1 || copy.depth != 1 || copy.context != &fake_cuda()) return kInvalid;
      std::memcpy(reinterpret_cast<void*>(copy.to.device), reinterpret_cast<const void*>(copy.from.device),
                  copy.width_bytes);
      return 0;
    }
    case CudaNodeType::kFill: {
      const CudaFillNode& fill = params.fill;
      if (fill.height != 1 || fill.value_bytes != 1 || fill.context != &fake_cuda()) return kInvalid;
      std::memset(reinterpret_cast<void*>(fill.to), static_cast<int>(fill.value), fill.width);
      return 0;
    }
    case CudaNodeType::kConditional:
      while (fake_cuda().conditions.at(params.conditional.condition) != 0) {
        if (const int code = run_graph(*node.body); code != 0) return code;
      }
      return 0;
  }
  return kInvalid;
}

inline int run_graph(const FakeCuda::Graph& graph) {
  for (const auto& node : graph.nodes) {
    if (const int code = run_node(*node); code != 0) return code;
  }
  return 0;
}

// The device code of ContinueLoop, see device_kernels/cuda/loop_kernels.cu.
inline std::string continue_loop(const DeviceKernel&, const void* args, const LaunchShape&,
                                 const EmulationOptions&) {
  const auto& loop = *static_cast<const ContinueLoopArgs*>(args);
  *loop.rounds = loop.is_first != 0 ? 0 : *loop.rounds + 1;
  fake_cuda().conditions.at(loop.condition) = *loop.word != 0 && *loop.rounds < loop.limit ? 1 : 0;
  return "";
}
inline constexpr DeviceKernel kContinueLoop{"ContinueLoop", sizeof(ContinueLoopArgs), continue_loop};

// A ready graph is the graph itself.
inline void add_graph_functions(CudaDriver& driver) {
  driver.create_graph = [](CudaDriver::Handle* graph, unsigned) {
    ++fake_cuda().graphs;
    return *graph = new FakeCuda::Graph(), 0;
  };
  driver.destroy_graph = [](CudaDriver::Handle graph) {
    --fake_cuda().graphs;
    return delete static_cast<FakeCuda::Graph*>(graph), 0;
  };
  driver.add_node = add_node;
  driver.create_condition = [](uint64_t* condition, CudaDriver::Handle, CudaDriver::Handle context, unsigned,
                               unsigned) {
    *condition = 7 + fake_cuda().conditions.size();
    fake_cuda().conditions[*condition] = 0;
    return context == &fake_cuda() ? 0 : kInvalid;
  };
  driver.instantiate_graph = [](CudaDriver::Handle* ready, CudaDriver::Handle graph, unsigned long long) {
    ++fake_cuda().graphs;
    return *ready = graph, 0;
  };
  driver.update_graph = [](CudaDriver::Handle ready, CudaDriver::Handle graph, CudaUpdateResult*) {
    auto& to = static_cast<FakeCuda::Graph*>(ready)->nodes;
    auto& from = static_cast<FakeCuda::Graph*>(graph)->nodes;
    const bool same = std::ranges::equal(to, from, [](const auto& a, const auto& b) {
      return a->params.type == b->params.type && (a->params.type != CudaNodeType::kKernel ||
                                                  a->params.kernel.function == b->params.kernel.function);
    });
    if (!same) return kInvalid;
    ++fake_cuda().updated_graphs;
    return to.swap(from), 0;
  };
  driver.launch_graph = [](CudaDriver::Handle ready, CudaDriver::Handle) {
    complete_uploads();
    return run_graph(*static_cast<const FakeCuda::Graph*>(ready));
  };
  driver.destroy_ready_graph = [](CudaDriver::Handle) { return --fake_cuda().graphs, 0; };
}

// A stream is captured where there is one beside the usual one.
inline void add_capture_functions(CudaDriver& driver) {
  driver.create_stream = [](CudaDriver::Handle* stream, unsigned flags) {
    return *stream = &fake_cuda().captured, flags == kCudaFreeStream ? 0 : kInvalid;
  };
  driver.begin_capture = [](CudaDriver::Handle, int mode) {
    ++fake_cuda().graphs;
    fake_cuda().captured = std::make_unique<FakeCuda::Graph>();
    return mode == kCudaFreeCapture ? 0 : kInvalid;
  };
  driver.end_capture = [](CudaDriver::Handle, CudaDriver::Handle* graph) {
    return *graph = fake_cuda().captured.release(), 0;
  };
  driver.add_child_graph = [](CudaDriver::Handle* node, CudaDriver::Handle graph, const CudaDriver::Handle*,
                              size_t, CudaDriver::Handle child) {
    auto added = std::make_unique<FakeCuda::Node>();
    for (const auto& one : static_cast<FakeCuda::Graph*>(child)->nodes)
      added->calls.insert(added->calls.end(), one->calls.begin(), one->calls.end());
    *node = added.get();
    static_cast<FakeCuda::Graph*>(graph)->nodes.push_back(std::move(added));
    return 0;
  };
}

inline void add_pinned_functions(CudaDriver& driver) {
  driver.allocate_host = [](void** memory, size_t bytes, unsigned flags) {
    if (flags != kCudaMappedMemory) return kInvalid;
    if (fake_cuda().pinned + bytes > fake_cuda().most_pinned) return kCudaOutOfMemory;
    fake_cuda().pinned += bytes;
    *memory = operator new(bytes, std::align_val_t(256));
    fake_cuda().allocations[reinterpret_cast<CudaDriver::Address>(*memory)] = bytes;
    return 0;
  };
  driver.device_address = [](CudaDriver::Address* address, void* memory, unsigned) {
    return *address = reinterpret_cast<CudaDriver::Address>(memory), 0;
  };
  driver.release_host = [](void* memory) {
    const auto found = fake_cuda().allocations.find(reinterpret_cast<CudaDriver::Address>(memory));
    if (found == fake_cuda().allocations.end()) return kInvalid;
    fake_cuda().pinned -= found->second;
    fake_cuda().allocations.erase(found);
    return operator delete(memory, std::align_val_t(256)), 0;
  };
}

inline int get_function(CudaDriver::Handle* function, CudaDriver::Handle module, const char* name) {
  constexpr std::string_view kPrefix = "outrider_";
  if (module != fake_cuda().images.front() || !std::string_view(name).starts_with(kPrefix)) return kInvalid;
  const std::string_view own_name = std::string_view(name).substr(kPrefix.size());
  const DeviceKernel* kernel = own_name == kContinueLoop.name ? &kContinueLoop : fake_cuda().kernel(own_name);
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

inline void add_copy_functions(CudaDriver& driver) {
  driver.upload = [](CudaDriver::Address to, const void* from, size_t bytes) {
    complete_uploads();
    return std::memcpy(reinterpret_cast<void*>(to), from, bytes), 0;
  };
  driver.start_upload = [](CudaDriver::Address to, const void* from, size_t bytes, CudaDriver::Handle) {
    return fake_cuda().started.push_back({to, from, bytes, fake_cuda().records}), 0;
  };
  driver.download = [](void* to, CudaDriver::Address from, size_t bytes) {
    complete_uploads();
    return std::memcpy(to, reinterpret_cast<const void*>(from), bytes), 0;
  };
  driver.copy = [](CudaDriver::Address to, CudaDriver::Address from, size_t bytes, CudaDriver::Handle) {
    complete_uploads();
    return std::memcpy(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes), 0;
  };
  driver.fill = [](CudaDriver::Address to, unsigned char value, size_t bytes, CudaDriver::Handle) {
    complete_uploads();
    return std::memset(reinterpret_cast<void*>(to), value, bytes), 0;
  };
}

inline void add_event_functions(CudaDriver& driver) {
  driver.create_event = [](CudaDriver::Handle* event, unsigned) {
    return *event = &fake_cuda().events.emplace_back(0), 0;
  };
  driver.record_event = [](CudaDriver::Handle event, CudaDriver::Handle) {
    return *static_cast<int*>(event) = ++fake_cuda().records, 0;
  };
  driver.wait_for_event = [](CudaDriver::Handle event) {
    return complete_uploads(*static_cast<int*>(event)), 0;
  };
  driver.elapsed_ms = [](float* ms, CudaDriver::Handle from, CudaDriver::Handle to) {
    const int records = *static_cast<int*>(to) - *static_cast<int*>(from);
    return *ms = 0.5F * static_cast<float>(records), 0;
  };
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
  driver.retain_primary_context = [](CudaDriver::Handle* context, int device) {
    fake_cuda().opened.push_back(device);
    return *context = &fake_cuda(), 0;
  };
  driver.set_current_context = [](CudaDriver::Handle context) {
    if (context == nullptr) return fake::kInvalid;
    fake_cuda_of_thread() = static_cast<FakeCuda*>(context);
    return ++fake_cuda().contexts_set, 0;
  };
  driver.synchronize = [] { return fake::complete_uploads(), 0; };
  driver.memory_info = fake::memory_info;
  driver.allocate = fake::allocate;
  driver.release = fake::release;
  fake::add_copy_functions(driver);
  driver.load_module = fake::load_module;
  driver.get_function = fake::get_function;
  driver.set_function_attribute = [](CudaDriver::Handle, int attribute, int value) {
    if (attribute != kCudaSharedBytes) return fake::kInvalid;
    return fake_cuda().most_shared_bytes = value, 0;
  };
  driver.launch = fake::launch;
  fake::add_event_functions(driver);
  fake::add_pinned_functions(driver);
  fake::add_graph_functions(driver);
  fake::add_capture_functions(driver);
  return driver;
}

}  // namespace outrider
