// SPDX-License-Identifier: Apache-2.0
// The functions of the module that links MPI. The program loads it when ranks are asked for, and knows
// nothing of MPI itself. Functions that return int return 0 for success, or else an error code of MPI.
#pragma once

#include <cstdint>

extern "C" {

struct OutriderMpi {
  // Calls come from one thread at a time.
  int (*start)(int* rank, int* size);
  int (*stop)();
  // Both begin an exchange; its memory must stay until it is done, and `request` is for done().
  int (*begin_send)(const void* data, int64_t bytes, int to, void** request);
  int (*begin_receive)(void* data, int64_t bytes, int from, void** request);
  // Sets `is_done`; a request that is done ceases to exist.
  int (*done)(void* request, int* is_done);
  // Whether a message of that rank waits for a receiver.
  int (*probe)(int from, int* has_arrived);
};

// The one symbol of the module.
using OutriderMpiModule = const OutriderMpi* (*)();
inline constexpr const char* kOutriderMpiSymbol = "outrider_mpi_module";
}
