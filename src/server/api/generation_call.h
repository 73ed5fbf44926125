// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "outrider/engine.h"
#include "outrider/trace.h"
#include "server/api/api_error.h"
#include "server/api/served_model.h"

namespace outrider {

enum class Endpoint : uint8_t { kChatCompletions, kCompletions };

// Bounds that hold before any work is done.
struct ApiLimits {
  int json_depth = 64;
  int choices = 16;  // n, times the prompts of a completion
  int stop_strings = 16;
  int stop_bytes = 256;  // of one stop string
  int stop_tokens = 1024;
  int logit_bias = 1024;  // entries
  int bad_words = 256;    // each of at most stop_bytes
  int top_logprobs = 20;
  int64_t prompt_logprobs = 1 << 17;  // of all prompts, choices and ranks of one call together
  int messages = 4096;
  int tools = 128;
  int grammar_bytes = 256 << 10;
  bool template_flags = false;  // chat_template_kwargs may set them
};

// What one step brought to one choice, in a form that may leave the engine's thread.
struct ChoiceDelta {
  std::string text;
  std::vector<TokenId> tokens;
  std::vector<TokenOrigin> origins;
  std::vector<TokenLogprobs> logprobs;
  std::vector<TokenLogprobs> prompt_logprobs;  // with the first news
  std::optional<StepTrace> trace;              // where the call wants traces
  std::optional<Completion> completion;        // with the last news

  // A trace may come before all else.
  bool is_trace_alone() const { return tokens.empty() && !completion; }
};

// One POST to /v1/chat/completions or /v1/completions, from its body to its answer. Pure: no sockets, no
// engine, no clock but what is given. Used by one thread at a time.
class GenerationCall {
 public:
  struct Context {
    const ServedModel* model = nullptr;
    ApiLimits limits;
    std::string id;            // of the answer, without its prefix
    int64_t created = 0;       // Unix time
    uint64_t random_seed = 0;  // where the request gives no seed
    uint64_t cache_scope = 0;
  };

  // Everything is checked: an error names the field. Does all that may take long: template, tokens, grammar.
  static ApiResult<std::unique_ptr<GenerationCall>> parse(Endpoint endpoint, std::string_view body,
                                                          const Context& context);
  virtual ~GenerationCall() = default;

  // requests()[i] makes choice i. To be moved from, once.
  virtual std::vector<Request>& requests() = 0;
  virtual bool streams() const = 0;
  virtual bool wants_traces() const = 0;
  // Fields that were present and mean nothing here, for the log.
  virtual const std::vector<std::string>& ignored_fields() const = 0;

  // Streaming: appends the server-sent events ("data: {...}\n\n") to `events`. The last news of the last
  // choice brings the usage, where asked for, and "data: [DONE]\n\n".
  // Not streaming: gathers; `events` is left alone.
  virtual void start(std::string& events) = 0;
  virtual void add(int choice, ChoiceDelta delta, std::string& events) = 0;
  // After the last news of every choice: the whole answer, of a call that does not stream.
  virtual std::string body() = 0;
  // Of a stream that has begun: data: {"error": ...}
  static std::string error_event(const ApiError& error);
};

}  // namespace outrider
