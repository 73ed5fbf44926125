// SPDX-License-Identifier: Apache-2.0
// The C API of Outrider: open an engine over a model, submit requests, step until they are done.
//
// Ownership. A function whose name ends in _new or _open makes an object that the caller gives back to the
// function that ends in _free or _close. A _new function returns NULL where there is no memory. Arrays and
// texts that a function returns through a pointer to a pointer are given back to outrider_free(). All other
// pointers are borrowed: they are valid as long as the object that they come from, and pointers that a
// callback gets are valid during the call.
//
// Errors. Functions that can fail return an outrider_status. outrider_last_error() then has one line that
// says what was expected, what was found and what to do. No exception leaves the library.
//
// Threads. Different engines may be used by different threads at once. One engine, with its requests and
// completions, is used by one thread at a time. Callbacks run on the thread that steps.
//
// Text is UTF-8 with its size in bytes; it need not end with a zero where a size is given. Texts that the
// library returns end with a zero that the size does not count.
//
// Stability. Objects are opaque, and structures that callbacks read only ever grow at their end. A program
// runs with every later library of the same OUTRIDER_API_MAJOR.
#ifndef OUTRIDER_OUTRIDER_H
#define OUTRIDER_OUTRIDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define OUTRIDER_API_MAJOR 0
#define OUTRIDER_API_MINOR 2

typedef struct outrider_options outrider_options;        // how an engine is to be opened
typedef struct outrider_engine outrider_engine;          // a model and everything that runs it
typedef struct outrider_request outrider_request;        // a prompt with its parameters
typedef struct outrider_completion outrider_completion;  // a finished answer
typedef struct outrider_tree outrider_tree;              // drafted tokens, in a call of a drafter

typedef enum outrider_status {
  OUTRIDER_OK = 0,
  OUTRIDER_ERROR_USAGE = 1,    // the call makes no sense: an unknown name, a value out of range
  OUTRIDER_ERROR_INPUT = 2,    // a file or prompt is malformed, unsupported or too large
  OUTRIDER_ERROR_IO = 3,       // the operating system refused
  OUTRIDER_ERROR_RESOURCE = 4  // out of memory, pages or context
} outrider_status;

// The version of the library, as in "0.1.0".
const char* outrider_version(void);

// The version of the API that the library has: OUTRIDER_API_MAJOR * 1000 + OUTRIDER_API_MINOR at its build.
//
int outrider_api_version(void);

// The error of the last call on this thread that failed, one line; "" if there was none. Valid until the next
// call that fails on this thread.
const char* outrider_last_error(void);

// Gives back an array or text. NULL is allowed.
void outrider_free(void* memory);

// ---- Drafters ----

// One sequence that wants a draft.
typedef struct outrider_draft_request {
  uint64_t sequence;      // as given to begin
  const int32_t* tokens;  // prompt and output; the last one is the root of the tree
  size_t token_count;
  size_t prompt_length;  // tokens of the prompt
  int max_draft_len;     // levels below the root, >= 1
  int max_nodes;         // nodes below the root, >= 1
} outrider_draft_request;

// Adds a child to a node of a tree and returns its index; node 0 is the root. If the parent has a child with
// this token, returns that one. `probability`, in (0, 1], is the guess that the token is accepted if its
// parent is; 1 where nothing is known. Returns -1, without any effect, if there is no such parent or if the
// probability is out of range.
int outrider_tree_add(outrider_tree* tree, int parent, int32_t token, double probability);

// The model's states of the tokens of one sequence that a step computed and committed.
typedef struct outrider_features {
  uint64_t sequence;      // as given to begin
  const int32_t* tokens;  // all tokens of the sequence; the last one has no states yet
  size_t token_count;
  size_t first;                  // index of the first token with states here
  size_t count;                  // tokens with states here
  const float* const* features;  // [count][size]
  size_t size;                   // numbers of a token: the wanted states side by side, hidden size each
} outrider_features;

