// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "outrider/result.h"

namespace outrider {

// A server that verifies trees.
struct DraftingServer {
  std::string host;
  std::string port;
  std::string api_key;     // empty: none
  bool is_secure = false;  // TLS
  std::filesystem::path authority =
      {};                  // PEM file of certificates that are trusted beside the system's; or empty
  std::string model = {};  // the name of one of several models; empty: the only or default one

  // "ws://127.0.0.1:8000", or "wss://example.org" with TLS; without a port 80 or 443.
  static Result<DraftingServer> parse(std::string_view url);
  std::string url() const;
  std::string target() const;  // of the handshake: "/v1/drafting?model=a%2Fb"
};

}  // namespace outrider
