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

#include "outrider/device_orders.h"
#include "outrider/drafter.h"
#include "outrider/result.h"
#include "outrider/sampling_params.h"
#include "outrider/speculative_options.h"
#include "outrider/token.h"
#include "outrider/token_constraint.h"
#include "outrider/token_tree.h"
#include "outrider/trace.h"

namespace outrider {

class Communicator;  // internal

// The machine that computes networks. kEmulated: a GPU that the processors emulate, which shows that its
// kernels give their bits; kAuto: a GPU that is there and can compute them, or else the processors.
enum class ComputeDevice : uint8_t { kAuto, kCpu, kCuda, kEmulated };

// Type of cached keys and values; kAuto: bf16. Q8_0: one scale per 32 numbers.
enum class KvCacheType : uint8_t {
  kAuto,
  kF32,
  kBF16,
  kF16,
  kE4M3,  // 8 bits without a scale, at most +-448
  kQ8_0,
};

enum class WeightPrecision : uint8_t {
  kAuto,  // as stored
  kF32,
  kBF16,
  kF8,    // E4M3, blocks of 128 numbers with a scale each; the output head and the table stay as stored
  kQ8_0,  // GGUF's blocks of 32 numbers with a scale each
  kQ8,    // 8 bits, one scale per output: many rows cost least
  kQ4,    // GGUF's Q4_0
};

// Whether each thread of the engine, except the caller's, stays on one processor. Cores come before their
// second hardware threads, in turn over the NUMA nodes. kAuto pins if there are several nodes and a thread
// for every processor that this process may use.
enum class ThreadPinning : uint8_t { kAuto, kOn, kOff };

// Whether ranks that draft go on while the target verifies, after the verdicts that they think likely. kAuto
// measures both and keeps the faster way.
enum class DraftAhead : uint8_t { kAuto, kOn, kOff };

// A LoRA adapter: a folder of Hugging Face's PEFT, or a GGUF file of llama.cpp.
struct AdapterSource {
  std::string name;  // by which requests choose it
  std::filesystem::path path;
  double scale = 1;         // factor of its updates
  bool is_default = false;  // requests that choose no adapters use it
};

struct EngineOptions {
  std::filesystem::path model;  // Hugging Face directory or .gguf file
  SpeculativeOptions speculation;
  std::vector<AdapterSource> adapters;
  std::shared_ptr<Drafter> user_drafter;  // for Method::kUserProvided
  AcceptanceRule acceptance = AcceptanceRule::kCoupled;
  WeightPrecision weights = WeightPrecision::kAuto;
  std::filesystem::path cache_dir;     // folder that keeps measured costs from run to run; empty: none
  std::filesystem::path packed_cache;  // folder for packed weights, which later starts map; empty: none
  std::filesystem::path prompt_cache;  // folder for cached pages and states, which later starts read; empty:
                                       // none
  int64_t prompt_cache_size = int64_t{8} << 30;  // bytes of that folder; the longest unused files go first
  // Texts of others, which Suffix drafts from (folders: all files in them), and the folder of their index,
  // which later starts map.
  std::vector<std::filesystem::path> corpus;
  std::filesystem::path corpus_cache;
  int64_t memory_limit = 0;  // bytes; layers of the target that do not fit are read from packed_cache in
                             // every pass; 0: all weights are in memory
  ComputeDevice device = ComputeDevice::kAuto;
  // Layers of the target on a device, the last ones; the output head counts as the last of all. The processor
  // has the others, with their entries and states. Unset: as many as the device has memory for.
  std::optional<int> gpu_layers;
  // The first layers of which the processor has the experts. Unset: as few as the device has memory for.
  std::optional<int> cpu_experts;
  static constexpr int kAllLayers = -1;  // as a value of these two
  // Steps that a device makes one after the other without waiting for this machine, plain ones or with chains
  // of a drafter that can draft there; 0: it waits after every pass.
  int device_steps = 8;
  std::string kernels;  // name of a kernel table; empty: the fastest that the device has the bits of
  int threads = 0;      // 0: one per core, shared by ranks of one machine
  ThreadPinning pinning = ThreadPinning::kAuto;
  int tensor_parallel = 1;    // ranks that share every layer of the target
  int pipeline_parallel = 1;  // groups of its layers, each with separate ranks
  int draft_ranks = 0;        // ranks besides these on which draft models draft, each for a
                              // part of the sequences; 0: they draft with the target
  DraftAhead draft_ahead = DraftAhead::kAuto;
  std::shared_ptr<Communicator> ranks = {};  // the job whose rank 0 this process is; empty: ranks are
                                             // threads of this process
  bool rank_memory = true;  // processes of one machine exchange numbers in memory that they share; false:
                            // through MPI, as ranks of other machines
  int64_t context = 0;  // longest sequence in tokens; 0: the model's own limit, or what memory holds of it
  int page_size = 16;   // tokens per KV page
  KvCacheType kv_cache_type = KvCacheType::kAuto;
  int64_t kv_pages = 0;  // 0: enough for max_batch sequences of full context, within a third of free memory
  int max_batch = 8;     // sequences that run together
  int prefill_chunk = 256;  // prompt tokens computed in one pass
  int max_batch_rows = 0;   // rows of one pass: prompts, pending tokens, drafts; 0: enough for the two above
  int max_waiting = 0;      // requests that wait for a place in the batch; 0: any number
  int background_beside = 0;  // requests in the background that run while others do (Request::is_background)
  int offered_nodes = 0;      // nodes below the root of the largest tree that Engine::offer() takes; 0: none
  bool calibrate = false;  // measure all costs of passes on opening, whatever the policy: for requests with
                           // policy auto and EngineStatus::speedup; else policy auto starts with a few costs
};

// The rule of requests that name no other.
inline AcceptanceRule acceptance_rule(const EngineOptions& options) {
  const bool is_relaxed = options.speculation.relaxed.for_thinking;
  return is_relaxed && options.acceptance == AcceptanceRule::kCoupled ? AcceptanceRule::kRelaxed
                                                                      : options.acceptance;
}

// How one request speculates, within the limits that the engine was opened with.
struct RequestSpeculation {
  bool enabled = true;          // false: decoded plainly
  std::optional<bool> is_auto;  // measured costs decide how much is drafted; unset: the engine's setting
  int max_draft_tokens = 0;     // drafted nodes of a tree; 0: the engine's limit
  int max_draft_len = 0;        // levels of a tree; 0: the engine's limit
  int max_children = 0;         // children of a node, 1 for chains; 0: any number
  // Drafters of the engine that draft for this request, by names of EngineInfo::sources; empty: all.
  std::vector<std::string> methods = {};
  std::optional<AcceptanceRule> acceptance;  // unset: the engine's
  // Its trees come from Engine::offer() instead of from the drafter. Until one comes, the request sits out
  // the steps and holds no place in the batch.
  bool is_offered = false;
  // For offered trees: the sink gets the states that the engine's drafter reads (StateTraits) of every
  // computed token from this one on, the prompt's included (Progress::states). Unset: none.
  std::optional<int64_t> states_from = {};
};

// Rules on token ids, in addition to a constraint. They apply only to the output, not to the prompt.
struct TokenRules {
  int64_t min_tokens = 0;             // tokens before a stop token or stop string may end the output
  std::vector<TokenId> allowed = {};  // empty: all
  std::vector<std::vector<TokenId>> forbidden = {};  // sequences that may not appear in the output

