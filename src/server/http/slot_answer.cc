// SPDX-License-Identifier: Apache-2.0
#include "server/http/slot_answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "base/quote.h"
#include "platform/durable_file.h"
#include "server/api/json_writer.h"
#include "server/api/request_field.h"

namespace outrider {
namespace {

constexpr int kMostDepth = 8;  // of the JSON of a request

struct SlotOrder {
  int slot = -1;
  uint64_t scope = 0;
  std::string action = {};
  std::string file_name = {};
  std::filesystem::path file = {};
};

// Names of files without folders, which no program gives a meaning.
bool is_file_name(std::string_view name) {
  constexpr size_t kMostBytes = 128;
  const auto is_allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.';
  };
  return !name.empty() && name.size() <= kMostBytes && name.front() != '.' && !name.ends_with(".state") &&
         !name.ends_with(".tmp") && std::ranges::all_of(name, is_allowed);
}

// Texts of different keys lie in different folders.
std::filesystem::path folder_of(const std::filesystem::path& slots, uint64_t scope) {
  return scope == 0 ? slots : slots / fmt::format("key-{:016x}", scope);
}

ApiStatus read_file_name(std::string_view body, const std::filesystem::path& folder, SlotOrder& order) {
  OUTRIDER_TRY(const RequestBody parsed, RequestBody::parse(body, kMostDepth));
  OUTRIDER_TRY(const RequestField field, parsed.root().at("filename"));
  OUTRIDER_TRY(order.file_name, field.string());
  if (!is_file_name(order.file_name))
    return field_error("filename",
                       "expected letters, digits and -_., with no folder, found " + quote(order.file_name));
  order.file = folder / order.file_name;
  return api_ok();
}

ApiError error_of(const Error& error, std::string_view action) {
  if (error.kind != ErrorKind::kIo) return {.message = error.message};
  if (action == "restore") return {.status = 404, .type = "not_found_error", .message = error.message};
  return {.status = 500, .type = "server_error", .message = error.message};
}

std::string file_answer(const SlotOrder& order, const Engine::SlotFile& file, double ms) {
  const bool is_saved = order.action == "save";
  std::string text;
  JsonWriter out(text);
  out.begin_object().member("id_slot", order.slot).member("filename", order.file_name);
  out.member(is_saved ? "n_saved" : "n_restored", file.tokens);
  out.member(is_saved ? "n_written" : "n_read", file.bytes);
  out.key("timings").begin_object().member(is_saved ? "save_ms" : "restore_ms", ms).end_object();
  out.end_object();
  return text;
}

// On the engine's thread.
ApiResult<std::string> run(Engine& engine, const SlotOrder& order) {
  if (order.action == "erase") {
    const Result<int64_t> erased = engine.erase_slot(order.slot, order.scope);
    if (!erased.ok()) return error_of(erased.error(), order.action);
    return fmt::format(R"({{"id_slot":{},"n_erased":{}}})", order.slot, *erased);
  }
  const double start_ms = now_ms();
  const Result<Engine::SlotFile> file = order.action == "save"
                                            ? engine.save_slot(order.slot, order.scope, order.file)
                                            : engine.restore_slot(order.slot, order.scope, order.file);
  if (!file.ok()) return error_of(file.error(), order.action);
  return file_answer(order, *file, now_ms() - start_ms);
}

ApiResult<std::string> ask_engine(EngineLoop& engine, const SlotOrder& order) {
  std::optional<ApiResult<std::string>> made;
  const Status ran = engine.run_between_steps([&](Engine& opened) {
    made = run(opened, order);
    return Status();
  });
  if (ran.ok()) return *std::move(made);
  return ApiError{.status = 503, .type = "unavailable_error", .message = ran.error().message};
}

}  // namespace

BodyFunction slot_function(const Exchange& exchange) {
  Service& service = exchange.connection->service();
  SlotOrder order{.scope = exchange.admission.scope, .action = query_value(exchange.header.target, "action")};
  const std::string_view id = exchange.admission.match.argument;
  const auto parsed = std::from_chars(id.data(), id.data() + id.size(), order.slot);
  const bool is_number = parsed.ec == std::errc() && parsed.ptr == id.data() + id.size();
  const std::filesystem::path slots = service.options.slot_folder;
  EngineLoop* engine = service.engine.get();
  return [order, is_number, slots, engine](std::string_view body) mutable -> ApiResult<std::string> {
    if (slots.empty())
      return not_served_error("slots are kept in no folder; start the server with --slot-folder DIR");
    if (!is_number) return ApiError{.message = "expected the number of a slot in the path"};
    if (order.action != "save" && order.action != "restore" && order.action != "erase")
      return ApiError{.message = "expected ?action=save, restore or erase, found " + quote(order.action)};
    const std::filesystem::path folder = folder_of(slots, order.scope);
    if (order.action != "erase") OUTRIDER_RETURN_IF_ERROR(read_file_name(body, folder, order));
    if (const Status made = make_directories(folder); !made.ok()) return error_of(made.error(), order.action);
    return ask_engine(*engine, order);
  };
}

}  // namespace outrider
