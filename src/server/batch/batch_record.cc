// SPDX-License-Identifier: Apache-2.0
#include "server/batch/batch_record.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <utility>

#include "base/quote.h"
#include "server/api/json_writer.h"
#include "server/api/request_field.h"
#include "server/batch/batch_line.h"
#include "server/calls/random_id.h"

namespace outrider {
namespace {

constexpr int64_t kMaxNumber = int64_t{1} << 53;

std::optional<int64_t> time_or_null(int64_t time) { return time == 0 ? std::nullopt : std::optional(time); }

std::string time_name(BatchStatus status) {
  return std::string(kBatchStatuses[static_cast<size_t>(status)]) + "_at";
}

// A file of results exists in the API once the batch has ended, if it has a line.
std::string_view shown_file(const BatchRecord& batch, const std::string& file, int64_t lines) {
  return batch.has_ended() && lines > 0 ? std::string_view(file) : "";
}

void add_errors(JsonWriter& json, const std::vector<BatchError>& errors) {
  if (errors.empty()) {
    json.key("errors").null();
    return;
  }
  json.key("errors").begin_object().member("object", "list").key("data").begin_array();
  for (const BatchError& error : errors) {
    json.begin_object().member("code", error.code).member("line", error.line);
    json.member("message", error.message).member("param", text_or_null(error.param)).end_object();
  }
  json.end_array().end_object();
}

void add_members(JsonWriter& json, const BatchRecord& batch) {
  json.member("id", batch.id).member("object", "batch").member("endpoint", batch.endpoint);
  add_errors(json, batch.errors);
  json.member("input_file_id", batch.input_file).member("completion_window", batch.completion_window);
  json.member("status", kBatchStatuses[static_cast<size_t>(batch.status)]);
  json.member("output_file_id", text_or_null(shown_file(batch, batch.output_file, batch.completed)));
  json.member("error_file_id", text_or_null(shown_file(batch, batch.error_file, batch.failed)));
  json.member("created_at", batch.created_ms / 1000).member("expires_at", time_or_null(batch.expires_at));
  for (size_t i = 1; i < kBatchStatuses.size(); ++i)
    json.member(time_name(static_cast<BatchStatus>(i)), time_or_null(batch.since[i]));
  json.key("request_counts").begin_object().member("total", batch.total);
  json.member("completed", batch.completed).member("failed", batch.failed).end_object();
  json.key("metadata").json(batch.metadata);
}

ApiResult<std::string> record_string(const RequestField& root, std::string_view name) {
  OUTRIDER_TRY(const RequestField field, root.at(name));
  return field.string();
}

ApiResult<int64_t> record_number(const RequestField& root, std::string_view name) {
  const std::optional<RequestField> field = root.find(name);
  if (!field) return int64_t{0};
  return field->integer(0, kMaxNumber);
}

ApiResult<BatchStatus> record_status(const RequestField& root, std::string_view name) {
  OUTRIDER_TRY(const RequestField field, root.at(name));
  OUTRIDER_TRY(const int index, field.one_of(kBatchStatuses));
  return static_cast<BatchStatus>(index);
}

ApiStatus read_errors(const RequestField& root, std::vector<BatchError>& errors) {
  const std::optional<RequestField> list = root.find("errors");
  if (!list) return api_ok();
  OUTRIDER_TRY(const RequestField data, list->at("data"));
  OUTRIDER_TRY(const std::vector<RequestField> items, data.items(1000));
  for (const RequestField& item : items) {
    BatchError error;
    OUTRIDER_TRY(error.code, record_string(item, "code"));
    OUTRIDER_TRY(error.message, record_string(item, "message"));
    if (const auto param = item.find("param"); param && param->is_string()) error.param = *param->string();
    if (item.find("line")) {
      OUTRIDER_TRY(error.line, record_number(item, "line"));
    }
    errors.push_back(std::move(error));
  }
  return api_ok();
}

// "24h" or "7d", in seconds.
ApiResult<int64_t> window_seconds(const RequestField& field) {
  OUTRIDER_TRY(const std::string text, field.string());
  int64_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  const std::string_view unit(end, static_cast<size_t>(text.data() + text.size() - end));
  const int64_t hours = unit == "h" ? count : unit == "d" && count < 1000 ? 24 * count : 0;
  if (error == std::errc() && hours >= 1 && hours <= 24 * 30) return hours * 3600;
  return field.error("expected a time of 1h to 720h or 30d, such as 24h, found " + quote(text));
}

// At most 16 texts, as OpenAI has it.
ApiResult<std::string> metadata_text(const RequestField& field) {
  OUTRIDER_TRY(const std::vector<RequestField> members, field.members(16));
  for (const RequestField& member : members) {
    OUTRIDER_TRY(const std::string value, member.string());
    if (member.key().size() > 64 || value.size() > 512)
      return member.error("expected a key of at most 64 bytes and a text of at most 512");
  }
  return field.json();
}

}  // namespace

std::string batch_body(const BatchRecord& batch) {
  std::string text;
  JsonWriter json(text);
  json.begin_object();
  add_members(json, batch);
  json.end_object();
  return text;
}

std::string record_text(const BatchRecord& batch) {
  std::string text;
  JsonWriter json(text);
  json.begin_object();
  add_members(json, batch);
  json.member("owner", fmt::format("{:016x}", batch.owner)).member("created_ms", batch.created_ms);
  json.member("end", kBatchStatuses[static_cast<size_t>(batch.end)]);
  json.member("output_file", batch.output_file).member("error_file", batch.error_file).end_object();
  return text;
}

ApiResult<BatchRecord> read_record(std::string_view text) {
  OUTRIDER_TRY(const RequestBody body, RequestBody::parse(text, 8));
  const RequestField root = body.root();
  BatchRecord batch;
  for (const auto& [name, member] :
       {std::pair("id", &BatchRecord::id), std::pair("endpoint", &BatchRecord::endpoint),
        std::pair("input_file_id", &BatchRecord::input_file),
        std::pair("completion_window", &BatchRecord::completion_window),
        std::pair("output_file", &BatchRecord::output_file),
        std::pair("error_file", &BatchRecord::error_file)}) {
    OUTRIDER_TRY(batch.*member, record_string(root, name));
  }
  OUTRIDER_TRY(const std::string owner, record_string(root, "owner"));
  batch.owner = std::strtoull(owner.c_str(), nullptr, 16);
  OUTRIDER_TRY(batch.created_ms, record_number(root, "created_ms"));
  OUTRIDER_TRY(batch.expires_at, record_number(root, "expires_at"));
  OUTRIDER_TRY(batch.status, record_status(root, "status"));
  OUTRIDER_TRY(batch.end, record_status(root, "end"));
  for (size_t i = 1; i < kBatchStatuses.size(); ++i) {
    OUTRIDER_TRY(batch.since[i], record_number(root, time_name(static_cast<BatchStatus>(i))));
  }
  OUTRIDER_TRY(const RequestField counts, root.at("request_counts"));
  OUTRIDER_TRY(batch.total, record_number(counts, "total"));
  OUTRIDER_TRY(batch.completed, record_number(counts, "completed"));
  OUTRIDER_TRY(batch.failed, record_number(counts, "failed"));
  if (const auto metadata = root.find("metadata")) batch.metadata = metadata->json();
  OUTRIDER_RETURN_IF_ERROR(read_errors(root, batch.errors));
  return batch;
}

ApiResult<BatchRecord> read_batch_request(std::string_view text, int64_t now_ms) {
  OUTRIDER_TRY(const RequestBody body, RequestBody::parse(text, 8));
  const RequestField root = body.root();
  BatchRecord batch;
  batch.id = "batch_" + random_id();
  batch.created_ms = now_ms;
  OUTRIDER_TRY(batch.input_file, record_string(root, "input_file_id"));
  OUTRIDER_TRY(const RequestField endpoint, root.at("endpoint"));
  OUTRIDER_TRY(batch.endpoint, endpoint.string());
  if (batch_route(batch.endpoint) == nullptr)
    return endpoint.error("expected " + std::string(batch_urls()) + ", found " + quote(batch.endpoint));
  OUTRIDER_TRY(const RequestField window, root.at("completion_window"));
  OUTRIDER_TRY(batch.completion_window, window.string());
  OUTRIDER_TRY(const int64_t seconds, window_seconds(window));
  batch.expires_at = now_ms / 1000 + seconds;
  if (const auto metadata = root.find("metadata")) {
    OUTRIDER_TRY(batch.metadata, metadata_text(*metadata));
  }
  return batch;
}

}  // namespace outrider
