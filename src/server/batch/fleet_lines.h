// SPDX-License-Identifier: Apache-2.0
// Private to the server: includes Boost.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>

#include "server/batch/batch_line.h"
#include "server/fleet/fleet.h"

namespace outrider {

// The lines of batches, which the engines of a fleet answer in the background. An engine gives them places
// that nobody else wants. A model is loaded for them where no other request loses an engine by that. A line
// whose engine ends runs again. Only the I/O thread uses it.
class FleetLines {
 public:
  FleetLines(boost::asio::io_context* io, Fleet* fleet) : io_(io), fleet_(fleet) {}
  FleetLines(const FleetLines&) = delete;
  FleetLines& operator=(const FleetLines&) = delete;

  // `id`: no other line that runs has it.
  void start(BatchLine line, const std::string& id, uint64_t scope, LineCalls::Done done);
  // Ends a line, which is then done without an answer. Unknown lines are ignored.
  void cancel(const std::string& id);
  // Ends all lines, and refuses further ones.
  void close();

 private:
  struct Line;
  using LinePointer = std::shared_ptr<Line>;
  template <typename T>
  using Task = boost::asio::awaitable<T>;

  Task<void> run(LinePointer line);
  // The next two: nullopt where the line was cancelled, or its engine has ended.
  Task<std::optional<LineAnswer>> answer(LinePointer line);
  Task<std::optional<LineAnswer>> ask(LinePointer line, MemberPointer member);
  Task<bool> wait_for_place(LinePointer line, MemberPointer member);
  static Task<void> rest(LinePointer line);
  void finish(Line& line, std::optional<LineAnswer> answer);

  boost::asio::io_context* io_;
  Fleet* fleet_;
  std::unordered_map<std::string, LinePointer> lines_;
  bool is_closed_ = false;
};

}  // namespace outrider
