// SPDX-License-Identifier: Apache-2.0
#include "loadtest/answer_reader.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "loadtest/load_test_report.h"

namespace outrider {
namespace {

using ::testing::DoubleEq;
using ::testing::ElementsAre;

// An event of a chat completion with text, and with the usage so far if `tokens` >= 0.
std::string event(const std::string& text, int tokens = -1) {
  const std::string usage =
      tokens < 0 ? "null" : fmt::format(R"({{"prompt_tokens":7,"completion_tokens":{}}})", tokens);
  return fmt::format(
      "data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{}\"}},\"finish_reason\":null}}],"
      "\"usage\":{}}}\n\n",
      text, usage);
}
std::string usage_event(int tokens) {
  return fmt::format(
      "data: {{\"choices\":[],\"usage\":{{\"prompt_tokens\":7,\"completion_tokens\":{}}}}}\n\n", tokens);
}
const std::string kEnd = "data: [DONE]\n\n";

std::vector<double> milliseconds_of(const AnswerRecord& record) {
  std::vector<double> result;
  for (const TokenLatency& latency : token_latencies(record)) result.push_back(latency.ms);
  return result;
}

TEST(AnswerReader, SharesTheTimeOfAChunkAmongItsTokens) {
  AnswerRecord record{.start_ms = 10};
  AnswerReader reader(record);
  ASSERT_TRUE(reader.feed(event("", 0), 50));  // the role
  ASSERT_TRUE(reader.feed(event("ab", 2), 110));
  ASSERT_TRUE(reader.feed(event("cde", 5), 140));
  ASSERT_TRUE(reader.feed(event("f", 6), 150));
  ASSERT_TRUE(reader.feed(usage_event(6) + kEnd, 170));
  reader.finish();
  record.end_ms = 170;
  ASSERT_TRUE(record.succeeded()) << record.message;
  EXPECT_EQ(record.counted, TokenCount::kUsage);
  EXPECT_EQ(record.output_tokens, 6);
  EXPECT_EQ(record.prompt_tokens, 7);
  EXPECT_DOUBLE_EQ(record.ttft_ms(), 100);
  EXPECT_DOUBLE_EQ(*record.tpot_ms(), 8);
  EXPECT_DOUBLE_EQ(record.e2e_ms(), 160);
  EXPECT_THAT(milliseconds_of(record), ElementsAre(0, 10, 10, 10, 10));  // their mean is the TPOT
  EXPECT_THAT(chunk_gaps(record), ElementsAre(30, 10));
}

TEST(AnswerReader, TokensWithoutTextCountWhenTheyCame) {
  AnswerRecord record;
  AnswerReader reader(record);
  ASSERT_TRUE(reader.feed(event("a", 1), 10));
  ASSERT_TRUE(reader.feed(event("", 2), 20));  // half a character: its text comes later
  ASSERT_TRUE(reader.feed(event("b", 3), 40));
  ASSERT_TRUE(reader.feed(usage_event(3) + kEnd, 50));
  reader.finish();
  EXPECT_THAT(milliseconds_of(record), ElementsAre(10, 20));
}

TEST(AnswerReader, SpreadsATotalOverTheChunks) {
  AnswerRecord record;
  AnswerReader reader(record);
  ASSERT_TRUE(reader.feed(event("ab"), 10));
  // The total arrives together with the last text but does not count the tokens of that moment.
  ASSERT_TRUE(reader.feed(event("abcdef") + usage_event(5) + kEnd, 40));
  reader.finish();
  EXPECT_EQ(record.counted, TokenCount::kSpread);
  EXPECT_EQ(record.output_tokens, 5);
  EXPECT_THAT(milliseconds_of(record), ElementsAre(0, 10, 10, 10));
}

TEST(AnswerReader, SpreadingKeepsTheSum) {
  for (int64_t total = 0; total < 40; ++total) {
    std::vector<ChunkArrival> arrivals = {
        {.chunks = 2, .bytes = 3}, {.chunks = 1, .bytes = 11}, {.chunks = 3, .bytes = 4}};
    spread_tokens(arrivals, total);
    EXPECT_EQ(arrivals[0].tokens + arrivals[1].tokens + arrivals[2].tokens, total);
    for (const ChunkArrival& arrival : arrivals) EXPECT_GE(arrival.tokens, total >= 6 ? arrival.chunks : 0);
  }
}

TEST(AnswerReader, CountsByLogprobsOrChunksWithoutUsage) {
  const std::string two =
      R"(data: {"choices":[{"text":"ab","logprobs":{"tokens":["a","b"]},"finish_reason":"stop"}]})";
  AnswerRecord record;
  AnswerReader reader(record);
  ASSERT_TRUE(reader.feed(two + "\n\n" + kEnd, 10));
  reader.finish();
  EXPECT_EQ(record.counted, TokenCount::kLogprobs);
  EXPECT_EQ(record.output_tokens, 2);

  AnswerRecord bare;
  AnswerReader bare_reader(bare);
  ASSERT_TRUE(bare_reader.feed(event("ab") + event("c"), 10));
  ASSERT_TRUE(bare_reader.feed(event("d") + kEnd, 20));
  bare_reader.finish();
  EXPECT_EQ(bare.counted, TokenCount::kChunks);
  EXPECT_EQ(bare.output_tokens, 3);
}

TEST(AnswerReader, ReadsBytesHoweverTheyAreCut) {
  const std::string stream =
      ": ping\r\n\r\nevent: x\r\ndata: {\"choices\":[{\"delta\":\r\ndata: {\"content\":\"a\"}}]}\r\n\r\n" +
      event("b", 3) + usage_event(3) + kEnd;
  for (size_t size = 1; size <= stream.size(); ++size) {
    AnswerRecord record;
    AnswerReader reader(record);
    for (size_t at = 0; at < stream.size(); at += size)
      ASSERT_TRUE(reader.feed(std::string_view(stream).substr(at, size), static_cast<double>(at)));
    reader.finish();
    EXPECT_TRUE(record.succeeded()) << record.message;
    EXPECT_EQ(record.output_tokens, 3) << size;
  }
}

TEST(AnswerReader, FailsWhatMakesNoSense) {
  const auto failure = [](const std::string& stream) {
    AnswerRecord record;
    AnswerReader reader(record);
    static_cast<void>(reader.feed(stream, 1));
    reader.finish();
    return record.failure + "|" + record.message;
  };
  EXPECT_EQ(failure("data: {\"choices\n\n"),
            "broken stream|an event holds '{\"choices', which is no JSON object");
  EXPECT_EQ(failure(event("a") + "data: {\"error\":{\"message\":\"out of pages\"}}\n\n"),
            "error event|out of pages");
  EXPECT_EQ(failure(event("a")), "broken stream|the stream ended before the answer did");
  EXPECT_EQ(failure("data: [1]\n\n" + kEnd), "broken stream|an event holds '[1]', which is no JSON object");
  EXPECT_EQ(
      failure("data: {\"choices\":[{\"delta\":7,\"text\":[]}],\"usage\":{\"completion_tokens\":\"x\"}}\n\n" +
              kEnd),
      "|");
}

TEST(AnswerReader, TakesTheAnswersOwnFiguresOfSpeculation) {
  AnswerRecord record;
  AnswerReader reader(record);
  ASSERT_TRUE(
      reader.feed("data: {\"choices\":[],\"metrics\":{\"speculative_decoding\":{\"num_spec_steps\":4,"
                  "\"num_draft_tokens\":16,\"num_accepted_draft_tokens\":10}}}\n\n" +
                      kEnd,
                  1));
  reader.finish();
  ASSERT_TRUE(record.speculation);
  EXPECT_DOUBLE_EQ(record.speculation->acceptance_length(), 3.5);
  EXPECT_DOUBLE_EQ(record.speculation->acceptance_rate(), 0.625);
}

TEST(SpeculationOfMetrics, SumsOverLabels) {
  const auto counts = speculation_of_metrics(
      "# TYPE vllm:spec_decode_num_drafts counter\n"
      "vllm:spec_decode_num_drafts_total{engine=\"0\"} 10\n"
      "vllm:spec_decode_num_drafts_total{engine=\"1\"} 5.0\n"
      "vllm:spec_decode_num_draft_tokens_total 40\n"
      "vllm:spec_decode_num_accepted_tokens_total 30 1700000000\n"
      "vllm:spec_decode_num_accepted_tokens_per_pos_total{engine=\"0\",position=\"1\"} 8\n"
      "vllm:spec_decode_num_accepted_tokens_per_pos_total{position=\"0\"} 12\nnonsense\n{} {\n");
  ASSERT_TRUE(counts);
  EXPECT_EQ(counts->steps, 15);
  EXPECT_EQ(counts->drafted, 40);
  EXPECT_EQ(counts->accepted, 30);
  EXPECT_THAT(counts->accepted_per_position, ElementsAre(12, 8));
  EXPECT_FALSE(speculation_of_metrics("vllm:num_requests_running 3\n"));
}

TEST(LoadTestFigures, CountOnlyWhatSucceeded) {
  AnswerRecord good{.start_ms = 0, .end_ms = 100};
  good.arrivals = {{.at_ms = 20, .tokens = 1, .chunks = 1}, {.at_ms = 80, .tokens = 3, .chunks = 1}};
  good.output_tokens = 4;
  AnswerRecord slow = good;
  slow.start_ms = -400;
  AnswerRecord refused{.failure = "429"};
  AnswerRecord stopped = good;
  stopped.is_interrupted = true;
  const LevelRecord level{
      .level = {.concurrency = 2}, .duration_ms = 2000, .requests = {good, slow, refused, stopped}};
  const LevelFigures figures = figures_of(level, {.ttft = 100, .tpot = 20, .e2e = 100});
  EXPECT_EQ(figures.succeeded, 2);
  EXPECT_EQ(figures.interrupted, 1);
  EXPECT_EQ(figures.failures.at("429"), 1);
  EXPECT_DOUBLE_EQ(figures.request_rate, 1);
  EXPECT_DOUBLE_EQ(figures.goodput, 0.5);  // the slow one's TTFT is 420 ms
  EXPECT_DOUBLE_EQ(figures.output_rate, 4);
  EXPECT_DOUBLE_EQ(figures.tpot.mean, 20);
  EXPECT_EQ(figures.token_latency.count, 6);
  EXPECT_DOUBLE_EQ(figures.chunk_gap.p50, 60);
  EXPECT_DOUBLE_EQ(figures.ttft.p90, 20 + 0.9 * 400);
  EXPECT_EQ(figures_of(level, {.ttft = {}, .tpot = 19.9, .e2e = {}}).goodput, 0);
}

TEST(LoadTestPlan, ReadsAddressesAndGoals) {
  const auto text = [](std::string_view url) {
    const auto address = parse_server_address(url);
    return address.ok() ? address->text() : address.error().message;
  };
  EXPECT_EQ(text("http://localhost:8000"), "http://localhost:8000");
  EXPECT_EQ(text("http://h/"), "http://h:80");
  EXPECT_EQ(text("http://[::1]:9/base/v1/"), "http://[::1]:9/base");
  EXPECT_EQ(text("http://h:1/v1"), "http://h:1");
  EXPECT_THAT(text("https://h"),
              ::testing::StartsWith("expected http://, found 'https://h'; TLS is not spoken"));
  for (const char* wrong :
       {"", "h:80", "http://", "http://:80", "http://h:0", "http://h:70000", "http://h:8x", "http://[::1",
        "http://u@h", "http://h/a?b", "http://h/a\r\nX: y", "ftp://h"})
    EXPECT_THAT(text(wrong), ::testing::StartsWith("expected the address of a server")) << wrong;
  const auto goals = parse_latency_goals("ttft:200,e2e:1.5");
  ASSERT_TRUE(goals.ok());
  EXPECT_THAT(*goals->ttft, DoubleEq(200));
  EXPECT_FALSE(goals->tpot);
  EXPECT_THAT(*goals->e2e, DoubleEq(1.5));
  for (const char* wrong :
       {"", "ttft", "ttft:", "ttft:x", "ttft:1,ttft:2", "itl:3", "ttft:-1", "ttft:1;e2e:2"})
    EXPECT_FALSE(parse_latency_goals(wrong).ok()) << wrong;
}

}  // namespace
}  // namespace outrider
