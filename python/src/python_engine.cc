// SPDX-License-Identifier: Apache-2.0
#include "python_engine.h"

#include <optional>

#include "engine/engine_parts.h"
#include "python_values.h"
#include "server/api/call_context.h"
#include "server/api/requests/chat_request.h"
#include "server/api/requests/constraints.h"
#include "server/api/requests/output_form.h"
#include "server/api/requests/rerank_request.h"

namespace outrider::py {
namespace {

// The value, or else a ValueError that names the field.
template <typename T>
T api_value(ApiResult<T> result) {
  if (result.ok()) return std::move(result).value();
  const ApiError& error = result.error();
  raise(usage_error(error.param.empty() ? error.message : error.param + ": " + error.message));
}

}  // namespace

std::unique_ptr<PythonEngine> PythonEngine::open(const Options& options,
                                                 std::shared_ptr<PythonDrafter> drafter) {
  std::vector<NamedOption> named;
  for (const auto& [name, value] : options) named.push_back({name, value});
  std::optional<Result<OpenedEngine>> opened;
  {
    const nb::gil_scoped_release release;
    opened = open_with_options(named, std::move(drafter));
  }
  return std::unique_ptr<PythonEngine>(new PythonEngine(value_of(*std::move(opened))));
}

uint64_t PythonEngine::submit(std::vector<TokenId> prompt, const Parameters& parameters, bool is_traced,
                              nb::object logits_function) {
  Request request = opened_.request;
  request.prompt = std::move(prompt);
  if (!logits_function.is_none()) request.logits_function = logits_function_of(std::move(logits_function));
  std::string form;
  for (const auto& [name, values] : parameters) {
    if (name == "structured_outputs") {
      form = values.front();
      continue;
    }
    if (name == "pooling") {
      request.pooling = values.front() == "mean" ? Pooling::kMean : Pooling::kLast;
      continue;
    }
    const Status status = set_parameter(request, name, values);
    if (!status.ok()) raise(status.error());
  }
  if (!form.empty()) constrain(request, form);
  const RequestId id = value_of(opened_.engine->submit(
      std::move(request), [this](RequestId from, const Progress& progress) { add_event(from, progress); }));
  if (!is_traced) return id;
  if (traces_.empty()) {
    opened_.engine->set_trace_sink([this](const StepTrace& trace) {
      const auto wanted = traces_.find(trace.request);
      if (wanted != traces_.end()) wanted->second.push_back(trace);
    });
  }
  traces_.emplace(id, std::vector<StepTrace>());
  return id;
}

const ServedModel& PythonEngine::served() {
  std::call_once(is_served_, [this] { served_ = served_model(opened_.engine->parts()); });
  return served_;
}

void PythonEngine::constrain(Request& request, const std::string& form) {
  const auto constraints = [&]() -> ApiResult<Constraints> {
    const nb::gil_scoped_release release;
    const ApiLimits limits;
    GenerationSpec spec;
    spec.model = &served();
    spec.limits = &limits;
    spec.request.stop_tokens = request.stop_tokens;
    OUTRIDER_TRY(const RequestBody body, RequestBody::parse(form, limits.json_depth));
    OUTRIDER_RETURN_IF_ERROR(read_structured_outputs(body.root(), spec));
    return form_constraints(spec, 1);
  }();
  const Constraints made = api_value(constraints);
  if (!made.empty()) request.constraint = made.front();
}

void PythonEngine::add_event(uint64_t request, const Progress& progress) {
  Event event{.request = request,
              .text = std::string(progress.text),
              .tokens = {progress.tokens.begin(), progress.tokens.end()},
              .origins = {progress.origins.begin(), progress.origins.end()},
              .completion = nullptr};
  if (progress.completion != nullptr)
    event.completion = std::make_unique<const Completion>(*progress.completion);
  events_.push_back(std::move(event));
}

nb::list PythonEngine::step() {
  {
    const nb::gil_scoped_release release;
    opened_.engine->step();
  }
  nb::list events;
  for (Event& event : events_) events.append(take(event));
  events_.clear();
  return events;
}

// The traces of a step come after its progress, and therefore with the event only now.
nb::tuple PythonEngine::take(Event& event) {
  nb::object completion = nb::none();
  if (event.completion != nullptr) {
    const auto traced = traces_.find(event.request);
    completion = traced == traces_.end() ? completion_of(*event.completion, {})
                                         : completion_of(*event.completion, traced->second);
    if (traced != traces_.end()) {
      traces_.erase(traced);
      if (traces_.empty()) opened_.engine->set_trace_sink(nullptr);
    }
  }
  return nb::make_tuple(event.request, text_of(event.text), ids_of(event.tokens), origins_of(event.origins),
                        completion);
}

nb::tuple PythonEngine::chat_prompt(const std::string& body, const std::string& chat_template) {
  ServedModel model = served();
  std::optional<ChatTemplate> given;
  if (!chat_template.empty()) {
    given.emplace(value_of(ChatTemplate::parse(chat_template)));
    model.set_template(&*given);
  }
  const ApiLimits limits;
  const RequestBody parsed = api_value(RequestBody::parse(body, limits.json_depth));
  const ChatPrompt prompt = api_value(make_chat_prompt(parsed.root(), model, limits));
  return nb::make_tuple(text_of(prompt.text), ids_of(prompt.tokens));
}

nb::tuple PythonEngine::rerank_prompt(const std::string& body) {
  ServedModel model = served();
  model.pooling.reset();  // as a server with --pooling rank
  CallContext context;
  context.model = &model;
  const RequestBody parsed = api_value(RequestBody::parse(body, context.limits.json_depth));
  const RerankSpec spec = api_value(read_rerank_request(parsed.root(), context));
  return nb::make_tuple(ids_of(spec.prompts.front()), spec.yes, spec.no);
}

std::shared_ptr<const Tokenizer> PythonEngine::tokenizer() const { return opened_.engine->parts().tokenizer; }

nb::dict PythonEngine::info() const { return info_of(opened_.engine->info()); }

nb::dict PythonEngine::status() const { return status_of_engine(opened_.engine->status()); }

}  // namespace outrider::py
