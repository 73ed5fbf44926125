// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "server/api/api_limits.h"

namespace outrider {

class ResponseStore;
struct ServedModel;

// Everything a call depends on besides its body.
struct CallContext {
  const ServedModel* model = nullptr;
  ResponseStore* responses = nullptr;  // null: responses are not kept
  ApiLimits limits;
  std::string id;            // of the answer, without its prefix ("chatcmpl-")
  int64_t created = 0;       // Unix time
  uint64_t random_seed = 0;  // the seed of a request that gives none
  uint64_t cache_scope = 0;  // Request::cache_scope
};

}  // namespace outrider
