// SPDX-License-Identifier: Apache-2.0
// Private to the server: includes Boost.
#pragma once

#include <functional>

#include "server/http/connection.h"

namespace outrider {

// Runs `job` on a preparation worker and waits for it. False: the client went away, or `ends` returned
// true. The job may still run then, so it must own the data it uses. Throws what the job throws.
Connection::Task<bool> run_on_worker(Connection& connection, PreparationWorker& worker,
                                     std::function<void()> job, std::function<bool()> ends);

}  // namespace outrider
