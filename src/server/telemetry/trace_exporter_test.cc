// SPDX-License-Identifier: Apache-2.0
#include "server/telemetry/trace_exporter.h"

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

namespace outrider {
namespace {

using SpanJson = nlohmann::json;

constexpr uint64_t kEnd = 1'800'000'000'000'000'000;  // ns

RequestRecord finished_record() {
  RequestRecord record{
      .id = "abc", .method = "POST", .route = "/v1/chat/completions", .status = 200, .total_ms = 100};
  record.client.address = "10.0.0.1";
  record.client.trace = TraceContext{.trace_id = std::string(32, 'a'),
                                     .parent_id = std::string(16, 'b'),
                                     .span_id = std::string(16, 'c'),
                                     .is_sampled = true};
  record.model = "tiny";
  record.call = CallTotals{.choices = 1,
                           .prompt_tokens = 7,
                           .output_tokens = 9,
                           .first_token_ms = 40,
                           .queue_ms = 10,
                           .steps = 4,
                           .drafted = 12,
                           .accepted = 5,
                           .finish_reason = "stop",
                           .ignored_fields = {}};
  return record;
}

SpanJson spans(const RequestRecord& record) {
  std::mt19937_64 random(1);
  return SpanJson::parse("[" + spans_of(record, kEnd, random) + "]");
}

std::map<std::string, SpanJson> attributes(const SpanJson& span) {
  std::map<std::string, SpanJson> found;
  for (const SpanJson& each : span["attributes"]) found[each["key"]] = each["value"];
  return found;
}

TEST(TraceExporter, ARequestIsASpanWithItsParts) {
  const SpanJson all = spans(finished_record());
  ASSERT_EQ(all.size(), 4u);
  EXPECT_EQ(all[0]["traceId"], std::string(32, 'a'));
  EXPECT_EQ(all[0]["spanId"], std::string(16, 'c'));
  EXPECT_EQ(all[0]["parentSpanId"], std::string(16, 'b'));
  EXPECT_EQ(all[0]["name"], "POST /v1/chat/completions");
  EXPECT_EQ(all[0]["kind"], 2);
  EXPECT_EQ(all[0]["startTimeUnixNano"], std::to_string(kEnd - 100'000'000));
  EXPECT_EQ(all[0]["endTimeUnixNano"], std::to_string(kEnd));
  auto values = attributes(all[0]);
  EXPECT_EQ(values["gen_ai.usage.input_tokens"]["intValue"], "7");
  EXPECT_EQ(values["gen_ai.usage.output_tokens"]["intValue"], "9");
  EXPECT_EQ(values["gen_ai.server.time_to_first_token"]["doubleValue"], 0.04);
  EXPECT_EQ(values["http.response.status_code"]["intValue"], "200");
  EXPECT_FALSE(values.contains("error.type"));
  EXPECT_TRUE(all[0]["status"].empty());
  const std::vector<std::pair<std::string, int64_t>> parts = {{"queue", -90}, {"prompt", -60}, {"output", 0}};
  std::string begin = all[0]["startTimeUnixNano"];
  for (size_t i = 0; i < parts.size(); ++i) {
    const SpanJson& part = all[i + 1];
    EXPECT_EQ(part["name"], parts[i].first);
    EXPECT_EQ(part["parentSpanId"], all[0]["spanId"]);
    EXPECT_EQ(part["startTimeUnixNano"], begin);
    begin = part["endTimeUnixNano"];
    EXPECT_EQ(begin, std::to_string(static_cast<int64_t>(kEnd) + parts[i].second * 1'000'000));
  }
  values = attributes(all[3]);
  EXPECT_EQ(values["outrider.drafted_tokens"]["intValue"], "12");
  EXPECT_EQ(values["outrider.accepted_tokens"]["intValue"], "5");
}

TEST(TraceExporter, ARefusedRequestIsOneSpan) {
  RequestRecord record = finished_record();
  record.call.reset();
  record.client.trace.reset();
  record.status = 503;
  record.error = "over\"loaded";
  const SpanJson all = spans(record);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0]["traceId"].get<std::string>().size(), 32u);
  EXPECT_EQ(all[0]["spanId"].get<std::string>().size(), 16u);
  EXPECT_FALSE(all[0].contains("parentSpanId"));
  EXPECT_EQ(all[0]["status"]["code"], 2);
  EXPECT_EQ(attributes(all[0])["error.type"]["stringValue"], "over\"loaded");
}

TEST(TraceExporter, PartsStayWithinTheirRequest) {
  RequestRecord record = finished_record();
  record.call->queue_ms = 900;  // the sum over choices may be longer than the request
  record.call->first_token_ms = 30;
  for (const SpanJson& span : spans(record)) {
    EXPECT_LE(span["startTimeUnixNano"].get<std::string>(), span["endTimeUnixNano"].get<std::string>());
    EXPECT_LE(span["endTimeUnixNano"].get<std::string>(), std::to_string(kEnd));
  }
}

}  // namespace
}  // namespace outrider
