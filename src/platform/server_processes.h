// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace outrider {

// A process that waits for connections.
struct ServerProcess {
  pid_t pid = 0;
  std::vector<std::string> arguments;  // the program first
  std::vector<std::string> addresses;  // "127.0.0.1:8000", "[::1]:8000", "unix:/run/outrider.sock"
  int64_t resident_bytes = 0;
  double seconds = 0;  // since its start
};

// The processes of this user, or of all users where this one may see them, whose program has this file name,
// by id. proc: where the kernel shows processes.
std::vector<ServerProcess> server_processes(std::string_view program,
                                            const std::filesystem::path& proc = "/proc");

}  // namespace outrider
