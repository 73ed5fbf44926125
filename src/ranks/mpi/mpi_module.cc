// SPDX-License-Identifier: Apache-2.0
#include "ranks/mpi/mpi_module.h"

#include <mpi.h>

#include <climits>
#include <new>

namespace {

constexpr int kTag = 1;

int start(int* rank, int* size) {
  int level = 0;
  if (const int error = MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &level); error != 0)
    return error;
  if (level < MPI_THREAD_SERIALIZED) return MPI_ERR_OTHER;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  if (const int error = MPI_Comm_rank(MPI_COMM_WORLD, rank); error != 0) return error;
  return MPI_Comm_size(MPI_COMM_WORLD, size);
}

int stop() { return MPI_Finalize(); }

// Calls begin(count, request) with a new request.
template <typename Begin>
int begin(int64_t bytes, void** request, Begin&& begin_exchange) {
  if (bytes > INT_MAX) return MPI_ERR_COUNT;
  auto* own = new (std::nothrow) MPI_Request(MPI_REQUEST_NULL);
  if (own == nullptr) return MPI_ERR_NO_MEM;
  const int error = begin_exchange(static_cast<int>(bytes), own);
  if (error != 0) {
    delete own;
  } else {
    *request = own;
  }
  return error;
}

int begin_send(const void* data, int64_t bytes, int to, void** request) {
  return begin(bytes, request, [&](int count, MPI_Request* own) {
    return MPI_Isend(data, count, MPI_BYTE, to, kTag, MPI_COMM_WORLD, own);
  });
}

int begin_receive(void* data, int64_t bytes, int from, void** request) {
  return begin(bytes, request, [&](int count, MPI_Request* own) {
    return MPI_Irecv(data, count, MPI_BYTE, from, kTag, MPI_COMM_WORLD, own);
  });
}

int done(void* request, int* is_done) {
  auto* own = static_cast<MPI_Request*>(request);
  const int error = MPI_Test(own, is_done, MPI_STATUS_IGNORE);
  if (error != 0 || *is_done != 0) delete own;
  return error;
}

int probe(int from, int* has_arrived) {
  return MPI_Iprobe(from, kTag, MPI_COMM_WORLD, has_arrived, MPI_STATUS_IGNORE);
}

constexpr OutriderMpi kModule = {start, stop, begin_send, begin_receive, done, probe};

}  // namespace

extern "C" __attribute__((visibility("default"))) const OutriderMpi* outrider_mpi_module() {
  return &kModule;
}
