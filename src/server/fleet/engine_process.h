// SPDX-License-Identifier: Apache-2.0
// Private to the server: includes Boost.
#pragma once

#include <sys/types.h>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "outrider/result.h"

namespace outrider {

// A child process that serves a model. It inherits standard error and no other file, gets SIGTERM when this
// process ends, and does not get the signals of the terminal.
class EngineProcess {
 public:
  // Error: no process can be made.
  static Result<std::unique_ptr<EngineProcess>> start(const boost::asio::any_io_executor& executor,
                                                      const std::filesystem::path& program,
                                                      const std::vector<std::string>& arguments,
                                                      const std::vector<std::string>& environment);
  // Kills the process if it runs.
  ~EngineProcess();
  EngineProcess(const EngineProcess&) = delete;
  EngineProcess& operator=(const EngineProcess&) = delete;

  // Returns when the process has ended: "exit status 1", "signal 9".
  boost::asio::awaitable<std::string> wait();
  bool has_ended() const { return ending_.has_value(); }
  // Asks it to end: once to finish its requests, twice to break them off.
  void terminate() const;
  void kill() const;
  // Lets it read keys again.
  void reload() const;

  pid_t pid() const { return pid_; }

 private:
  EngineProcess(const boost::asio::any_io_executor& executor, pid_t pid, int descriptor)
      : pid_(pid), descriptor_(executor, descriptor) {}
  void send(int signal) const;
  void reap(int options);

  pid_t pid_;
  boost::asio::posix::stream_descriptor descriptor_;  // becomes readable when the process has ended
  std::optional<std::string> ending_;
};

}  // namespace outrider