// A drafter of the program's own. It cannot change the output: a call that fails, and nodes beyond the
// limits, cost speed only. All functions but `draft` may be NULL. A program that was built with an earlier
// version gives a smaller size, and the members that came later are then 0.
typedef struct outrider_drafter {
  size_t size;       // sizeof(outrider_drafter)
  const char* name;  // shown in statistics; copied
  void* user;        // passed to every function
  // Grows one tree for each request. Any result but 0 says that it failed; no tree is then used.
  int (*draft)(void* user, const outrider_draft_request* requests, outrider_tree* const* trees, size_t count);
  // A sequence starts; it may start again, with more tokens, when it had to give back its memory.
  void (*begin)(void* user, uint64_t sequence, const int32_t* tokens, size_t token_count);
  // Tells how many tokens of the drafted tree were accepted, and the tokens that the step committed.
  void (*observe)(void* user, uint64_t sequence, size_t accepted, const int32_t* tokens, size_t token_count);
  // A sequence has ended.
  void (*end)(void* user, uint64_t sequence);
  // The last engine or options object that has the drafter is gone; nothing is called after this.
  void (*destroy)(void* user);
  // Since 0.2: the states that absorb is given. The residual stream that enters each of these layers (rising,
  // from 0; the number of layers: that leaves the last one); copied. Then the output of the final norm.
  const int64_t* feature_layers;
  size_t feature_layer_count;
  bool wants_final_norm;
  // Hands over states after each step, before `draft`; of each token once and in order. Prompts are then
  // computed whole, even where the cache has them. Needed where states are wanted.
  void (*absorb)(void* user, const outrider_features* features, size_t count);
} outrider_drafter;

// ---- Engines ----

outrider_options* outrider_options_new(void);
void outrider_options_free(outrider_options* options);

// Adds an option with its value as a YAML file writes it: ("max_batch", "4"). A dot leads into a map, as in
// "speculative_config.max_draft_len"; a name that is given several times has a list of values. Names stand in
// docs/reference/options.md or docs/reference/coming_from.md (other systems), and are checked when the engine
// is opened.
outrider_status outrider_options_add(outrider_options* options, const char* name, const char* value);

// Lets the program draft itself; `drafter` is copied. The options then name no method. Options with a drafter
// open one engine. Error: no draft function, or a size that belongs to no version.
outrider_status outrider_options_set_drafter(outrider_options* options, const outrider_drafter* drafter);

// Opens the model that the options name, or the default one. Options come before the environment
// (OUTRIDER_*). `options` may be NULL, and may be freed afterwards.
outrider_status outrider_engine_open(const outrider_options* options, outrider_engine** engine);

// Ends all requests without calling their callbacks. NULL is allowed.
void outrider_engine_close(outrider_engine* engine);

// A line for each option without effect here, and one if a small model stands in for the default; NULL: there
// are not that many.
const char* outrider_engine_warning(const outrider_engine* engine, size_t index);

const char* outrider_engine_model(const outrider_engine* engine);    // path of the model
const char* outrider_engine_drafter(const outrider_engine* engine);  // name of the drafter
const char* outrider_engine_device(const outrider_engine* engine);   // "cpu", "cuda" or "emulated"
const char* outrider_engine_kernels(const outrider_engine* engine);  // name of the kernel table: "avx2"
int64_t outrider_engine_vocab_size(const outrider_engine* engine);   // token ids are below it
int64_t outrider_engine_context(const outrider_engine* engine);      // tokens of the longest sequence

// ---- Text and tokens ----

// Turns text into tokens. `add_special`: with the tokens that the model wants at the beginning.
// `parse_special`: special tokens that are spelled in the text become such tokens; not for others' text.
outrider_status outrider_tokenize(const outrider_engine* engine, const char* text, size_t size,
                                  bool add_special, bool parse_special, int32_t** tokens, size_t* count);

