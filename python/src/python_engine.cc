// SPDX-License-Identifier: Apache-2.0
#include "python_engine.h"

#include <optional>

#include "engine/engine_parts.h"
#include "python_values.h"

namespace outrider::py {

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

uint64_t PythonEngine::submit(std::vector<TokenId> prompt, const Parameters& parameters, bool is_traced) {
  Request request = opened_.request;
  request.prompt = std::move(prompt);
  for (const auto& [name, values] : parameters) {
    const Status status = set_parameter(request, name, values);
    if (!status.ok()) raise(status.error());
  }
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

std::string PythonEngine::apply_chat_template(
    const std::vector<std::pair<std::string, std::string>>& messages, bool add_generation_prompt) const {
  return value_of(opened_.engine->apply_chat_template(messages, add_generation_prompt));
}

std::shared_ptr<const Tokenizer> PythonEngine::tokenizer() const { return opened_.engine->parts().tokenizer; }

nb::dict PythonEngine::info() const { return info_of(opened_.engine->info()); }

nb::dict PythonEngine::status() const { return status_of_engine(opened_.engine->status()); }

}  // namespace outrider::py