  bool empty() const { return min_tokens == 0 && allowed.empty() && forbidden.empty(); }
};

// The rows of a prompt that are pooled: outputs of the final norm, which the output head reads.
enum class Pooling : uint8_t { kNone, kLast, kMean };

// An adapter that a request uses.
struct RequestAdapter {
  std::string name;
  std::optional<double> scale = {};  // unset: AdapterSource::scale
};

// tokens: prompt and output before the next token.
using LogitsFunction = std::function<Status(std::span<const TokenId> tokens, std::span<float> logits)>;

struct Request {
  static constexpr int kMaxLogprobs = 20;

  std::vector<TokenId> prompt = {};  // at least one token
  // Output that an earlier run of this request has committed, perhaps on another machine; decoding goes on
  // after it. Not for requests with log-probabilities.
  std::vector<TokenId> output = {};
  // Text that much of the output should repeat, such as the file to be edited. While the output follows it,
  // drafts come from it instead of from the engine's drafter. Not for engines that draft nothing.
  std::vector<TokenId> prediction = {};
  SamplingParams sampling = {};
  int64_t max_tokens = 128;
  std::vector<std::string> stop = {};     // text that ends the output and is not part of it
  std::vector<TokenId> stop_tokens = {};  // in addition to the model's
  bool ignore_eos = false;
  // With -1 the output ends where prompt and output fill the context. Otherwise the text goes on: the first
  // `slide` tokens of the text stay, the older half of the others is dropped, and the rest is computed again
  // as if it were all there is. At most context - 2; not for requests with offered trees.
  int64_t slide = -1;
  bool skip_special = true;  // control tokens give no text
  // Texts that end the repetitions of SamplingParams::dry, as every token does that contains one. Empty: a
  // line break, ":", "\"" and "*". "none" alone: no text does.
  std::vector<std::string> dry_breakers = {};
  TokenRules rules = {};
  RequestSpeculation speculation = {};
  // Number of this answer among several to one prompt; each index has its own randomness.
  uint64_t sample_index = 0;
  // Log-probabilities of every output token and of this many likeliest tokens beside it, at most
  // kMaxLogprobs; -1: none.
  int logprobs = -1;
  int prompt_logprobs = -1;  // log-probabilities of every prompt token but the first, counted like logprobs
  // Wants Completion::embedding. It comes from the pass that gives the first token, so max_tokens must be 1.
  Pooling pooling = Pooling::kNone;
  uint64_t cache_scope = 0;  // cached prompts are shared within a scope only
  // Adapters whose updates are added in this order; empty: none. Unset: the engine's defaults.
  std::optional<std::vector<RequestAdapter>> adapters = {};
  int slot = -1;  // remembers its text when it ends (Engine::save_slot); -1: the engine chooses one
  // It runs in the steps in which no other request wants to, and in places that the others leave. Its output
  // is the same. It does not count to EngineOptions::max_waiting.
  bool is_background = false;
  // Masks the target's distribution and prunes drafts. No other request may use the same object.
  std::shared_ptr<TokenConstraint> constraint = {};
  // Changes the logits of the next token, [vocab size], before penalties and temperature and after the masks;
  // drafts do not know of it. Output is exact if it depends on its arguments only. An error ends the request
  // (FinishReason::kError).
  LogitsFunction logits_function = {};
};

// Natural log-probabilities of the target itself, before temperature, penalties, truncation and masks.
struct TokenLogprobs {
  float logprob = 0;
  std::vector<std::pair<TokenId, float>> top;  // likeliest tokens in descending order; ties by id
  int64_t rank = 0;                            // rank of the token among all, from 1; for prompt tokens only
};

enum class FinishReason : uint8_t {
  kStop,
  kLength,
  kCancelled,
  kError,  // a step threw (no memory, or weights that could not be read), or Request::logits_function failed
};
std::string_view finish_reason_name(FinishReason reason);  // "stop", "length", "cancelled", "error"

struct SpeculationStats {
  std::string method;
  bool lossless = true;                        // the acceptance rule keeps the target's distribution
  int64_t steps = 0;                           // target passes that committed output
  int64_t drafts = 0;                          // passes that verified drafted tokens
  int64_t drafted = 0;                         // drafted tokens verified
  int64_t accepted = 0;                        // drafted tokens committed
  int64_t committed = 0;                       // tokens committed by the target passes
  std::vector<int64_t> drafted_per_position;   // by depth - 1
  std::vector<int64_t> accepted_per_position;  // by depth - 1
  int64_t draft_failures = 0;  // calls of the drafter that failed and were replaced by plain decoding
  double draft_ms = 0;
  double verify_ms = 0;  // target passes, acceptance and commit

