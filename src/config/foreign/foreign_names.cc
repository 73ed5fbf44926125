// SPDX-License-Identifier: Apache-2.0
#include "config/foreign/foreign_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <vector>

#include "config/foreign/foreign_tables.h"
#include "config/message_text.h"
#include "config/option_value.h"

namespace outrider {
namespace {

using namespace foreign_remarks;
using Name = ForeignName;

constexpr std::string_view kSglang = "SGLang";
constexpr std::string_view kTrtVllm = "TensorRT-LLM|vLLM";
constexpr std::string_view kVllmSglang = "vLLM|SGLang";
constexpr std::string_view kServers = "TensorRT-LLM|vLLM|SGLang";

constexpr std::string_view kNoOverlap = "drafting and verification take turns in one loop";
constexpr std::string_view kNoCode = "files of a model are read, and never run";
constexpr std::string_view kTemplateDecides =
    "the model's chat template tells how calls and thinking are marked";
constexpr std::string_view kFileDecides = "the files of the drafter decide it";
constexpr std::string_view kItsMethod = "its method is refused";
constexpr std::string_view kMeasured = "the policy measures costs and acceptance";
constexpr std::string_view kCoupled = "drafts are accepted by --acceptance, without loss by default";

// One row is a line or two, so that the tables can be read as tables.
// clang-format off
constexpr Name kOptionNames[] = {
    // Options with a counterpart.
    {kTrt, "--extra-llm-api-options", "config"},
    {kTrtVllm, "--speculative-config", "speculative"},
    {"TensorRT-LLM|llama.cpp|vLLM|SGLang", "-m|--model|--model-path", "model"},
    {kVllm, "-i|--input-file", "input"},
    {kVllm, "--output-file", "output"},
    {kLlama, "-hf|-hfr|--hf-repo", "model"},
    {kLlama, "-c|--ctx-size", "ctx"},
    {kVllm, "--max-model-len", "ctx"},
    {kTrt, "--max-seq-len", "ctx"},
    {kSglang, "--context-length", "ctx"},
    {kLlama, "-np|--parallel", "max-batch"},
    {kVllm, "--max-num-seqs", "max-batch"},
    {kTrt, "--max-batch-size", "max-batch"},
    {kSglang, "--max-running-requests", "max-batch"},
    {kLlama, "-a|--alias", "served-model-name"},
    {kLlama, "--ssl-cert-file", "ssl-certfile"},
    {kLlama, "--ssl-key-file", "ssl-keyfile"},
    {kLlama, "-t", "threads"},
    {kLlama, "-n|--predict|--n-predict", "max-tokens"},
    {kLlama, "-s", "seed", {}, "a request that names no seed gets a random one"},
    {kLlama, "--temp", "temperature"},
    {kLlama, "--repeat-penalty", "repetition-penalty"},
    {kLlama, "--rerank|--reranking", "pooling", "true=rank", {}, true},
    {kLlama, "-ctk|--cache-type-k|-ctv|--cache-type-v", "kv-cache-type"},
    {"vLLM|SGLang", "--kv-cache-dtype", "kv-cache-type", "auto|bfloat16=bf16|float16=f16|fp8=e4m3|fp8_e4m3=e4m3",
     "--kv-cache-type q8_0 holds keys and values in 8 bits"},
    {kTrt, "kv_cache_config.dtype", "kv-cache-type", "auto|bfloat16=bf16|float16=f16|fp8=e4m3"},
    {kServers, "--dtype", "weights", "auto|bfloat16=bf16|float32=f32|float=f32|half=|float16=",
     "weights are held as they are stored, and none become float16"},
    {kVllm, "--block-size", "page-size"},
    {kTrt, "kv_cache_config.tokens_per_block", "page-size"},
    {kVllm, "--num-gpu-blocks-override", "kv-pages"},
    {kServers, "--tensor-parallel-size|--tp-size|--tp|-tp", "tensor-parallel"},
    {kServers, "--pipeline-parallel-size|--pp-size|--pp|-pp", "pipeline-parallel"},
    {kTrt, "--max-num-tokens", "max-batch-rows"},
    {kLlama, "-md|--model-draft|--spec-draft-model", "speculative-model"},
    {kLlama, "-hfd|-hfrd|--hf-repo-draft|--spec-draft-hf", "speculative-model"},
    {kSglang, "--speculative-draft-model-path|--speculative-draft-model", "speculative-model"},
    // Options that are keys here.
    {kLlama, "--spec-type", "speculative.decoding_type"},
    {kSglang, "--speculative-algorithm", "speculative.decoding_type"},
    {kLlama, "--draft|--draft-n|--draft-max|--spec-draft-n-max", "speculative.max_draft_len"},
    {kLlama, "--draft-p-min|--spec-draft-p-min", "speculative.assistant_confidence_threshold"},
    {kVllm, "--num-speculative-tokens", "speculative.max_draft_len"},
    {kVllm, "--ngram-prompt-lookup-max", "speculative.max_matching_ngram_size"},
    {kVllm, "--speculative-disable-by-batch-size", "speculative.max_concurrency"},
    {kVllm, "--enable-adaptive-k", "speculative.policy", "true=auto", {}, true},
    {kSglang, "--speculative-adaptive", "speculative.policy", "true=auto", {}, true},
    {kSglang, "--speculative-token-map", "speculative.speculative_token_map"},
    {kSglang, "--speculative-dflash-block-size", "speculative.draft_block_size"},
    {kSglang, "--speculative-dspark-block-size", "speculative.max_draft_len"},
    {kSglang, "--speculative-use-block-verification", "acceptance", "true=block", {}, true},
    {kSglang, "--speculative-num-steps", "speculative.max_draft_len"},
    {kSglang, "--speculative-eagle-topk", "speculative.dynamic_tree_max_topK"},
    {kSglang, "--speculative-num-draft-tokens", "speculative.verified_tokens"},
    {kSglang, "--speculative-ngram-max-match-window-size", "speculative.max_matching_ngram_size"},
    {kSglang, "--speculative-ngram-max-bfs-breadth", "speculative.dynamic_tree_max_topK"},
    {kSglang, "--speculative-ngram-capacity", "speculative.max_pool_patterns"},
    {kSglang, "--speculative-ngram-external-corpus-path", "corpus", {},
     "Suffix and Auto draft from it, and NGram does not"},
    // Options without effect.
    {kTrt, "disable_overlap_scheduler", {}, {}, kNoOverlap, true},
    {kTrt, "cuda_graph_config", {}, {}, kNoGpu},
    {kTrt, "use_cuda_graph", {}, {}, kNoGpu, true},
    {kTrt, "cuda_graph_batch_sizes", {}, {}, kNoGpu},
    {kTrt, "cuda_graph_padding_enabled", {}, {}, kNoGpu, true},
    {kTrt, "torch_compile_config", {}, {}, kNoGpu},
    {kTrt, "kv_cache_config.free_gpu_memory_fraction", {}, {}, kOwnMemory},
    {kTrt, "kv_cache_config.enable_block_reuse", {}, {}, "prompts that begin alike always share pages"},
    {kTrt, "kv_cache_config.enable_partial_reuse", {}, {}, "prompts that begin alike always share pages"},
    {kTrt, "kv_cache_config.max_tokens", {}, {}, kOwnMemory},
    {kTrt, "kv_cache_config.host_cache_size", {}, {}, kOwnMemory},
    {kTrt, "kv_cache_config.event_buffer_max_size", {}, {}, kOwnMemory},
    {kTrt, "kv_cache_config.use_kv_cache_manager_v2", {}, {}, kOwnMemory},
    {kTrt, "--kv-cache-free-gpu-memory-fraction", {}, {}, kOwnMemory},
    {kTrt, "moe_config", {}, {}, kOwnKernels},
    {kTrtVllm, "moe_backend|--moe-backend", {}, {}, kOwnKernels},
    {kTrt, "attn_backend", {}, {}, kOwnKernels},
    {kTrt, "nvfp4_gemm_config", {}, {}, kNoGpu},
    {kTrt, "allreduce_strategy", {}, {}, kOneProcess},
    {kTrt, "enable_attention_dp", {}, {}, kOneProcess, true},
    {kTrt, "enable_lm_head_tp_in_adp", {}, {}, kOneProcess, true},
    {kTrt, "moe_expert_parallel_size", {}, {}, kOneProcess},
    {kTrt, "moe_tensor_parallel_size", {}, {}, kOneProcess},
    {kTrt, "moe_cluster_parallel_size", {}, {}, kOneProcess},
    {kTrt, "gpus_per_node", {}, {}, kOneProcess},
    {kTrt, "cache_transceiver_config", {}, {}, kOneProcess},
    {kTrt, "num_postprocess_workers", {}, {}, kOneProcess},
    {kTrt, "enable_autotuner", {}, {}, kOwnKernels, true},
    {kTrt, "scheduler_config", {}, {}, "requests are served in the order of their arrival, without starvation"},
    {kTrtVllm, "stream_interval|--stream-interval", {}, {}, "every step is streamed"},
    {kTrt, "print_iter_log", {}, {}, "/metrics and the log tell the speed", true},
    {kTrt, "enable_iter_perf_stats", {}, {}, "/metrics has them", true},
    {kTrt, "enable_iter_req_stats", {}, {}, "/metrics has them", true},
    {kTrt, "return_perf_metrics", {}, {}, "every answer has them", true},
    {kTrt, "backend", {}, "pytorch|_autodeploy|cpp|tensorrt", "there is one backend"},
    {kTrt, "--max-beam-width", {}, "1", "there is no beam search"},
    {kTrt, "--ep-size|--cp-size", {}, {}, kOneProcess},
    {kTrtVllm, "--log-level", {}, {}, kOwnLog},
    {kServers, "--load-format", {}, "auto|safetensors|pt|gguf|hf", kLocalFiles},
    {kServers, "--trust-remote-code", {}, {}, kNoCode, true},
    {kTrtVllm, "--revision|--tokenizer-revision", {}, {}, kLocalFiles},
    {kTrtVllm, "--skip-tokenizer-init", {}, "false", "text and tokens are both at hand", true},
    {kTrtVllm, "--guided-decoding-backend", {}, {}, "grammars are the engine's own"},
    {kServers, "--enable-chunked-prefill", {}, {}, kAlwaysOn, true},
    {kVllm, "--no-enable-chunked-prefill", {}, {}, kOwnPasses, true},
    {kVllm, "--data-parallel-size|-dp", {}, {}, kOneProcess},
    {kVllm, "--distributed-executor-backend", {}, {}, kOneProcess},
    {kVllm, "--gpu-memory-utilization", {}, {}, kOwnMemory},
    {kVllm, "--swap-space", {}, {}, kOwnMemory},
    {kVllm, "--cpu-offload-gb", {}, {}, kOwnMemory},
    {kVllm, "--max-num-batched-tokens", {}, {}, kOwnPasses},
    {kVllm, "--enforce-eager", {}, {}, kNoGpu, true},
    {kVllm, "--compilation-config", {}, {}, kNoGpu},
    {kVllm, "--attention-config", {}, {}, kOwnKernels},
    {kVllmSglang, "--attention-backend", {}, {}, kOwnKernels},
    {kVllm, "--async-scheduling|--no-async-scheduling", {}, {}, kNoOverlap, true},
    {kVllm, "--enable-prefix-caching", {}, {}, kAlwaysOn, true},
    {kVllm, "--no-enable-prefix-caching", {}, {}, "it is always on and changes no answer", true},
    {kVllm, "--disable-log-requests|--disable-log-stats|--no-enable-log-requests", {}, {}, kOwnLog, true},
    {kVllm, "--uvicorn-log-level", {}, {}, kOwnLog},
    {kVllm, "--use-v2-block-manager", {}, {}, kOwnMemory, true},
    {kVllm, "--speculative-draft-tensor-parallel-size", {}, {}, kOneProcess},
    {kVllm, "--ngram-prompt-lookup-min", {}, {}, "every length down to 1 is looked up"},
    {kVllm, "--tokenizer-mode", {}, "auto|hf|slow", kLocalFiles},
    {kVllm, "--generation-config", {}, "auto", "the model's own is followed"},
    {kVllm, "--per-request-spec-decode-metrics", {}, "none|summary", "every answer has them"},
    {kVllm, "--enable-auto-tool-choice", {}, {}, kAlwaysOn, true},
    {kVllmSglang, "--tool-call-parser", {}, {}, kTemplateDecides},
    {kServers, "--reasoning-parser", {}, {}, kTemplateDecides},
    {kTrt, "--tool-parser", {}, {}, kTemplateDecides},
    {kVllmSglang, "--quantization|-q", {}, "awq|awq_marlin|gptq|gptq_marlin|compressed-tensors|fp8|gguf|modelopt|mxfp4", kLocalFiles},
    {kVllm, "--disable-uvicorn-access-log", {}, {}, kOwnLog, true},
    {"llama.cpp|vLLM|SGLang", "--seed", {}, {}, "a request that names no seed gets a random one"},
    {kVllmSglang, "--download-dir", {}, {}, kLocalFiles},
    {kLlama, "-ngl|--n-gpu-layers", "gpu-layers"},
    {kLlama, "-ncmoe|--n-cpu-moe", "cpu-experts"},
    {kLlama, "-cmoe|--cpu-moe", "cpu-experts", "true=all", {}, true},
    {kLlama, "-ngld|--gpu-layers-draft|--n-gpu-layers-draft|--spec-draft-ngl", {}, {}, kNoGpu},
    {kLlama, "-dev|-devd|--device-draft|--spec-draft-device", {}, {}, kNoGpu},
    {kLlama, "-sm|--split-mode|-ts|--tensor-split|-mg|--main-gpu", {}, {}, kNoGpu},
    {kLlama, "-fa|--flash-attn", {}, "on|off|auto", kOwnKernels},
    {kLlama, "-b|--batch-size|-ub", {}, {}, kOwnPasses},
    {"llama.cpp|vLLM", "--ubatch-size", {}, {}, kOwnPasses},
    {kLlama, "-tb|--threads-batch", {}, {}, "--threads holds for prompts, too"},
    {kLlama, "-td|--threads-draft|--spec-draft-threads", {}, {}, kOwnDraftMemory},
    {kLlama, "-tbd|--threads-batch-draft|--spec-draft-threads-batch", {}, {}, kOwnDraftMemory},
    {kLlama, "-cd|--ctx-size-draft", {}, {}, kOwnDraftMemory},
    {kLlama, "-ctkd|-ctvd|--cache-type-k-draft|--cache-type-v-draft", {}, {}, kOwnDraftMemory},
    {kLlama, "--draft-min|--draft-n-min|--spec-draft-n-min", {}, {}, "short drafts are verified, too"},
    {kLlama, "--draft-p-split|--spec-draft-p-split", {}, {}, "the key `tree` asks for trees"},
    {kLlama, "--threads-http", {}, {}, "one thread serves all connections"},
    {kLlama, "--embedding|--embeddings", {}, {}, "/v1/embeddings is always there", true},
    {kLlama, "-cb|--cont-batching|--jinja|--metrics|--slots|--props", {}, {}, kAlwaysOn, true},
    {kLlama, "--mlock|--no-mmap|--no-warmup", {}, {}, kLocalFiles, true},
    {"llama.cpp|TensorRT-LLM", "--warmup", {}, {}, "the engine is warm when it is measured", true},
    {kLlama, "--numa", {}, {}, "--pin keeps threads on their processors"},
    {kLlama, "-kvu|--kv-unified", {}, {}, kAlwaysOn, true},
    {kLlama, "--cache-reuse|-cram|--cache-ram", {}, {}, kOwnMemory},
    {kLlama, "--no-context-shift", {}, {}, "only texts of requests with `slide` are shifted", true},
    {kLlama, "-lv|--verbosity|--log-verbosity", {}, {}, kOwnLog},
    {kLlama, "-v|--verbose|--log-disable|--log-timestamps|--log-prefix", {}, {}, kOwnLog, true},
    {kSglang, "--mem-fraction-static|--mem-fraction", {}, {}, kOwnMemory},
    {kSglang, "--cuda-graph-max-bs", {}, {}, kNoGpu},
    {kSglang, "--disable-cuda-graph", {}, {}, kNoGpu, true},
    {kSglang, "--enable-torch-compile", {}, {}, kNoGpu, true},
    {kSglang, "--torch-compile-max-bs", {}, {}, kNoGpu},
    {kSglang, "--dp-size", {}, {}, kOneProcess},
    {kSglang, "--chunked-prefill-size|--max-prefill-tokens", {}, {}, kOwnPasses},
    {kSglang, "--schedule-policy", {}, {}, "requests are served in the order of their arrival"},
    {kSglang, "--disable-overlap-schedule", {}, {}, kNoOverlap, true},
    {kSglang, "--speculative-accept-threshold-single|--speculative-accept-threshold-acc", {}, "1|1.0", kCoupled},
    {kSglang, "--speculative-adaptive-config", {}, {}, kMeasured},
    {kSglang, "--speculative-dspark-sps-table-path|--speculative-dspark-confidence-sts-path", {}, {}, kMeasured},
    {kSglang, "--speculative-use-rejection-sampling", {}, {}, kCoupled, true},
    {kSglang, "--speculative-dflash-draft-window-size|--speculative-draft-window-size|--speculative-draft-sink-size|"
              "--speculative-draft-kv-cache-dtype", {}, {}, kOwnDraftMemory},
    {kSglang, "--speculative-domino-candidate-pool-size", {}, {}, "the whole vocabulary is scored"},
    {kSglang, "--speculative-dspark-align-verify-tokens-to-graph-tier|--enable-draft-weights-cpu-backup", {}, {}, kNoGpu, true},
    {kSglang, "--speculative-enable-w4a4-mxfp4-megamoe|--enable-linear-replayssm-spec", {}, {}, kOwnKernels, true},
    {kSglang, "--speculative-dsa-topk-backend", {}, {}, kOwnKernels},
    {kSglang, "--decoupled-spec-bind-endpoint|--decoupled-spec-connect-endpoints|--decoupled-spec-rank|"
              "--decoupled-spec-role|--spec-trace-dir", {}, {}, "--draft-ranks drafts in other processes of a job", false, true},
    {kSglang, "--decrypted-draft-config-file", {}, {}, kFileDecides, false, true},
    {kSglang, "--uno-lora-path", {}, {}, kItsMethod, false, true},
    {kSglang, "--speculative-skip-dp-mlp-sync", {}, {}, kOneProcess, true},
    {kSglang, "--speculative-attention-mode|--speculative-draft-attention-backend", {}, {}, kOwnKernels},
    {kSglang, "--speculative-moe-runner-backend|--speculative-moe-a2a-backend", {}, {}, kOwnKernels},
    {kSglang, "--speculative-draft-model-quantization|--speculative-draft-load-format", {}, {}, kFileDecides},
    {kSglang, "--speculative-draft-model-revision", {}, {}, kLocalFiles},
    {kSglang, "--speculative-ngram-min-match-window-size", {}, {}, "every length down to 1 is looked up"},
    {kSglang, "--speculative-ngram-min-bfs-breadth", {}, {}, "a node may have any number of children"},
    {kSglang, "--speculative-ngram-match-type", {}, {}, "the key `is_use_oldest` sets the order"},
    {kSglang, "--speculative-ngram-max-trie-depth", {}, {}, "the key `max_matching_ngram_size` bounds it"},
    {kSglang, "--speculative-ngram-external-sam-budget", {}, {}, "the likeliest draft counts, wherever it comes from"},
    {kSglang, "--speculative-ngram-external-corpus-max-tokens", {}, {}, "the index is a mapped file of any size"},
    {kSglang, "--enable-multi-layer-eagle", {}, {}, kFileDecides, true},
};

constexpr Name kKeyNames[] = {
    // Keys with a counterpart.
    {kTrt, "speculative_model_dir|pytorch_weights_path", "speculative_model"},
    {kTrt, "num_nextn_predict_layers", "max_draft_len"},
    {"TensorRT-LLM|transformers", "prompt_lookup_num_tokens", "max_draft_len"},
    {kTrt, "eagle_choices", "medusa_choices"},
    {kTrt, "use_dynamic_tree", "tree", "true=dynamic|false="},
    {kTrt, "enable_global_pool|sa_config.enable_global_pool", "suffix_max_cached_requests", "true=1024|false=0"},
    {kVllm, "method", "decoding_type"},
    {kVllm, "model", "speculative_model"},
    {kVllm, "num_speculative_tokens", "max_draft_len"},
    {kVllm, "prompt_lookup_max", "max_matching_ngram_size"},
    {kVllm, "speculative_token_tree", "medusa_choices"},
    {kVllm, "disable_by_batch_size|speculative_disable_by_batch_size", "max_concurrency"},
    {kVllm, "num_speculative_tokens_per_batch_size", "draft_len_by_batch"},
    {kVllm, "draft_sample_method", "children", "greedy=top|probabilistic=sampled"},
    {kVllm, "enable_adaptive_verification|adaptive_verification|enable_adaptive_k", "policy", "true=auto|false=fixed"},
    {kVllm, "suffix_decoding_max_tree_depth", "suffix_max_tree_depth"},
    {kVllm, "suffix_decoding_max_cached_requests", "suffix_max_cached_requests"},
    {kVllm, "suffix_decoding_max_spec_factor", "suffix_max_spec_factor"},
    {kVllm, "suffix_decoding_min_token_prob", "suffix_min_token_prob"},
    {"transformers", "assistant_model", "speculative_model"},
    {"transformers", "num_assistant_tokens", "max_draft_len"},
    {"transformers", "num_assistant_tokens_schedule", "draft_len_schedule",
     "constant|heuristic|heuristic_transient=heuristic"},
    {"transformers", "assistant_early_exit", "exit_layer"},
    {"transformers", "use_mtp", "decoding_type", "true=mtp|false="},
    {"transformers", "speculation_type", "decoding_type"},
    {"transformers", "is_assistant", {}, {}, "a model drafts where speculative_model names it"},
    {"transformers", "assistant_lookbehind|target_lookbehind", {}, {}, "texts of two tokenizers are matched as a whole"},
    {"transformers", "assistant_ensemble_weight", {}, {}, "a mixture with the drafter would change the output", false, true},
    // Keys without effect.
    {kTrt, "eagle3_one_model|mtp_eagle_one_model|use_mtp_vanilla", {}, {}, kNoOverlap},
    {kTrt, "num_eagle_layers|num_medusa_heads|eagle3_model_arch", {}, {}, kFileDecides},
    {kTrt, "mask_token_id|target_layer_ids|block_size|markov_rank|markov_head_type", {}, {}, kFileDecides},
    {kTrt, "max_non_leaves_per_layer", {}, {}, "the key `max_total_draft_tokens` bounds the tree"},
    {kTrt, "max_batch_size", {}, {}, "--max-batch bounds the batch"},
    {kTrt, "greedy_sampling", {}, "true", kCoupled},
    {kTrt, "use_rejection_sampling|allow_advanced_sampling|advanced_sampling_mode|enable_penalty", {}, {}, kCoupled},
    {kTrt, "sa_spec_threshold|sa_config.threshold", {}, {}, "the likeliest nodes of both drafters are verified"},
    {kTrt, "sa_config.max_matching_ngram_size", {}, {}, "the suffix tree finds the longest match"},
    {kTrt, "global_pool_size|sa_config.global_pool_size", {}, {}, "the key `suffix_max_cached_requests` bounds it"},
    {kTrt, "acceptance_rate_window_size|acceptance_rate_threshold", {}, {}, kMeasured},
    {kTrt, "acceptance_window|acceptance_length_threshold", {}, {}, kMeasured},
    {kTrt, "load_format", {}, {}, kLocalFiles},
    {kTrt, "sa_config", "use_sa_spec"},
    {kTrt, "output_directory|write_interval|file_prefix", {}, {}, kItsMethod, false, true},
    {kTrt, "drafter|resource_manager", {}, {}, "a program passes its drafter to the engine", false, true},
    {kTrt, "posterior_threshold", "typical_epsilon"},
    {kVllm, "draft_tensor_parallel_size|tensor_parallel_size", {}, {}, kOneProcess},
    {kVllm, "prompt_lookup_min", {}, {}, "every length down to 1 is looked up"},
    {kVllm, "rejection_sample_method", {}, "strict|standard|probabilistic|block", kCoupled},
    {kVllm, "acceptance_method", {}, "rejection_sampler", kCoupled},
    {kVllm, "max_model_len|kv_cache_dtype", {}, {}, kOwnDraftMemory},
    {kVllm, "quantization|draft_load_config|revision|code_revision|draft_lm_head_quantization|"
            "index_share_for_mtp_iteration", {}, {}, kFileDecides},
    {kVllm, "dspark_draft_topk|xpress_topc", {}, {}, "the whole vocabulary is scored"},
    {kVllm, "synthetic_acceptance_rates|synthetic_acceptance_length", {}, {},
     "`outrider bench --synthetic-acceptance` measures it", false, true},
    {kVllm, "fly_window_size|fly_entropy_threshold|fly_entropy_top_k", {}, {}, "its rule would change the output", false, true},
    {kVllm, "parallel_drafting", {}, {}, "the drafter's files decide whether tokens are drafted one by one"},
    {kVllm, "use_heterogeneous_vocab", {}, {}, "the tokenizers decide whether the draft model has another vocabulary"},
    {kVllm, "enforce_eager|disable_padded_drafter_batch|use_local_argmax_reduction", {}, {}, kNoGpu},
    {kVllm, "disable_mqa_scorer|moe_backend", {}, {}, kOwnKernels},
    {kTrtVllm, "attention_backend", {}, {}, kOwnKernels},
    {kVllm, "disable_eagle_block_drop|disable_lookahead_block_hashes", {}, {}, "the prefix cache drops nothing for drafters"},
    {kVllm, "adaptive_k_ema_alpha|adaptive_k_c_draft|adaptive_k_min_tokens|adaptive_k_cooldown_steps", {}, {}, kMeasured},
    {kVllm, "adaptive_k_bs_penalty|adaptive_k_alpha_prior", {}, {}, kMeasured},
    {kVllm, "uno_lora_path|fsm_path", {}, {}, kItsMethod},
    {kVllm, "disable_logprobs", {}, {}, "log-probabilities are the target's own"},
    {kVllm, "suffix_decoding_corpus_tokens", {}, {}, "the key `suffix_max_cached_requests` bounds it"},
};

// Methods that are none here, and why.
constexpr Name kMethodNames[] = {
    {kVllm, "custom_class", {}, {}, "a program passes its drafter to the engine"},
    {kVllm, "extract_hidden_states", {}, {}, "it drafts nothing; drafters in Python read the states"},
    {kTrt, "SaveState", {}, {}, "it drafts nothing; `outrider-train` collects the states that it needs"},
    {kVllmSglang, "uno", {}, {}, "adapters that draft are not read"},
};
// clang-format on

// "--max_num_seqs" as "max-num-seqs".
std::string plain_name(std::string_view name) {
  name.remove_prefix(std::min(name.find_first_not_of('-'), name.size()));
  std::string plain(name);
  for (char& c : plain) c = c == '_' ? '-' : c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return plain;
}

bool is_short(std::string_view name) { return name.starts_with('-') && !name.starts_with("--"); }

bool same_name(std::string_view there, std::string_view given) {
  return is_short(there) || is_short(given) ? there == given : plain_name(there) == plain_name(given);
}

}  // namespace

std::span<const ForeignName> foreign_options() {
  static const std::vector<ForeignName> all = [] {
    std::vector<ForeignName> names(std::begin(kOptionNames), std::end(kOptionNames));
    for (const auto more : {llama_server_names(), vllm_serve_names(), trt_bench_names()})
      names.insert(names.end(), more.begin(), more.end());
    return names;
  }();
  return all;
}

std::span<const ForeignName> foreign_keys() { return kKeyNames; }

std::string_view reason_against(std::string_view method) {
  const ForeignName* row = find_foreign(kMethodNames, method);
  return row == nullptr ? std::string_view() : row->remark;
}

std::string_view speculative_key_of(const ForeignName& option) {
  constexpr std::string_view kPrefix = "speculative.";
  return option.here.starts_with(kPrefix) ? option.here.substr(kPrefix.size()) : "";
}

const ForeignName* find_foreign(std::span<const ForeignName> names, std::string_view name) {
  for (const ForeignName& row : names) {
    for (const std::string_view there : split(row.names, '|')) {
      if (same_name(there, name)) return &row;
    }
  }
  constexpr std::string_view kNo = "--no-";
  if (!name.starts_with(kNo)) return nullptr;
  const ForeignName* row = find_foreign(names, "--" + std::string(name.substr(kNo.size())));
  if (row == nullptr || !row->is_flag || !row->here.empty()) return nullptr;
  static constexpr ForeignName kOff = {{}, {}, {}, {}, "it is off here", true};
  return row->is_refused ? &kOff : row;
}

bool leaves_default(const ForeignName& name, std::string_view value) {
  return value.empty() && !name.values.empty();
}

Result<std::string> value_here(const ForeignName& name, std::string_view value) {
  if (name.is_refused) return usage_error(fmt::format("is not supported here: {}", name.remark));
  if (name.values.empty()) return std::string(value);
  std::vector<std::string_view> taken;
  for (const std::string_view pair : split(name.values, '|')) {
    const size_t equals = pair.find('=');
    taken.push_back(pair.substr(0, equals));
    if (plain_name(taken.back()) != plain_name(value)) continue;
    return std::string(equals == std::string_view::npos ? pair : pair.substr(equals + 1));
  }
  return usage_error(fmt::format("expected {}, found {}{}{}", joined(taken), quote(value),
                                 name.remark.empty() ? "" : "; ", name.remark));
}

std::string no_effect(const ForeignName& name) { return fmt::format("has no effect here: {}", name.remark); }

}  // namespace outrider
