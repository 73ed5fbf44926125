// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "outrider/open.h"
#include "python_drafter.h"
#include "tokenizer/tokenizer.h"

namespace outrider::py {

// An engine for one thread of Python, which submits, steps and cancels. The tokenizer, the template and the
// information may be used by other threads.
class PythonEngine {
 public:
  using Options = std::vector<std::pair<std::string, std::string>>;
  using Parameters = std::vector<std::pair<std::string, std::vector<std::string>>>;

  static std::unique_ptr<PythonEngine> open(const Options& options, std::shared_ptr<PythonDrafter> drafter);

  // With `is_traced` the completion has the trees of all steps.
  uint64_t submit(std::vector<TokenId> prompt, const Parameters& parameters, bool is_traced);
  void cancel(uint64_t id) { opened_.engine->cancel(id); }

  // One step without the GIL. Gives its events: (request, new text, new tokens, their origins, completion or
  // None).
  nanobind::list step();

  std::string apply_chat_template(const std::vector<std::pair<std::string, std::string>>& messages,
                                  bool add_generation_prompt) const;
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

  explicit PythonEngine(OpenedEngine opened) : opened_(std::move(opened)) {}
  void add_event(uint64_t request, const Progress& progress);
  nanobind::tuple take(Event& event);

  OpenedEngine opened_;
  std::vector<Event> events_;                          // of the present step
  std::map<uint64_t, std::vector<StepTrace>> traces_;  // of the requests that want them
};

}  // namespace outrider::py
