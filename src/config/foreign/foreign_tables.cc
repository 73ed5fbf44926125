// SPDX-License-Identifier: Apache-2.0
#include "config/foreign/foreign_tables.h"

namespace outrider {
namespace {

using namespace foreign_remarks;
using Name = ForeignName;

constexpr std::string_view kProcessors =
    "threads stay on the processors that the process may use; --pin holds each on one";
constexpr std::string_view kPositions = "the positions of tokens are as the model's files say";
constexpr std::string_view kNoSampler = "there is no such step of sampling";
constexpr std::string_view kPartOfSampler = "it belongs to a step of sampling that is refused";
constexpr std::string_view kNoAgent = "the server runs no tools and opens no connections";
constexpr std::string_view kOwnPage = "the chat page has its own settings";
constexpr std::string_view kNameTheModel = "name the model instead; `outrider pull` fetches it first";

// clang-format off
constexpr Name kLlamaServerNames[] = {
    // With a counterpart.
    {kLlama, "--chat-template-file", "chat-template"},
    {kLlama, "--cors-origins", "cors-origin"},
    {kLlama, "--api-prefix", "root-path"},
    {kLlama, "--kv-unified-per-slot", "ctx"},
    {kLlama, "--ui|--webui", "chat-page", "true=on", {}, true},
    {kLlama, "--no-ui|--no-webui", "chat-page", "true=off", {}, true},
    {kLlama, "-rea|--reasoning", "think", "on|off|auto=", "the template decides"},
    {kLlama, "--spec-default", "speculative", "true=auto", {}, true},
    {kLlama, "--spec-draft-sampling", "speculative.children", "greedy=top|probabilistic=sampled"},
    {kLlama, "--spec-ngram-simple-size-n|--spec-ngram-map-k-size-n|--spec-ngram-map-k4v-size-n|--spec-ngram-mod-n-match|"
             "--spec-ngram-size-n", "speculative.max_matching_ngram_size"},
    {kLlama, "--spec-ngram-simple-size-m|--spec-ngram-map-k-size-m|--spec-ngram-map-k4v-size-m|--spec-ngram-mod-n-max|"
             "--spec-ngram-size-m", "speculative.max_draft_len"},
    // Processors and memory.
    {kLlama, "-C|--cpu-mask|-Cr|--cpu-range|--cpu-strict|-Cb|--cpu-mask-batch|-Crb|--cpu-range-batch|--cpu-strict-batch",
     {}, {}, kProcessors},
    {kLlama, "-Cd|--spec-draft-cpu-mask|--cpu-mask-draft|-Crd|--spec-draft-cpu-range|--cpu-range-draft|"
             "--spec-draft-cpu-strict|--cpu-strict-draft|-Cbd|--spec-draft-cpu-mask-batch|--cpu-mask-batch-draft|"
             "--spec-draft-cpu-strict-batch|--cpu-strict-batch-draft", {}, {}, kProcessors},
    {kLlama, "--prio|--prio-batch|--spec-draft-prio|--prio-draft|--spec-draft-prio-batch|--prio-batch-draft", {}, {},
     "nice and systemd set the priority of a process"},
    {kLlama, "--poll|--poll-batch|--spec-draft-poll|--poll-draft|--spec-draft-poll-batch|--poll-batch-draft", {}, {},
     "the threads decide how long they wait awake"},
    {kLlama, "-kvo|--kv-offload|-nkvo|--no-kv-offload|--repack|-nr|--no-repack|--no-host|--op-offload|--no-op-offload|"
             "-cmoed|--spec-draft-cpu-moe|--cpu-moe-draft|-bs|--backend-sampling|"
             "--spec-draft-backend-sampling|--no-spec-draft-backend-sampling", {}, {}, kNoGpu, true},
    {kLlama, "-ot|--override-tensor|-otd|--spec-draft-override-tensor|--override-tensor-draft|"
             "-ncffn|--n-cpu-ffn|-ncmoed|--spec-draft-n-cpu-moe|--spec-draft-ncmoe|--n-cpu-moe-draft", {}, {}, kNoGpu},
    {kLlama, "-fit|--fit|-fitt|--fit-target|-fitc|--fit-ctx", {}, {}, kOwnMemory},
    {kLlama, "-ctxcp|--ctx-checkpoints|--swa-checkpoints|-cms|--checkpoint-min-step|-dt|--defrag-thold", {}, {}, kOwnMemory},
    {kLlama, "--swa-full|--cache-idle-slots|--no-cache-idle-slots|-no-kvu|--no-kv-unified", {}, {}, kOwnMemory, true},
    {kLlama, "--spec-draft-type-k|--spec-draft-type-v", {}, {}, kOwnDraftMemory},
    {kLlama, "--cache-prompt", {}, {}, kAlwaysOn, true},
    {kLlama, "--no-cache-prompt", {}, {}, "it is always on and changes no answer", true},
    {kLlama, "-nocb|--no-cont-batching", {}, {}, "requests join at every step, which changes no answer", true},
    {kLlama, "-sps|--slot-prompt-similarity", {}, {}, "every request finds the longest cached beginning of its prompt"},
    // Files.
    {kLlama, "-lm|--load-mode|-lzm|--lazy-mode", {}, {}, kLocalFiles},
    {kLlama, "--mmap|--direct-io|-dio|--no-direct-io|-ndio", {}, {}, kLocalFiles, true},
    {kLlama, "--check-tensors", {}, {}, "types and sizes of all tensors are always checked", true},
    {kLlama, "--override-kv", {}, {}, "the model is what its files say", false, true},
    {kLlama, "-mu|--model-url|-dr|--docker-repo", {}, {}, kNameTheModel, false, true},
    {kLlama, "-hff|--hf-file", {}, {}, "write the file into the name, as in `-m hf:ORG/REPO:FILE`", false, true},
    {kLlama, "-hft", {}, {}, "set HF_TOKEN in the environment of `outrider pull`", false, true},
    {"llama.cpp|vLLM", "--hf-token", {}, {}, "set HF_TOKEN in the environment of `outrider pull`", false, true},
    {kLlama, "--embd-gemma-default|--fim-qwen-1.5b-default|--fim-qwen-3b-default|--fim-qwen-7b-default|"
             "--fim-qwen-7b-spec|--fim-qwen-14b-spec|--fim-qwen-30b-default|--gpt-oss-20b-default|"
             "--gpt-oss-120b-default|--vision-gemma-4b-default|--vision-gemma-12b-default", {}, {}, kNameTheModel, true, true},
    {kLlama, "--lora-scaled", "lora"},
    {kLlama, "--lora-init-without-apply", {}, {},
     "write --lora NAME=PATH: only requests that choose the adapter by its name use it", true, true},
    {kLlama, "--control-vector|--control-vector-scaled|--control-vector-layer-range", {}, {},
     "the states of a model are not changed", false, true},
    {kLlama, "--rpc", {}, {}, "mpirun starts ranks on other machines; --tensor-parallel and --pipeline-parallel use them",
     false, true},
    // Positions.
    {kLlama, "--rope-scaling|--rope-scale|--rope-freq-base|--rope-freq-scale|--yarn-orig-ctx|--yarn-ext-factor|"
             "--yarn-attn-factor|--yarn-beta-slow|--yarn-beta-fast", {}, {}, kPositions, false, true},
    {kLlama, "--context-shift", {}, {}, "an answer ends where the context does; requests with `slide` go on", true, true},
    {kLlama, "--keep", {}, {}, "requests with `slide` say what stays where a text fills the context"},
    // Sampling.
    {kLlama, "--samplers|--sampler-seq|--sampling-seq", {}, {}, "the steps of sampling have one order", false, true},
    {kLlama, "-l|--logit-bias", {}, {}, "requests say it themselves (`logit_bias`)", false, true},
    {kLlama, "--ignore-eos", {}, {}, "requests say it themselves (`ignore_eos`)", true, true},
    {kLlama, "-r|--reverse-prompt", {}, {}, "--stop of `outrider generate`, or requests say it themselves (`stop`)", false, true},
    {kLlama, "-sp|--special", {}, {}, "requests say it themselves (`skip_special_tokens`)", true, true},
    {kLlama, "--grammar|--grammar-file|-j|--json-schema|-jf|--json-schema-file", {}, {},
     "requests say it themselves (`grammar`, `json_schema`); `outrider generate` takes @FILE", false, true},
    {kLlama, "--repeat-last-n", {}, "-1", "the penalty covers prompt and output"},
    {kLlama, "--top-nsigma", "top-n-sigma"},
    {kLlama, "--typical", "typical-p"},
    {kLlama, "--adaptive-target", {}, "-1|-1.0|-1.00", kNoSampler},
    {kLlama, "--dynatemp-range|--mirostat", {}, "0|0.0|0.00", kNoSampler},
    {kLlama, "--adaptive-decay|--dynatemp-exp|--mirostat-lr|--mirostat-ent", {}, {}, kPartOfSampler},
    // Chats.
    {kLlama, "--no-jinja", {}, {}, "chats always go through the model's template", true, true},
    {kLlama, "--reasoning-format", {}, "auto|deepseek", "requests say otherwise (`reasoning_format`)"},
    {kLlama, "--reasoning-effort", {}, "default", "--chat-template-kwargs '{\"reasoning_effort\": \"low\"}' sets another"},
    {kLlama, "--reasoning-budget", "think"},
    {kLlama, "--reasoning-budget-message", "thinking-message"},
    {kLlama, "--reasoning-preserve|--no-reasoning-preserve", {}, {}, "the model's template decides", true},
    {kLlama, "--skip-chat-parsing", {}, {}, "requests say it themselves (`reasoning_format`, `tool_choice`)", true, true},
    {kLlama, "--no-skip-chat-parsing", {}, {}, kAlwaysOn, true},
    {kLlama, "--prefill-assistant|--no-prefill-assistant", {}, {}, "requests say it themselves (`continue_final_message`)", true},
    {kLlama, "--spm-infill", {}, {}, "the order of the parts is the model's own", true, true},
    {kLlama, "-e|--escape", {}, {}, "prompts are taken as they are; $'a\\nb' is a line break for the shell", true, true},
    {kLlama, "--no-escape", {}, {}, "prompts are taken as they are", true},
    // Images.
    {kLlama, "-mm|--mmproj|-mmu|--mmproj-url|-mmdev|--mmproj-device|--image-min-tokens|--image-max-tokens|"
             "--mtmd-batch-max-tokens|--video-fps|--video-timestamp-interval|--video-ffmpeg-dir|--media-path",
     {}, {}, kNoImages},
    {kLlama, "--mmproj-auto|--no-mmproj|--no-mmproj-auto|--mmproj-offload|--no-mmproj-offload", {}, {}, kNoImages, true},
    // The server.
    {kLlama, "--embd-normalize", {}, "2", "vectors have the length 1"},
    {kLlama, "--tags", {}, {}, "models have no tags"},
    {kLlama, "--reuse-port", {}, {}, "one server listens on a port", true, true},
    {kLlama, "--path", {}, {}, "the server has no files beside its page", false, true},
    {kLlama, "--cors-methods|--cors-headers", {}, {}, "a preflight of an allowed origin gets what it asks for"},
    {kLlama, "--cors-credentials", {}, {}, "browsers may never send credentials by themselves; keys are headers", true, true},
    {kLlama, "--no-cors-credentials", {}, {}, "it is always so", true},
    {kLlama, "--ui-config|--webui-config|--ui-config-file|--webui-config-file", {}, {}, kOwnPage},
    {kLlama, "--ui-mcp-proxy|--webui-mcp-proxy|-ag|--agent", {}, {}, kNoAgent, true, true},
    {kLlama, "--no-ui-mcp-proxy|--no-webui-mcp-proxy|-no-ag|--no-agent", {}, {}, kNoAgent, true},
    {kLlama, "--tools|--tools-runtime|--mcp-servers-config|--mcp-servers-json", {}, {}, kNoAgent, false, true},
    {kLlama, "-to|--timeout", {}, {}, "the times of connections are fixed; --request-timeout bounds a request"},
    {kLlama, "--sse-ping-interval", {}, {}, "silent streams carry a comment every 15 s"},
    {kLlama, "--no-slots", {}, {}, "GET /slots tells no texts, and wants a key where the server has keys", true},
    {kLlama, "--slot-save-path", "slot-folder"},
    {kLlama, "--models-dir", "models"},
    {kLlama, "--models-preset", {}, {}, "a list for --models is a YAML file with other keys", false, true},
    {kLlama, "--models-max", {}, {}, "--models-memory decides how many models are loaded"},
    {kLlama, "--models-autoload", {}, {}, "models of --models are loaded when a request names them", true},
    {kLlama, "--no-models-autoload", {}, {}, "models of --models are loaded when a request names them", true, true},
    {kLlama, "--sleep-idle-seconds", "idle-unload", {}, "one model stays in memory"},
    {kLlama, "--log-file", {}, {}, "messages go to standard error; the shell can send them to a file", false, true},
    {kLlama, "--log-prompts-dir", {}, {}, "prompts are never written to files", false, true},
    {kLlama, "--log-colors", {}, {}, kOwnLog},
    {kLlama, "--log-verbose|--log-jsonl|--no-log-jsonl|--no-log-prefix|--no-log-timestamps|--perf|--no-perf", {}, {},
     kOwnLog, true},
    // Drafting.
    {kLlama, "--spec-ngram-simple-min-hits|--spec-ngram-map-k-min-hits|--spec-ngram-map-k4v-min-hits|"
             "--spec-ngram-mod-n-min|--spec-ngram-min-hits", {}, {}, "the policy measures what drafts are worth"},
    {kLlama, "-lcs|--lookup-cache-static", {}, {}, "--corpus takes the texts themselves; files of n-grams are not read"},
    {kLlama, "-lcd|--lookup-cache-dynamic", {}, {}, "the key `suffix_max_cached_requests` remembers texts of this run"},
    {kLlama, "--spec-synth-len|--spec-synth-rates", {}, {}, "`outrider bench --synthetic-acceptance` measures it", false, true},
    // Other commands.
    {kLlama, "--usage", {}, {}, "--help shows the options", true, true},
    {kLlama, "--version", {}, {}, "`outrider --version` tells it", true, true},
    {kLlama, "-cl|--cache-list", {}, {}, "`outrider models` lists them", true, true},
    {kLlama, "--list-devices", {}, {}, "`outrider doctor` tells what this machine has", true, true},
    {kLlama, "--completion-bash", {}, {}, "--help shows the options", true, true},
};
// clang-format on

constexpr std::string_view kOneServer = "a server is one process; a proxy divides requests among several";
constexpr std::string_view kStates = "recurrent states have the types that the engine chooses";
constexpr std::string_view kOwnOrder =
    "requests are served in the order of their arrival, without starvation";
constexpr std::string_view kConnector = "pages of the cache are not moved between servers";
constexpr std::string_view kOffload = "--memory reads layers from disk that do not fit";
constexpr std::string_view kMetrics = "/metrics has what the engine measures";
constexpr std::string_view kNoSleep = "the model stays in memory";
constexpr std::string_view kRequestTemplate = "requests cannot bring a template";
constexpr std::string_view kOtherModels = "models that do not write one token after another are not served";

// clang-format off
constexpr Name kVllmServeNames[] = {
    // With a counterpart.
    {kVllm, "-sc", "speculative"},
    {kVllm, "--spec-method", "speculative.decoding_type"},
    {kVllm, "--spec-model", "speculative-model"},
    {kVllm, "--spec-tokens", "speculative.max_draft_len"},
    {kVllm, "--default-chat-template-kwargs", "chat-template-kwargs"},
    {kVllm, "--allowed-origins", "cors-origin"},
    {kVllm, "--uds", "host"},
    {kVllm, "--disable-access-log-for-endpoints", "no-log-routes"},
    {kVllm, "--shutdown-timeout", "drain-timeout"},
    {kVllm, "--max-num-queued-reqs", "max-queue"},
    // Files and types.
    {kVllm, "--runner", {}, "auto|generate|pooling", "texts and vectors are served by the same routes as ever"},
    {kVllm, "--convert", {}, "auto|none|embed", "/v1/embeddings is always there"},
    {kVllm, "--task", {}, "auto|generate|embed|embedding", "texts and vectors are served by the same routes as ever"},
    {kVllm, "--code-revision|--config-format|--ignore-patterns|--safetensors-load-strategy|"
            "--safetensors-prefetch-num-threads|--safetensors-prefetch-block-size|--pt-load-map-location|"
            "--max-parallel-loading-workers", {}, {}, kLocalFiles},
    {kVllm, "--tokenizer|--hf-config-path", {}, {}, "tokenizer and configuration are the model's own", false, true},
    {kVllm, "--use-tqdm-on-load|--allow-deprecated-quantization", {}, {}, kLocalFiles, true},
    {kVllm, "--model-loader-extra-config|--quantization-config|--pooler-config|--additional-config|--hf-overrides|"
            "--override-generation-config|--model-class-overrides", {}, "{}", "options of the same meaning set it, such as --weights, "
            "--pooling and --temperature"},
    {kVllm, "--model-impl", {}, "auto|vllm", "there is one implementation"},
    {kVllm, "--logits-processors|--io-processor-plugin|--reasoning-parser-plugin|--tool-parser-plugin|--worker-cls|"
            "--worker-extension-cls|--scheduler-cls|--middleware", {}, {}, kNoPlugins, false, true},
    {kVllm, "--renderer-num-workers", {}, {}, "two threads prepare requests"},
    // Sampling.
    {kVllm, "--max-logprobs", {}, {}, "requests may ask for 20"},
    {kVllm, "--logprobs-mode", {}, "raw_logprobs", "log-probabilities are the model's own, before sampling"},
    {kVllm, "--use-fp64-gumbel|--enable-batch-sharded-sampling", {}, {}, "sampling is exact and the same on every machine", true},
    {kVllm, "--return-sampling-mask|--enable-return-routed-experts|--return-tokens-as-token-ids", {}, {},
     "requests ask for tokens with `return_token_ids`", true, true},
    {kVllm, "--enable-trace-replay|--enable-prompt-embeds", {}, {}, "prompts are texts or tokens", true, true},
    {kVllm, "--disable-sliding-window", {}, {}, "the model is what its files say", true, true},
    // Adapters.
    {kVllm, "--enable-lora", {}, {}, "--lora and --lora-folder name the adapters", true},
    {kVllm, "--no-enable-lora", {}, {}, "without --lora there are none", true},
    {kVllm, "--lora-modules", "lora"},
    {kVllm, "--default-mm-loras", {}, {}, kNoImages},
    {kVllm, "--max-loras|--max-lora-rank|--lora-dtype|--max-cpu-loras|--lora-target-modules|--max-lora-cls-labels", {}, {},
     kNoAdapterSizes},
    {kVllm, "--enable-tower-connector-lora|--fully-sharded-loras|--specialize-active-lora|--enable-mixed-moe-lora-format|"
            "--enable-moe-shared-loras", {}, {}, kNoAdapterSizes, true},
    // Images.
    {kVllm, "--allowed-local-media-path|--allowed-media-domains|--limit-mm-per-prompt|--media-io-kwargs|"
            "--mm-processor-kwargs|--mm-processor-cache-gb|--mm-processor-cache-type|--mm-hasher-algorithm|"
            "--mm-shm-cache-max-object-size-mb|--mm-encoder-tp-mode|--mm-encoder-attn-backend|--mm-encoder-attn-dtype|"
            "--mm-encoder-fp8-scale-path|--mm-encoder-fp8-scale-save-path|--mm-encoder-fp8-scale-save-margin|"
            "--video-pruning-rate|--video-pruning-method|--mm-tensor-ipc|--mm-processor-device|--mm-ipc-gpu-memory-gb|"
            "--ec-transfer-config|--ec-manager-config", {}, {}, kNoImages},
    {kVllm, "--language-model-only|--interleave-mm-strings|--skip-mm-profiling|--mm-device-do-normalize|"
            "--disable-chunked-mm-input|--trust-request-mm-kwargs|--enable-mm-embeds|--mm-encoder-only", {}, {}, kNoImages, true},
    // Memory.
    {kVllm, "--kv-cache-memory-bytes|--device-memory-utilization|--kv-cache-dtype-skip-layers", {}, {}, kOwnMemory},
    {kVllm, "--prefix-caching-hash-algo|--prefix-cache-retention-interval|--prefix-match-unit|--kv-cache-metrics-sample",
     {}, {}, "the prefix cache keeps what was used last, by tokens and not by hashes alone"},
    {kVllm, "--mamba-cache-dtype|--mamba-ssm-cache-dtype|--mamba-block-size|"
            "--mamba-cache-mode|--replayssm-buffer-len|--mamba-backend|--mamba-ssu-algorithm|--mamba-cache-philox-rounds",
     {}, {}, kStates},
    {kVllm, "--enable-mamba-cache-stochastic-rounding|--enable-mamba-shared-prefix-checkpoint|--use-replayssm", {}, {}, kStates, true},
    {kVllm, "--kv-sharing-fast-prefill|--swa-bounded-replay|--disable-hybrid-kv-cache-manager|--enable-cumem-allocator|"
            "--enable-shm-tensor-arena", {}, {}, kOwnMemory, true},
    {kVllm, "--kv-offloading-size|--kv-offloading-backend|--offload-backend|--cpu-offload-params|--offload-group-size|"
            "--offload-num-in-group|--offload-prefetch-step|--offload-params", {}, {}, kOffload},
    {kVllm, "--enable-sleep-mode|--sleep-mode-offload-cudagraph", {}, {}, kNoSleep, true, true},
    {kVllm, "--no-enable-sleep-mode", {}, {}, kNoSleep, true},
    {kVllm, "--sleep-mode-backend|--sleep-preserve-parameter-names", {}, {}, kNoSleep},
    {kVllm, "--kv-transfer-config|--kv-events-config|--weight-transfer-config", {}, "{}", kConnector},
    // Machines and devices.
    {kVllm, "--master-addr|--master-port|--nnodes|--node-rank|--distributed-timeout-seconds|"
            "--cpu-distributed-timeout-seconds|-dcp|--decode-context-parallel-size|--dcp-comm-backend|"
            "--dcp-kv-cache-interleave-size|--cp-kv-cache-interleave-size|-pcp|--prefill-context-parallel-size|"
            "--all2all-backend|--expert-placement-strategy|--eplb-config|--elastic-ep-max-dp-size", {}, {}, kOneProcess},
    {kVllm, "-ep|--enable-expert-parallel|--dcp-q-replicate|--enable-hc-sp|--enable-ep-weight-filter|--enable-elastic-ep|"
            "--enable-eplb|--disable-custom-all-reduce|--ray-workers-use-nsight|--enable-nccl-comm-suspend|"
            "--disable-nccl-for-dp-synchronization", {}, {}, kOneProcess, true},
    {kVllm, "-dpn|--data-parallel-rank|-dpr|--data-parallel-start-rank|-dpl|--data-parallel-size-local|-dpa|"
            "--data-parallel-address|-dpp|--data-parallel-rpc-port|-dpb|--data-parallel-backend|--dp-sync-interval|"
            "--data-parallel-supervisor-port|--dp-supervisor-probe-interval-s|--dp-supervisor-probe-timeout-s|"
            "--dp-supervisor-probe-failure-threshold|--api-server-count|-asc", {}, {}, kOneServer},
    {kVllm, "-dph|--data-parallel-hybrid-lb|-dpe|--data-parallel-external-lb|-dpm|--data-parallel-multi-port-external-lb",
     {}, {}, kOneServer, true},
    {kVllm, "--headless", {}, {}, kOneServer, true, true},
    {kVllm, "--numa-bind", {}, {}, "--pin holds threads on their processors", true},
    {kVllm, "--numa-bind-nodes|--numa-bind-cpus", {}, {}, "--pin holds threads on their processors"},
    {kVllm, "--device-ids|-cc|--cudagraph-capture-sizes|--max-cudagraph-capture-size|--dbo-decode-token-threshold|"
            "--dbo-prefill-token-threshold|-O|--optimization-level|--performance-mode", {}, {}, kNoGpu},
    {kVllm, "-O0|-O1|-O2|-O3|--enable-dbo|--cudagraph-metrics|--enable-layerwise-nvtx-tracing|--monokernel", {}, {}, kNoGpu, true},
    {kVllm, "-ac|--kernel-config|--ir-op-priority|--linear-backend|--sparse-indexer-topk-backend|"
            "--gdn-prefill-backend|--kda-prefill-backend|--kda-decode-backend|--jit-monitor-mode", {}, {}, kOwnKernels},
    {kVllm, "--disable-cascade-attn|--enable-flashinfer-autotune|--jit-monitor-verbose|--enable-flash-late-interaction", {}, {},
     kOwnKernels, true},
    // Scheduling.
    {kVllm, "--scheduling-policy", {}, "fcfs", kOwnOrder},
    {kVllm, "--max-num-scheduled-tokens|--long-prefill-token-threshold|--prefill-schedule-interval", {}, {}, kOwnPasses},
    {kVllm, "--long-prefill-token-threshold-adaptive|--scheduler-reserve-full-isl", {}, {}, kOwnPasses, true},
    {kVllm, "--max-num-active-seqs|--watermark|--watermark-config", {}, {}, kOwnMemory},
    {kVllm, "--max-num-queued-tokens", {}, {}, "--max-queue bounds the requests that wait"},
    {kVllm, "--num-lookahead-slots", {}, {}, "room for drafts is kept by the engine"},
    {kVllm, "--watchdog-config|--fault-tolerance-config", {}, {}, "a step that fails ends its requests, and the server goes on"},
    {kVllm, "--enable-fault-tolerance", {}, {}, "a step that fails ends its requests, and the server goes on", true},
    // Chats.
    {kVllm, "--chat-template-content-format", {}, {}, "the model's template decides"},
    {kVllm, "--trust-request-chat-template", {}, {}, kRequestTemplate, true, true},
    {kVllm, "--no-trust-request-chat-template", {}, {}, kRequestTemplate, true},
    {kVllm, "--response-role", {}, "assistant", "answers are the assistant's"},
    {kVllm, "--reasoning-config|--anthropic-disabled-thinking-effort|--cohere-format|"
            "--structured-outputs-config", {}, {}, "the model's template and the engine's grammars decide"},
    {kVllm, "--reasoning-effort-map", {}, {}, "the model's template gets the effort of the request as it is", false, true},
    {kVllm, "--cohere-is-reasoning-model", {}, {}, "the model's template decides", true},
    {kVllm, "--exclude-tools-when-tool-choice-none", {}, {}, "the model's template decides", true},
    {kVllm, "--tool-strict-level", {}, "auto", "a tool says it itself (`strict`)"},
    {kVllm, "--tool-server", {}, {}, "the server runs no tools and opens no connections", false, true},
    // Answers.
    {kVllm, "--enable-prompt-tokens-details|--enable-per-request-metrics|--enable-request-id-headers|"
            "--enable-tokenizer-info-endpoint", {}, {}, kAlwaysOn, true},
    {kVllm, "--enable-force-include-usage", {}, {}, "streams ask for it themselves (`stream_options`)", true, true},
    {kVllm, "--no-enable-force-include-usage", {}, {}, "streams ask for it themselves (`stream_options`)", true},
    {kVllm, "--sse-keep-alive-interval", {}, {}, "silent streams carry a comment every 15 s"},
    {kVllm, "--fingerprint-mode|--fingerprint-value", {}, {}, "the fingerprint of an answer tells model, kernels and weights"},
    {kVllm, "--tokens-only|--enable-scale-out", {}, {}, "the server has the routes of docs/reference/api.md", true, true},
    // Log and metrics.
    {kVllm, "--max-log-len|--log-config-file|--logging-config", {}, {}, kOwnLog},
    {kVllm, "--enable-log-requests|--aggregate-engine-logging|--enable-logging-iteration-details|--log-error-stack", {}, {},
     "every request has one line, without its texts", true},
    {kVllm, "--enable-log-outputs", {}, {}, "prompts and answers are never logged", true, true},
    {kVllm, "--no-enable-log-outputs|--enable-log-deltas", {}, {}, "prompts and answers are never logged", true},
    {kVllm, "--show-hidden-metrics-for-version|--custom-histogram-buckets|--profiler-config|--aux-output-config", {}, {}, kMetrics},
    {kVllm, "--kv-cache-metrics|--enable-mfu-metrics|--enable-server-load-tracking", {}, {}, kMetrics, true},
    {kVllm, "--collect-detailed-traces", {}, {}, "traces have the parts of a request (`--otlp-traces-endpoint`)"},
    {kVllm, "--fail-on-environ-validation", {}, {}, "unknown variables get a line", true},
    // Connections.
    {kVllm, "--grpc", {}, {}, "the server speaks HTTP", true, true},
    {kVllm, "--grpc-port", {}, {}, "the server speaks HTTP", false, true},
    {kVllm, "--allow-credentials", {}, {}, "browsers may never send credentials by themselves; keys are headers", true, true},
    {kVllm, "--no-allow-credentials", {}, {}, "it is always so", true},
    {kVllm, "--allowed-methods|--allowed-headers", {}, {}, "a preflight of an allowed origin gets what it asks for"},
    {kVllm, "--ssl-ca-certs", {}, {}, "clients show keys, not certificates", false, true},
    {kVllm, "--ssl-cert-reqs", {}, "0", "clients show keys, not certificates"},
    {kVllm, "--ssl-ciphers", {}, {}, "OpenSSL's configuration file sets them", false, true},
    {kVllm, "--enable-ssl-refresh", {}, {}, "SIGHUP reads certificates again", true},
    {kVllm, "--disable-fastapi-docs|--enable-offline-docs", {}, {}, "there is only /openapi.json", true},
    {kVllm, "--h11-max-incomplete-event-size|--h11-max-header-count", {}, {}, "the limits of requests are fixed"},
    // Other kinds of models.
    {kVllm, "-dc|--diffusion-config|--engram-config", {}, {}, kOtherModels, false, true},
};

// `trtllm-bench throughput`.
constexpr Name kTrtBenchNames[] = {
    {kTrt, "--dataset", "prompts"},
    {kTrt, "--num-requests", "limit"},
    {kTrt, "--concurrency", "batch", {}, "`outrider bench batch` runs so many prompts at once"},
    {kTrt, "--beam-width", {}, "1", "there is no beam search"},
    {kTrt, "--engine-dir", {}, {}, kNameTheModel, false, true},
    {kTrt, "--custom-module-dirs", {}, {}, kNoPlugins, false, true},
    {kTrt, "--sampler-options", {}, {}, "options of the same meaning set it, such as --temperature", false, true},
    {kTrt, "--report-json|--output-json|--request-json|--iteration-log", {}, {}, "--json prints the report", false, true},
    {kTrt, "-w|--workspace|--kv-cache-free-gpu-mem-fraction", {}, {}, kOwnMemory},
    {kTrt, "--eos-id", {}, {}, "the model's own token ends a text"},
    {kTrt, "--target-input-len|--target-output-len", {}, {}, "the engine is warm when it is measured"},
    {kTrt, "--no-skip-tokenizer-init", {}, {}, "text and tokens are both at hand", true},
    {kTrt, "--modality|--image-data-format|--data-device|--max-input-len", {}, {}, kNoImages},
    {kTrt, "--ep|--cluster-size", {}, {}, kOneProcess},
    {kTrt, "--streaming", {}, {}, "every step is streamed", true},
    {kTrt, "--enable-chunked-context|--disable-chunked-context", {}, {}, kOwnPasses, true},
    {kTrt, "--scheduler-policy", {}, {}, kOwnOrder},
};
// clang-format on

}  // namespace

std::span<const ForeignName> trt_bench_names() { return kTrtBenchNames; }

std::span<const ForeignName> llama_server_names() { return kLlamaServerNames; }

std::span<const ForeignName> vllm_serve_names() { return kVllmServeNames; }

}  // namespace outrider
