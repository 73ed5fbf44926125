// SPDX-License-Identifier: Apache-2.0
// A TLS proxy with a certificate of its own for 127.0.0.1, in front of a server without TLS.
#pragma once

#include <filesystem>
#include <memory>

namespace outrider {

class TlsForwarder {
 public:
  explicit TlsForwarder(int target_port);
  ~TlsForwarder();

  int port() const;
  // The certificate as a PEM file, which exists as long as this object.
  const std::filesystem::path& certificate() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace outrider
