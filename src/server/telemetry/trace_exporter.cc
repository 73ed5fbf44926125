// SPDX-License-Identifier: Apache-2.0
#include "server/telemetry/trace_exporter.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <utility>

#include "server/api/json_writer.h"

namespace outrider {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

constexpr auto kInterval = std::chrono::seconds(2);
constexpr size_t kMaxWaiting = 4096;  // requests
constexpr size_t kMaxBatch = 256;     // requests of one message

// Attributes of a span: {"key": ..., "value": {"stringValue": ...}}
class Attributes {
 public:
  explicit Attributes(JsonWriter& json) : json_(json) { json_.key("attributes").begin_array(); }
  ~Attributes() { json_.end_array(); }
  Attributes(const Attributes&) = delete;
  Attributes& operator=(const Attributes&) = delete;

  void text(std::string_view key, std::string_view value) {
    if (!value.empty()) add(key, [&] { json_.member("stringValue", value); });
  }
  // 64-bit integers are texts in JSON of OTLP.
  void integer(std::string_view key, int64_t value) {
    add(key, [&] { json_.member("intValue", std::to_string(value)); });
  }
  void number(std::string_view key, double value) {
    add(key, [&] { json_.member("doubleValue", value); });
  }

 private:
  template <typename Write>
  void add(std::string_view key, Write&& write) {
    json_.begin_object().member("key", key).key("value").begin_object();
    write();
    json_.end_object().end_object();
  }

  JsonWriter& json_;
};

std::string random_id(std::mt19937_64& random, int words) {
  std::string id;
  for (int i = 0; i < words; ++i) id += fmt::format("{:016x}", random() | 1);
  return id;
}

struct Span {
  std::string_view trace, id, parent, name;
  int kind = 1;  // internal; 2: server
  uint64_t begin_ns = 0, end_ns = 0;
};

void begin_span(JsonWriter& json, const Span& span) {
  json.begin_object().member("traceId", span.trace).member("spanId", span.id);
  if (!span.parent.empty()) json.member("parentSpanId", span.parent);
  json.member("name", span.name).member("kind", span.kind);
  json.member("startTimeUnixNano", std::to_string(span.begin_ns));
  json.member("endTimeUnixNano", std::to_string(span.end_ns));
}

uint64_t nanoseconds(double ms) { return static_cast<uint64_t>(std::max(ms, 0.0) * 1e6); }

void add_usage(Attributes& attributes, const CallTotals& call) {
  attributes.integer("gen_ai.usage.input_tokens", call.prompt_tokens);
  attributes.integer("gen_ai.usage.output_tokens", call.output_tokens);
  attributes.integer("outrider.cached_tokens", call.cached_tokens);
  attributes.integer("outrider.choices", call.choices);
  attributes.text("gen_ai.response.finish_reason", call.finish_reason);
  if (call.first_token_ms) attributes.number("gen_ai.server.time_to_first_token", *call.first_token_ms / 1e3);
}

void add_steps(Attributes& attributes, const CallTotals& call) {
  attributes.integer("outrider.steps", call.steps);
  attributes.integer("outrider.drafted_tokens", call.drafted);
  attributes.integer("outrider.accepted_tokens", call.accepted);
}

}  // namespace

std::string spans_of(const RequestRecord& record, uint64_t now_ns, std::mt19937_64& random) {
  const std::optional<TraceContext>& given = record.client.trace;
  const std::string trace = given ? given->trace_id : random_id(random, 2);
  const std::string id = given ? given->span_id : random_id(random, 1);
  const uint64_t begin_ns = now_ns - std::min(nanoseconds(record.total_ms), now_ns);
  const std::string name = record.method + " " + record.route;
  std::string out;
  JsonWriter json(out);
  begin_span(json, {trace, id, given ? std::string_view(given->parent_id) : std::string_view(), name, 2,
                    begin_ns, now_ns});
  {
    Attributes attributes(json);
    attributes.text("http.request.method", record.method);
    attributes.text("http.route", record.route);
    attributes.integer("http.response.status_code", record.status);
    attributes.text("client.address", record.client.address);
    attributes.text("outrider.key", record.client.key);
    attributes.text("gen_ai.request.model", record.model);
    attributes.text("gen_ai.response.id", record.id);
    attributes.text("error.type", record.error);
    if (record.call) add_usage(attributes, *record.call);
    if (record.call) add_steps(attributes, *record.call);
  }
  json.key("status").begin_object();
  if (record.status >= 500) json.member("code", 2).member("message", record.error);
  json.end_object().end_object();
  if (!record.call || record.call->steps == 0) return out;
  // Times of several choices overlap; the request's own end bounds them.
  uint64_t at = begin_ns;
  const auto add_part = [&](std::string_view part, double ms, bool is_last) {
    const uint64_t end = is_last ? now_ns : std::min(at + nanoseconds(ms), now_ns);
    const std::string part_id = random_id(random, 1);
    out += ',';
    JsonWriter inner(out);
    begin_span(inner, {trace, part_id, id, part, 1, at, end});
    if (is_last) {
      Attributes attributes(inner);
      add_steps(attributes, *record.call);
    }
    inner.end_object();
    at = end;
  };
  add_part("queue", record.call->queue_ms, false);
  add_part("prompt", record.call->first_token_ms.value_or(record.call->queue_ms) - record.call->queue_ms,
           false);
  add_part("output", 0, true);
  return out;
}

TraceExporter::TraceExporter(asio::io_context* io, TraceCollector collector)
    : collector_(std::move(collector)), timer_(*io) {}

void TraceExporter::add(const RequestRecord& record) {
  // A caller that does not record its trace wants no part of it.
  if (record.client.trace && !record.client.trace->is_sampled) return;
  if (waiting_.size() >= kMaxWaiting) {
    ++dropped_;
    return;
  }
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto now_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
  waiting_.push_back(spans_of(record, static_cast<uint64_t>(now_ns), random_));
}

TraceExporter::Task<void> TraceExporter::run() {
  while (!is_stopped_) {
    timer_.expires_after(kInterval);
    error_code ignored;
    co_await timer_.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
    if (!is_stopped_) co_await flush();
  }
}

void TraceExporter::stop() {
  is_stopped_ = true;
  timer_.cancel();
}

TraceExporter::Task<void> TraceExporter::flush() {
  while (!waiting_.empty()) {
    const size_t count = std::min(waiting_.size(), kMaxBatch);
    std::string body =
        R"({"resourceSpans":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":)"
        R"("outrider"}},{"key":"service.version","value":{"stringValue":")" OUTRIDER_VERSION
        R"("}}]},"scopeSpans":[{"scope":{"name":"outrider"},"spans":[)";
    for (size_t i = 0; i < count; ++i) body += (i == 0 ? "" : ",") + waiting_[i];
    body += "]}]}]}";
    waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<ptrdiff_t>(count));
    const std::string failure = co_await collector_.send(body);
    if (failure.empty()) {
      has_warned_ = false;
      continue;
    }
    dropped_ += static_cast<int64_t>(count + waiting_.size());
    waiting_.clear();
    if (!std::exchange(has_warned_, true))
      log_event("traces_dropped", fmt::format("{} does not take them: {}", collector_.url(), failure));
  }
}

}  // namespace outrider