  // Tokens committed per target pass, the bonus token included; 1 when nothing is drafted.
  double acceptance_length() const {
    return steps == 0 ? 0.0 : static_cast<double>(committed) / static_cast<double>(steps);
  }
};

struct Completion {
  std::vector<TokenId> tokens;          // the output, including the stop token that ended it
  std::vector<TokenOrigin> origins;     // by token of `tokens`
  std::vector<TokenLogprobs> logprobs;  // by token of `tokens`; empty if the request wants none
  // By prompt token from the second on; empty if the request wants none.
  std::vector<TokenLogprobs> prompt_logprobs;
  std::vector<float> embedding;  // [hidden size]: the pooled states of the prompt, if the request wants them
  std::string text;              // without special tokens, cut before a stop string
  FinishReason finish_reason = FinishReason::kStop;
  int64_t prompt_tokens = 0;
  int64_t cached_tokens = 0;  // prompt tokens found in the cache
  // Tokens of Request::prediction that the output has, and all others. They depend on the text alone.
  int64_t accepted_prediction_tokens = 0;
  int64_t rejected_prediction_tokens = 0;
  double queue_ms = 0;        // from submit() to the first step
  double first_token_ms = 0;  // from submit() to the first token; 0 if there is none
  double prompt_ms = 0;       // steps that computed a part of the prompt
  double decode_ms = 0;       // all other steps
  SpeculationStats speculation;
};

// New output of a running request; text is complete UTF-8.
struct Progress {
  std::string_view text;            // new text, may be empty
  std::span<const TokenId> tokens;  // newly committed tokens
  std::span<const TokenOrigin> origins;
  std::span<const TokenLogprobs> logprobs = {};  // by token of `tokens`; empty if the request wants none
  std::span<const TokenLogprobs> prompt_logprobs = {};  // all of them, in the first call of the sink
  std::span<const float> states = {};      // [tokens, StateTraits::size], if the request wants them
  int64_t first_state = 0;                 // the sequence's token that `states` begin with
  const Completion* completion = nullptr;  // set only in the last call of the sink
};

using RequestId = uint64_t;
using ProgressSink = std::function<void(RequestId, const Progress&)>;

// Model, machine and drafter of an engine, for reports.
struct EngineInfo {
  std::string model_path;
  std::string family;
  std::string device;                    // "cpu", "cuda", "emulated"
  int64_t host_layers = 0;               // first layers that the processor has beside a device
  int64_t host_experts = 0;              // first layers of which it has the experts
  int device_steps = 0;                  // see EngineOptions
  std::string device_steps_reason = {};  // why there are none; empty: they are there, or not wanted
  std::string kernels;
  std::string weights;  // storage type of most weights: "bf16"
  std::string kv_cache_type;
  std::string drafter;
  std::vector<std::string> sources;  // names of the drafters that share its trees, by source bit
  int threads = 0;
  bool is_pinned = false;  // each thread stays on one processor
  int64_t parameters = 0;
  int64_t weight_bytes = 0;
  bool maps_weights = false;   // weights are mapped from EngineOptions::packed_cache
  int64_t streamed_bytes = 0;  // of the layers that every pass reads from there
  double read_rate = 0;        // bytes per second of these reads, measured; 0: nothing is read
  int64_t context = 0;
  int64_t vocab_size = 0;
  double load_ms = 0;
};

// A loaded adapter.
struct AdapterInfo {
  std::string name;
  std::string path;
  std::string format;  // "peft" or "gguf"
  int64_t rank = 0;    // the largest of its updates
  int64_t matrices = 0;
  double scale = 1;
  bool is_default = false;
};

// The present state of the engine and its counts since it was opened, over all requests.
struct EngineStatus {
  int running = 0;  // requests in the batch
  int waiting = 0;
  int parked = 0;     // requests that wait for an offered tree, or in the background for a place
  int64_t pages = 0;  // pages of the KV pool
  int64_t used_pages = 0;
  int64_t cached_pages = 0;  // of finished sequences, kept for prompts that begin alike
  int64_t steps = 0;
  int64_t rows = 0;  // rows of all target passes
  int64_t prompt_tokens = 0;
  int64_t cached_tokens = 0;  // prompt tokens found in the cache
  int64_t output_tokens = 0;
  int64_t preemptions = 0;
  int64_t rank_messages = 0;  // sent by this process to other ranks of the target
  int64_t rank_bytes = 0;
  int64_t foreseen_drafts = 0;  // that draft ranks had made before they were asked for (DraftAhead)
  std::optional<DeviceOrders> device = {};  // since it was opened; nullopt: this machine computes
  SpeculationStats speculation = {};
  double speedup = 0;  // recent tokens per second over plain decoding's; 0: not known
};

struct EngineParts;  // internal

// Not thread safe: one thread submits, steps and cancels.
class Engine {
 public:
  // Errors: anything about the model or draft that does not fit, in one line.
  static Result<std::unique_ptr<Engine>> open(EngineOptions options);
  // Makes an engine of given parts; for the library's own tests and programs.
  static std::unique_ptr<Engine> assemble(std::unique_ptr<EngineParts> parts);
  ~Engine();

