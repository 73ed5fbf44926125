// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "outrider/engine.h"

namespace outrider {

// Commands of the tool; values are bits, so that an option can name several.
enum class Command : unsigned {
  kGenerate = 1u << 0,
  kChat = 1u << 1,
  kScore = 1u << 2,
  kTokenize = 1u << 3,
  kInspect = 1u << 4,
  kBench = 1u << 5,
  kVerifyLossless = 1u << 6,
  kQuantize = 1u << 7,
  kDoctor = 1u << 8,
  kServe = 1u << 9,
  kPull = 1u << 10,
  kModels = 1u << 11,
  kBenchRows = 1u << 12,
  kBenchPrompts = 1u << 13,
  kBenchBatch = 1u << 14,
  kBenchDrafters = 1u << 15,
  kRemove = 1u << 16,
  kProcesses = 1u << 17,
  kBatch = 1u << 18,
};

enum class OriginKind { kFile, kEnvironment, kCommandLine };

// Where a value was given, in rising precedence; `place` is how messages name it: "--seed", "OUTRIDER_SEED",
// "run.yaml:3: seed".
struct Origin {
  OriginKind kind = OriginKind::kFile;
  std::string place;
  std::vector<std::string> texts = {};  // the value as it was given
};

// The prompt of `generate`, or the text of `score` and `tokenize`.
struct PromptInput {
  std::optional<std::string> text;  // "-": standard input
  std::filesystem::path file;       // a whole file as text
  std::optional<std::vector<TokenId>> ids;
};

// The prompts of commands that run many.
struct PromptSetOptions {
  std::filesystem::path file;  // JSONL; empty: the built-in prompts
  int64_t limit = 0;           // 0: all
  bool skips_long = false;     // leaves out prompts that do not fit into the context; else they are an error
};

// The server that holds the target, for commands that draft here.
struct RemoteTarget {
  std::string url;    // empty: the target is here
  std::string model;  // the name of one of several at the server; empty: its only or default one
  std::filesystem::path api_key_file;
  std::filesystem::path authority;  // PEM file of certificates to trust beside the system's; empty: none
  std::string states = "bf16";      // type of the target's states that draft heads are sent
  std::string offline = "correct";  // "never", "correct" or "keep"
  double offline_after = 10;        // seconds without the server
  std::optional<std::string> private_text = {};  // end of the prompt that stays here
  std::filesystem::path private_file = {};       // a file with it
};

// Chats of `generate`, `chat` and `serve`.
struct ChatOptions {
  std::filesystem::path chat_template;  // replaces the model's; empty: none
  std::string chat_template_kwargs;     // a JSON object; empty: none
  std::string think;             // "on", "off" or a number of tokens; empty: as the template does by itself
  std::string thinking_message;  // is written where the number of tokens ends the thinking
};

struct GenerateOptions {
  bool asks_chat = false;  // the prompt goes through the chat template
  // The form of the output, a text or @FILE; empty: free.
  std::string json_schema, regex, grammar;
  bool wants_form() const { return !json_schema.empty() || !regex.empty() || !grammar.empty(); }
  std::filesystem::path prediction;  // a file with the text that the output should have; empty: none
  bool show_draft = false;
  bool show_tree = false;
};

struct TokenizeOptions {
  std::optional<int64_t> frequent;  // the most frequent tokens to list; unset: the text's own, in order
};

// Rows of a pass that `bench rows` measures.
struct RowCount {
  static constexpr int kMaxRows = 4096;
  static constexpr int kMaxTreeRows = 65;  // the pending token and 64 drafted ones; more are a prompt chunk

