// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "server/api/answers/answer.h"
#include "server/api/answers/token_text.h"
#include "server/api/requests/completion_request.h"

namespace outrider {

class CompletionAnswer final : public Answer {
 public:
  CompletionAnswer(const CompletionSpec& spec, const CallContext& context, std::vector<Request> requests);

 protected:
  bool begin_choice(int choice, JsonWriter& json) override;
  bool add_choice(int choice, std::string_view text, const ChoiceDelta& delta, JsonWriter& json) override;
  void end_choice(int choice, JsonWriter& json) override;
  void whole_choice(int choice, JsonWriter& json) override;

 private:
  struct Choice {
    std::string echo;             // the prompt, if it is part of the answer
    std::vector<TokenId> echoed;  // its tokens until their log-probabilities arrive, if these are wanted
    std::string text;             // only if not streamed
    std::optional<CompletionLogprobs> logprobs;
  };
  std::vector<Choice> choices_;
};

}  // namespace outrider
