// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "outrider/open.h"
#include "python_drafter.h"
#include "server/api/served_model.h"
#include "tokenizer/tokenizer.h"

namespace outrider::py {

// An engine for one thread of Python, which submits, steps and cancels. The tokenizer, the template and the
// information may be used by other threads.
class PythonEngine {
 public:
  using Options = std::vector<std::pair<std::string, std::string>>;
  using Parameters = std::vector<std::pair<std::string, std::vector<std::string>>>;

  static std::unique_ptr<PythonEngine> open(const Options& options, std::shared_ptr<PythonDrafter> drafter);

  // `parameters` are set_parameter()'s, "structured_outputs", and "pooling", which wants the completion's
  // embedding. With `is_traced` the completion has the trees of all steps. `logits_function`: see
  // logits_function_of(), or None.
  uint64_t submit(std::vector<TokenId> prompt, const Parameters& parameters, bool is_traced,
                  nanobind::object logits_function);
  void cancel(uint64_t id) { opened_.engine->cancel(id); }

  // One step without the GIL. Gives its events: (request, new text, new tokens, their origins, completion or
  // None).
  nanobind::list step();

  // The text and the tokens of a chat. `body` is the body of a request to the server, with messages, tools
  // and variables of the template; `chat_template` replaces the model's, unless it is empty.
  nanobind::tuple chat_prompt(const std::string& body, const std::string& chat_template);
  // The tokens that ask a reranker about the only document of a body of /v1/rerank, and its tokens for "yes"
  // and "no".
  nanobind::tuple rerank_prompt(const std::string& body);
  std::shared_ptr<const Tokenizer> tokenizer() const;
  const std::vector<std::string>& warnings() const { return opened_.warnings; }
  nanobind::dict info() const;
  nanobind::dict status() const;

 private:
  struct Event {
    uint64_t request = 0;
    std::string text;
    std::vector<TokenId> tokens;
    std::vector<TokenOrigin> origins;
    std::unique_ptr<const Completion> completion;
  };

  // Makes the output obey vLLM's "structured_outputs", a JSON object.
  void constrain(Request& request, const std::string& form);
  const ServedModel& served();

  explicit PythonEngine(OpenedEngine opened) : opened_(std::move(opened)) {}
  void add_event(uint64_t request, const Progress& progress);
  nanobind::tuple take(Event& event);

  OpenedEngine opened_;
  std::once_flag is_served_;
  ServedModel served_;                                 // for templates and grammars; set by served()
  std::vector<Event> events_;                          // of the present step
  std::map<uint64_t, std::vector<StepTrace>> traces_;  // of the requests that want them
};

}  // namespace outrider::py
