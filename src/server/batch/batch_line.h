// SPDX-License-Identifier: Apache-2.0
// Lines of the files of OpenAI's Batch API: requests in, answers out.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "server/api/answers/parse_call.h"
#include "server/calls/line_calls.h"

namespace outrider {

inline constexpr size_t kMaxBatchLine = 8 << 20;  // bytes of a line, as of the body of a request

// A request: {"custom_id", "method": "POST", "url", "body"}.
struct BatchLine {
  std::string custom_id;
  std::string url;
  ParseFunction parse = nullptr;  // of the url
  std::string body;               // a JSON object
};

// Why a line is no request, with codes of OpenAI's.
struct LineProblem {
  std::string custom_id = {};  // empty: the line has none
  std::string code;
  std::string message;
  std::string param = {};  // the field; empty: the line as a whole
};

Result<BatchLine, LineProblem> read_batch_line(std::string_view line);
LineProblem duplicate_problem(const std::string& custom_id);

// The reader of requests to `url`; null: a batch may not have them.
ParseFunction batch_route(std::string_view url);
// All that there are, for messages.
std::string_view batch_urls();

// Lines of results, without their ends. `id`: of the request.
std::string answer_line(const std::string& id, const std::string& custom_id, const LineAnswer& answer);
std::string problem_line(const std::string& id, const LineProblem& problem);
inline constexpr std::string_view kResultBeginning = R"({"id":"batch_req_)";

// The meaning of a line of results. nullopt: it is none.
struct ResultLine {
  std::string custom_id;  // empty: none
  int status = 0;         // of HTTP; 0: there was no answer
};
std::optional<ResultLine> read_result_line(std::string_view line);

// The lines of a text that are not empty, one after the other.
class TextLines {
 public:
  explicit TextLines(std::string_view text);

  // nullopt: there are no more.
  std::optional<std::string_view> next();
  int64_t number() const { return number_; }  // of the last one, from 1, empty ones counted

 private:
  std::string_view rest_;
  int64_t number_ = 0;
};

int64_t count_lines(std::string_view text);

}  // namespace outrider