  const EngineInfo& info() const;

  std::vector<TokenId> tokenize(std::string_view text, bool add_special = true,
                                bool parse_special = true) const;
  std::string detokenize(std::span<const TokenId> tokens, bool skip_special = true) const;
  // Renders {role, content} pairs with the model's chat template. Error: no template, or it refused the
  // messages.
  Result<std::string> apply_chat_template(std::span<const std::pair<std::string, std::string>> messages,
                                          bool add_generation_prompt = true) const;

  // Queues a request. Error: empty prompt, ids outside the vocabulary, prompt not shorter than the context,
  // parameters out of range, or it could outgrow the KV cache; kResource: max_waiting requests wait.
  Result<RequestId> submit(Request request, ProgressSink sink = nullptr);
  // The adapters of requests, in the order of loading. Between steps they can be loaded, unloaded and given
  // another scale. Running requests keep what they began with. Errors: the adapter does not fit the model,
  // the name is taken, there is none of that name.
  const std::vector<AdapterInfo>& adapters() const;
  Status load_adapter(const AdapterSource& source);
  Status unload_adapter(std::string_view name);
  Status set_default_adapter(std::string_view name, double scale, bool is_default);

  // Takes effect with the next step; may be called from a sink. Unknown and finished requests are ignored.
  void cancel(RequestId id);
  // From any thread: a call of step() that makes several steps (EngineOptions::device_steps) returns after
  // the present one, because there is something new for the engine.
  void interrupt();

