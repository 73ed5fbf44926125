// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <string>

#include "outrider/result.h"

namespace outrider {

// The functions of NCCL that the program calls, as nccl.h declares them. The library is opened when ranks
// compute on GPUs, so that the program starts without it. 0 means success.
struct NcclLibrary {
  using Group = void*;   // a communicator of NCCL
  using Stream = void*;  // of NVIDIA's driver
  // Names a group; one rank makes it for all.
  struct Id {
    std::array<char, 128> bytes = {};
  };

  int (*get_version)(int* version) = nullptr;  // 22703: NCCL 2.27.3
  int (*make_id)(Id* id) = nullptr;
  // Returns when all ranks of the group have called it.
  int (*join)(Group* group, int size, Id id, int rank) = nullptr;
  int (*leave)(Group group) = nullptr;
  // Ends what the group waits for on the device, and leaves it.
  int (*abort)(Group group) = nullptr;
  int (*get_failure)(Group group, int* code) = nullptr;
  // Calls between the two take place together.
  int (*begin_calls)() = nullptr;
  int (*end_calls)() = nullptr;
  int (*send)(const void* from, size_t count, int type, int rank, Group group, Stream stream) = nullptr;
  int (*receive)(void* to, size_t count, int type, int rank, Group group, Stream stream) = nullptr;
  const char* (*error_text)(int code) = nullptr;
  int version = 0;

  std::string name() const;  // "NCCL 2.27.3"
};

inline constexpr int kNcclBytes = 0;  // the type of transfers
inline constexpr int kNcclBusy = 7;   // of get_failure(): there is none so far

// Errors: there is no such library, or it lacks a function. It stays open.
Result<NcclLibrary> open_nccl(const char* library = "libnccl.so.2");

}  // namespace outrider
