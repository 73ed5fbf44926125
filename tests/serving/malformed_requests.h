// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace outrider {

struct MalformedRequest {
  std::string name;
  std::string bytes;
};

// More than a hundred requests that no client should send. The answer to each is an error object with a
// status of 400 or more, or a closed connection.
std::vector<MalformedRequest> malformed_requests();

}  // namespace outrider
