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
};

enum class OriginKind { kDefault, kFile, kEnvironment, kCommandLine };

// Where a value was given, in rising precedence; `place` is how messages name it: "--seed", "OUTRIDER_SEED",
// "run.yaml:3: seed".
struct Origin {
  OriginKind kind = OriginKind::kDefault;
  std::string place;
};

// Options of `serve`.
struct ServerOptions {
  std::string host = "127.0.0.1";  // an address; names are not looked up
  int port = 8000;                 // 0: any that is free
  std::filesystem::path api_key_file;
  std::vector<std::string> api_keys;                // beside those of the file
  std::filesystem::path certificate;                // PEM chain of the server, for TLS; empty: plain
  std::filesystem::path certificate_key;            // its private key; empty: in the same file
  std::vector<std::string> allowed_hosts;           // names in Host headers, beyond those of this machine
  std::vector<std::string> cors_origins;            // of pages elsewhere that may call; "*": all
  std::filesystem::path chat_template;              // replaces the model's; empty: none
  std::string chat_template_kwargs;                 // a JSON object; empty: none
  std::optional<Pooling> pooling = Pooling::kLast;  // of embeddings; nullopt: the model ranks texts
  int response_memory = 64;                         // MiB, for conversations of /v1/responses
  int max_queue = 256;                              // requests that wait for a place in the batch
  int max_connections = 4096;
  int max_connections_per_address = 2048;
  double drain_timeout = 30;  // seconds
  int max_drafting_sessions = 256;
  int max_drafting_sessions_per_key = 256;
  int drafting_nodes = 0;  // nodes of the largest tree of a client that drafts; 0: no such clients
};

// The server that holds the target, for commands that draft here.
struct RemoteTarget {
  std::string url;  // empty: the target is here
  std::filesystem::path api_key_file;
  std::filesystem::path authority;  // PEM file of certificates to trust beside the system's; empty: none
  std::string states = "bf16";      // type of the target's states that draft heads are sent
  std::string offline = "correct";  // "never", "correct" or "keep"
  double offline_after = 10;        // seconds without the server
  std::optional<std::string> private_text = {};  // end of the prompt that stays here
  std::filesystem::path private_file = {};       // a file with it
};

// Rows of a pass that `bench --rows` measures.
struct RowCount {
  static constexpr int kMaxRows = 4096;
  static constexpr int kMaxTreeRows = 65;  // the pending token and 64 drafted ones; more are a prompt chunk

  int rows = 1;
  int width = 1;  // children of every node of the tree that the rows are; 1: a chain
};

// Everything a run was asked for, each value checked against its own range. Immutable once resolved.
struct Settings {
  Command command = Command::kGenerate;
  std::filesystem::path config_file;
  EngineOptions engine;            // model is empty when none was given
  std::string model_name;          // by which the model was found; empty: a path was given
  Request request;                 // without its prompt
  bool speculation_given = false;  // engine.speculation was asked for, not the default

  std::optional<std::string> prompt;  // "-": standard input
  std::filesystem::path prompt_file;  // a whole file as text
  std::optional<std::vector<TokenId>> prompt_ids;
  int64_t frequent_tokens = 0;       // tokenize: the most frequent ones to list; 0: the text's own, in order
  std::filesystem::path prompt_set;  // JSONL; empty: the built-in prompts
  int64_t prompt_limit = 0;          // 0: all
  bool skips_long_prompts = false;   // that do not fit into the context; else they are an error
  int64_t runs = 0;  // bench: repetitions of each prompt and mode, or rounds over the row counts
  std::vector<RowCount> row_counts;       // bench: measure passes of so many rows instead of prompts
  bool profiles = false;                  // bench: times of such passes by operation
  std::vector<int> prompt_lengths;        // bench: measure the time to the first token of such prompts
  std::vector<int> batch_sizes;           // bench: measure throughput with so many prompts running at once
  std::optional<int64_t> cached_context;  // bench: tokens in the cache before such a pass
  std::string shape, draft_shape;         // bench: random weights of these shapes instead of a model
  std::optional<double> synthetic_acceptance;  // bench: probability that a draft is right
  bool compares_drafters = false;              // bench: compares all drafters that fit
  int draft_nodes = 24;                        // bench --all: greatest number of drafted nodes of a tree
  std::vector<std::string> drafter_folders;    // bench --all: folders to search; empty: the target's
  bool asks_chat = false;                      // generate: the prompt goes through the chat template
  std::string system_message;

  std::string hub_reference;  // pull: the model to fetch

  std::filesystem::path output;   // quantize: the file to write; bench: the page, if any
  std::string quantization_type;  // "q4_k"; empty: none was given
  bool force = false;             // quantize: replace `output` if it exists

  ServerOptions server;
  RemoteTarget remote;
  std::string served_model_name;  // empty: serve takes the name of the model's folder or file

  bool show_draft = false;
  bool show_tree = false;
  std::filesystem::path trace_file;  // a page about every step; empty: none
  bool json = false;

  std::vector<std::string> warnings;                   // for the user, one line each
  std::map<std::string, Origin, std::less<>> origins;  // by option name
};

}  // namespace outrider
