// SPDX-License-Identifier: Apache-2.0
// `outrider serve` on the default models as a process of its own, whose memory and restarts can be watched.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace outrider {

class ServeProcess {
 public:
  explicit ServeProcess(const std::vector<std::string>& options = {});
  ~ServeProcess();
  ServeProcess(const ServeProcess&) = delete;
  ServeProcess& operator=(const ServeProcess&) = delete;

  int port() const { return port_; }
  // False: not within a minute.
  bool wait_until_ready() const;
  bool wait_until_free() const;
  // Sends the signal; how the process ended, as waitpid() tells it.
  int end(int signal);

  double resident_mib() const;
  int64_t descriptors() const;
  // Of GET /stats.
  nlohmann::json stats() const;

 private:
  pid_t pid_ = -1;
  int port_ = 0;
};

}  // namespace outrider
