// SPDX-License-Identifier: Apache-2.0
#include "device/nccl_library.h"

#include "device/dynamic_library.h"

namespace outrider {

std::string NcclLibrary::name() const {
  return "NCCL " + std::to_string(version / 10000) + "." + std::to_string(version % 10000 / 100) + "." +
         std::to_string(version % 100);
}

Result<NcclLibrary> open_nccl(const char* library) {
  DynamicLibrary found(library);
  if (!found.is_open()) return resource_error(std::string("there is no NCCL: ") + dlerror());
  NcclLibrary nccl;
  found.find(nccl.get_version, "ncclGetVersion");
  found.find(nccl.make_id, "ncclGetUniqueId");
  found.find(nccl.join, "ncclCommInitRank");
  found.find(nccl.leave, "ncclCommDestroy");
  found.find(nccl.abort, "ncclCommAbort");
  found.find(nccl.get_failure, "ncclCommGetAsyncError");
  found.find(nccl.begin_calls, "ncclGroupStart");
  found.find(nccl.end_calls, "ncclGroupEnd");
  found.find(nccl.send, "ncclSend");
  found.find(nccl.receive, "ncclRecv");
  found.find(nccl.error_text, "ncclGetErrorString");
  if (!found.missing().empty())
    return resource_error(std::string(library) + " lacks " + found.missing() + "; update NCCL");
  if (nccl.get_version(&nccl.version) != 0) return resource_error("NCCL does not tell its version");
  return nccl;
}

}  // namespace outrider
