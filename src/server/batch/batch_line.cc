// SPDX-License-Identifier: Apache-2.0
#include "server/batch/batch_line.h"

#include <array>
#include <utility>

#include "base/quote.h"
#include "base/white_space.h"
#include "server/api/json_writer.h"

namespace outrider {
namespace {

constexpr int kMaxLineDepth = 65;     // of the JSON of a line, one more than of a body
constexpr int kMaxResultDepth = 80;   // answers repeat schemas of their requests
constexpr size_t kMaxCustomId = 512;  // bytes

constexpr std::array<std::pair<std::string_view, ParseFunction>, 4> kBatchRoutes = {
    {{"/v1/chat/completions", parse_chat},
     {"/v1/completions", parse_completion},
     {"/v1/embeddings", parse_embeddings},
     {"/v1/responses", parse_responses}}};

LineProblem line_problem(const BatchLine& line, std::string_view code, std::string message,
                         std::string param) {
  return {.custom_id = line.custom_id,
          .code = std::string(code),
          .message = std::move(message),
          .param = std::move(param)};
}

LineProblem line_problem(const BatchLine& line, const ApiError& error) {
  const bool is_missing = error.message.find("found none") != std::string::npos;
  return line_problem(line, is_missing ? "missing_required_parameter" : "invalid_request", error.message,
                      error.param);
}

// A text member that has to be there.
Result<std::string, LineProblem> line_text(const BatchLine& line, const RequestField& root,
                                           std::string_view name) {
  const std::optional<RequestField> field = root.find(name);
  if (!field) {
    return line_problem(line, "missing_required_parameter",
                        "expected the field " + quote(name) + ", found none", std::string(name));
  }
  ApiResult<std::string> text = field->string();
  if (!text.ok()) return line_problem(line, text.error());
  return std::move(text).value();
}

Result<std::string, LineProblem> line_custom_id(const BatchLine& line, const RequestField& root) {
  OUTRIDER_TRY(std::string id, line_text(line, root, "custom_id"));
  if (!id.empty() && id.size() <= kMaxCustomId) return id;
  return line_problem(line, "invalid_custom_id", "expected a custom_id of 1 to 512 bytes", "custom_id");
}

Result<std::string, LineProblem> line_body(const BatchLine& line, const RequestField& root) {
  const std::optional<RequestField> body = root.find("body");
  if (!body || !body->is_object())
    return line_problem(line, "missing_required_parameter", "expected an object in \"body\"", "body");
  const std::optional<RequestField> stream = body->find("stream");
  if (stream && !(stream->is_bool() && !*stream->boolean())) {
    return line_problem(line, "invalid_request",
                        "expected no \"stream\": a batch has whole answers, and no streams", "body.stream");
  }
  return body->json();
}

void begin_result(JsonWriter& json, const std::string& id, std::string_view custom_id) {
  json.begin_object().member("id", "batch_req_" + id).member("custom_id", text_or_null(custom_id));
}

}  // namespace

ParseFunction batch_route(std::string_view url) {
  for (const auto& [name, parse] : kBatchRoutes) {
    if (name == url) return parse;
  }
  return nullptr;
}

std::string_view batch_urls() {
  return "/v1/chat/completions, /v1/completions, /v1/embeddings or /v1/responses";
}

Result<BatchLine, LineProblem> read_batch_line(std::string_view text) {
  BatchLine line;
  if (text.size() > kMaxBatchLine)
    return line_problem(line, "line_too_long", "expected a line of at most 8 MiB", "");
  const ApiResult<RequestBody> parsed = RequestBody::parse(text, kMaxLineDepth);
  if (!parsed.ok()) return line_problem(line, "invalid_json_line", parsed.error().message, "");
  const RequestField root = parsed->root();
  OUTRIDER_TRY(line.custom_id, line_custom_id(line, root));
  OUTRIDER_TRY(const std::string method, line_text(line, root, "method"));
  if (method != "POST")
    return line_problem(line, "invalid_method", "expected the method POST, found " + quote(method), "method");
  OUTRIDER_TRY(line.url, line_text(line, root, "url"));
  line.parse = batch_route(line.url);
  if (line.parse == nullptr) {
    return line_problem(line, "invalid_url",
                        "expected " + std::string(batch_urls()) + ", found " + quote(line.url), "url");
  }
  OUTRIDER_TRY(line.body, line_body(line, root));
  return line;
}

LineProblem duplicate_problem(const std::string& custom_id) {
  return {.custom_id = custom_id,
          .code = "duplicate_custom_id",
          .message = "expected a custom_id that no line before has, found " + quote(custom_id),
          .param = "custom_id"};
}

std::string answer_line(const std::string& id, const std::string& custom_id, const LineAnswer& answer) {
  std::string line;
  JsonWriter json(line);
  begin_result(json, id, custom_id);
  json.key("response").begin_object().member("status_code", answer.status).member("request_id", id);
  json.key("body").json(answer.body).end_object().key("error").null().end_object();
  return line;
}

std::string problem_line(const std::string& id, const LineProblem& problem) {
  std::string line;
  JsonWriter json(line);
  begin_result(json, id, problem.custom_id);
  json.key("response").null().key("error").begin_object();
  json.member("code", problem.code).member("message", problem.message);
  json.member("param", text_or_null(problem.param)).end_object().end_object();
  return line;
}

std::optional<ResultLine> read_result_line(std::string_view text) {
  const ApiResult<RequestBody> parsed = RequestBody::parse(text, kMaxResultDepth);
  if (!parsed.ok()) return std::nullopt;
  const RequestField root = parsed->root();
  ResultLine line;
  if (const auto id = root.find("custom_id"); id && id->is_string()) line.custom_id = *id->string();
  const auto response = root.find("response");
  if (!response) return root.find("error") ? std::optional(line) : std::nullopt;
  const auto status = response->find("status_code");
  const ApiResult<int64_t> code =
      status ? status->integer(100, 999) : ApiResult<int64_t>(ApiError{.message = "no status"});
  if (!code.ok()) return std::nullopt;
  line.status = static_cast<int>(*code);
  return line;
}

TextLines::TextLines(std::string_view text) : rest_(text) {
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  if (rest_.starts_with(kByteOrderMark)) rest_.remove_prefix(kByteOrderMark.size());
}

std::optional<std::string_view> TextLines::next() {
  while (!rest_.empty()) {
    const size_t end = std::min(rest_.find('\n'), rest_.size());
    const std::string_view line = trimmed(rest_.substr(0, end));
    rest_.remove_prefix(std::min(end + 1, rest_.size()));
    ++number_;
    if (!line.empty()) return line;
  }
  return std::nullopt;
}

int64_t count_lines(std::string_view text) {
  int64_t count = 0;
  for (TextLines reader(text); reader.next();) ++count;
  return count;
}

}  // namespace outrider
