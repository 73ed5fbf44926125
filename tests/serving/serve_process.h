// SPDX-License-Identifier: Apache-2.0
// `outrider serve` with the built-in models as a separate process, to measure its memory and to restart it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace outrider {

class ServeProcess {
 public:
  // `before`: a command that starts the program, as {"prlimit", "--nofile=48"}.
  // `model`: empty for a server that names none.
  explicit ServeProcess(const std::vector<std::string>& options = {},
                        const std::vector<std::string>& before = {}, const std::string& model = "builtin");
  ~ServeProcess();
  ServeProcess(const ServeProcess&) = delete;
  ServeProcess& operator=(const ServeProcess&) = delete;

  int port() const { return port_; }
  // These two wait at most a minute. False: timeout.
  bool wait_until_ready() const;
  bool wait_until_free() const;
  void send(int signal) const;
  // Sends the signal and returns the status of waitpid().
  int end(int signal);

  double resident_mib() const;
  int64_t descriptors() const;
  // The body of GET /stats.
  nlohmann::json stats() const;

 private:
  pid_t pid_ = -1;
  int port_ = 0;
};

}  // namespace outrider
