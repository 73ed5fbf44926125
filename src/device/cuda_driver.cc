// SPDX-License-Identifier: Apache-2.0
#include "device/cuda_driver.h"

#include "device/dynamic_library.h"

namespace outrider {

std::string CudaDriver::text_of(int code) const {
  const char* text = nullptr;
  if (error_string(code, &text) != 0 || text == nullptr) return "error " + std::to_string(code);
  return text;
}

Result<CudaDriver> open_cuda_driver(const char* library) {
  DynamicLibrary found(library);
  if (!found.is_open()) return resource_error(std::string("there is no driver of NVIDIA: ") + dlerror());
  CudaDriver driver;
  found.find(driver.init, "cuInit");
  found.find(driver.driver_version, "cuDriverGetVersion");
  found.find(driver.error_string, "cuGetErrorString");
  found.find(driver.device_count, "cuDeviceGetCount");
  found.find(driver.device_get, "cuDeviceGet");
  found.find(driver.device_name, "cuDeviceGetName");
  found.find(driver.device_attribute, "cuDeviceGetAttribute");
  found.find(driver.retain_primary_context, "cuDevicePrimaryCtxRetain");
  found.find(driver.set_current_context, "cuCtxSetCurrent");
  found.find(driver.synchronize, "cuCtxSynchronize");
  found.find(driver.memory_info, "cuMemGetInfo_v2");
  found.find(driver.allocate, "cuMemAlloc_v2");
  found.find(driver.release, "cuMemFree_v2");
  found.find(driver.upload, "cuMemcpyHtoD_v2");
  found.find(driver.start_upload, "cuMemcpyHtoDAsync_v2");
  found.find(driver.download, "cuMemcpyDtoH_v2");
  found.find(driver.copy, "cuMemcpyDtoDAsync_v2");
  found.find(driver.fill, "cuMemsetD8Async");
  found.find(driver.load_module, "cuModuleLoadData");
  found.find(driver.get_function, "cuModuleGetFunction");
  found.find(driver.set_function_attribute, "cuFuncSetAttribute");
  found.find(driver.launch, "cuLaunchKernel");
  found.find(driver.create_event, "cuEventCreate");
  found.find(driver.record_event, "cuEventRecord");
  found.find(driver.wait_for_event, "cuEventSynchronize");
  found.find(driver.elapsed_ms, "cuEventElapsedTime");
  found.find(driver.allocate_host, "cuMemHostAlloc");
  found.find(driver.device_address, "cuMemHostGetDevicePointer_v2");
  found.find(driver.release_host, "cuMemFreeHost");
  found.find_new(driver.create_graph, "cuGraphCreate");
  found.find_new(driver.destroy_graph, "cuGraphDestroy");
  found.find_new(driver.add_node, "cuGraphAddNode_v2");
  found.find_new(driver.create_condition, "cuGraphConditionalHandleCreate");
  found.find_new(driver.instantiate_graph, "cuGraphInstantiateWithFlags");
  found.find_new(driver.update_graph, "cuGraphExecUpdate_v2");
  found.find_new(driver.launch_graph, "cuGraphLaunch");
  found.find_new(driver.destroy_ready_graph, "cuGraphExecDestroy");
  found.find_new(driver.add_child_graph, "cuGraphAddChildGraphNode");
  found.find_new(driver.create_stream, "cuStreamCreate");
  found.find_new(driver.begin_capture, "cuStreamBeginCapture_v2");
  found.find_new(driver.end_capture, "cuStreamEndCapture");
  if (!found.missing().empty())
    return resource_error(std::string(library) + " lacks " + found.missing() + "; update NVIDIA's driver");
  return driver;
}

}  // namespace outrider