// Turns tokens into text. Error: an id outside the vocabulary.
outrider_status outrider_detokenize(const outrider_engine* engine, const int32_t* tokens, size_t count,
                                    bool skip_special, char** text, size_t* size);

typedef struct outrider_message {
  const char* role;     // "system", "user" or "assistant"; ends with a zero
  const char* content;  // ends with a zero
} outrider_message;

// Renders messages with the model's chat template. Tokenise the text without add_special, because the
// template writes its own special tokens. Error: the model has no template, or it refuses the messages.
outrider_status outrider_apply_chat_template(const outrider_engine* engine, const outrider_message* messages,
                                             size_t count, bool add_generation_prompt, char** text,
                                             size_t* size);

// ---- Requests ----

// A request with the sampling parameters, lengths and stops of the engine's options, and no prompt.
outrider_request* outrider_request_new(const outrider_engine* engine);
void outrider_request_free(outrider_request* request);

// Sets the prompt; the tokens are copied.
outrider_status outrider_request_set_prompt(outrider_request* request, const int32_t* tokens, size_t count);

// Sets a parameter: an option for sampling, length or stopping, as in ("temperature", "0.7"), or one that
// only requests have; docs/guides/library.md lists them.
outrider_status outrider_request_set(outrider_request* request, const char* name, const char* value);

// Sets all values of a parameter that is a list: "stop", "logit_bias", "forbidden_token_ids".
outrider_status outrider_request_set_list(outrider_request* request, const char* name,
                                          const char* const* values, size_t count);

// Changes the logits of the next token, [vocab_size], before penalties and temperature; `tokens` are prompt
// and output before it. Output is exact if the change depends on the arguments only. Any result but 0 ends
// the request with the finish reason "error".
typedef int (*outrider_logits_function)(void* user, const int32_t* tokens, size_t token_count, float* logits,
                                        size_t vocab_size);

// Lets a function change the logits of the request; NULL: none does.
outrider_status outrider_request_set_logits_function(outrider_request* request,
                                                     outrider_logits_function function, void* user);

// New output of a running request.
typedef struct outrider_progress {
  uint64_t request;
  const char* text;  // new and complete characters; may be empty
  size_t text_size;
  const int32_t* tokens;   // newly committed tokens
  const uint8_t* origins;  // how each came about: an outrider_origin
  size_t token_count;
  const outrider_completion* completion;  // set only in the last call for the request
} outrider_progress;

// Gets the output of a request after each step. It may call outrider_cancel(), and no other function that
// takes the engine without const.
typedef void (*outrider_progress_callback)(void* user, const outrider_progress* progress);

// Queues a request, which may be freed afterwards. `callback` and `id` may be NULL. Error: no prompt, ids
// outside the vocabulary, a prompt that does not fit, parameters out of range.
outrider_status outrider_submit(outrider_engine* engine, const outrider_request* request,
                                outrider_progress_callback callback, void* user, uint64_t* id);

// Ends a request with the next step. Unknown and finished requests are ignored.
outrider_status outrider_cancel(outrider_engine* engine, uint64_t id);

// One step of all running requests. `is_running` becomes false when none is left. Error: out of memory; the
// engine can then only be closed.
outrider_status outrider_step(outrider_engine* engine, bool* is_running);

// Submits the request and steps until it is done. `callback` may be NULL.
outrider_status outrider_generate(outrider_engine* engine, const outrider_request* request,
                                  outrider_progress_callback callback, void* user,
                                  outrider_completion** completion);

// ---- Completions ----

// A copy that outlives the callback.
outrider_completion* outrider_completion_new(const outrider_completion* completion);
void outrider_completion_free(outrider_completion* completion);

typedef enum outrider_origin {
  OUTRIDER_ORIGIN_PLAIN = 0,      // nothing was drafted at this position
  OUTRIDER_ORIGIN_ACCEPTED = 1,   // drafted and accepted
  OUTRIDER_ORIGIN_RECOVERED = 2,  // the model's token where all drafts were rejected
  OUTRIDER_ORIGIN_BONUS = 3       // the model's token after the last accepted draft
} outrider_origin;

