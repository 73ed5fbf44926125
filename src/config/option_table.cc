// SPDX-License-Identifier: Apache-2.0
#include "config/option_table.h"

#include <array>
#include <iterator>
#include <limits>
#include <optional>
#include <string_view>

#include "config/methods.h"
#include "config/option_readers.h"

namespace outrider {
namespace {

using S = Settings;
using Engine = EngineOptions;
using Type = OptionType;

constexpr unsigned bit(Command command) { return static_cast<unsigned>(command); }

constexpr unsigned kGenerate = bit(Command::kGenerate);
constexpr unsigned kChat = bit(Command::kChat);
constexpr unsigned kScore = bit(Command::kScore);
constexpr unsigned kTokenize = bit(Command::kTokenize);
constexpr unsigned kInspect = bit(Command::kInspect);
constexpr unsigned kBench = bit(Command::kBench);
constexpr unsigned kBenchRows = bit(Command::kBenchRows);
constexpr unsigned kBenchPrompts = bit(Command::kBenchPrompts);
constexpr unsigned kBenchBatch = bit(Command::kBenchBatch);
constexpr unsigned kBenchDrafters = bit(Command::kBenchDrafters);
constexpr unsigned kVerify = bit(Command::kVerifyLossless);
constexpr unsigned kQuantize = bit(Command::kQuantize);
constexpr unsigned kDoctor = bit(Command::kDoctor);
constexpr unsigned kServe = bit(Command::kServe);
constexpr unsigned kPull = bit(Command::kPull);
constexpr unsigned kModels = bit(Command::kModels);
constexpr unsigned kRemove = bit(Command::kRemove);
constexpr unsigned kProcesses = bit(Command::kProcesses);
constexpr unsigned kAsksServer = kGenerate | kChat;
constexpr unsigned kChats = kGenerate | kChat | kServe;
constexpr unsigned kShapes = kBench | kBenchRows | kBenchPrompts | kBenchBatch;
constexpr unsigned kBenches = kShapes | kBenchDrafters;
constexpr unsigned kWrites = kGenerate | kChat | kBench | kBenchBatch | kBenchDrafters | kDoctor;
constexpr unsigned kDecodes = kWrites | kVerify;
constexpr unsigned kRuns = kDecodes | kBenches | kScore | kServe;
constexpr unsigned kEvery = kRuns | kTokenize | kInspect;
constexpr unsigned kPromptSets = kBench | kBenchBatch | kBenchDrafters | kVerify | kDoctor;
constexpr unsigned kAnswersJson = (kEvery & ~(kChat | kServe)) | kQuantize | kPull | kModels | kProcesses;

constexpr std::string_view kModel = "Model";
constexpr std::string_view kInput = "Input";
constexpr std::string_view kMeasure = "Measurement";
constexpr std::string_view kSampling = "Sampling";
constexpr std::string_view kLength = "Length and stopping";
constexpr std::string_view kSpeculation = "Speculation";
constexpr std::string_view kMachine = "Machine";
constexpr std::string_view kServing = "Serving";
constexpr std::string_view kOutput = "Output";

constexpr double kMaxTokens = 1 << 24;
constexpr double kMaxOutput = int64_t{1} << 31;  // clients write the greatest int for "no limit"
constexpr double kMaxInt = std::numeric_limits<int32_t>::max();
constexpr double kMaxSeed = 9.2e18;  // below 2^63, so that seeds are whole numbers everywhere
constexpr double kNoEnd = 9223372036854775808.0;

constexpr std::array<NamedValue<WeightPrecision>, 6> kWeightTypes = {{{"auto", WeightPrecision::kAuto},
                                                                      {"f32", WeightPrecision::kF32},
                                                                      {"bf16", WeightPrecision::kBF16},
                                                                      {"q8_0", WeightPrecision::kQ8_0},
                                                                      {"q8", WeightPrecision::kQ8},
                                                                      {"q4", WeightPrecision::kQ4}}};
constexpr std::array<NamedValue<KvCacheType>, 5> kKvTypes = {{{"auto", KvCacheType::kAuto},
                                                              {"f32", KvCacheType::kF32},
                                                              {"bf16", KvCacheType::kBF16},
                                                              {"f16", KvCacheType::kF16},
                                                              {"q8_0", KvCacheType::kQ8_0}}};
constexpr std::array<NamedValue<ThreadPinning>, 3> kPinning = {
    {{"auto", ThreadPinning::kAuto}, {"on", ThreadPinning::kOn}, {"off", ThreadPinning::kOff}}};
constexpr std::array<NamedValue<std::optional<Pooling>>, 3> kPoolings = {
    {{"last", Pooling::kLast}, {"mean", Pooling::kMean}, {"rank", std::nullopt}}};
constexpr std::array<NamedValue<ComputeDevice>, 4> kDevices = {{{"auto", ComputeDevice::kAuto},
                                                                {"cpu", ComputeDevice::kCpu},
                                                                {"cuda", ComputeDevice::kCuda},
                                                                {"emulated", ComputeDevice::kEmulated}}};
constexpr std::array<NamedValue<bool>, 2> kOnOff = {{{"on", true}, {"off", false}}};
constexpr std::array<NamedValue<std::optional<bool>>, 2> kPolicies = {{{"auto", true}, {"fixed", false}}};
constexpr auto kAcceptanceRules = [] {
  std::array<NamedValue<AcceptanceRule>, std::size(kAcceptanceRuleNames)> names;
  for (size_t i = 0; i < names.size(); ++i)
    names[i] = {kAcceptanceRuleNames[i], static_cast<AcceptanceRule>(i)};
  return names;
}();

// One option is a few lines, so that the table can be read as one. OpenAI documents narrower ranges for some
// fields of requests than programs and people use elsewhere, and clients test for its errors: these rows have
// a range for HTTP beside their own. There, too, -1 stands for "all" (top_k) and "random" (seed), as in vLLM
// and llama-server, and 0 tokens of output for a prompt that is only read.
// clang-format off
const OptionRow kOptions[] = {
    {.name = "model", .metavar = "MODEL", .group = kModel, .commands = kEvery, .brief_commands = kEvery,
     .member = member<&S::engine, &Engine::model>(),
     .help = "Hugging Face directory, .gguf file, or name of a model on this machine (outrider models); builtin: the "
             "small models of the repository; without it SmolLM2, or where that is missing builtin",
     .positional = true},
    {.name = "model", .metavar = "IN", .group = kModel, .commands = kQuantize, .brief_commands = kQuantize,
     .member = member<&S::engine, &Engine::model>(),
     .help = "Hugging Face directory, .gguf file or name of a model to read",
     .positional = true, .command_line_only = true},
    {.name = "output", .metavar = "OUT", .group = kModel, .commands = kQuantize, .brief_commands = kQuantize,
     .member = member<&S::quantize, &QuantizeSettings::output>(),
     .help = ".gguf file to write", .positional = true, .command_line_only = true},
    {.name = "reference", .metavar = "NAME", .group = kModel, .commands = kPull, .brief_commands = kPull,
     .member = member<&S::pull, &PullOptions::reference>(),
     .help = "hf:ORG/REPO, hf:ORG/REPO:FILE, hf:ORG/REPO:QUANT, an address of the Hub, or a short name, such as smollm2",
     .positional = true, .command_line_only = true},
    {.name = "removed", .metavar = "NAME", .group = kModel, .commands = kRemove, .brief_commands = kRemove,
     .member = member<&S::removed_model>(),
     .help = "a model of outrider models that lies in outrider's own folder", .positional = true,
     .command_line_only = true},
    {.name = "pull", .group = kModel, .commands = kEvery, .member = member<&S::pull, &PullOptions::on_first_use>(),
     .help = "fetch a model that is named and is not on this machine; without it a terminal asks first"},
    {.name = "offline", .group = kModel, .commands = kEvery | kPull,
     .member = member<&S::pull, &PullOptions::offline>(), .help = "fetch nothing, as HF_HUB_OFFLINE=1 does"},
    {.name = "with-drafter", .group = kModel, .commands = kPull, .brief_commands = kPull,
     .member = member<&S::pull, &PullOptions::with_drafter>(),
     .help = "fetch a published drafter for the model, too, which runs then find", .command_line_only = true},
    {.name = "type", .metavar = "TYPE", .group = kModel, .commands = kQuantize, .brief_commands = kQuantize,
     .member = member<&S::quantize, &QuantizeSettings::type>(),
     .help = "what matrices become; the output matrix is held at q6_k or more",
     .choices = "q8_0|q6_k|q5_0|q5_1|q4_k|q4_0|q4_1|iq4_nl|mxfp4", .command_line_only = true},
    {.name = "force", .group = kModel, .commands = kQuantize, .brief_commands = kQuantize,
     .member = member<&S::quantize, &QuantizeSettings::force>(),
     .help = "replace OUT if it exists", .command_line_only = true},
    {.name = "weights", .metavar = "TYPE", .group = kModel, .commands = kRuns,
     .brief_commands = kScore | kServe | kBenchRows,
     .member = named<kWeightTypes, &S::engine, &Engine::weights>(),
     .help = "type the weights are held in; auto: as stored, q8: one scale per output, q4: q4_0"},
    {.name = "packed-cache", .metavar = "DIR", .group = kModel, .commands = kRuns,
     .member = member<&S::engine, &Engine::packed_cache>(),
     .help = "folder for weights in the layout of the kernels: written by the first start, mapped by later ones"},
    {.name = "memory", .metavar = "SIZE", .group = kModel, .commands = kRuns | kInspect,
     .brief_commands = kInspect, .member = read_by<read_memory, S>(),
     .help = "most memory to use, such as 800M or 6G; layers that do not fit are read from the packed cache in every "
             "pass, ahead of the layer that needs them"},
    {.name = "shape", .metavar = "NAME", .group = kModel, .commands = kShapes,
     .brief_commands = kShapes & ~kBenchBatch, .member = member<&S::shape>(),
     .help = "instead of MODEL: random weights of this shape, such as llama-1b, or of its first layers, such as "
             "llama-1b@4, in the type of --weights (auto: bf16)"},
    {.name = "ctx", .metavar = "N", .group = kModel, .commands = kRuns,
     .brief_commands = kChat | kScore | kServe, .member = read_by<read_context, S>(Type::kText, context_text),
     .help = "longest sequence in tokens, as in 8192, 8k (8000) or 8K (8192); 0 or auto: what the model was made for, or "
             "what memory holds of it"},
    {.name = "config", .metavar = "FILE", .group = kModel, .commands = kEvery | kQuantize,
     .member = member<&S::config_file>(),
     .help = "YAML file of options; command line and environment come before it", .command_line_only = true},
    {.name = "server", .metavar = "URL", .group = kModel, .commands = kAsksServer,
     .brief_commands = kChat, .member = member<&S::remote, &RemoteTarget::url>(),
     .help = "decode on a server of --remote-drafting, as in ws://127.0.0.1:8000, or wss:// for TLS, and draft here; "
             "MODEL gives tokenizer and chat template"},
    {.name = "server-key-file", .metavar = "FILE", .group = kModel, .commands = kAsksServer,
     .member = member<&S::remote, &RemoteTarget::api_key_file>(),
     .help = "file with the key to show to --server, in its first line"},
    {.name = "server-ca", .metavar = "FILE", .group = kModel, .commands = kAsksServer,
     .member = member<&S::remote, &RemoteTarget::authority>(),
     .help = "with wss://: PEM file of certificates to trust beside the system's own"},
    {.name = "server-states", .metavar = "TYPE", .group = kModel, .commands = kAsksServer,
     .member = member<&S::remote, &RemoteTarget::states>(),
     .help = "numbers of the target's states that --server sends for draft heads; q8 takes half of the bytes",
     .choices = "bf16|f16|q8"},
    {.name = "server-offline", .metavar = "WAY", .group = kModel, .commands = kGenerate | kChat,
     .member = member<&S::remote, &RemoteTarget::offline>(),
     .help = "what to do while --server is out of reach; never: wait for it; correct: the drafter writes, and the server's own "
             "text replaces what differs later; keep: the drafter writes, and its text stays",
     .choices = "never|correct|keep"},
    {.name = "server-offline-after", .metavar = "SECONDS", .group = kModel, .commands = kGenerate | kChat,
     .member = member<&S::remote, &RemoteTarget::offline_after>(),
     .help = "how long --server is waited for before the drafter writes alone", .range = {0.1, 1e5}},
    {.name = "host", .metavar = "ADDRESS", .group = kServing, .commands = kServe, .brief_commands = kServe,
     .member = member<&S::server, &ServerOptions::host>(),
     .help = "address to listen on; any but a loopback one needs --api-key-file; a path, as in /run/outrider.sock or "
             "unix:NAME, is a UNIX socket"},
    {.name = "port", .metavar = "N", .group = kServing, .commands = kServe, .brief_commands = kServe,
     .member = member<&S::server, &ServerOptions::port>(),
     .help = "port to listen on; 0: any that is free", .range = {0, 65535}},
    {.name = "api-key-file", .metavar = "FILE", .group = kServing, .commands = kServe, .brief_commands = kServe,
     .member = member<&S::server, &ServerOptions::api_key_file>(),
     .help = "keys, one per line, that requests must show; read again on SIGHUP; not readable by others"},
    {.name = "api-key", .metavar = "KEY", .group = kServing, .commands = kServe,
     .member = read_by<read_api_keys, S>(Type::kTextList),
     .help = "keys that requests may show, separated by commas; other users of the machine see them in the list of "
             "processes, so --api-key-file is better; may be repeated", .takes_words = true},
    {.name = "ssl-certfile", .metavar = "FILE", .group = kServing, .commands = kServe,
     .member = member<&S::server, &ServerOptions::certificate>(),
     .help = "speak TLS with this certificate chain in PEM; read again on SIGHUP"},
    {.name = "ssl-keyfile", .metavar = "FILE", .group = kServing, .commands = kServe,
     .member = member<&S::server, &ServerOptions::certificate_key>(),
     .help = "private key of --ssl-certfile, not readable by others; without it in the same file"},
    {.name = "served-model-name", .metavar = "NAME", .group = kServing, .commands = kServe,
     .brief_commands = kServe, .member = read_by<read_model_names, S>(Type::kTextList, model_names_text),
     .help = "the model's names in the API, separated by commas; answers have the first one; without it the name of its "
             "folder or file", .takes_words = true},
    {.name = "pooling", .metavar = "WHAT", .group = kServing, .commands = kServe,
     .member = named<kPoolings, &S::server, &ServerOptions::pooling>(),
     .help = "what /v1/embeddings takes of a text's states, its last one or their mean; rank: the model is a reranker, "
             "such as Qwen3-Reranker, and answers /v1/rerank instead"},
    {.name = "response-memory", .metavar = "MIB", .group = kServing, .commands = kServe,
     .member = member<&S::server, &ServerOptions::response_memory>(),
     .help = "memory for the conversations of /v1/responses; the oldest are forgotten; 0 keeps none",
     .range = {0, 1 << 20}},
    {.name = "max-queue", .metavar = "N", .group = kServing, .commands = kServe,
     .member = member<&S::server, &ServerOptions::max_queue>(),
     .help = "requests that wait beyond the batch; more are refused with 429", .range = {0, 1 << 20}},
    {.name = "max-connections", .metavar = "N", .group = kServing, .commands = kServe,
     .member = member<&S::server, &ServerOptions::max_connections>(),
     .help = "open connections; more are closed", .range = {1, 1 << 20}},
    {.name = "max-connections-per-address", .metavar = "N", .group = kServing, .commands = kServe,
     .member = member<&S::server, &ServerOptions::max_connections_per_address>(),
     .help = "open connections of one client address", .range = {1, 1 << 20}},
    {.name = "drain-timeout", .metavar = "SECONDS", .group = kServing, .commands = kServe,
     .member = member<&S::server, &ServerOptions::drain_timeout>(),
     .help = "how long running requests may go on after SIGTERM", .range = {0, 86400}},
    {.name = "max-tokens", .metavar = "N", .group = kServing, .commands = kServe,
     .member = member<&S::server, &ServerOptions::default_max_tokens>(),
     .help = "output of a request that names no number of tokens, at most; -1: the rest of the context",
     .range = {-1, kMaxOutput}},
    {.name = "max-tokens-limit", .metavar = "N", .group = kServing, .commands = kServe,
     .member = member<&S::server, &ServerOptions::max_tokens_limit>(),
     .help = "output that a request may ask for, at most; more is refused with 400; 0: what the context holds",
     .range = {0, kMaxOutput}},
    {.name = "request-timeout", .metavar = "SECONDS", .group = kServing, .commands = kServe,
     .member = member<&S::server, &ServerOptions::request_timeout>(),
     .help = "a request that takes longer ends with an error (504 request_timeout); 0: it may take any time",
     .range = {0, 1e6}},
    {.name = "max-running-per-key", .metavar = "N", .group = kServing, .commands = kServe,
     .member = member<&S::server, &ServerOptions::max_running_per_key>(),
     .help = "requests of one key at a time, waiting ones included; more are refused with 429; 0: any number",
     .range = {0, 1 << 20}},
    {.name = "no-log-routes", .metavar = "ROUTES", .group = kServing, .commands = kServe,
     .member = read_by<read_routes, S>(Type::kTextList, routes_text),
     .help = "routes whose requests get no line in the log, as in /health,/metrics; may be repeated"},
    {.name = "remote-drafting", .group = kServing, .commands = kServe,
     .member = read_by<read_remote_drafting, S>(Type::kFlag),
     .help = "verify for clients that draft elsewhere: outrider generate or chat --server"},
    {.name = "max-drafting-sessions", .metavar = "N", .group = kServing, .commands = kServe,
     .member = member<&S::server, &ServerOptions::max_drafting_sessions>(),
     .help = "with --remote-drafting: clients at a time, those included whose connection broke within the last minute",
     .range = {1, 65536}},
    {.name = "max-drafting-sessions-per-key", .metavar = "N", .group = kServing, .commands = kServe,
     .member = member<&S::server, &ServerOptions::max_drafting_sessions_per_key>(),
     .help = "with --remote-drafting: the drafting sessions that one key may have, or clients without a key", .range = {1, 65536}},
    {.name = "allowed-host", .metavar = "NAME", .group = kServing, .commands = kServe,
     .member = member<&S::server, &ServerOptions::allowed_hosts>(),
     .help = "a name under which clients may reach the server, beside the names of this machine; may be repeated"},
    {.name = "root-path", .metavar = "PATH", .group = kServing, .commands = kServe,
     .member = read_by<read_root_path, S>(Type::kText, root_path_text),
     .help = "a path that a proxy leaves before the own paths of the server, as in /llm; paths without it are served, too"},
    {.name = "chat-page", .metavar = "WHEN", .group = kServing, .commands = kServe,
     .member = named<kOnOff, &S::server, &ServerOptions::has_chat_page>(), .help = "whether GET / is the chat page"},
    {.name = "cors-origin", .metavar = "ORIGIN", .group = kServing, .commands = kServe,
     .member = read_by<read_origins, S>(Type::kTextList, origins_text),
     .help = "let pages from there call, as in https://example.org; *: from anywhere; several are separated by commas or "
             "a list in JSON; may be repeated"},
    {.name = "output", .metavar = "FILE", .group = kOutput, .commands = kBenchDrafters,
     .brief_commands = kBenchDrafters, .member = member<&S::bench, &BenchOptions::page>(),
     .help = "with --all: write the table as an HTML page, too, or as JSON if FILE ends in .json; replaced after every "
             "drafter, so that it outlasts an interruption",
     .command_line_only = true},
    {.name = "prompt", .metavar = "TEXT", .group = kInput, .commands = kGenerate, .brief_commands = kGenerate,
     .member = member<&S::input, &PromptInput::text>(),
     .help = "the prompt; - reads standard input", .short_name = 'p', .command_line_only = true},
    {.name = "prompt-file", .metavar = "FILE", .group = kInput, .commands = kGenerate,
     .brief_commands = kGenerate, .member = member<&S::input, &PromptInput::file>(),
     .help = "the prompt is the whole file", .command_line_only = true},
    {.name = "prediction", .metavar = "FILE", .group = kInput, .commands = kGenerate,
     .member = member<&S::generate, &GenerateOptions::prediction>(),
     .help = "text that much of the output should repeat, such as the file to be edited: drafts come from it",
     .command_line_only = true},
    {.name = "private", .metavar = "TEXT", .group = kInput, .commands = kGenerate,
     .member = member<&S::remote, &RemoteTarget::private_text>(),
     .help = "end of the prompt that --server must not see; the drafter on this machine writes the answer",
     .command_line_only = true},
    {.name = "private-file", .metavar = "FILE", .group = kInput, .commands = kGenerate,
     .member = member<&S::remote, &RemoteTarget::private_file>(),
     .help = "the private end of the prompt is the whole file", .command_line_only = true},
    {.name = "prompt-ids", .metavar = "IDS", .group = kInput, .commands = kGenerate | kScore,
     .brief_commands = kScore, .member = member<&S::input, &PromptInput::ids>(),
     .help = "the prompt as token ids, as in 1,2,3",
     .range = {0, kMaxInt}, .noun = "token ids", .command_line_only = true},
    {.name = "text-file", .metavar = "FILE", .group = kInput, .commands = kScore, .brief_commands = kScore,
     .member = member<&S::input, &PromptInput::file>(),
     .help = "the text is the whole file", .command_line_only = true},
    {.name = "text", .metavar = "TEXT", .group = kInput, .commands = kTokenize, .brief_commands = kTokenize,
     .member = member<&S::input, &PromptInput::text>(),
     .help = "text to turn into token ids; - reads standard input", .command_line_only = true},
    {.name = "file", .metavar = "FILE", .group = kInput, .commands = kTokenize, .brief_commands = kTokenize,
     .member = member<&S::input, &PromptInput::file>(),
     .help = "the text is the whole file", .command_line_only = true},
    {.name = "ids", .metavar = "IDS", .group = kInput, .commands = kTokenize, .brief_commands = kTokenize,
     .member = member<&S::input, &PromptInput::ids>(),
     .help = "token ids to turn into text, as in 1,2,3",
     .range = {0, kMaxInt}, .noun = "token ids", .command_line_only = true},
    {.name = "system", .metavar = "TEXT", .group = kInput, .commands = kChat, .brief_commands = kChat,
     .member = member<&S::system_message>(), .help = "system message at the start of the conversation"},
    {.name = "chat", .group = kInput, .commands = kGenerate, .brief_commands = kGenerate,
     .member = member<&S::generate, &GenerateOptions::asks_chat>(),
     .help = "ask the prompt as a user through the model's chat template, instead of continuing it",
     .command_line_only = true},
    {.name = "system", .metavar = "TEXT", .group = kInput, .commands = kGenerate,
     .member = member<&S::system_message>(),
     .help = "system message before the prompt; implies --chat", .command_line_only = true},
    {.name = "chat-template", .metavar = "FILE", .group = kInput, .commands = kChats,
     .member = member<&S::chat, &ChatOptions::chat_template>(),
     .help = "a Jinja template for chats in place of the model's"},
    {.name = "chat-template-kwargs", .metavar = "JSON", .group = kInput, .commands = kChats,
     .member = member<&S::chat, &ChatOptions::chat_template_kwargs>(),
     .help = "variables of the template, as in {\"enable_thinking\": false}; serve: a request's own come before"},
    {.name = "think", .metavar = "HOW", .group = kInput, .commands = kChats,
     .member = member<&S::chat, &ChatOptions::think>(),
     .help = "whether a model that can think first does so: on, off, or the tokens that it may think; without it as its "
             "template decides; serve: a request may say otherwise"},
    {.name = "thinking-message", .metavar = "TEXT", .group = kInput, .commands = kChats,
     .member = member<&S::chat, &ChatOptions::thinking_message>(),
     .help = "is written where the tokens of --think end, before the mark that closes the thinking"},
    {.name = "json-schema", .metavar = "JSON", .group = kSampling, .commands = kGenerate,
     .member = member<&S::generate, &GenerateOptions::json_schema>(),
     .help = "the output is JSON of this schema; a text or @FILE", .command_line_only = true},
    {.name = "regex", .metavar = "PATTERN", .group = kSampling, .commands = kGenerate,
     .member = member<&S::generate, &GenerateOptions::regex>(),
     .help = "the output matches this regular expression; a text or @FILE", .command_line_only = true},
    {.name = "grammar", .metavar = "GBNF", .group = kSampling, .commands = kGenerate,
     .member = member<&S::generate, &GenerateOptions::grammar>(),
     .help = "the output is of this grammar; a text or @FILE", .command_line_only = true},
    {.name = "prompts", .metavar = "FILE", .group = kInput, .commands = kPromptSets,
     .brief_commands = kPromptSets, .member = member<&S::prompts, &PromptSetOptions::file>(),
     .help = "JSONL file with prompt, messages, turns or question per line; without it built-in prompts"},
    {.name = "limit", .metavar = "N", .group = kInput, .commands = kPromptSets,
     .brief_commands = kPromptSets, .member = member<&S::prompts, &PromptSetOptions::limit>(),
     .help = "prompts used, evenly spaced over the file; 0: all, or 6 for doctor", .range = {0, kMaxTokens}},
    {.name = "skip-long", .group = kInput, .commands = kPromptSets,
     .member = member<&S::prompts, &PromptSetOptions::skips_long>(),
     .help = "leave out prompts that do not fit into the context, and say how many; without it they are an error"},
    {.name = "runs", .metavar = "N", .group = kMeasure, .commands = kBenches, .brief_commands = kBenches,
     .member = member<&S::bench, &BenchOptions::runs>(),
     .help = "repetitions of each prompt, plain and speculative in turn, or rounds over the row counts; "
             "0: 3 repetitions or 10 rounds", .range = {0, 1000}},
    {.name = "rows", .metavar = "LIST", .group = kMeasure, .commands = kBenchRows, .brief_commands = kBenchRows,
     .member = read_by<read_row_counts, S>(Type::kText, row_counts_text),
     .help = "time single passes of so many rows, as in 1,2,4,8, beside a plain read of the weights' bytes; "
             "16x3: 16 rows that are a tree whose nodes have 3 children each"},
    {.name = "profile", .group = kMeasure, .commands = kBenchRows, .brief_commands = kBenchRows,
     .member = member<&S::bench, &BenchOptions::profiles>(),
     .help = "with --rows: also the time of each operation of a pass, beside the read rate and the peak of products"},
    {.name = "prompt-lengths", .metavar = "LIST", .group = kMeasure, .commands = kBenchPrompts,
     .brief_commands = kBenchPrompts, .member = member<&S::bench, &BenchOptions::prompt_lengths>(),
     .help = "measure the time to the first token of random prompts of so many tokens, as in 64,512,4096",
     .range = {1, 1 << 20}, .noun = "numbers of tokens"},
    {.name = "batch", .metavar = "LIST", .group = kMeasure, .commands = kBenchBatch,
     .brief_commands = kBenchBatch, .member = member<&S::bench, &BenchOptions::batch_sizes>(),
     .help = "measure throughput with so many prompts running at once, as in 1,2,4,8, instead of prompt by prompt",
     .range = {1, 1024}, .noun = "numbers of prompts"},
    {.name = "nodes", .metavar = "N", .group = kMeasure, .commands = kBenchDrafters,
     .brief_commands = kBenchDrafters, .member = member<&S::bench, &BenchOptions::draft_nodes>(),
     .help = "with --all: drafted nodes of one tree, at most; a quarter of them, 8 at most, are levels",
     .range = {1, 1024}},
    {.name = "drafters", .metavar = "DIR", .group = kMeasure, .commands = kBenchDrafters,
     .brief_commands = kBenchDrafters, .member = member<&S::bench, &BenchOptions::drafter_folders>(),
     .help = "with --all: folder of draft models and learned drafters; may be repeated; without it the folder "
             "that MODEL lies in"},
    {.name = "context", .metavar = "N", .group = kMeasure, .commands = kBenchRows, .brief_commands = kBenchRows,
     .member = member<&S::bench, &BenchOptions::cached_context>(),
     .help = "with --rows: tokens already in the KV cache; without it 512, or what fits", .range = {0, kMaxTokens}},
    {.name = "temperature", .metavar = "T", .group = kSampling, .commands = kDecodes | kServe,
     .brief_commands = kDecodes & ~kBenchBatch,
     .member = member<&Request::sampling, &SamplingParams::temperature>(),
     .help = "0 is greedy: always the likeliest token; serve: where neither the request nor generation_config.json says",
     .range = {0, 100}, .http = {"temperature", NumberRange{0, 2}}},
    {.name = "top-k", .metavar = "K", .group = kSampling, .commands = kDecodes | kServe,
     .member = member<&Request::sampling, &SamplingParams::top_k>(),
     .help = "keep the K likeliest tokens; 0: all", .range = {0, kMaxInt}, .http = {"top_k", NumberRange{-1, kMaxInt}}},
    {.name = "top-p", .metavar = "P", .group = kSampling, .commands = kDecodes | kServe,
     .member = member<&Request::sampling, &SamplingParams::top_p>(),
     .help = "keep the smallest set of likeliest tokens that reaches this probability",
     .range = {1e-6, 1}, .http = {"top_p"}},
    {.name = "min-p", .metavar = "P", .group = kSampling, .commands = kDecodes | kServe,
     .member = member<&Request::sampling, &SamplingParams::min_p>(),
     .help = "keep tokens with at least this fraction of the likeliest one's probability",
     .range = {0, 1}, .http = {"min_p"}},
    {.name = "top-n-sigma", .metavar = "N", .group = kSampling, .commands = kDecodes | kServe,
     .member = member<&Request::sampling, &SamplingParams::top_n_sigma>(),
     .help = "keep tokens within N standard deviations of all logits below the largest one; -1 or 0: all",
     .range = {-1, 1000}, .http = {"top_n_sigma"}},
    {.name = "typical-p", .metavar = "P", .group = kSampling, .commands = kDecodes | kServe,
     .member = member<&Request::sampling, &SamplingParams::typical_p>(),
     .help = "keep the tokens nearest to the expected information that together reach this probability",
     .range = {1e-6, 1}, .http = {"typical_p"}},
    {.name = "xtc-probability", .metavar = "P", .group = kSampling, .commands = kDecodes | kServe,
     .member = member<&Request::sampling, &SamplingParams::xtc_probability>(),
     .help = "how often the likeliest tokens are left out, but for the last that reaches --xtc-threshold",
     .range = {0, 1}, .http = {"xtc_probability"}},
    {.name = "xtc-threshold", .metavar = "P", .group = kSampling, .commands = kDecodes | kServe,
     .member = member<&Request::sampling, &SamplingParams::xtc_threshold>(),
     .help = "the least probability of a token that --xtc-probability leaves out",
     .range = {0, 1}, .http = {"xtc_threshold"}},
    {.name = "dry-multiplier", .metavar = "M", .group = kSampling, .commands = kDecodes | kServe,
     .member = member<&Request::sampling, &SamplingParams::dry, &DryPenalty::multiplier>(),
     .help = "DRY: a token that would go on a repetition of N tokens loses M * BASE^(N - LENGTH) of its logit; 0: none",
     .range = {0, 1000}, .http = {"dry_multiplier"}},
    {.name = "dry-base", .metavar = "BASE", .group = kSampling, .commands = kDecodes | kServe,
     .member = member<&Request::sampling, &SamplingParams::dry, &DryPenalty::base>(),
     .help = "DRY: how fast the penalty grows", .range = {1, 1000}, .http = {"dry_base"}},
    {.name = "dry-allowed-length", .metavar = "LENGTH", .group = kSampling, .commands = kDecodes | kServe,
     .member = member<&Request::sampling, &SamplingParams::dry, &DryPenalty::allowed_length>(),
     .help = "DRY: shorter repetitions cost nothing", .range = {1, kMaxTokens}, .http = {"dry_allowed_length"}},
    {.name = "dry-penalty-last-n", .metavar = "N", .group = kSampling, .commands = kDecodes | kServe,
     .member = member<&Request::sampling, &SamplingParams::dry, &DryPenalty::last_n>(),
     .help = "DRY: tokens of prompt and output that are searched; -1: all, 0: none",
     .range = {-1, kMaxTokens}, .http = {"dry_penalty_last_n"}},
    {.name = "dry-sequence-breaker", .metavar = "TEXT", .group = kSampling, .commands = kDecodes | kServe,
     .member = member<&Request::dry_breakers>(),
     .help = "DRY: tokens with this text end repetitions; may be repeated; none: no text does; without it a line break, "
             "a colon, a quotation mark and an asterisk", .http = {"dry_sequence_breakers"}},
    {.name = "repetition-penalty", .metavar = "R", .group = kSampling, .commands = kDecodes | kServe,
     .member = member<&Request::sampling, &SamplingParams::repetition_penalty>(),
     .help = "divides positive logits of tokens seen in prompt or output, multiplies negative ones",
     .range = {0.01, 100}, .http = {"repetition_penalty"}},
    {.name = "presence-penalty", .metavar = "P", .group = kSampling, .commands = kDecodes | kServe,
     .member = member<&Request::sampling, &SamplingParams::presence_penalty>(),
     .help = "subtracted once from tokens already in the output",
     .range = {-1000, 1000}, .http = {"presence_penalty", NumberRange{-2, 2}}},
    {.name = "frequency-penalty", .metavar = "F", .group = kSampling, .commands = kDecodes | kServe,
     .member = member<&Request::sampling, &SamplingParams::frequency_penalty>(),
     .help = "subtracted once per occurrence in the output",
     .range = {-1000, 1000}, .http = {"frequency_penalty", NumberRange{-2, 2}}},
    {.name = "logit-bias", .metavar = "ID=VALUE", .group = kSampling, .commands = kDecodes,
     .member = read_by<read_logit_bias, Request>(Type::kTextList),
     .help = "added to the logit of a token; -inf forbids it; may be repeated",
     .range = kLogitBiases, .http = {"logit_bias", NumberRange{-100, 100}}},
    {.name = "seed", .metavar = "S", .group = kSampling, .commands = kDecodes,
     .brief_commands = kGenerate | kChat | kVerify,
     .member = member<&Request::sampling, &SamplingParams::seed>(),
     .help = "seed of all randomness; the same seed gives the same text",
     .range = {0, kMaxSeed}, .http = {"seed", NumberRange{-kNoEnd, kNoEnd}}},
    {.name = "max-tokens", .metavar = "N", .group = kLength, .commands = kDecodes,
     .brief_commands = kDecodes, .member = member<&Request::max_tokens>(),
     .help = "tokens of output, at most; chat: of one answer",
     .range = {1, kMaxOutput}, .http = {"max_tokens", NumberRange{0, kMaxOutput}}},
    {.name = "stop", .metavar = "TEXT", .group = kLength, .commands = kDecodes,
     .member = member<&Request::stop>(), .help = "end the output before this text; may be repeated", .http = {"stop"}},
    {.name = "ignore-eos", .group = kLength, .commands = kDecodes,
     .member = member<&Request::ignore_eos>(),
     .help = "go on after the model's end-of-text token", .http = {"ignore_eos"}},
    // Parameters of requests that no command has.
    {.name = "min-tokens", .group = kLength, .member = member<&Request::rules, &TokenRules::min_tokens>(),
     .help = "tokens before a stop token or stop text may end the output", .range = {0, kMaxOutput},
     .http = {"min_tokens"}},
    {.name = "stop-token-ids", .group = kLength, .member = member<&Request::stop_tokens>(),
     .help = "tokens that end the output, beside the model's own", .range = {0, kMaxInt},
     .http = {"stop_token_ids"}, .noun = "token ids"},
    {.name = "allowed-token-ids", .group = kSampling, .member = member<&Request::rules, &TokenRules::allowed>(),
     .help = "the only tokens that may appear", .range = {0, kMaxInt}, .http = {"allowed_token_ids"},
     .noun = "token ids"},
    {.name = "forbidden-token-ids", .group = kSampling, .member = read_by<read_forbidden, Request>(Type::kTextList),
     .help = "sequences of token ids that may not appear, as in 1,2"},
    {.name = "prediction-token-ids", .group = kSpeculation, .member = member<&Request::prediction>(),
     .help = "text that much of the output should repeat: drafts come from it", .range = {0, kMaxInt},
     .noun = "token ids"},
    {.name = "prompt-logprobs", .group = kOutput, .member = member<&Request::prompt_logprobs>(),
     .help = "log-probabilities of the prompt's tokens, and of the N likeliest in place of each; -1: none",
     .range = {-1, Request::kMaxLogprobs}, .http = {"prompt_logprobs", NumberRange{0, Request::kMaxLogprobs}}},
    {.name = "skip-special-tokens", .group = kOutput, .member = member<&Request::skip_special>(),
     .help = "control tokens give no text", .http = {"skip_special_tokens"}},
    {.name = "sample-index", .group = kSampling, .member = member<&Request::sample_index>(),
     .help = "number of this answer among several to one prompt; each has its own randomness",
     .range = {0, kMaxTokens}},
    {.name = "cache-scope", .group = kMachine, .member = member<&Request::cache_scope>(),
     .help = "cached prompts are shared within a scope only", .range = {0, kNoEnd}},
    // 0 stands for the engine's limit; over HTTP the field is left out for this.
    {.name = "speculation", .group = kSpeculation, .member = member<&Request::speculation, &RequestSpeculation::enabled>(),
     .help = "false: the request is decoded plainly", .http = {"speculative.enabled"}},
    {.name = "policy", .group = kSpeculation, .member = named<kPolicies, &Request::speculation, &RequestSpeculation::is_auto>(),
     .help = "auto: measured costs decide how much is drafted; fixed: every step drafts all of it"},
    {.name = "max-draft-tokens", .group = kSpeculation,
     .member = member<&Request::speculation, &RequestSpeculation::max_draft_tokens>(),
     .help = "drafted tokens of a step, at most", .range = {0, 1024}, .http = {"speculative.budget", NumberRange{1, 1024}}},
    {.name = "max-draft-len", .group = kSpeculation,
     .member = member<&Request::speculation, &RequestSpeculation::max_draft_len>(),
     .help = "drafted tokens of a path, at most", .range = {0, kMaxDraftLen},
     .http = {"speculative.max_draft_len", NumberRange{1, kMaxDraftLen}}},
    {.name = "max-children", .group = kSpeculation,
     .member = member<&Request::speculation, &RequestSpeculation::max_children>(),
     .help = "drafted continuations of one token, at most; 1: chains", .range = {0, 64},
     .http = {"speculative.max_children", NumberRange{1, 64}}},
    {.name = "methods", .group = kSpeculation, .member = member<&Request::speculation, &RequestSpeculation::methods>(),
     .help = "the drafters that draft, by name, among the drafters that the engine was opened with",
     .http = {"speculative.method"}},
    {.name = "speculative", .metavar = "CONFIG", .group = kSpeculation, .commands = kDecodes | kServe,
     .brief_commands = (kDecodes & ~kBenchDrafters) | kServe, .member = Type::kSpeculation,
     .help = "method,key=value,... or a YAML or JSON file: auto, none, ngram, draft_target, ...; keys are listed "
             "in docs/reference/options.md; without it auto"},
    {.name = "speculative-model", .metavar = "DIR", .group = kSpeculation, .commands = kDecodes | kServe,
     .brief_commands = kDoctor, .member = Type::kSpeculationKey,
     .help = "draft model or learned drafter; without --speculative what it is decides the method"},
    {.name = "draft-shape", .metavar = "NAME", .group = kSpeculation, .commands = kBench | kBenchBatch,
     .member = member<&S::draft_shape>(),
     .help = "with --shape: draft with random weights of this shape, such as llama-68m"},
    {.name = "synthetic-acceptance", .metavar = "P", .group = kSpeculation, .commands = kBench,
     .member = member<&S::bench, &BenchOptions::synthetic_acceptance>(),
     .help = "replace each drafted token, with this probability by the target's own, else by another: times "
             "a drafter as if it were so good", .range = {0, 1}},
    {.name = "acceptance", .metavar = "RULE", .group = kSpeculation, .commands = kDecodes | kServe,
     .brief_commands = kVerify, .member = named<kAcceptanceRules, &S::engine, &Engine::acceptance>(),
     .help = "how drafts are accepted; coupled (same seed, same text as without speculation), rejection "
             "and block (same distribution) are lossless, typical and relaxed are not"},
    {.name = "show-draft", .group = kSpeculation, .commands = kGenerate, .brief_commands = kGenerate,
     .member = member<&S::generate, &GenerateOptions::show_draft>(),
     .help = "mark which tokens were drafted and accepted, corrected, or added by the target"},
    {.name = "show-tree", .group = kSpeculation, .commands = kGenerate,
     .member = member<&S::generate, &GenerateOptions::show_tree>(),
     .help = "print the tree of every step: probabilities, what was accepted, and why the rest was not; with "
             "--json as part of the object"},
    {.name = "trace", .metavar = "FILE", .group = kSpeculation, .commands = kGenerate | kBench,
     .brief_commands = kBench, .member = member<&S::trace_file>(),
     .help = "write an HTML page with the timeline, the trees and the acceptance of every step; replaces FILE"},
    {.name = "threads", .metavar = "N", .group = kMachine, .commands = kRuns | kQuantize,
     .brief_commands = kServe | kQuantize | kScore | kBenchRows | kBenchPrompts,
     .member = member<&S::engine, &Engine::threads>(), .help = "threads; 0: one per core", .range = {0, 1024}},
    {.name = "pin", .metavar = "WHEN", .group = kMachine, .commands = kRuns,
     .member = named<kPinning, &S::engine, &Engine::pinning>(),
     .help = "keep each thread on one processor; auto: with several NUMA nodes and a thread for every processor"},
    {.name = "tensor-parallel", .metavar = "N", .group = kMachine, .commands = kRuns,
     .member = member<&S::engine, &Engine::tensor_parallel>(),
     .help = "ranks that share every layer of the target: processes that mpirun has started, or else threads of this "
             "process; the output stays the same", .range = {1, 256}},
    {.name = "pipeline-parallel", .metavar = "N", .group = kMachine, .commands = kRuns,
     .member = member<&S::engine, &Engine::pipeline_parallel>(),
     .help = "groups of the target's layers, each with --tensor-parallel ranks", .range = {1, 256}},
    {.name = "draft-ranks", .metavar = "N", .group = kMachine, .commands = kRuns,
     .member = member<&S::engine, &Engine::draft_ranks>(),
     .help = "ranks beside the target's on which draft models draft, each for a part of the sequences or of the "
             "models; 0: they draft on the ranks of the target", .range = {0, 256}},
    {.name = "rank-memory", .metavar = "WHEN", .group = kMachine, .commands = kRuns,
     .member = named<kOnOff, &S::engine, &Engine::rank_memory>(),
     .help = "processes of one machine that share a target exchange numbers in memory that they share; off: through "
             "MPI, as processes of different machines do"},
    {.name = "cache-dir", .metavar = "DIR", .group = kMachine, .commands = kRuns,
     .member = member<&S::engine, &Engine::cache_dir>(),
     .help = "where measured costs of passes are kept from run to run; without it $XDG_CACHE_HOME/outrider or "
             "~/.cache/outrider; none: nowhere"},
    {.name = "device", .metavar = "NAME", .group = kMachine, .commands = kRuns | kInspect,
     .member = named<kDevices, &S::engine, &Engine::device>(),
     .help = "machine that computes the networks; cuda: a GPU of NVIDIA; emulated: its kernels on this processor, slowly "
             "and with the same text; auto: a checked GPU that can compute them, or else the processor"},
    {.name = "kernels", .metavar = "NAME", .group = kMachine, .commands = kRuns,
     .member = member<&S::engine, &Engine::kernels>(),
     .help = "kernel table, such as reference or avx2; without it the fastest this machine has",
     .environment = "OUTRIDER_FORCE_KERNELS"},
    {.name = "compare-kernels", .group = kMachine, .commands = kVerify,
     .member = member<&S::verify, &VerifyOptions::compares_kernels>(),
     .help = "compare texts and log-probabilities of all kernel tables that promise the same bits, and of --device"},
    {.name = "max-batch", .metavar = "N", .group = kMachine, .commands = kRuns, .brief_commands = kServe,
     .member = member<&S::engine, &Engine::max_batch>(),
     .help = "sequences that run together", .range = {1, 1024}},
    {.name = "max-batch-rows", .metavar = "N", .group = kMachine, .commands = kRuns,
     .member = member<&S::engine, &Engine::max_batch_rows>(),
     .help = "rows of one pass: prompt tokens, pending tokens and drafted ones; at least --max-batch; 0: what "
             "--prefill-chunk and a full batch with its drafts need", .range = {0, 65536}},
    {.name = "kv-pages", .metavar = "N", .group = kMachine, .commands = kRuns,
     .member = member<&S::engine, &Engine::kv_pages>(),
     .help = "pages of the KV cache; 0: enough for a full batch, within a third of free memory", .range = {0, 1 << 30}},
    {.name = "page-size", .metavar = "N", .group = kMachine, .commands = kRuns,
     .member = member<&S::engine, &Engine::page_size>(),
     .help = "tokens per page of the KV cache", .range = {1, 1024}},
    {.name = "kv-cache-type", .metavar = "TYPE", .group = kMachine, .commands = kRuns,
     .member = named<kKvTypes, &S::engine, &Engine::kv_cache_type>(),
     .help = "type of cached keys and values; auto: bf16; q8_0: 8 bits and a scale per 32 numbers"},
    {.name = "prefill-chunk", .metavar = "N", .group = kMachine, .commands = kRuns,
     .member = member<&S::engine, &Engine::prefill_chunk>(),
     .help = "prompt tokens computed in one pass", .range = {1, 65536}},
    {.name = "logprobs", .metavar = "N", .group = kOutput, .commands = kGenerate,
     .member = member<&Request::logprobs>(),
     .help = "with --json: the log-probability of every output token, and of the N likeliest in its place; "
             "-1: none", .range = {-1, 20}},
    {.name = "frequent", .metavar = "N", .group = kOutput, .commands = kTokenize, .brief_commands = kTokenize,
     .member = member<&S::tokenize, &TokenizeOptions::frequent>(),
     .help = "print the N most frequent tokens of the text, most frequent first, as a JSON array for "
             "speculative_token_map", .range = {1, 1 << 20}, .command_line_only = true},
    {.name = "json", .group = kOutput, .commands = kAnswersJson, .brief_commands = kAnswersJson,
     .member = member<&S::json>(),
     .help = "print one JSON object"},
};
// clang-format on

}  // namespace

std::span<const OptionRow> option_table() { return kOptions; }

}  // namespace outrider
