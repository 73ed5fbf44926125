// SPDX-License-Identifier: Apache-2.0
#include "server/batch/batch_line.h"

#include <gtest/gtest.h>

#include <vector>

namespace outrider {
namespace {

TEST(BatchLine, ReadsARequest) {
  const auto line = read_batch_line(
      R"({"custom_id": "a\n1", "method": "POST", "url": "/v1/chat/completions", "body": {"x": [1, "ü"], "stream": false}})");
  ASSERT_TRUE(line.ok());
  EXPECT_EQ(line->custom_id, "a\n1");
  EXPECT_EQ(line->parse, parse_chat);
  EXPECT_EQ(line->body, R"({"x":[1,"ü"],"stream":false})");
  for (const char* url : {"/v1/completions", "/v1/embeddings", "/v1/responses"})
    EXPECT_NE(batch_route(url), nullptr);
}

TEST(BatchLine, SaysWhatIsWrong) {
  struct Case {
    std::string text, code, param, custom_id;
  };
  const std::vector<Case> cases = {
      {"{", "invalid_json_line", "", ""},
      {"[]", "invalid_json_line", "", ""},
      {R"({"custom_id": "a", "custom_id": "b"})", "invalid_json_line", "", ""},
      {"{\"custom_id\": \"\xff\"}", "invalid_json_line", "", ""},
      {R"({"method": "POST"})", "missing_required_parameter", "custom_id", ""},
      {R"({"custom_id": null})", "missing_required_parameter", "custom_id", ""},
      {R"({"custom_id": 5})", "invalid_request", "custom_id", ""},
      {R"({"custom_id": ""})", "invalid_custom_id", "custom_id", ""},
      {R"({"custom_id": ")" + std::string(513, 'x') + "\"}", "invalid_custom_id", "custom_id", ""},
      {R"({"custom_id": "a"})", "missing_required_parameter", "method", "a"},
      {R"({"custom_id": "a", "method": "GET"})", "invalid_method", "method", "a"},
      {R"({"custom_id": "a", "method": "POST"})", "missing_required_parameter", "url", "a"},
      {R"({"custom_id": "a", "method": "POST", "url": "/v1/messages"})", "invalid_url", "url", "a"},
      {R"({"custom_id": "a", "method": "POST", "url": "/v1/responses"})", "missing_required_parameter",
       "body", "a"},
      {R"({"custom_id": "a", "method": "POST", "url": "/v1/responses", "body": []})",
       "missing_required_parameter", "body", "a"},
      {R"({"custom_id": "a", "method": "POST", "url": "/v1/responses", "body": {"stream": true}})",
       "invalid_request", "body.stream", "a"},
  };
  for (const Case& one : cases) {
    const auto line = read_batch_line(one.text);
    ASSERT_FALSE(line.ok()) << one.text;
    EXPECT_EQ(line.error().code, one.code) << one.text;
    EXPECT_EQ(line.error().param, one.param) << one.text;
    EXPECT_EQ(line.error().custom_id, one.custom_id) << one.text;
    EXPECT_FALSE(line.error().message.empty());
  }
  EXPECT_EQ(read_batch_line(std::string(kMaxBatchLine + 1, ' ')).error().code, "line_too_long");
}

TEST(BatchLine, ResultsReadBack) {
  const std::string good = answer_line("1f", "a\"b", {.status = 200, .body = R"({"id":"x"})"});
  EXPECT_EQ(good,
            R"({"id":"batch_req_1f","custom_id":"a\"b","response":{"status_code":200,"request_id":"1f",)"
            R"("body":{"id":"x"}},"error":null})");
  EXPECT_TRUE(good.starts_with(kResultBeginning));
  EXPECT_EQ(read_result_line(good)->custom_id, "a\"b");
  EXPECT_EQ(read_result_line(good)->status, 200);
  const std::string bad = problem_line("2f", {.custom_id = "", .code = "c", .message = "m", .param = "p"});
  EXPECT_EQ(
      bad,
      R"({"id":"batch_req_2f","custom_id":null,"response":null,"error":{"code":"c","message":"m","param":"p"}})");
  EXPECT_EQ(read_result_line(bad)->custom_id, "");
  EXPECT_EQ(read_result_line(bad)->status, 0);
  for (const std::string other : {"", "x", "{}", R"({"custom_id": "a"})", R"({"response": {}})",
                                  R"({"custom_id": "a", "method": "POST", "url": "u", "body": {}})"}) {
    EXPECT_FALSE(read_result_line(other)) << other;
  }
}

TEST(BatchLine, ReaderSkipsEmptyLinesAndCountsThem) {
  TextLines reader("\xef\xbb\xbf{1}\r\n\n  \n {2}\n{3}");
  EXPECT_EQ(reader.next(), "{1}");
  EXPECT_EQ(reader.number(), 1);
  EXPECT_EQ(reader.next(), "{2}");
  EXPECT_EQ(reader.number(), 4);
  EXPECT_EQ(reader.next(), "{3}");
  EXPECT_FALSE(reader.next());
  EXPECT_EQ(count_lines("\n{1}\n\n{2}"), 2);
  EXPECT_EQ(count_lines(""), 0);
}

}  // namespace
}  // namespace outrider
