// SPDX-License-Identifier: Apache-2.0
#include "device/cuda_list.h"

#include <utility>

#include "base/check.h"
#include "base/log.h"

namespace outrider {
namespace {

// Only devices have its code: no emulation has conditions.
constexpr DeviceKernel kContinueLoop{"ContinueLoop", sizeof(ContinueLoopArgs), nullptr};

constexpr unsigned kWarpThreads = 32;  // of a warp

DeviceList::Launch continue_loop(const ContinueLoopArgs& args) {
  const auto* bytes = reinterpret_cast<const std::byte*>(&args);
  return {.kernel = &kContinueLoop, .args = {bytes, bytes + sizeof(args)}};
}

}  // namespace

Result<std::unique_ptr<LoadedList>> CudaList::make(Site site, const DeviceList& list) {
  const CudaDriver& driver = *site.driver;
  if (!driver.has_graphs())
    return resource_error("NVIDIA's driver has no graphs with loops, which came with CUDA 12.4; update it");
  std::unique_ptr<CudaList> made(new CudaList(std::move(site)));
  Handle last = nullptr;
  int code = driver.create_graph(&made->graph_, 0);
  if (code == 0) code = made->add_entries(made->graph_, list, last);
  if (code == 0) code = driver.instantiate_graph(&made->ready_, made->graph_, 0);
  if (code != 0) return resource_error("the GPU does not take a list of launches: " + driver.text_of(code));
  return std::unique_ptr<LoadedList>(std::move(made));
}

CudaList::~CudaList() {
  const CudaDriver& driver = *site_.driver;
  driver.set_current_context(site_.context);
  if (ready_ != nullptr) driver.destroy_ready_graph(ready_);
  if (graph_ != nullptr) driver.destroy_graph(graph_);
  for (const DeviceAddress counter : counters_) site_.release(counter);
}

void CudaList::run() {
  const CudaDriver& driver = *site_.driver;
  site_.count_run();
  int code = driver.set_current_context(site_.context);
  if (code == 0) code = driver.launch_graph(ready_, nullptr);
  if (code != 0) log_warning("the GPU failed at cuGraphLaunch: " + driver.text_of(code));
  OUTRIDER_CHECK(code == 0);
}

bool CudaList::update(DeviceList list) {
  const CudaDriver& driver = *site_.driver;
  if (driver.update_graph == nullptr || !counters_.empty() || list.has_loops() || list.has_exchanges())
    return false;
  Handle graph = nullptr, last = nullptr;
  CudaUpdateResult result;
  int code = driver.set_current_context(site_.context);
  if (code == 0) code = driver.create_graph(&graph, 0);
  if (code == 0) code = add_entries(graph, list, last);
  if (code == 0) code = driver.update_graph(ready_, graph, &result);
  if (graph != nullptr) driver.destroy_graph(graph);
  return code == 0;
}

int CudaList::add_entries(Handle graph, const DeviceList& list, Handle& last) {
  for (const DeviceList::Entry& entry : list.entries()) {
    int code = 0;
    if (const auto* launch = std::get_if<DeviceList::Launch>(&entry)) code = add_launch(graph, *launch, last);
    if (const auto* copy = std::get_if<DeviceList::Copy>(&entry)) code = add_copy(graph, *copy, last);
    if (const auto* fill = std::get_if<DeviceList::Fill>(&entry)) code = add_fill(graph, *fill, last);
    if (const auto* exchange = std::get_if<DeviceList::Exchange>(&entry))
      code = add_exchange(graph, *exchange, last);
    if (const auto* loop = std::get_if<DeviceList::Loop>(&entry)) code = add_loop(graph, *loop, last);
    if (code != 0) return code;
  }
  return 0;
}

int CudaList::add(Handle graph, CudaNodeParams& params, Handle& last) {
  const Handle before = last;
  return site_.driver->add_node(&last, graph, &before, nullptr, before == nullptr ? 0 : 1, &params);
}

int CudaList::add_launch(Handle graph, const DeviceList::Launch& launch, Handle& last) {
  void* arguments[] = {const_cast<std::byte*>(launch.args.data())};
  CudaNodeParams params(CudaNodeType::kKernel);
  params.kernel = {.function = site_.function_of(*launch.kernel, launch.shape.shared_bytes),
                   .blocks_x = static_cast<unsigned>(launch.shape.blocks),
                   .blocks_y = 1,
                   .blocks_z = 1,
                   .threads_x = static_cast<unsigned>(launch.shape.warps) * kWarpThreads,
                   .threads_y = 1,
                   .threads_z = 1,
                   .shared_bytes = static_cast<unsigned>(launch.shape.shared_bytes),
                   .arguments = arguments};
  return add(graph, params, last);
}

int CudaList::add_copy(Handle graph, const DeviceList::Copy& copy, Handle& last) {
  CudaNodeParams params(CudaNodeType::kCopy);
  params.copy = {.context = site_.context,
                 .from = {.memory_type = CudaPlace::kDevice, .device = copy.from},
                 .to = {.memory_type = CudaPlace::kDevice, .device = copy.to},
                 .width_bytes = static_cast<size_t>(copy.bytes),
                 .height = 1,
                 .depth = 1};
  return add(graph, params, last);
}

int CudaList::add_fill(Handle graph, const DeviceList::Fill& fill, Handle& last) {
  CudaNodeParams params(CudaNodeType::kFill);
  params.fill = {.to = fill.to,
                 .value = std::to_integer<unsigned>(fill.value),
                 .value_bytes = 1,
                 .width = static_cast<size_t>(fill.bytes),
                 .height = 1,
                 .context = site_.context};
  return add(graph, params, last);
}

int CudaList::add_exchange(Handle graph, const DeviceList::Exchange& exchange, Handle& last) {
  const CudaDriver& driver = *site_.driver;
  Handle captured = nullptr;
  const Handle before = last;
  int code = site_.capture(&captured, [&] { exchange.links->exchange(exchange.transfers); });
  if (code == 0) code = driver.add_child_graph(&last, graph, &before, before == nullptr ? 0 : 1, captured);
  if (captured != nullptr) driver.destroy_graph(captured);
  return code;
}

// The condition is set before the loop, and at the end of each round.
int CudaList::add_loop(Handle graph, const DeviceList::Loop& loop, Handle& last) {
  const CudaDriver& driver = *site_.driver;
  ContinueLoopArgs args = {
      .word = reinterpret_cast<const int32_t*>(loop.word), .limit = loop.limit, .is_first = 1};
  int code = driver.create_condition(&args.condition, graph, site_.context, 0, 0);
  if (code != 0) return code;
  args.rounds = reinterpret_cast<int32_t*>(counters_.emplace_back(site_.allocate(sizeof(int32_t))));
  code = add_launch(graph, continue_loop(args), last);
  if (code != 0) return code;
  CudaNodeParams params(CudaNodeType::kConditional);
  params.conditional = {.condition = args.condition,
                        .type = CudaConditionalNode::kWhile,
                        .bodies = 1,
                        .context = site_.context};
  code = add(graph, params, last);
  if (code != 0) return code;
  const Handle body = params.conditional.graphs[0];
  Handle last_of_body = nullptr;
  args.is_first = 0;
  code = add_entries(body, *loop.body, last_of_body);
  return code == 0 ? add_launch(body, continue_loop(args), last_of_body) : code;
}

}  // namespace outrider
