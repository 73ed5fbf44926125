// SPDX-License-Identifier: Apache-2.0
#include "server/http/batch_answer.h"

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "base/quote.h"
#include "server/access/form_data.h"
#include "server/batch/batches.h"
#include "server/http/worker_task.h"

namespace outrider {

// A request of the Batch API and what was made of it.
struct BatchExchange {
  BatchCall call;
  ReceivedBody body;
  std::optional<ApiResult<std::string>> made;
  std::shared_ptr<const BatchInput> content;  // of a file that was asked for
};

namespace {

constexpr size_t kMaxFields = 16;     // of a form
constexpr size_t kMaxFileName = 255;  // bytes

ListQuery query_of(const BatchCall& call) {
  return {.limit = query_value(call.target, "limit"),
          .after = query_value(call.target, "after"),
          .order = query_value(call.target, "order"),
          .purpose = query_value(call.target, "purpose")};
}

bool is_lines_type(std::string_view content_type) {
  constexpr std::array<std::string_view, 4> kTypes = {"application/jsonl", "application/x-ndjson",
                                                      "application/x-jsonlines", "application/json-lines"};
  const std::string type = lowered(content_type.substr(0, content_type.find(';')));
  return std::ranges::find(kTypes, type) != kTypes.end();
}

ApiResult<std::string> create_from_form(Batches& batches, const BatchCall& call, std::string_view boundary) {
  const std::optional<std::vector<FormField>> fields = read_form(call.body, boundary, kMaxFields);
  if (!fields) return ApiError{.message = "expected a form as multipart/form-data, found a malformed body"};
  std::string purpose;
  const FormField* file = nullptr;
  for (const FormField& field : *fields) {
    if (field.name == "purpose") {
      purpose = field.content;
    } else if (field.name == "file") {
      file = &field;
    } else {
      return ApiError{.message = "expected the fields file and purpose, found " + quote(field.name),
                      .param = printable(field.name)};
    }
  }
  if (file == nullptr) return ApiError{.message = "expected a field file, found none", .param = "file"};
  std::string name = file->file_name.value_or("");
  name = name.empty() ? "batch.jsonl" : name.substr(0, kMaxFileName);
  return batches.create_file(call.scope, std::move(name), purpose, file->content);
}

}  // namespace

ApiResult<std::string> create_file(Batches& batches, const BatchCall& call) {
  if (const auto boundary = form_boundary(call.content_type))
    return create_from_form(batches, call, *boundary);
  if (!is_lines_type(call.content_type)) {
    return ApiError{
        .status = 415,
        .message = "expected a form as multipart/form-data, or lines as application/jsonl, found " +
                   (call.content_type.empty() ? "no Content-Type" : quote(call.content_type)),
        .code = "unsupported_media_type"};
  }
  const std::string name = query_value(call.target, "filename");
  return batches.create_file(call.scope, name.empty() ? "batch.jsonl" : name.substr(0, kMaxFileName),
                             query_value(call.target, "purpose"), call.body);
}

ApiResult<std::string> list_files(Batches& batches, const BatchCall& call) {
  return batches.list_files(call.scope, query_of(call));
}

ApiResult<std::string> stored_file(Batches& batches, const BatchCall& call) {
  return batches.file(call.scope, call.argument);
}

ApiResult<std::string> delete_file(Batches& batches, const BatchCall& call) {
  return batches.erase_file(call.scope, call.argument);
}

ApiResult<std::string> create_batch(Batches& batches, const BatchCall& call) {
  return batches.create_batch(call.scope, call.body);
}

ApiResult<std::string> list_batches(Batches& batches, const BatchCall& call) {
  return batches.list_batches(call.scope, query_of(call));
}

ApiResult<std::string> stored_batch(Batches& batches, const BatchCall& call) {
  return batches.batch(call.scope, call.argument);
}

ApiResult<std::string> cancel_batch(Batches& batches, const BatchCall& call) {
  return batches.cancel_batch(call.scope, call.argument);
}

namespace {

// Answers with the function of the route, or finds the file whose content is the answer.
void make_reply(Batches& batches, const RouteRow& row, BatchExchange& made) {
  ApiResult<std::string> text = made.body.take_text();
  made.body.account.reset();
  if (!text.ok()) {
    made.made = std::move(text);
    return;
  }
  made.call.body = std::move(text).value();
  if (const auto* function = std::get_if<BatchFunction>(&row.function)) {
    made.made = (*function)(batches, made.call);
    return;
  }
  auto content = batches.content(made.call.scope, made.call.argument);
  if (content.ok()) {
    made.content = std::move(content).value();
  } else {
    made.made = content.error();
  }
}

Connection::Task<bool> send_content(Exchange& exchange, const BatchInput& content) {
  const Reply reply{.content_type = "application/jsonl"};
  log_reply(exchange, reply);
  audit_reply(exchange, reply);
  exchange.connection->service().metrics.on_response(reply.status);
  exchange.is_answered = true;
  const std::string header = header_text(exchange, reply, static_cast<int64_t>(content.text().size()));
  const bool is_sent = co_await exchange.connection->write(header);
  if (!is_sent || exchange.header.method == "HEAD") co_return is_sent;
  co_return co_await exchange.connection->write(content.text());
}

}  // namespace

Connection::Task<bool> answer_batch(Exchange& exchange) {
  Connection& connection = *exchange.connection;
  Batches* const batches = connection.service().batches.get();
  const RouteRow* const row = exchange.admission.match.row;
  const auto made = std::make_shared<BatchExchange>();
  made->call = {.argument = exchange.admission.match.argument,
                .scope = exchange.admission.scope,
                .target = exchange.header.target,
                .content_type = exchange.header.content_type};
  made->body = std::move(exchange.body);
  std::function<void()> job = [batches, row, made] { make_reply(*batches, *row, *made); };
  std::function<bool()> ends = [] { return false; };
  connection.start_watch();
  const bool is_done = co_await run_on_worker(connection, batches->worker(), std::move(job), std::move(ends));
  co_await connection.stop_watch();
  if (!is_done || connection.is_gone()) co_return false;
  if (made->content != nullptr) co_return co_await send_content(exchange, *made->content);
  ApiResult<std::string>& text = *made->made;
  const Reply reply =
      text.ok() ? Reply{.body = std::move(text).value()} : error_reply(exchange, text.error());
  co_return co_await send(exchange, reply);
}

}  // namespace outrider
