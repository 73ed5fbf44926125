// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "outrider/result.h"

namespace outrider {

// A server that verifies trees.
struct DraftingServer {
  std::string host;
  std::string port;
  std::string api_key;  // empty: none

  // "ws://127.0.0.1:8000"; without a port 80.
  static Result<DraftingServer> parse(std::string_view url);
  std::string url() const;
};

}  // namespace outrider