// Text without special tokens, cut before a stop string.
const char* outrider_completion_text(const outrider_completion* completion, size_t* size);
// All tokens of the output, with the one that ended it.
const int32_t* outrider_completion_tokens(const outrider_completion* completion, size_t* count);
// An outrider_origin for each token.
const uint8_t* outrider_completion_origins(const outrider_completion* completion, size_t* count);
// "stop", "length", "cancelled" or "error".
const char* outrider_completion_finish_reason(const outrider_completion* completion);

// Natural log-probabilities of the model itself, for each token of the output; count 0 if the request wants
// none (parameter "logprobs").
const float* outrider_completion_logprobs(const outrider_completion* completion, size_t* count);
// The likeliest tokens in place of output token `index`, in descending order: `count` ids and as many
// log-probabilities; count 0 where there are none.
void outrider_completion_top_logprobs(const outrider_completion* completion, size_t index,
                                      const int32_t** tokens, const float** logprobs, size_t* count);
// Natural log-probabilities of the prompt's tokens from the second on (parameter "prompt_logprobs").
const float* outrider_completion_prompt_logprobs(const outrider_completion* completion, size_t* count);

typedef struct outrider_statistics {
  int64_t prompt_tokens;
  int64_t cached_tokens;     // prompt tokens found in the cache
  int64_t steps;             // passes of the model that committed output
  int64_t drafts;            // passes that verified drafted tokens
  int64_t drafted;           // drafted tokens verified
  int64_t accepted;          // drafted tokens committed
  int64_t draft_failures;    // calls of the drafter that failed
  double acceptance_length;  // tokens committed per pass; 1 without speculation
  double queue_ms;           // from outrider_submit() to the first step
  double first_token_ms;     // from outrider_submit() to the first token
  double prompt_ms;          // steps that computed a part of the prompt
  double decode_ms;          // all other steps
  double draft_ms;
  double verify_ms;
  const int64_t* drafted_per_position;  // by depth - 1
  const int64_t* accepted_per_position;
  size_t positions;
  int64_t accepted_prediction_tokens;  // tokens of parameter "prediction_token_ids" that the output has
  int64_t rejected_prediction_tokens;  // all others of them
} outrider_statistics;

const outrider_statistics* outrider_completion_statistics(const outrider_completion* completion);

// ---- Traces ----

// One drafted token. `fate` and `cause` are named by outrider_fate_name() and outrider_cause_name().
typedef struct outrider_node {
  int32_t token;
  int32_t parent;             // index of a node; -1 for the root
  double draft_probability;   // the drafter's guess
  double target_probability;  // the model's; -1 where it was not computed
  uint32_t sources;           // bit i: the i-th of the drafters that share the tree
  uint16_t fate;
  uint16_t cause;
} outrider_node;

// One request in one step.
typedef struct outrider_step_trace {
  int64_t step;      // number of the step since tracing began, from 0
  uint64_t request;  // the id that outrider_submit() gave
  double draft_ms;
  double verify_ms;
  double other_ms;
  const outrider_node* nodes;  // the drafted tree, the root first
  size_t node_count;
  const int32_t* tokens;   // committed by this step
  const uint8_t* origins;  // an outrider_origin for each
  size_t token_count;
} outrider_step_trace;

typedef void (*outrider_trace_callback)(void* user, const outrider_step_trace* trace);

// From the next step on, `callback` gets a trace for each request and step; NULL ends that. Tracing costs
// time and changes no output.
outrider_status outrider_set_trace(outrider_engine* engine, outrider_trace_callback callback, void* user);

const char* outrider_fate_name(int fate);      // "accepted"; "" for an unknown number
const char* outrider_cause_name(int cause);    // "lost arg-max"
const char* outrider_origin_name(int origin);  // "recovered"

#ifdef __cplusplus
}
#endif

#endif  // OUTRIDER_OUTRIDER_H
