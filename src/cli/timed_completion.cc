// SPDX-License-Identifier: Apache-2.0
#include "cli/timed_completion.h"

#include <utility>

namespace outrider {

double TimedCompletion::tokens_per_second() const {
  const auto decoded =
      static_cast<double>(completion.tokens.size()) - static_cast<double>(prompt_pass_tokens);
  if (decoded <= 0 || completion.decode_ms <= 0) return 0;
  return decoded * 1000.0 / completion.decode_ms;
}

Result<TimedCompletion> generate_timed(Engine& engine, Request request, const ProgressSink& sink) {
  TimedCompletion timed;
  bool first = true;
  OUTRIDER_TRY(timed.completion,
               engine.generate(std::move(request), [&](RequestId id, const Progress& progress) {
                 if (first && !progress.tokens.empty()) {
                   timed.prompt_pass_tokens = static_cast<int64_t>(progress.tokens.size());
                   first = false;
                 }
                 if (sink) sink(id, progress);
               }));
  return timed;
}

Result<std::vector<Completion>> generate_together(Engine& engine, std::span<const Request> requests) {
  std::vector<Completion> completions(requests.size());
  for (size_t i = 0; i < requests.size(); ++i) {
    const auto keep = [&completions, i](RequestId, const Progress& progress) {
      if (progress.completion != nullptr) completions[i] = *progress.completion;
    };
    OUTRIDER_TRY([[maybe_unused]] const RequestId id, engine.submit(requests[i], keep));
  }
  while (engine.step()) {
  }
  return completions;
}

}  // namespace outrider