  // Hands over the next tree of a request with RequestSpeculation::is_offered; its root is the request's last
  // token. The next step verifies it; nodes beyond the limits are cut. A tree that was not verified yet is
  // replaced, and one for an unknown or finished request is ignored. Not to be called from a sink.
  void offer(RequestId id, TokenTree tree);

  // One step of all running requests: schedule, draft, one target pass, verify, commit, stream. Where a
  // device goes on by itself (EngineOptions::device_steps), a call makes several, which look the same. False
  // when idle: no request is left, or all that are left wait for an offered tree, and nothing is left to be
  // saved (EngineOptions::prompt_cache), of which an idle step saves a part. Throws if layers cannot be read
  // (EngineOptions::memory_limit), there is no memory, a sink throws or a rank has ended. The requests that
  // ran then end with FinishReason::kError, and the others go on where is_usable() holds.
  bool step();
  // False after a step that threw and left the engine unable to go on: a rank of the job has ended.
  bool is_usable() const;

  // From the next step on, `sink` gets one StepTrace per sequence and step, after the requests' sinks. An
  // empty sink ends tracing. Not to be called from a sink. Tracing costs time and changes no output.
  void set_trace_sink(TraceSink sink);

  // Submits the request and steps until it is done.
  Result<Completion> generate(Request request, ProgressSink sink = nullptr);

  // Natural log-probability of every token given the tokens before it; 0 for the first, which has none.
  Result<std::vector<double>> score(std::span<const TokenId> tokens);

  // Slots, numbered below EngineOptions::max_batch, remember the texts of requests that have ended. The next
  // two copy what the cache has of such a text, in whole pages, to a file and from one back into cache and
  // slot; nothing else is computed meanwhile. A text is remembered for its cache scope only. Errors: no such
  // slot, errors of the file system, kInput: a file that is damaged or of another model.
  struct SlotFile {
    int64_t tokens = 0;
    int64_t bytes = 0;  // of the file
  };
  Result<SlotFile> save_slot(int slot, uint64_t scope, const std::filesystem::path& file);
  Result<SlotFile> restore_slot(int slot, uint64_t scope, const std::filesystem::path& file);
  // Forgets the text, and the pages of it that no running request uses. Returns its tokens.
  Result<int64_t> erase_slot(int slot, uint64_t scope);

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
