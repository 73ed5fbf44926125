// SPDX-License-Identifier: Apache-2.0
#include "server/api/answers/text_routes.h"

#include "base/quote.h"
#include "server/api/answers/token_text.h"
#include "server/api/json_writer.h"
#include "server/api/requests/chat_request.h"
#include "server/api/requests/messages_request.h"
#include "server/api/requests/responses_request.h"
#include "server/api/served_adapters.h"

namespace outrider {
namespace {

ApiError wrong_model(std::string_view name, const ServedModel& model) {
  ApiError error =
      field_error("model", "expected " + quote(model.name) + ", found " + quote(name), "model_not_found");
  error.status = 404;
  return error;
}

ApiStatus check_model(const RequestField& root, const ServedModel& model) {
  const auto field = root.find("model");
  if (!field) return api_ok();
  OUTRIDER_TRY(const std::string name, field->string());
  return model.is_named(name) || model.has_adapter(name) ? api_ok() : ApiStatus(wrong_model(name, model));
}

ApiResult<bool> flag(const RequestField& root, std::string_view name, bool fallback) {
  const auto field = root.find(name);
  return field ? field->boolean() : ApiResult<bool>(fallback);
}

// llama-server's fields are content, add_special, parse_special and with_pieces; vLLM's are prompt,
// add_special_tokens and return_token_strs.
ApiResult<std::vector<TokenId>> tokens_of_text(const RequestField& root, const ServedModel& model) {
  const auto content = root.find("content");
  OUTRIDER_TRY(const RequestField field, content ? ApiResult<RequestField>(*content) : root.at("prompt"));
  OUTRIDER_TRY(const std::string text, field.string());
  OUTRIDER_TRY(const bool adds_special,
               flag(root, content ? "add_special" : "add_special_tokens", !content.has_value()));
  OUTRIDER_TRY(const bool parses_special, flag(root, "parse_special", true));
  return model.tokenizer->encode(text, {.add_special = adds_special, .parse_special = parses_special});
}

// `object` may be empty: Anthropic's answer has no such member.
std::string input_tokens_body(std::string_view object, std::span<const TokenId> tokens) {
  std::string out;
  JsonWriter json(out);
  json.begin_object();
  if (!object.empty()) json.member("object", object);
  json.member("input_tokens", tokens.size()).end_object();
  return out;
}

// `name`: the model's own, an alias, or an adapter's.
void write_model(JsonWriter& json, const ServedModel& model, std::string_view name) {
  const EngineInfo& info = model.info;
  json.begin_object().member("id", name).member("object", "model").member("created", model.created);
  json.member("owned_by", "outrider").member("root", model.name);
  json.member("parent", text_or_null(model.is_named(name) ? "" : model.name));
  json.member("max_model_len", model.context).key("meta").begin_object();
  json.member("n_vocab", model.vocab_size).member("n_ctx", model.context);
  json.member("n_params", info.parameters).member("size", info.weight_bytes);
  json.member("family", info.family).member("weights", info.weights);
  json.member("kernels", info.kernels).member("drafter", info.drafter);
  json.end_object().end_object();
}

}  // namespace

ApiResult<std::string> tokenize_body(std::string_view body, const ServedModel& model,
                                     const ApiLimits& limits) {
  OUTRIDER_TRY(const RequestBody parsed, RequestBody::parse(body, limits.json_depth));
  const RequestField root = parsed.root();
  OUTRIDER_RETURN_IF_ERROR(check_model(root, model));
  std::vector<TokenId> tokens;
  if (root.find("messages")) {
    OUTRIDER_TRY(ChatPrompt prompt, make_chat_prompt(root, model, limits));
    tokens = std::move(prompt.tokens);
  } else {
    OUTRIDER_TRY(tokens, tokens_of_text(root, model));
  }
  OUTRIDER_TRY(const bool with_pieces, flag(root, "with_pieces", false));
  OUTRIDER_TRY(const bool with_texts, flag(root, "return_token_strs", with_pieces));
  std::string out;
  JsonWriter json(out);
  json.begin_object().member("count", tokens.size()).member("max_model_len", model.context);
  json.member("tokens", tokens);
  if (with_texts) {
    json.key("token_strs").begin_array();
    for (const TokenId token : tokens) json.value(shown_token(*model.tokenizer, token));
    json.end_array();
  }
  json.end_object();
  return out;
}

ApiResult<std::string> detokenize_body(std::string_view body, const ServedModel& model,
                                       const ApiLimits& limits) {
  OUTRIDER_TRY(const RequestBody parsed, RequestBody::parse(body, limits.json_depth));
  OUTRIDER_RETURN_IF_ERROR(check_model(parsed.root(), model));
  OUTRIDER_TRY(const RequestField field, parsed.root().at("tokens"));
  OUTRIDER_TRY(const auto items, field.items(static_cast<size_t>(model.context)));
  std::vector<TokenId> tokens;
  for (const RequestField& item : items) {
    OUTRIDER_TRY(const int64_t token, item.integer(0, model.vocab_size - 1));
    tokens.push_back(static_cast<TokenId>(token));
  }
  const std::string text = model.tokenizer->decode(tokens, /*skip_special=*/false);
  std::string out;
  JsonWriter(out).begin_object().member("content", text).member("prompt", text).end_object();
  return out;
}

ApiResult<std::string> apply_template_body(std::string_view body, const ServedModel& model,
                                           const ApiLimits& limits) {
  OUTRIDER_TRY(const RequestBody parsed, RequestBody::parse(body, limits.json_depth));
  OUTRIDER_RETURN_IF_ERROR(check_model(parsed.root(), model));
  OUTRIDER_TRY(const ChatPrompt prompt, make_chat_prompt(parsed.root(), model, limits));
  std::string out;
  JsonWriter json(out);
  json.begin_object().member("prompt", prompt.text).key("tokens").begin_array();
  for (const TokenId token : prompt.tokens) {
    json.begin_object().member("id", token).member("text", shown_token(*model.tokenizer, token));
    json.member("is_special", model.tokenizer->is_control(token)).end_object();
  }
  json.end_array().end_object();
  return out;
}

ApiResult<std::string> chat_tokens_body(std::string_view body, const ServedModel& model,
                                        const ApiLimits& limits) {
  OUTRIDER_TRY(const RequestBody parsed, RequestBody::parse(body, limits.json_depth));
  OUTRIDER_RETURN_IF_ERROR(check_model(parsed.root(), model));
  OUTRIDER_TRY(const ChatPrompt prompt, make_chat_prompt(parsed.root(), model, limits));
  return input_tokens_body("chat.completion.input_tokens", prompt.tokens);
}

ApiResult<std::string> response_tokens_body(std::string_view body, const ServedModel& model,
                                            const ApiLimits& limits) {
  OUTRIDER_TRY(const RequestBody parsed, RequestBody::parse(body, limits.json_depth));
  OUTRIDER_RETURN_IF_ERROR(check_model(parsed.root(), model));
  CallContext context;
  context.model = &model;
  context.limits = limits;
  OUTRIDER_TRY(const ResponsesSpec spec, read_responses_request(parsed.root(), context));
  return input_tokens_body("response.input_tokens", spec.prompt.tokens);
}

ApiResult<std::string> message_tokens_body(std::string_view body, const ServedModel& model,
                                           const ApiLimits& limits) {
  OUTRIDER_TRY(const RequestBody parsed, RequestBody::parse(body, limits.json_depth));
  OUTRIDER_RETURN_IF_ERROR(check_model(parsed.root(), model));
  std::vector<std::string> ignored;
  OUTRIDER_TRY(const ChatPrompt prompt, make_messages_prompt(parsed.root(), model, limits, ignored));
  return input_tokens_body({}, prompt.tokens);
}

ApiResult<std::string> one_model_body(std::string_view /*body*/, const ServedModel& /*model*/,
                                      const ApiLimits& /*limits*/) {
  return not_served_error("this server has one model, which stays loaded; --models serves several");
}

std::string models_body(const ServedModel& model) {
  std::string out;
  JsonWriter json(out);
  json.begin_object().member("object", "list").key("data").begin_array();
  write_model(json, model, model.name);
  for (const std::string& alias : model.aliases) write_model(json, model, alias);
  const auto adapters = model.adapters ? model.adapters->list() : std::vector<AdapterInfo>();
  for (const AdapterInfo& adapter : adapters) write_model(json, model, adapter.name);
  json.end_array().end_object();
  return out;
}

ApiResult<std::string> model_body(std::string_view name, const ServedModel& model) {
  if (!model.is_named(name) && !model.has_adapter(name)) return wrong_model(name, model);
  std::string out;
  JsonWriter json(out);
  write_model(json, model, name);
  return out;
}

std::string version_body() { return R"({"version":")" OUTRIDER_VERSION R"("})"; }

}  // namespace outrider
