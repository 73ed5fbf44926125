// SPDX-License-Identifier: Apache-2.0
#include "server/api/ollama/ollama_request.h"

#include <algorithm>
#include <utility>

#include "base/quote.h"
#include "server/api/adapter_fields.h"
#include "server/api/field_rules.h"
#include "server/api/requests/chat_messages.h"
#include "server/api/requests/common_fields.h"
#include "server/api/requests/fill_in_middle.h"
#include "server/api/requests/output_form.h"
#include "server/api/tools/chat_tools.h"

namespace outrider {
namespace {

constexpr std::string_view kLatest = ":latest";

ApiStatus skip_ollama_field(const RequestField&, OllamaSpec&) { return api_ok(); }

ApiStatus log_ollama_field(const RequestField& field, OllamaSpec& spec) {
  spec.ignored.push_back(field.path());
  return api_ok();
}

ApiStatus refuse_ollama_field(const RequestField& field, OllamaSpec&) {
  constexpr UnsupportedField kNeutral[] = {{"logprobs", "false"},
                                           {"mirostat", "0"},
                                           {"template", "\"\""},
                                           {"tfs_z", "1 1.0"},
                                           {"top_logprobs", "0"}};
  for (const UnsupportedField& rule : kNeutral) {
    if (rule.name == field.key()) return check_unsupported(field, rule);
  }
  return api_ok();
}

ApiStatus read_ollama_model(const RequestField& field, OllamaSpec& spec) {
  OUTRIDER_RETURN_IF_ERROR(check_model_name(field, *spec.model));
  OUTRIDER_TRY(const std::string name, field.string());
  return spec.model->has_adapter(name) ? read_model(field, spec) : api_ok();
}

ApiStatus read_ollama_stream(const RequestField& field, OllamaSpec& spec) {
  OUTRIDER_TRY(spec.streams, field.boolean());
  return api_ok();
}

// "json", a schema, or an empty text.
ApiStatus read_format(const RequestField& field, OllamaSpec& spec) {
  if (!field.is_string()) return read_guided_json(field, spec);
  constexpr std::string_view kNames[] = {"", "json"};
  OUTRIDER_TRY(const int name, field.one_of(kNames));
  if (name == 1) spec.form = {.kind = OutputForm::Kind::kJsonObject, .path = field.path()};
  return api_ok();
}

// -1 and -2 are no limit, since an output ends where the context does.
ApiStatus read_num_predict(const RequestField& field, OllamaSpec& spec) {
  OUTRIDER_TRY(const int64_t max, field.integer(-2, INT32_MAX));
  if (max >= 0) spec.max_tokens = max;
  return api_ok();
}

// The longest conversation; the server's own limit stands, too.
ApiStatus read_num_ctx(const RequestField& field, OllamaSpec& spec) {
  OUTRIDER_TRY(const int64_t context, field.integer(1, INT32_MAX));
  if (context > spec.model->context) spec.ignored.push_back(field.path());
  return api_ok();
}

ApiStatus read_sampling_option(const RequestField& field, OllamaSpec& spec) {
  return read_common_field(field, spec);
}

constexpr FieldRule<OllamaSpec> kOptionRules[] = {{"num_predict", read_num_predict},
                                                  {"num_ctx", read_num_ctx},
                                                  {"temperature", read_sampling_option},
                                                  {"top_k", read_sampling_option},
                                                  {"top_p", read_sampling_option},
                                                  {"min_p", read_sampling_option},
                                                  {"seed", read_sampling_option},
                                                  {"stop", read_sampling_option},
                                                  {"repeat_penalty", read_sampling_option},
                                                  {"repeat_last_n", read_sampling_option},
                                                  {"presence_penalty", read_sampling_option},
                                                  {"frequency_penalty", read_sampling_option},
                                                  {"mirostat", refuse_ollama_field},
                                                  {"tfs_z", refuse_ollama_field},
                                                  {"typical_p", read_sampling_option},
                                                  {"f16_kv", log_ollama_field},
                                                  {"low_vram", log_ollama_field},
                                                  {"main_gpu", log_ollama_field},
                                                  {"mirostat_eta", log_ollama_field},
                                                  {"mirostat_tau", log_ollama_field},
                                                  {"num_batch", log_ollama_field},
                                                  {"num_gpu", log_ollama_field},
                                                  {"num_keep", log_ollama_field},
                                                  {"num_thread", log_ollama_field},
                                                  {"numa", log_ollama_field},
                                                  {"penalize_newline", log_ollama_field},
                                                  {"use_mlock", log_ollama_field},
                                                  {"use_mmap", log_ollama_field},
                                                  {"vocab_only", log_ollama_field}};

ApiStatus read_options(const RequestField& field, OllamaSpec& spec) {
  return read_members<OllamaSpec>(field, kOptionRules, spec);
}

// The fields of both routes, and then of each.
constexpr FieldRule<OllamaSpec> kOllamaRules[] = {
    {"model", read_ollama_model},      {"stream", read_ollama_stream},
    {"format", read_format},           {"options", read_options},
    {"think", skip_ollama_field},      {"keep_alive", log_ollama_field},
    {"truncate", log_ollama_field},    {"shift", log_ollama_field},
    {"logprobs", refuse_ollama_field}, {"top_logprobs", refuse_ollama_field},
    {"messages", skip_ollama_field},   {"tools", skip_ollama_field},
    {"prompt", skip_ollama_field},     {"suffix", skip_ollama_field},
    {"system", skip_ollama_field},     {"context", skip_ollama_field},
    {"raw", skip_ollama_field},        {"images", log_ollama_field},
    {"template", refuse_ollama_field}};

ApiResult<OllamaSpec> read_shared(const RequestField& root, const CallContext& context) {
  OllamaSpec spec;
  spec.model = context.model;
  spec.limits = &context.limits;
  spec.request.sampling = context.model->sampling;
  spec.streams = true;
  OUTRIDER_RETURN_IF_ERROR(read_members<OllamaSpec>(root, kOllamaRules, spec));
  OUTRIDER_RETURN_IF_ERROR(check_common_fields(root, spec));
  return spec;
}

// A truth value, or the effort of a model that takes one.
ApiResult<TemplateValues> read_think(const RequestField& root) {
  TemplateValues values;
  const auto field = root.find("think");
  if (!field) return values;
  if (field->is_bool()) {
    values.emplace_back("enable_thinking", field->json());
    return values;
  }
  constexpr std::string_view kEfforts[] = {"low", "medium", "high", "max"};
  OUTRIDER_RETURN_IF_ERROR(field->one_of(kEfforts));
  values.emplace_back("enable_thinking", "true");
  values.emplace_back("reasoning_effort", field->json());
  return values;
}

// Calls have no ids there: the results of tools belong to calls in their order.
void pair_calls(std::vector<ChatMessage>& messages) {
  std::vector<std::string> open;
  size_t count = 0;
  for (ChatMessage& message : messages) {
    for (ChatToolCall& call : message.tool_calls) {
      if (call.id.empty()) call.id = "call" + std::to_string(10000 + count++);
      open.push_back(call.id);
    }
    if (message.role != "tool" || open.empty()) continue;
    if (message.tool_call_id.empty()) message.tool_call_id = open.front();
    std::erase(open, message.tool_call_id);
  }
}

void load_only(OllamaSpec& spec) {
  const Tokenizer& tokenizer = *spec.model->tokenizer;
  spec.only_loads = true;
  spec.prompt.tokens = {tokenizer.bos().value_or(tokenizer.eos().value_or(0))};
  spec.max_tokens = 1;
  spec.request.rules = {};
}

// Holds prompt and output within "num_ctx".
ApiStatus limit_context(const RequestField& root, OllamaSpec& spec) {
  const auto options = root.find("options");
  const auto field = options ? options->find("num_ctx") : std::nullopt;
  if (!field) return api_ok();
  OUTRIDER_TRY(const int64_t context, field->integer(1, INT32_MAX));
  if (context >= spec.model->context) return api_ok();
  const int64_t room = context - static_cast<int64_t>(spec.prompt.tokens.size());
  if (room < 1) {
    return field->error("expected more than the " + std::to_string(spec.prompt.tokens.size()) +
                        " tokens of the prompt, found " + std::to_string(context));
  }
  spec.max_tokens = std::min(room, spec.max_tokens.value_or(room));
  return api_ok();
}

// The tokens that an earlier answer returned as its context.
ApiResult<std::vector<TokenId>> earlier_tokens(const RequestField& root, const OllamaSpec& spec) {
  std::vector<TokenId> tokens;
  const auto field = root.find("context");
  if (!field) return tokens;
  OUTRIDER_TRY(const auto items, field->items(static_cast<size_t>(spec.model->context)));
  for (const RequestField& item : items) {
    OUTRIDER_TRY(const int64_t token, item.integer(0, spec.model->vocab_size - 1));
    tokens.push_back(static_cast<TokenId>(token));
  }
  return tokens;
}

ApiResult<ChatPrompt> templated_prompt(const RequestField& root, const std::string& text,
                                       const OllamaSpec& spec) {
  ChatInput input{.messages_path = "prompt"};
  OUTRIDER_TRY(std::string system, text_at(root, "system"));
  if (!system.empty()) input.messages.push_back({.role = "system", .content = std::move(system)});
  input.messages.push_back({.role = "user", .content = text});
  OUTRIDER_TRY(input.values, read_think(root));
  return render_chat(std::move(input), *spec.model);
}

// A prompt between which and a suffix the model writes, a raw one, or a message for the template.
ApiResult<ChatPrompt> generate_prompt(const RequestField& root, const std::string& text, OllamaSpec& spec) {
  const Tokenizer& tokenizer = *spec.model->tokenizer;
  OUTRIDER_TRY(const std::string suffix, text_at(root, "suffix"));
  ChatPrompt prompt;
  if (!suffix.empty()) {
    const auto marks = find_middle_marks(tokenizer);
    if (!marks) return field_error("suffix", "the model has no tokens for filling in the middle");
    prompt.tokens = middle_prompt(tokenizer, *marks, text, suffix);
    return prompt;
  }
  bool is_raw = spec.model->chat_template == nullptr && spec.model->template_problem.empty();
  if (const auto raw = root.find("raw")) {
    OUTRIDER_TRY(const bool asked, raw->boolean());
    is_raw = is_raw || asked;
    spec.returns_context = !asked;
  }
  if (!is_raw) return templated_prompt(root, text, spec);
  prompt.tokens = tokenizer.encode(text);
  if (prompt.tokens.empty()) return field_error("prompt", "expected at least one token, found none");
  return prompt;
}

}  // namespace

bool names_model(std::string_view name, const ServedModel& model) {
  if (name.ends_with(kLatest)) name.remove_suffix(kLatest.size());
  return model.is_named(name) || model.has_adapter(name);
}

ApiStatus check_model_name(const RequestField& field, const ServedModel& model) {
  OUTRIDER_TRY(const std::string name, field.string());
  if (names_model(name, model)) return api_ok();
  ApiError error = field.error("expected " + quote(model.name) + ", found " + quote(name));
  error.status = 404;
  error.message = "model " + quote(name) + " not found; this server has " + quote(model.name);
  return error;
}

ApiResult<OllamaSpec> read_ollama_chat(const RequestField& root, const CallContext& context) {
  OUTRIDER_TRY(OllamaSpec spec, read_shared(root, context));
  const auto messages = root.find("messages");
  if (!messages || (messages->is_array() && messages->size() == 0)) {
    load_only(spec);
    return spec;
  }
  OUTRIDER_TRY(ReadMessages read, read_messages(*messages, context.limits.messages));
  spec.ignored.insert(spec.ignored.end(), read.ignored.begin(), read.ignored.end());
  pair_calls(read.messages);
  ChatInput input{.messages = std::move(read.messages), .messages_path = "messages"};
  OUTRIDER_TRY(input.tools, read_tools(root, context.limits));
  OUTRIDER_TRY(input.values, read_think(root));
  OUTRIDER_TRY(spec.prompt, render_chat(std::move(input), *context.model));
  OUTRIDER_RETURN_IF_ERROR(limit_context(root, spec));
  return spec;
}

ApiResult<OllamaSpec> read_ollama_generate(const RequestField& root, const CallContext& context) {
  OUTRIDER_TRY(OllamaSpec spec, read_shared(root, context));
  spec.is_chat = false;
  OUTRIDER_TRY(const std::string text, text_at(root, "prompt"));
  if (text.empty()) {
    load_only(spec);
    return spec;
  }
  spec.returns_context = true;
  OUTRIDER_TRY(spec.prompt, generate_prompt(root, text, spec));
  OUTRIDER_TRY(const std::vector<TokenId> earlier, earlier_tokens(root, spec));
  spec.prompt.tokens.insert(spec.prompt.tokens.begin(), earlier.begin(), earlier.end());
  OUTRIDER_RETURN_IF_ERROR(limit_context(root, spec));
  return spec;
}

}  // namespace outrider
