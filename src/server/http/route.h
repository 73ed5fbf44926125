// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <variant>

#include "server/api/answers/parse_call.h"
#include "server/http/reply.h"
#include "server/http/service.h"

namespace outrider {

// The request of a plain answer.
struct PlainCall {
  std::string argument;  // the text that "{id}" of the pattern matched
  uint64_t scope = 0;    // of the client's key
};

// The ways in which the requests of a route are answered:
// - at once, on the I/O thread, because it needs no work of the engine
using PlainFunction = Reply (*)(Service& service, const PlainCall& call);
// - by the worker, without the engine: from the body of the request to the body of the answer
using TextFunction = ApiResult<std::string> (*)(std::string_view body, const ServedModel& model,
                                                const ApiLimits& limits);
// - by the engine, after the worker has read the request (ParseFunction)
// - by the engine between two steps: llama-server's actions on slots
struct SlotAction {};
// - by a conversation of the drafting protocol
struct DraftingUpgrade {};
// - by the thread of the Batch API, from the request to the body of the answer
struct BatchCall {
  std::string argument;
  uint64_t scope = 0;
  std::string target = {};        // for its query
  std::string content_type = {};  // of the body
  std::string body = {};
};
using BatchFunction = ApiResult<std::string> (*)(Batches& batches, const BatchCall& call);
// - by the content of a file of the Batch API
struct FileContent {};

struct RouteRow {
  std::string_view method;
  std::string_view pattern;  // "{id}" matches one segment
  std::variant<PlainFunction, TextFunction, ParseFunction, SlotAction, DraftingUpgrade, BatchFunction,
               FileContent>
      function;
  bool needs_model = true;       // 503 before it is loaded
  bool is_public = false;        // no host name and no key is asked for
  bool takes_files = false;      // its body is a file or a form, and may be as long as one
  std::string_view action = {};  // of its requests in the audit log; empty: they are not in it

  // It takes a place in the queue.
  bool is_queued() const {
    return std::holds_alternative<TextFunction>(function) || std::holds_alternative<ParseFunction>(function);
  }
  bool is_of_batches() const {
    return std::holds_alternative<BatchFunction>(function) || std::holds_alternative<FileContent>(function);
  }
};

// Plain answers (plain_answers.cc).
Reply chat_page(Service& service, const PlainCall& call);
Reply health(Service& service, const PlainCall& call);
Reply metrics(Service& service, const PlainCall& call);
Reply openapi(Service& service, const PlainCall& call);
Reply version(Service& service, const PlainCall& call);
Reply stats(Service& service, const PlainCall& call);
Reply models(Service& service, const PlainCall& call);
Reply model(Service& service, const PlainCall& call);
Reply adapters(Service& service, const PlainCall& call);
Reply stored_response(Service& service, const PlainCall& call);
Reply response_input(Service& service, const PlainCall& call);
Reply delete_response(Service& service, const PlainCall& call);
Reply tokenizer_info(Service& service, const PlainCall& call);
Reply props(Service& service, const PlainCall& call);
Reply slots(Service& service, const PlainCall& call);
Reply ollama_tags(Service& service, const PlainCall& call);
Reply ollama_ps(Service& service, const PlainCall& call);
Reply ollama_version(Service& service, const PlainCall& call);
Reply cancel(Service& service, const PlainCall& call);

// Answers of the Batch API (batch_answer.cc).
ApiResult<std::string> create_file(Batches& batches, const BatchCall& call);
ApiResult<std::string> list_files(Batches& batches, const BatchCall& call);
ApiResult<std::string> stored_file(Batches& batches, const BatchCall& call);
ApiResult<std::string> delete_file(Batches& batches, const BatchCall& call);
ApiResult<std::string> create_batch(Batches& batches, const BatchCall& call);
ApiResult<std::string> list_batches(Batches& batches, const BatchCall& call);
ApiResult<std::string> stored_batch(Batches& batches, const BatchCall& call);
ApiResult<std::string> cancel_batch(Batches& batches, const BatchCall& call);

}  // namespace outrider
