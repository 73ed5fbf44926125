// SPDX-License-Identifier: Apache-2.0
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "capi/handles.h"
#include "capi/status.h"

using outrider::Completion;
using outrider::Progress;
using outrider::RequestId;

namespace {

const uint8_t* origin_bytes(std::span<const outrider::TokenOrigin> origins) {
  static_assert(sizeof(outrider::TokenOrigin) == sizeof(uint8_t));
  return reinterpret_cast<const uint8_t*>(origins.data());
}

// The sink that calls a function of the program.
outrider::ProgressSink sink_of(outrider_progress_callback callback, void* user) {
  if (callback == nullptr) return nullptr;
  return [callback, user](RequestId id, const Progress& progress) {
    std::unique_ptr<const outrider_completion> completion;
    if (progress.completion != nullptr)
      completion = std::make_unique<const outrider_completion>(*progress.completion);
    const std::string text(progress.text);  // ends with a zero
    const outrider_progress shown = {.request = id,
                                     .text = text.c_str(),
                                     .text_size = text.size(),
                                     .tokens = progress.tokens.data(),
                                     .origins = origin_bytes(progress.origins),
                                     .token_count = progress.tokens.size(),
                                     .completion = completion.get()};
    callback(user, &shown);
  };
}

outrider::TraceSink trace_sink_of(outrider_trace_callback callback, void* user) {
  if (callback == nullptr) return nullptr;
  return [callback, user](const outrider::StepTrace& trace) {
    std::vector<outrider_node> nodes;
    nodes.reserve(trace.nodes.size());
    for (const outrider::TraceNode& node : trace.nodes) {
      nodes.push_back({.token = node.token,
                       .parent = node.parent,
                       .draft_probability = node.draft_probability,
                       .target_probability = node.target_probability,
                       .sources = node.sources,
                       .fate = static_cast<uint16_t>(node.fate),
                       .cause = static_cast<uint16_t>(node.cause)});
    }
    const outrider_step_trace shown = {.step = trace.step,
                                       .request = trace.request,
                                       .draft_ms = trace.draft_ms,
                                       .verify_ms = trace.verify_ms,
                                       .other_ms = trace.other_ms,
                                       .nodes = nodes.data(),
                                       .node_count = nodes.size(),
                                       .tokens = trace.tokens.data(),
                                       .origins = origin_bytes(trace.origins),
                                       .token_count = trace.tokens.size()};
    callback(user, &shown);
  };
}

}  // namespace

outrider_request* outrider_request_new(const outrider_engine* engine) {
  return outrider::made_by([&] { return new outrider_request{engine->opened.request}; });
}

void outrider_request_free(outrider_request* request) { delete request; }

outrider_status outrider_request_set_prompt(outrider_request* request, const int32_t* tokens, size_t count) {
  return outrider::status_of([&] {
    request->request.prompt.assign(tokens, tokens + count);
    return outrider::Status();
  });
}

outrider_status outrider_request_set(outrider_request* request, const char* name, const char* value) {
  return outrider_request_set_list(request, name, &value, 1);
}

outrider_status outrider_request_set_list(outrider_request* request, const char* name,
                                          const char* const* values, size_t count) {
  return outrider::status_of([&] {
    const std::vector<std::string> texts(values, values + count);
    return set_parameter(request->request, name, texts);
  });
}

outrider_status outrider_request_set_logits_function(outrider_request* request,
                                                     outrider_logits_function function, void* user) {
  return outrider::status_of([&] {
    outrider::LogitsFunction& kept = request->request.logits_function;
    kept = nullptr;
    if (function == nullptr) return outrider::Status();
    kept = [function, user](std::span<const outrider::TokenId> tokens,
                            std::span<float> logits) -> outrider::Status {
      const int result = function(user, tokens.data(), tokens.size(), logits.data(), logits.size());
      if (result == 0) return {};
      return outrider::input_error("the logits function returned " + std::to_string(result) + ", expected 0");
    };
    return outrider::Status();
  });
}

outrider_status outrider_submit(outrider_engine* engine, const outrider_request* request,
                                outrider_progress_callback callback, void* user, uint64_t* id) {
  return outrider::status_of([&]() -> outrider::Status {
    OUTRIDER_TRY(const RequestId submitted,
                 engine->engine().submit(request->request, sink_of(callback, user)));
    if (id != nullptr) *id = submitted;
    return {};
  });
}

outrider_status outrider_cancel(outrider_engine* engine, uint64_t id) {
  return outrider::status_of([&] {
    engine->engine().cancel(id);
    return outrider::Status();
  });
}

outrider_status outrider_step(outrider_engine* engine, bool* is_running) {
  return outrider::status_of([&] {
    *is_running = engine->engine().step();
    return outrider::Status();
  });
}

outrider_status outrider_generate(outrider_engine* engine, const outrider_request* request,
                                  outrider_progress_callback callback, void* user,
                                  outrider_completion** completion) {
  return outrider::status_of([&]() -> outrider::Status {
    OUTRIDER_TRY(const Completion done, engine->engine().generate(request->request, sink_of(callback, user)));
    *completion = new outrider_completion(done);
    return {};
  });
}

outrider_status outrider_set_trace(outrider_engine* engine, outrider_trace_callback callback, void* user) {
  return outrider::status_of([&] {
    engine->engine().set_trace_sink(trace_sink_of(callback, user));
    return outrider::Status();
  });
}
