// SPDX-License-Identifier: Apache-2.0
// Outrider as a library: open an engine over a model, submit requests, step until they are done.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "outrider/drafter.h"
#include "outrider/result.h"
#include "outrider/sampling_params.h"
#include "outrider/speculative_options.h"
#include "outrider/token.h"
#include "outrider/token_constraint.h"
#include "outrider/token_tree.h"
#include "outrider/trace.h"

namespace outrider {

// Type of cached keys and values; kAuto: bf16. Q8_0: one scale per 32 numbers.
enum class KvCacheType : uint8_t { kAuto, kF32, kBF16, kF16, kQ8_0 };

enum class WeightPrecision : uint8_t {
  kAuto,  // as stored
  kF32,
  kBF16,
  kQ8_0,  // GGUF's blocks of 32 numbers with a scale each
  kQ8,    // 8 bits, one scale per output: many rows cost least
  kQ4,    // GGUF's Q4_0
};

// Whether each thread of the engine, but for the caller's, stays on one processor: one per core first, in
// turn over the NUMA nodes. kAuto: where there are several nodes and a thread for every processor this
// process may use.
enum class ThreadPinning : uint8_t { kAuto, kOn, kOff };

struct EngineOptions {
  std::filesystem::path model;  // Hugging Face directory or .gguf file
  SpeculativeOptions speculation;
  std::shared_ptr<Drafter> user_drafter;  // for Method::kUserProvided
  AcceptanceRule acceptance = AcceptanceRule::kCoupled;
  WeightPrecision weights = WeightPrecision::kAuto;
  std::filesystem::path cache_dir;     // where measured costs are kept from run to run; empty: nowhere
  std::filesystem::path packed_cache;  // folder for packed weights, which later starts map; empty: none
  std::string kernels;                 // name of a kernel table; empty: the fastest this machine has
  int threads = 0;                     // 0: one per core
  ThreadPinning pinning = ThreadPinning::kAuto;
  int64_t context = 0;  // longest sequence in tokens; 0: what the model was made for, at most 8192
  int page_size = 16;   // tokens per KV page
  KvCacheType kv_cache_type = KvCacheType::kAuto;
  int64_t kv_pages = 0;  // 0: enough for max_batch sequences of full context, within a third of free memory
  int max_batch = 8;     // sequences that run together
  int prefill_chunk = 256;  // prompt tokens computed in one pass
  int max_batch_rows = 0;  // rows of one pass: prompts, pending tokens, drafts; 0: what the two above ask for
  int max_waiting = 0;     // requests that wait for a place in the batch; 0: any number
  bool calibrate = false;  // measure what passes cost even if no policy needs it, for EngineStatus::speedup
                           // and requests with a policy of their own
};

// The rule in force.
inline AcceptanceRule acceptance_rule(const EngineOptions& options) {
  const bool is_relaxed = options.speculation.relaxed.for_thinking;
  return is_relaxed && options.acceptance == AcceptanceRule::kCoupled ? AcceptanceRule::kRelaxed
                                                                      : options.acceptance;
}

// How one request speculates, within what the engine was opened for.
struct RequestSpeculation {
  bool enabled = true;          // false: decoded plainly
  std::optional<bool> is_auto;  // measured costs decide how much is drafted; unset: as the engine
  int max_draft_tokens = 0;     // nodes of a tree; 0: as the engine
  std::optional<AcceptanceRule> acceptance;  // unset: the engine's
};

// Ids that may not come, beyond what a constraint says; counted and matched over the output alone.
struct TokenRules {
  int64_t min_tokens = 0;                            // before a stop token or stop string may end the output
  std::vector<TokenId> allowed = {};                 // empty: all
  std::vector<std::vector<TokenId>> forbidden = {};  // sequences that may not appear in the output

  bool empty() const { return min_tokens == 0 && allowed.empty() && forbidden.empty(); }
};

struct Request {
  std::vector<TokenId> prompt = {};  // at least one token
  SamplingParams sampling = {};
  int64_t max_tokens = 128;
  std::vector<std::string> stop = {};     // text that ends the output and is not part of it
  std::vector<TokenId> stop_tokens = {};  // beyond those of the model
  bool ignore_eos = false;
  bool skip_special = true;  // control tokens give no text
  TokenRules rules = {};
  RequestSpeculation speculation = {};
  uint64_t sample_index = 0;  // which of several answers to one prompt: each has draws of its own
  int logprobs = -1;  // of every output token, and of so many likeliest beside it; -1: none; at most 20
  int prompt_logprobs = -1;  // the same of every prompt token but the first
  uint64_t cache_scope = 0;  // cached prompts are shared within a scope only
  // Masks the target's distribution and prunes drafts; of this request alone.
  std::shared_ptr<TokenConstraint> constraint = {};
};

// Natural log-probabilities of the target itself, before temperature, penalties, truncation and masks.
struct TokenLogprobs {
  float logprob = 0;
  std::vector<std::pair<TokenId, float>> top;  // falling; ties by id
  int64_t rank = 0;                            // of the token among all, from 1; of prompt tokens only
};

enum class FinishReason : uint8_t { kStop, kLength, kCancelled };
std::string_view finish_reason_name(FinishReason reason);  // "stop", "length", "cancelled"

struct SpeculationStats {
  std::string method;
  bool lossless = true;                        // by the acceptance rule, for whatever was drafted
  int64_t steps = 0;                           // target passes that committed output
  int64_t drafts = 0;                          // of these, with drafted tokens
  int64_t drafted = 0;                         // drafted tokens verified
  int64_t accepted = 0;                        // of these committed
  int64_t committed = 0;                       // tokens committed by those passes
  std::vector<int64_t> drafted_per_position;   // by depth - 1
  std::vector<int64_t> accepted_per_position;  // by depth - 1
  int64_t draft_failures = 0;                  // calls of the drafter that failed; decoded plainly instead
  double draft_ms = 0;
  double verify_ms = 0;  // target passes, acceptance and commit

