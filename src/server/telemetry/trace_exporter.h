// SPDX-License-Identifier: Apache-2.0
// Private to the server: includes Boost. Spans of finished requests for a collector of OpenTelemetry, by
// OTLP 1.x over HTTP in its JSON form; attributes follow the semantic conventions for generative AI where
// they have a name.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "server/telemetry/request_log.h"
#include "server/telemetry/trace_collector.h"

namespace outrider {

// The spans of one request as JSON objects with commas between them: the request, and in it the wait for a
// place in the batch, the prompt and the output. `now_ns`: Unix time of its end. `random` makes ids.
std::string spans_of(const RequestRecord& record, uint64_t now_ns, std::mt19937_64& random);

// Keeps spans and sends them, a few seconds after they ended. Where the collector does not answer or takes
// nothing, they are dropped, and the log says so once. Only the I/O thread uses it.
class TraceExporter {
 public:
  template <typename T>
  using Task = boost::asio::awaitable<T>;

  TraceExporter(boost::asio::io_context* io, TraceCollector collector);

  void add(const RequestRecord& record);
  // Sends what has come, again and again, until stop().
  Task<void> run();
  void stop();
  // Sends what has come.
  Task<void> flush();
  int64_t dropped() const { return dropped_; }  // requests

 private:
  TraceCollector collector_;
  boost::asio::steady_timer timer_;
  std::mt19937_64 random_{std::random_device{}()};
  std::vector<std::string> waiting_;  // spans of a request each
  int64_t dropped_ = 0;
  bool is_stopped_ = false, has_warned_ = false;
};

}  // namespace outrider
