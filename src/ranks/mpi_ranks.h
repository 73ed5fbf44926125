// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "outrider/result.h"
#include "ranks/communicator.h"

namespace outrider {

// Joins the job that mpirun has started this process for, once in the life of a process. When the object
// goes away the process leaves the job, unless a rank has failed. The last `spare` ranks may end without the
// others, where mpirun lets the job go on (--enable-recovery). Ranks of one machine exchange bytes in memory
// that they share, if `share_memory` says so and they can reach it, else through MPI, as all others do.
// Errors: the module for MPI was not built, or cannot be loaded; MPI does not start.
Result<std::unique_ptr<Communicator>> join_mpi_job(int spare, bool share_memory);

}  // namespace outrider