  // Tokens committed per target pass, the bonus token included; 1 when nothing is drafted.
  double acceptance_length() const {
    return steps == 0 ? 0.0 : static_cast<double>(committed) / static_cast<double>(steps);
  }
};

struct Completion {
  std::vector<TokenId> tokens;                 // the output, stop token included where one ended it
  std::vector<TokenOrigin> origins;            // of `tokens`
  std::vector<TokenLogprobs> logprobs;         // of `tokens`, where the request asked for them
  std::vector<TokenLogprobs> prompt_logprobs;  // of the prompt's tokens from the second on, likewise
  std::string text;                            // without special tokens, cut before a stop string
  FinishReason finish_reason = FinishReason::kStop;
  int64_t prompt_tokens = 0;
  int64_t cached_tokens = 0;  // of the prompt, found in the cache
  double queue_ms = 0;        // from submit() to the first step
  double first_token_ms = 0;  // from submit() to the first token; 0: there is none
  double prompt_ms = 0;
  double decode_ms = 0;
  SpeculationStats speculation;
};

// News of a running request; text is complete UTF-8.
struct Progress {
  std::string_view text;            // new text, may be empty
  std::span<const TokenId> tokens;  // newly committed tokens
  std::span<const TokenOrigin> origins;
  std::span<const TokenLogprobs> logprobs = {};         // of `tokens`, or empty
  std::span<const TokenLogprobs> prompt_logprobs = {};  // all of them, with the first news
  const Completion* completion = nullptr;               // set once, with the last news
};

using RequestId = uint64_t;
using ProgressSink = std::function<void(RequestId, const Progress&)>;

// What the engine runs on, for reports.
struct EngineInfo {
  std::string model_path;
  std::string family;
  std::string kernels;
  std::string weights;  // storage type of most weights: "bf16"
  std::string kv_cache_type;
  std::string drafter;
  std::vector<std::string> sources;  // names of the drafters that share its trees, by number
  int threads = 0;
  bool is_pinned = false;  // each thread to a processor
  int64_t parameters = 0;
  int64_t weight_bytes = 0;
  bool maps_weights = false;  // they come packed from EngineOptions::packed_cache
  int64_t context = 0;
  int64_t vocab_size = 0;
  double load_ms = 0;
};

// What the engine is doing, and did since it was opened; all requests together.
struct EngineStatus {
  int running = 0;  // requests in the batch
  int waiting = 0;
  int64_t pages = 0;  // of the KV pool
  int64_t used_pages = 0;
  int64_t steps = 0;
  int64_t rows = 0;  // of all target passes
  int64_t prompt_tokens = 0;
  int64_t cached_tokens = 0;  // of these, found in the cache
  int64_t output_tokens = 0;
  int64_t preemptions = 0;
  SpeculationStats speculation = {};
  double speedup = 0;  // tokens per second against plain decoding, of late; 0: not known
};

struct EngineParts;  // internal

// Not thread safe: one thread submits, steps and cancels.
class Engine {
 public:
  // Errors: anything about the model or draft that does not fit, in one line.
  static Result<std::unique_ptr<Engine>> open(EngineOptions options);
  // Over parts made elsewhere; for the library's own tests.
  static std::unique_ptr<Engine> assemble(std::unique_ptr<EngineParts> parts);
  ~Engine();

  const EngineInfo& info() const;

  std::vector<TokenId> tokenize(std::string_view text, bool add_special = true,
                                bool parse_special = true) const;
  std::string detokenize(std::span<const TokenId> tokens, bool skip_special = true) const;
  // {role, content} pairs through the model's chat template. Error: no template, or it refused the messages.
  Result<std::string> apply_chat_template(std::span<const std::pair<std::string, std::string>> messages,
                                          bool add_generation_prompt = true) const;

  // Queues a request. Error: empty prompt, ids outside the vocabulary, prompt not shorter than the context,
  // parameters out of range, or it could outgrow the KV cache; kResource: max_waiting requests wait.
  Result<RequestId> submit(Request request, ProgressSink sink = nullptr);
  // Takes effect with the next step; may be called from a sink. Unknown and finished requests are ignored.
  void cancel(RequestId id);

  // One step of all running requests: schedule, draft, one target pass, verify, commit, stream. False when
  // idle.
  bool step();

  // From the next step on, `sink` gets what every sequence did, once per step, after the requests' sinks; an
  // empty one ends it. Not to be called from a sink. Tracing costs time, and changes no output.
  void set_trace_sink(TraceSink sink);

  // submit() and step() until this request is done.
  Result<Completion> generate(Request request, ProgressSink sink = nullptr);

  // Natural log-probability of every token given those before it; the first has none and is 0.
  Result<std::vector<double>> score(std::span<const TokenId> tokens);

  // Pages not in use by any sequence; equal to the pool's size when idle (pages kept for prefix reuse
  // included).
  int64_t free_pages() const;

  EngineStatus status() const;

  const EngineParts& parts() const;  // internal

 private:
  struct Impl;
  explicit Engine(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace outrider
