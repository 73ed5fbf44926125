// SPDX-License-Identifier: Apache-2.0
#include "config/option_table.h"

#include <fmt/format.h>

#include <array>

#include "config/option_setters.h"

namespace outrider {
namespace {

using S = Settings;
using V = OptionValue;
using Type = OptionType;

SamplingParams& sampling(Settings& settings) { return settings.request.sampling; }

constexpr unsigned bit(Command command) { return static_cast<unsigned>(command); }

constexpr unsigned kGenerate = bit(Command::kGenerate);
constexpr unsigned kChat = bit(Command::kChat);
constexpr unsigned kScore = bit(Command::kScore);
constexpr unsigned kTokenize = bit(Command::kTokenize);
constexpr unsigned kInspect = bit(Command::kInspect);
constexpr unsigned kBench = bit(Command::kBench);
constexpr unsigned kVerify = bit(Command::kVerifyLossless);
constexpr unsigned kQuantize = bit(Command::kQuantize);
constexpr unsigned kDoctor = bit(Command::kDoctor);
constexpr unsigned kServe = bit(Command::kServe);
constexpr unsigned kPull = bit(Command::kPull);
constexpr unsigned kModels = bit(Command::kModels);
constexpr unsigned kAsksServer = kGenerate | kChat;
constexpr unsigned kWrites = kGenerate | kChat | kBench | kDoctor;
constexpr unsigned kDecodes = kWrites | kVerify;
constexpr unsigned kRuns = kDecodes | kScore | kServe;
constexpr unsigned kEvery = kRuns | kTokenize | kInspect;

constexpr std::string_view kModel = "Model";
constexpr std::string_view kInput = "Input";
constexpr std::string_view kSampling = "Sampling";
constexpr std::string_view kLength = "Length and stopping";
constexpr std::string_view kSpeculation = "Speculation";
constexpr std::string_view kMachine = "Machine";
constexpr std::string_view kServing = "Serving";
constexpr std::string_view kOutput = "Output";

constexpr double kMaxTokens = 1 << 24;
constexpr int kDraftingNodes = 64;   // of a tree that a server verifies for a client
constexpr double kMaxSeed = 9.2e18;  // below 2^63, so that seeds are whole numbers everywhere

// One option is a few lines, so that the table can be read as one.
// clang-format off
const OptionRow kOptions[] = {
    {.name = "model", .metavar = "MODEL", .group = kModel, .commands = kEvery,
     .help = "Hugging Face directory, .gguf file, or name of a model on this machine (outrider models); builtin: the "
             "small models of the repository; without it SmolLM2, or where that is missing builtin",
     .apply = [](S& s, const V& v) { s.engine.model = v.text(); return Status(); }, .positional = true},
    {.name = "model", .metavar = "IN", .group = kModel, .commands = kQuantize,
     .help = "Hugging Face directory, .gguf file or name of a model to read",
     .apply = [](S& s, const V& v) { s.engine.model = v.text(); return Status(); }, .positional = true,
     .command_line_only = true},
    {.name = "output", .metavar = "OUT", .group = kModel, .commands = kQuantize,
     .help = ".gguf file to write",
     .apply = [](S& s, const V& v) { s.output = v.text(); return Status(); }, .positional = true,
     .command_line_only = true},
    {.name = "reference", .metavar = "NAME", .group = kModel, .commands = kPull,
     .help = "hf:ORG/REPO, hf:ORG/REPO:FILE, hf:ORG/REPO:QUANT, or a short name, such as smollm2",
     .apply = [](S& s, const V& v) { s.hub_reference = v.text(); return Status(); }, .positional = true,
     .command_line_only = true},
    {.name = "type", .metavar = "TYPE", .type = Type::kChoice, .group = kModel, .commands = kQuantize,
     .help = "what matrices become; the output matrix is held at q6_k or more",
     .apply = [](S& s, const V& v) { s.quantization_type = v.text(); return Status(); },
     .choices = "q8_0|q6_k|q5_0|q5_1|q4_k|q4_0|q4_1|iq4_nl|mxfp4", .command_line_only = true},
    {.name = "force", .type = Type::kFlag, .group = kModel, .commands = kQuantize,
     .help = "replace OUT if it exists",
     .apply = [](S& s, const V& v) { s.force = v.flag; return Status(); }, .command_line_only = true},
    {.name = "weights", .metavar = "TYPE", .type = Type::kChoice, .group = kModel, .commands = kRuns,
     .default_text = "auto", .help = "type the weights are held in; auto: as stored, q8: one scale per output, q4: q4_0",
     .apply = set_weights, .choices = "auto|f32|bf16|q8_0|q8|q4"},
    {.name = "packed-cache", .metavar = "DIR", .group = kModel, .commands = kRuns,
     .help = "folder for weights in the layout of the kernels: written by the first start, mapped by later ones",
     .apply = [](S& s, const V& v) { s.engine.packed_cache = v.text(); return Status(); }},
    {.name = "memory", .metavar = "SIZE", .group = kModel, .commands = kRuns | kInspect,
     .help = "most memory to use, such as 800M or 6G; layers that do not fit are read from the packed cache in every "
             "pass, ahead of the layer that needs them",
     .apply = set_memory},
    {.name = "shape", .metavar = "NAME", .group = kModel, .commands = kBench,
     .help = "instead of MODEL: random weights of this shape, such as llama-1b, or of its first layers, such as "
             "llama-1b@4, in the type of --weights (auto: bf16)",
     .apply = [](S& s, const V& v) { s.shape = v.text(); return Status(); }},
    {.name = "ctx", .metavar = "N", .type = Type::kInteger, .group = kModel, .commands = kRuns,
     .default_text = "0", .help = "longest sequence in tokens; 0: what the model was made for, at most 8192",
     .apply = [](S& s, const V& v) { s.engine.context = v.integer; return Status(); },
     .min = 0, .max = kMaxTokens},
    {.name = "config", .metavar = "FILE", .group = kModel, .commands = kEvery | kQuantize,
     .help = "YAML file of options; command line and environment come before it",
     .apply = [](S& s, const V& v) { s.config_file = v.text(); return Status(); },
     .command_line_only = true},
    {.name = "server", .metavar = "URL", .group = kModel, .commands = kAsksServer,
     .help = "decode on a server of --remote-drafting, as in ws://127.0.0.1:8000, or wss:// for TLS, and draft here; "
             "MODEL gives tokenizer and chat template",
     .apply = [](S& s, const V& v) { s.remote.url = v.text(); return Status(); }},
    {.name = "server-key-file", .metavar = "FILE", .group = kModel, .commands = kAsksServer,
     .help = "file with the key to show to --server, in its first line",
     .apply = [](S& s, const V& v) { s.remote.api_key_file = v.text(); return Status(); }},
    {.name = "server-ca", .metavar = "FILE", .group = kModel, .commands = kAsksServer,
     .help = "with wss://: PEM file of certificates to trust beside those of the system",
     .apply = [](S& s, const V& v) { s.remote.authority = v.text(); return Status(); }},
    {.name = "server-states", .metavar = "TYPE", .type = Type::kChoice, .group = kModel, .commands = kAsksServer,
     .default_text = "bf16",
     .help = "numbers of the target's states that --server sends for draft heads; q8 takes half of the bytes",
     .apply = [](S& s, const V& v) { s.remote.states = v.text(); return Status(); }, .choices = "bf16|f16|q8"},
    {.name = "offline", .metavar = "WAY", .type = Type::kChoice, .group = kModel, .commands = kGenerate | kChat,
     .default_text = "correct",
     .help = "while --server is out of reach a draft model or MoA writes alone; when it is back, correct: its own text "
             "takes the place of other text, keep: it goes on after that text; never: wait for it instead",
     .apply = [](S& s, const V& v) { s.remote.offline = v.text(); return Status(); }, .choices = "never|correct|keep"},
    {.name = "offline-after", .metavar = "SECONDS", .type = Type::kNumber, .group = kModel, .commands = kGenerate | kChat,
     .default_text = "10", .help = "how long --server is waited for before the drafter writes alone",
     .apply = [](S& s, const V& v) { s.remote.offline_after = v.number; return Status(); },
     .min = 0.1, .max = 1e5},
    {.name = "host", .metavar = "ADDRESS", .group = kServing, .commands = kServe, .default_text = "127.0.0.1",
     .help = "address to listen on; any but a loopback one needs --api-key-file",
     .apply = [](S& s, const V& v) { s.server.host = v.text(); return Status(); }},
    {.name = "port", .metavar = "N", .type = Type::kInteger, .group = kServing, .commands = kServe,
     .default_text = "8000", .help = "port to listen on; 0: any that is free",
     .apply = [](S& s, const V& v) { s.server.port = static_cast<int>(v.integer); return Status(); },
     .min = 0, .max = 65535},
    {.name = "api-key-file", .metavar = "FILE", .group = kServing, .commands = kServe,
     .help = "keys, one per line, that requests must show; read again on SIGHUP; not readable by others",
     .apply = [](S& s, const V& v) { s.server.api_key_file = v.text(); return Status(); }},
    {.name = "api-key", .metavar = "KEY", .type = Type::kTextList, .group = kServing, .commands = kServe,
     .help = "a key that requests may show; other users of the machine see it in the list of processes, so "
             "--api-key-file is better; may be repeated",
     .apply = [](S& s, const V& v) { s.server.api_keys = v.texts; return Status(); }},
    {.name = "ssl-certfile", .metavar = "FILE", .group = kServing, .commands = kServe,
     .help = "speak TLS with this certificate chain in PEM; read again on SIGHUP",
     .apply = [](S& s, const V& v) { s.server.certificate = v.text(); return Status(); }},
    {.name = "ssl-keyfile", .metavar = "FILE", .group = kServing, .commands = kServe,
     .help = "private key of --ssl-certfile, not readable by others; without it in the same file",
     .apply = [](S& s, const V& v) { s.server.certificate_key = v.text(); return Status(); }},
    {.name = "served-model-name", .metavar = "NAME", .group = kServing, .commands = kServe,
     .help = "the model's name in the API; without it that of its folder or file",
     .apply = [](S& s, const V& v) { s.served_model_name = v.text(); return Status(); }},
    {.name = "chat-template", .metavar = "FILE", .group = kServing, .commands = kServe,
     .help = "a Jinja template for chats in place of the model's",
     .apply = [](S& s, const V& v) { s.server.chat_template = v.text(); return Status(); }},
    {.name = "chat-template-kwargs", .metavar = "JSON", .group = kServing, .commands = kServe,
     .help = "variables of the template in every request, as in {\"enable_thinking\": false}; a request's own come before",
     .apply = [](S& s, const V& v) { s.server.chat_template_kwargs = v.text(); return Status(); }},
    {.name = "pooling", .metavar = "WHAT", .type = Type::kChoice, .group = kServing, .commands = kServe,
     .default_text = "last",
     .help = "what /v1/embeddings takes of a text's states, its last one or their mean; rank: the model is a reranker, "
             "such as Qwen3-Reranker, and answers /v1/rerank instead",
     .apply = set_pooling, .choices = "last|mean|rank"},
    {.name = "response-memory", .metavar = "MIB", .type = Type::kInteger, .group = kServing, .commands = kServe,
     .default_text = "64", .help = "memory for the conversations of /v1/responses; the oldest are forgotten; 0 keeps none",
     .apply = [](S& s, const V& v) { s.server.response_memory = static_cast<int>(v.integer); return Status(); },
     .min = 0, .max = 1 << 20},
    {.name = "max-queue", .metavar = "N", .type = Type::kInteger, .group = kServing, .commands = kServe,
     .default_text = "256", .help = "requests that wait beyond the batch; more are refused with 429",
     .apply = [](S& s, const V& v) { s.server.max_queue = static_cast<int>(v.integer); return Status(); },
     .min = 0, .max = 1 << 20},
    {.name = "max-connections", .metavar = "N", .type = Type::kInteger, .group = kServing, .commands = kServe,
     .default_text = "4096", .help = "open connections; more are closed",
     .apply = [](S& s, const V& v) { s.server.max_connections = static_cast<int>(v.integer); return Status(); },
     .min = 1, .max = 1 << 20},
    {.name = "max-connections-per-address", .metavar = "N", .type = Type::kInteger, .group = kServing,
     .commands = kServe, .default_text = "2048", .help = "open connections of one client address",
     .apply = [](S& s, const V& v) {
       s.server.max_connections_per_address = static_cast<int>(v.integer);
       return Status();
     },
     .min = 1, .max = 1 << 20},
    {.name = "drain-timeout", .metavar = "SECONDS", .type = Type::kNumber, .group = kServing, .commands = kServe,
     .default_text = "30", .help = "how long running requests may go on after SIGTERM",
     .apply = [](S& s, const V& v) { s.server.drain_timeout = v.number; return Status(); },
     .min = 0, .max = 86400},
    {.name = "remote-drafting", .type = Type::kFlag, .group = kServing, .commands = kServe,
     .help = "verify for clients that draft elsewhere: outrider generate or chat --server",
     .apply = [](S& s, const V& v) {
       s.server.drafting_nodes = s.engine.offered_nodes = v.flag ? kDraftingNodes : 0;
       return Status();
     }},
    {.name = "max-drafting-sessions", .metavar = "N", .type = Type::kInteger, .group = kServing, .commands = kServe,
     .default_text = "256",
     .help = "with --remote-drafting: clients at a time, those included whose connection broke within the last minute",
     .apply = [](S& s, const V& v) { s.server.max_drafting_sessions = static_cast<int>(v.integer); return Status(); },
     .min = 1, .max = 65536},
    {.name = "max-drafting-sessions-per-key", .metavar = "N", .type = Type::kInteger, .group = kServing, .commands = kServe,
     .default_text = "256",
     .help = "with --remote-drafting: those of them that show one key, or none",
     .apply = [](S& s, const V& v) { s.server.max_drafting_sessions_per_key = static_cast<int>(v.integer); return Status(); },
     .min = 1, .max = 65536},
    {.name = "allowed-host", .metavar = "NAME", .type = Type::kTextList, .group = kServing, .commands = kServe,
     .help = "a name under which clients may reach the server, beside its address; may be repeated",
     .apply = [](S& s, const V& v) { s.server.allowed_hosts = v.texts; return Status(); }},
    {.name = "cors-origin", .metavar = "ORIGIN", .type = Type::kTextList, .group = kServing, .commands = kServe,
     .help = "let pages from there call, as in https://example.org; *: from anywhere; may be repeated",
     .apply = [](S& s, const V& v) { s.server.cors_origins = v.texts; return Status(); }},
    {.name = "output", .metavar = "FILE", .group = kOutput, .commands = kBench,
     .help = "with --all: write the table as an HTML page, too, or as JSON if FILE ends in .json; replaced after every "
             "drafter, so that it outlasts an interruption",
     .apply = [](S& s, const V& v) { s.output = v.text(); return Status(); }, .command_line_only = true},
    {.name = "prompt", .metavar = "TEXT", .group = kInput, .commands = kGenerate,
     .help = "the prompt; - reads standard input",
     .apply = [](S& s, const V& v) { s.prompt = v.text(); return Status(); },
     .short_name = 'p', .command_line_only = true},
    {.name = "prompt-file", .metavar = "FILE", .group = kInput, .commands = kGenerate,
     .help = "the prompt is the whole file",
     .apply = [](S& s, const V& v) { s.prompt_file = v.text(); return Status(); },
     .command_line_only = true},
    {.name = "private", .metavar = "TEXT", .group = kInput, .commands = kGenerate,
     .help = "end of the prompt that --server must not see: the drafter writes the output alone, with the server's "
             "states of the prompt before it",
     .apply = [](S& s, const V& v) { s.remote.private_text = v.text(); return Status(); },
     .command_line_only = true},
    {.name = "private-file", .metavar = "FILE", .group = kInput, .commands = kGenerate,
     .help = "the private end of the prompt is the whole file",
     .apply = [](S& s, const V& v) { s.remote.private_file = v.text(); return Status(); },
     .command_line_only = true},
    {.name = "prompt-ids", .metavar = "IDS", .group = kInput, .commands = kGenerate | kScore,
     .help = "the prompt as token ids, as in 1,2,3",
     .apply = set_prompt_ids, .command_line_only = true},
    {.name = "text-file", .metavar = "FILE", .group = kInput, .commands = kScore,
     .help = "the text is the whole file",
     .apply = [](S& s, const V& v) { s.prompt_file = v.text(); return Status(); },
     .command_line_only = true},
    {.name = "text", .metavar = "TEXT", .group = kInput, .commands = kTokenize,
     .help = "text to turn into token ids; - reads standard input",
     .apply = [](S& s, const V& v) { s.prompt = v.text(); return Status(); }, .command_line_only = true},
    {.name = "file", .metavar = "FILE", .group = kInput, .commands = kTokenize,
     .help = "the text is the whole file",
     .apply = [](S& s, const V& v) { s.prompt_file = v.text(); return Status(); },
     .command_line_only = true},
    {.name = "ids", .metavar = "IDS", .group = kInput, .commands = kTokenize,
     .help = "token ids to turn into text, as in 1,2,3",
     .apply = set_prompt_ids, .command_line_only = true},
    {.name = "system", .metavar = "TEXT", .group = kInput, .commands = kChat,
     .help = "system message at the start of the conversation",
     .apply = [](S& s, const V& v) { s.system_message = v.text(); return Status(); }},
    {.name = "chat", .type = Type::kFlag, .group = kInput, .commands = kGenerate,
     .help = "ask the prompt as a user through the model's chat template, instead of continuing it",
     .apply = [](S& s, const V& v) { s.asks_chat = v.flag; return Status(); }, .command_line_only = true},
    {.name = "system", .metavar = "TEXT", .group = kInput, .commands = kGenerate,
     .help = "system message before the prompt; implies --chat",
     .apply = [](S& s, const V& v) { s.system_message = v.text(); s.asks_chat = true; return Status(); },
     .command_line_only = true},
    {.name = "prompts", .metavar = "FILE", .group = kInput, .commands = kBench | kVerify | kDoctor,
     .help = "JSONL file with prompt, messages, turns or question per line; without it built-in prompts",
     .apply = [](S& s, const V& v) { s.prompt_set = v.text(); return Status(); }},
    {.name = "limit", .metavar = "N", .type = Type::kInteger, .group = kInput,
     .commands = kBench | kVerify | kDoctor, .default_text = "0", .help = "prompts used, evenly spaced over the file; 0: all, or 6 for doctor",
     .apply = [](S& s, const V& v) { s.prompt_limit = v.integer; return Status(); },
     .min = 0, .max = kMaxTokens},
    {.name = "skip-long", .type = Type::kFlag, .group = kInput, .commands = kBench | kVerify | kDoctor,
     .help = "leave out prompts that do not fit into the context, and say how many; without it they are an error",
     .apply = [](S& s, const V& v) { s.skips_long_prompts = v.flag; return Status(); }},
    {.name = "runs", .metavar = "N", .type = Type::kInteger, .group = kInput, .commands = kBench,
     .default_text = "0",
     .help = "repetitions of each prompt, plain and speculative in turn, or rounds over the row counts; "
             "0: 3 repetitions or 10 rounds",
     .apply = [](S& s, const V& v) { s.runs = v.integer; return Status(); }, .min = 0, .max = 1000},
    {.name = "rows", .metavar = "LIST", .group = kInput, .commands = kBench,
     .help = "time single passes of so many rows, as in 1,2,4,8, beside a plain read of the weights' bytes; "
             "16x3: 16 rows that are a tree whose nodes have 3 children each",
     .apply = set_row_counts},
    {.name = "profile", .type = Type::kFlag, .group = kInput, .commands = kBench,
     .help = "with --rows: also the time of each operation of a pass, beside the read rate and the peak of products",
     .apply = [](S& s, const V& v) { s.profiles = v.flag; return Status(); }},
    {.name = "prompt-lengths", .metavar = "LIST", .group = kInput, .commands = kBench,
     .help = "measure the time to the first token of random prompts of so many tokens, as in 64,512,4096",
     .apply = set_prompt_lengths},
    {.name = "batch", .metavar = "LIST", .group = kInput, .commands = kBench,
     .help = "measure throughput with so many prompts running at once, as in 1,2,4,8, instead of prompt by prompt",
     .apply = set_batch_sizes},
    {.name = "all", .type = Type::kFlag, .group = kInput, .commands = kBench,
     .help = "every drafter there is, greedily and sampled (at --temperature, 0: 1), as chain and as tree: one table",
     .apply = [](S& s, const V& v) { s.compares_drafters = v.flag; return Status(); }},
    {.name = "nodes", .metavar = "N", .type = Type::kInteger, .group = kInput, .commands = kBench,
     .default_text = "24", .help = "with --all: drafted nodes of one tree, at most; a quarter of them, 8 at most, are levels",
     .apply = [](S& s, const V& v) { s.draft_nodes = static_cast<int>(v.integer); return Status(); },
     .min = 1, .max = 1024},
    {.name = "drafters", .metavar = "DIR", .type = Type::kTextList, .group = kInput, .commands = kBench,
     .help = "with --all: folder of draft models and learned drafters; may be repeated; without it the folder "
             "that MODEL lies in",
     .apply = [](S& s, const V& v) { s.drafter_folders = v.texts; return Status(); }},
    {.name = "context", .metavar = "N", .type = Type::kInteger, .group = kInput, .commands = kBench,
     .help = "with --rows: tokens already in the KV cache; without it 512, or what fits",
     .apply = [](S& s, const V& v) { s.cached_context = v.integer; return Status(); },
     .min = 0, .max = kMaxTokens},
    {.name = "temperature", .metavar = "T", .type = Type::kNumber, .group = kSampling,
     .commands = kWrites,
     .default_text = "0", .help = "0 is greedy: always the likeliest token",
     .apply = [](S& s, const V& v) { sampling(s).temperature = v.number; return Status(); },
     .min = 0, .max = 100},
    {.name = "temperature", .metavar = "T", .type = Type::kNumber, .group = kSampling, .commands = kVerify,
     .default_text = "0.7", .help = "temperature of the sampled half of the proof; 0: greedy only",
     .apply = [](S& s, const V& v) { sampling(s).temperature = v.number; return Status(); },
     .min = 0, .max = 100},
    {.name = "temperature", .metavar = "T", .type = Type::kNumber, .group = kSampling, .commands = kServe,
     .default_text = "0.8",
     .help = "of requests that say nothing, if the model's generation_config.json does not either; 0 is greedy",
     .apply = [](S& s, const V& v) { sampling(s).temperature = v.number; return Status(); },
     .min = 0, .max = 100},
    {.name = "top-k", .metavar = "K", .type = Type::kInteger, .group = kSampling, .commands = kServe,
     .default_text = "40", .help = "keep the K likeliest tokens; 0: all; default as for --temperature",
     .apply = [](S& s, const V& v) { sampling(s).top_k = static_cast<int32_t>(v.integer); return Status(); },
     .min = 0, .max = kMaxTokens},
    {.name = "top-k", .metavar = "K", .type = Type::kInteger, .group = kSampling, .commands = kDecodes,
     .default_text = "0", .help = "keep the K likeliest tokens; 0: all",
     .apply = [](S& s, const V& v) { sampling(s).top_k = static_cast<int32_t>(v.integer); return Status(); },
     .min = 0, .max = kMaxTokens},
    {.name = "top-p", .metavar = "P", .type = Type::kNumber, .group = kSampling, .commands = kWrites | kServe,
     .default_text = "1", .help = "keep the smallest set of likeliest tokens that reaches this probability",
     .apply = [](S& s, const V& v) { sampling(s).top_p = v.number; return Status(); },
     .min = 0, .max = 1},
    {.name = "top-p", .metavar = "P", .type = Type::kNumber, .group = kSampling, .commands = kVerify,
     .default_text = "0.9", .help = "the same, for the sampled half of the proof",
     .apply = [](S& s, const V& v) { sampling(s).top_p = v.number; return Status(); },
     .min = 0, .max = 1},
    {.name = "min-p", .metavar = "P", .type = Type::kNumber, .group = kSampling, .commands = kServe,
     .default_text = "0.05",
     .help = "keep tokens with at least this fraction of the likeliest one's probability; default as for --temperature",
     .apply = [](S& s, const V& v) { sampling(s).min_p = v.number; return Status(); },
     .min = 0, .max = 1},
    {.name = "min-p", .metavar = "P", .type = Type::kNumber, .group = kSampling, .commands = kDecodes,
     .default_text = "0",
     .help = "keep tokens with at least this fraction of the likeliest one's probability",
     .apply = [](S& s, const V& v) { sampling(s).min_p = v.number; return Status(); },
     .min = 0, .max = 1},
    {.name = "repetition-penalty", .metavar = "R", .type = Type::kNumber, .group = kSampling,
     .commands = kDecodes | kServe,
     .default_text = "1",
     .help = "divides positive logits of tokens seen in prompt or output, multiplies negative ones",
     .apply = [](S& s, const V& v) { sampling(s).repetition_penalty = v.number; return Status(); },
     .min = 0.001, .max = 1000},
    {.name = "presence-penalty", .metavar = "P", .type = Type::kNumber, .group = kSampling,
     .commands = kDecodes | kServe,
     .default_text = "0", .help = "subtracted once from tokens already in the output",
     .apply = [](S& s, const V& v) { sampling(s).presence_penalty = v.number; return Status(); },
     .min = -1000, .max = 1000},
    {.name = "frequency-penalty", .metavar = "F", .type = Type::kNumber, .group = kSampling,
     .commands = kDecodes | kServe,
     .default_text = "0", .help = "subtracted once per occurrence in the output",
     .apply = [](S& s, const V& v) { sampling(s).frequency_penalty = v.number; return Status(); },
     .min = -1000, .max = 1000},
    {.name = "logit-bias", .metavar = "ID=VALUE", .type = Type::kTextList, .group = kSampling,
     .commands = kDecodes,
     .help = "added to the logit of a token; -inf forbids it; may be repeated",
     .apply = set_logit_bias},
    {.name = "seed", .metavar = "S", .type = Type::kInteger, .group = kSampling, .commands = kDecodes,
     .default_text = "0", .help = "seed of all randomness; the same seed gives the same text",
     .apply = [](S& s, const V& v) { sampling(s).seed = static_cast<uint64_t>(v.integer); return Status(); },
     .min = 0, .max = kMaxSeed},
    {.name = "max-tokens", .metavar = "N", .type = Type::kInteger, .group = kLength,
     .commands = kGenerate | kBench | kVerify | kDoctor,
     .default_text = "128", .help = "tokens of output, at most",
     .apply = [](S& s, const V& v) { s.request.max_tokens = v.integer; return Status(); },
     .min = 1, .max = kMaxTokens},
    {.name = "max-tokens", .metavar = "N", .type = Type::kInteger, .group = kLength, .commands = kChat,
     .default_text = "512", .help = "tokens of one answer, at most",
     .apply = [](S& s, const V& v) { s.request.max_tokens = v.integer; return Status(); },
     .min = 1, .max = kMaxTokens},
    {.name = "stop", .metavar = "TEXT", .type = Type::kTextList, .group = kLength, .commands = kDecodes,
     .help = "end the output before this text; may be repeated",
     .apply = set_stop},
    {.name = "ignore-eos", .type = Type::kFlag, .group = kLength, .commands = kDecodes,
     .help = "go on after the model's end-of-text token",
     .apply = [](S& s, const V& v) { s.request.ignore_eos = v.flag; return Status(); }},
    {.name = "speculative", .metavar = "CONFIG", .type = Type::kSpeculation, .group = kSpeculation,
     .commands = kDecodes | kServe,
     .help = "method,key=value,... or a YAML or JSON file: auto, none, ngram, draft_target, ...; keys are listed "
             "in docs/options.md; without it auto"},
    {.name = "speculative-model", .metavar = "DIR", .type = Type::kSpeculationKey, .group = kSpeculation,
     .commands = kDecodes | kServe,
     .help = "draft model or learned drafter; without --speculative what it is decides the method"},
    {.name = "draft-shape", .metavar = "NAME", .group = kSpeculation, .commands = kBench,
     .help = "with --shape: draft with random weights of this shape, such as llama-68m",
     .apply = [](S& s, const V& v) { s.draft_shape = v.text(); return Status(); }},
    {.name = "synthetic-acceptance", .metavar = "P", .type = Type::kNumber, .group = kSpeculation,
     .commands = kBench,
     .help = "replace each drafted token, with this probability by the target's own, else by another: times "
             "a drafter as if it were so good",
     .apply = [](S& s, const V& v) { s.synthetic_acceptance = v.number; return Status(); },
     .min = 0, .max = 1},
    {.name = "acceptance", .metavar = "RULE", .type = Type::kChoice, .group = kSpeculation,
     .commands = kDecodes | kServe,
     .default_text = "coupled",
     .help = "how drafts are accepted; coupled (same seed, same text as without speculation), rejection "
             "and block (same distribution) are lossless, typical and relaxed are not",
     .apply = set_acceptance, .choices = "coupled|rejection|block|typical|relaxed"},
    {.name = "show-draft", .type = Type::kFlag, .group = kSpeculation, .commands = kGenerate,
     .help = "mark which tokens were drafted and accepted, corrected, or added by the target",
     .apply = [](S& s, const V& v) { s.show_draft = v.flag; return Status(); }},
    {.name = "show-tree", .type = Type::kFlag, .group = kSpeculation, .commands = kGenerate,
     .help = "print the tree of every step: probabilities, what was accepted, and why the rest was not; with "
             "--json as part of the object",
     .apply = [](S& s, const V& v) { s.show_tree = v.flag; return Status(); }},
    {.name = "trace", .metavar = "FILE", .group = kSpeculation, .commands = kGenerate | kBench,
     .help = "write an HTML page with the timeline, the trees and the acceptance of every step; replaces FILE",
     .apply = [](S& s, const V& v) { s.trace_file = v.text(); return Status(); }},
    {.name = "threads", .metavar = "N", .type = Type::kInteger, .group = kMachine, .commands = kRuns | kQuantize,
     .default_text = "0", .help = "threads; 0: one per core",
     .apply = [](S& s, const V& v) { s.engine.threads = static_cast<int>(v.integer); return Status(); },
     .min = 0, .max = 1024},
    {.name = "pin", .metavar = "WHEN", .type = Type::kChoice, .group = kMachine, .commands = kRuns,
     .default_text = "auto",
     .help = "keep each thread on one processor; auto: with several NUMA nodes and a thread for every processor",
     .apply = set_pinning, .choices = "auto|on|off"},
    {.name = "tensor-parallel", .metavar = "N", .type = Type::kInteger, .group = kMachine, .commands = kRuns,
     .default_text = "1",
     .help = "ranks that share every layer of the target: processes that mpirun has started, or else threads of this "
             "process; the output stays the same",
     .apply = [](S& s, const V& v) { s.engine.tensor_parallel = static_cast<int>(v.integer); return Status(); },
     .min = 1, .max = 256},
    {.name = "pipeline-parallel", .metavar = "N", .type = Type::kInteger, .group = kMachine, .commands = kRuns,
     .default_text = "1",
     .help = "groups of the target's layers, each with --tensor-parallel ranks of its own",
     .apply = [](S& s, const V& v) { s.engine.pipeline_parallel = static_cast<int>(v.integer); return Status(); },
     .min = 1, .max = 256},
    {.name = "draft-ranks", .metavar = "N", .type = Type::kInteger, .group = kMachine, .commands = kRuns,
     .default_text = "0",
     .help = "ranks besides those of the target on which draft models draft, each for a part of the sequences or of the "
             "models; 0: they draft on the ranks of the target",
     .apply = [](S& s, const V& v) { s.engine.draft_ranks = static_cast<int>(v.integer); return Status(); },
     .min = 0, .max = 256},
    {.name = "rank-memory", .metavar = "WHEN", .type = Type::kChoice, .group = kMachine, .commands = kRuns,
     .default_text = "on",
     .help = "processes of one machine that share a target exchange numbers in memory that they share; off: through "
             "MPI, as those of other machines",
     .apply = [](S& s, const V& v) { s.engine.rank_memory = v.text() == "on"; return Status(); }, .choices = "on|off"},
    {.name = "cache-dir", .metavar = "DIR", .group = kMachine, .commands = kRuns,
     .help = "where measured costs of passes are kept from run to run; without it $XDG_CACHE_HOME/outrider or "
             "~/.cache/outrider; none: nowhere",
     .apply = [](S& s, const V& v) { s.engine.cache_dir = v.text(); return Status(); }},
    {.name = "kernels", .metavar = "NAME", .group = kMachine, .commands = kRuns,
     .help = "kernel table, such as reference or avx2; without it the fastest this machine has",
     .apply = [](S& s, const V& v) { s.engine.kernels = v.text(); return Status(); },
     .environment = "OUTRIDER_FORCE_KERNELS"},
    {.name = "max-batch", .metavar = "N", .type = Type::kInteger, .group = kMachine, .commands = kServe,
     .default_text = "32", .help = "sequences that run together",
     .apply = [](S& s, const V& v) { s.engine.max_batch = static_cast<int>(v.integer); return Status(); },
     .min = 1, .max = 1024},
    {.name = "max-batch", .metavar = "N", .type = Type::kInteger, .group = kMachine, .commands = kRuns & ~kServe,
     .default_text = "8", .help = "sequences that run together",
     .apply = [](S& s, const V& v) { s.engine.max_batch = static_cast<int>(v.integer); return Status(); },
     .min = 1, .max = 1024},
    {.name = "max-batch-rows", .metavar = "N", .type = Type::kInteger, .group = kMachine, .commands = kRuns,
     .default_text = "0",
     .help = "rows of one pass: prompt tokens, pending tokens and drafted ones; at least --max-batch; 0: what "
             "--prefill-chunk and a full batch with its drafts need",
     .apply = [](S& s, const V& v) { s.engine.max_batch_rows = static_cast<int>(v.integer); return Status(); },
     .min = 0, .max = 65536},
    {.name = "kv-pages", .metavar = "N", .type = Type::kInteger, .group = kMachine, .commands = kRuns,
     .default_text = "0",
     .help = "pages of the KV cache; 0: enough for a full batch, within a third of free memory",
     .apply = [](S& s, const V& v) { s.engine.kv_pages = v.integer; return Status(); },
     .min = 0, .max = 1 << 30},
    {.name = "page-size", .metavar = "N", .type = Type::kInteger, .group = kMachine, .commands = kRuns,
     .default_text = "16", .help = "tokens per page of the KV cache",
     .apply = [](S& s, const V& v) { s.engine.page_size = static_cast<int>(v.integer); return Status(); },
     .min = 1, .max = 1024},
    {.name = "kv-cache-type", .metavar = "TYPE", .type = Type::kChoice, .group = kMachine, .commands = kRuns,
     .default_text = "auto",
     .help = "type of cached keys and values; auto: bf16; q8_0: 8 bits and a scale per 32 numbers",
     .apply = set_kv_cache_type, .choices = "auto|f32|bf16|f16|q8_0"},
    {.name = "prefill-chunk", .metavar = "N", .type = Type::kInteger, .group = kMachine, .commands = kRuns,
     .default_text = "256", .help = "prompt tokens computed in one pass",
     .apply = [](S& s, const V& v) { s.engine.prefill_chunk = static_cast<int>(v.integer); return Status(); },
     .min = 1, .max = 65536},
    {.name = "logprobs", .metavar = "N", .type = Type::kInteger, .group = kOutput, .commands = kGenerate,
     .default_text = "-1",
     .help = "with --json: the log-probability of every output token, and of the N likeliest in its place; "
             "-1: none",
     .apply = [](S& s, const V& v) { s.request.logprobs = static_cast<int>(v.integer); return Status(); },
     .min = -1, .max = 20},
    {.name = "frequent", .metavar = "N", .type = Type::kInteger, .group = kOutput, .commands = kTokenize,
     .help = "print the N most frequent tokens of the text, most frequent first, as a JSON array for "
             "speculative_token_map",
     .apply = [](S& s, const V& v) { s.frequent_tokens = v.integer; return Status(); },
     .min = 1, .max = 1 << 20, .command_line_only = true},
    {.name = "json", .type = Type::kFlag, .group = kOutput, .commands = (kEvery & ~(kChat | kServe)) | kQuantize | kPull | kModels,
     .help = "print one JSON object",
     .apply = [](S& s, const V& v) { s.json = v.flag; return Status(); }},
};
// clang-format on

std::string upper_snake(std::string_view name) {
  std::string result;
  for (char c : name) result += c == '-' ? '_' : c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  return result;
}

}  // namespace

std::string OptionRow::environment_name() const {
  return environment.empty() ? "OUTRIDER_" + upper_snake(name) : std::string(environment);
}

std::string OptionRow::config_key() const {
  std::string key(name);
  for (char& c : key) {
    if (c == '-') c = '_';
  }
  return key;
}

std::span<const OptionRow> option_table() { return kOptions; }

}  // namespace outrider
