// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/api/api_error.h"
#include "server/api/choice_delta.h"

namespace outrider {

// One POST to an endpoint that generates, from its body to its answer: parse_call() makes it
// (answers/parse_call.h). It uses no sockets, no engine and no clock. One thread at a time may use it.
class GenerationCall {
 public:
  virtual ~GenerationCall() = default;

  // requests()[i] generates choice i. The caller may move from it, once.
  std::vector<Request>& requests() { return requests_; }
  bool streams() const { return streams_; }
  virtual bool wants_traces() const { return false; }
  // Paths of the fields that were present and have no meaning here, for the log.
  const std::vector<std::string>& ignored_fields() const { return ignored_fields_; }

  // The type of a stream, and what keeps it alive while there is nothing to send; empty: nothing may.
  virtual std::string_view content_type() const { return "text/event-stream; charset=utf-8"; }
  virtual std::string_view ping() const { return ": ping\n\n"; }

  // A call that streams appends server-sent events ("data: {...}\n\n") to `events`. The last delta of the
  // last choice adds the usage, if it was asked for, and "data: [DONE]\n\n". A call that does not stream
  // collects the deltas and does not use `events`.
  virtual void start(std::string& /*events*/) {}
  virtual void add(int choice, ChoiceDelta delta, std::string& events) = 0;
  // The last events of a stream that fails.
  virtual std::string error_events(const ApiError& error) { return error_event(error); }
  // The whole answer of a call that does not stream, once the last delta of every choice was added.
  virtual std::string body() = 0;

 protected:
  GenerationCall(std::vector<Request> requests, bool streams, std::vector<std::string> ignored_fields)
      : requests_(std::move(requests)), streams_(streams), ignored_fields_(std::move(ignored_fields)) {}

 private:
  std::vector<Request> requests_;
  bool streams_;
  std::vector<std::string> ignored_fields_;
};

}  // namespace outrider