  int rows = 1;
  int width = 1;  // children of every node of the tree that the rows are; 1: a chain
};

// Options of `bench` and of its sub-commands.
struct BenchOptions {
  int64_t runs =
      0;  // repetitions of each prompt and mode, or rounds over the row counts; 0: the usual number
  std::optional<double> synthetic_acceptance;     // bench: probability that a draft is right
  std::vector<RowCount> rows = {{1}, {8}, {64}};  // bench rows
  bool profiles = false;                          // bench rows: times of passes by operation
  std::optional<int64_t> cached_context;          // bench rows: tokens in the cache before a pass
  std::vector<int> prompt_lengths = {64, 512};    // bench prompts
  std::vector<int> batch_sizes = {1, 2, 4, 8};    // bench batch: prompts that run at once
  int draft_nodes = 24;                           // bench drafters: drafted nodes of a tree, at most
  std::vector<std::string> drafter_folders;       // bench drafters: folders to search; empty: the target's
  std::filesystem::path page;                     // bench drafters: the page to write; empty: none
};

struct QuantizeSettings {
  std::filesystem::path output;
  std::string type;    // "q4_k"; empty: none was given
  bool force = false;  // replace `output` if it exists
};

struct PullOptions {
  std::string reference;      // the model to fetch
  bool with_drafter = false;  // and a published drafter for it
  bool on_first_use = false;  // of any command: a model that is not here is fetched without a question
  bool offline = false;       // nothing is fetched
};

struct VerifyOptions {
  bool compares_kernels = false;  // the machines that compute, and not ways of decoding
};

// Options of `batch` beside those that it shares with `serve`.
struct BatchOptions {
  std::filesystem::path input;   // "-": standard input
  std::filesystem::path output;  // empty or "-": standard output
};

// Options of `serve`.
struct ServerOptions {
  std::string host = "127.0.0.1";  // an address; names are not looked up
  std::string root_path;           // before every path, as a proxy may leave it; empty: nothing
  bool has_chat_page = true;       // GET /
  int port = 8000;                 // 0: any that is free
  std::filesystem::path api_key_file;
  std::vector<std::string> api_keys;                // beside the keys of the file
  std::filesystem::path certificate;                // PEM chain of the server, for TLS; empty: plain
  std::filesystem::path certificate_key;            // its private key; empty: in the same file
  std::vector<std::string> allowed_hosts;           // names in Host headers, beyond the names of this machine
  std::vector<std::string> cors_origins;            // of pages elsewhere that may call; "*": all
  std::vector<std::string> model_names;             // in the API; none: the name of the folder or file
  std::optional<Pooling> pooling = Pooling::kLast;  // of embeddings; nullopt: the model ranks texts
  int response_memory = 64;                         // MiB, for conversations of /v1/responses
  int max_queue = 256;                              // requests that wait for a place in the batch
  int max_connections = 4096;
  int max_connections_per_address = 2048;
  double drain_timeout = 30;               // seconds
  std::vector<std::string> no_log_routes;  // routes whose calls get no line in the log
  std::filesystem::path audit_log;         // what operators and keys do; empty: it is not kept
  int64_t default_max_tokens = -1;  // output of a request that names no number; -1: rest of the context
  int64_t max_tokens_limit = 0;     // the most that a request may ask for; 0: the context's
  double request_timeout = 0;       // seconds; 0: none
  int max_running_per_key = 0;      // requests in progress; 0: any number
  double requests_per_minute = 0;   // of one key; 0: any number
  double tokens_per_minute = 0;     // of one key, prompts and outputs; 0: any number
  std::string traces_endpoint;      // the collector of OpenTelemetry; empty: none
  int max_drafting_sessions = 256;
  int max_drafting_sessions_per_key = 256;
  int drafting_nodes = 0;  // nodes of the largest tree of a client that drafts; 0: no such clients
  std::filesystem::path adapter_folder;  // of adapters that clients may load; empty: they may not
  std::string models;                    // several: "all", a folder, or a list; empty: one model
  int64_t models_memory = 0;             // bytes for the engines of several models; 0: what is free
  std::filesystem::path slot_folder;     // where clients may keep texts by name; empty: nowhere
  double idle_unload = 0;              // seconds without requests, after which a model is unloaded; 0: never
  std::vector<std::string> pinned;     // models of several that stay loaded
  std::filesystem::path batch_folder;  // files and batches of the Batch API; empty: it is not served
  int batch_folder_size = 10 << 10;    // MiB, of all files
};

// Everything a run was asked for, each value checked against its own range. Immutable once resolved.
struct Settings {
  Command command = Command::kGenerate;
  std::filesystem::path config_file;
  bool json = false;

  EngineOptions engine;            // model is empty when none was given
  std::string model_name;          // by which the model was found; empty: a path was given
  Request request;                 // without its prompt
  bool speculation_given = false;  // engine.speculation was asked for, not the default
  std::string shape, draft_shape;  // random weights of these shapes instead of a model

  // Options of several commands.
  PromptInput input;
  PromptSetOptions prompts;
  std::optional<std::string> system_message;
  std::filesystem::path trace_file;  // a page about every step; empty: none
  RemoteTarget remote;

  // Options of one command, or of one family of commands.
  ChatOptions chat;
  GenerateOptions generate;
  TokenizeOptions tokenize;
  BenchOptions bench;
  QuantizeSettings quantize;
  PullOptions pull;
  std::string removed_model;  // of `rm`
  VerifyOptions verify;
  ServerOptions server;
  BatchOptions batch;

  std::vector<std::string> warnings;                   // for the user, one line each
  std::map<std::string, Origin, std::less<>> origins;  // of the options that were given, by name
};

// The settings of a command to which nothing was given.
Settings default_settings(Command command);

}  // namespace outrider
