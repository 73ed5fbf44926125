// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "server/api/answers/answer_figures.h"
#include "server/api/generation_call.h"
#include "server/api/requests/generation_spec.h"

namespace outrider {

// The answer of /infill and /completion, in llama-server's own form.
class InfillAnswer final : public GenerationCall {
 public:
  InfillAnswer(const GenerationSpec& spec, std::vector<Request> requests);

  void add(int choice, ChoiceDelta delta, std::string& events) override;
  std::string body() override { return object(text_); }

 private:
  std::string object(std::string_view text) const;
  void write_end(JsonWriter& json) const;

  GenerationSpec spec_;
  std::string text_;  // if not streamed
  ChoiceFigures figures_;
  std::optional<Completion> completion_;
};

}  // namespace outrider
