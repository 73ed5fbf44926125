// SPDX-License-Identifier: Apache-2.0
#include "server/api/answers/text_routes.h"

#include "base/quote.h"
#include "server/api/answers/token_text.h"
#include "server/api/json_text.h"
#include "server/api/requests/chat_request.h"
#include "server/api/requests/messages_request.h"
#include "server/api/requests/responses_request.h"

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
  return name == model.name ? api_ok() : ApiStatus(wrong_model(name, model));
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

void append_model(std::string& out, const ServedModel& model) {
  out += R"({"id":)";
  append_json_string(out, model.name);
  out += R"(,"object":"model","created":)" + std::to_string(model.created);
  out += R"(,"owned_by":"outrider","root":)";
  append_json_string(out, model.name);
  out += R"(,"parent":null,"max_model_len":)" + std::to_string(model.context);
  out += R"(,"meta":{"n_vocab":)" + std::to_string(model.vocab_size);
  out += R"(,"n_ctx":)" + std::to_string(model.context);
  out += R"(,"n_params":)" + std::to_string(model.info.parameters);
  out += R"(,"size":)" + std::to_string(model.info.weight_bytes);
  const std::pair<std::string_view, std::string_view> texts[] = {{"family", model.info.family},
                                                                 {"weights", model.info.weights},
                                                                 {"kernels", model.info.kernels},
                                                                 {"drafter", model.info.drafter}};
  for (const auto& [key, value] : texts) {
    out += ',';
    append_json_string(out, key);
    out += ':';
    append_json_string(out, value);
  }
  out += "}}";
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
  std::string out = R"({"count":)" + std::to_string(tokens.size());
  out += R"(,"max_model_len":)" + std::to_string(model.context) + R"(,"tokens":)";
  append_json_integers(out, tokens);
  if (with_texts) {
    out += R"(,"token_strs":[)";
    for (const TokenId token : tokens) {
      if (out.back() != '[') out += ',';
      append_json_string(out, shown_token(*model.tokenizer, token));
    }
    out += ']';
  }
  return out += '}';
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
  std::string text;
  append_json_string(text, model.tokenizer->decode(tokens, /*skip_special=*/false));
  return R"({"content":)" + text + R"(,"prompt":)" + text + "}";
}

ApiResult<std::string> apply_template_body(std::string_view body, const ServedModel& model,
                                           const ApiLimits& limits) {
  OUTRIDER_TRY(const RequestBody parsed, RequestBody::parse(body, limits.json_depth));
  OUTRIDER_RETURN_IF_ERROR(check_model(parsed.root(), model));
  OUTRIDER_TRY(const ChatPrompt prompt, make_chat_prompt(parsed.root(), model, limits));
  std::string out = R"({"prompt":)";
  append_json_string(out, prompt.text);
  out += R"(,"tokens":[)";
  for (const TokenId token : prompt.tokens) {
    if (out.back() != '[') out += ',';
    out += R"({"id":)" + std::to_string(token) + R"(,"text":)";
    append_json_string(out, shown_token(*model.tokenizer, token));
    out += R"(,"is_special":)";
    out += model.tokenizer->is_control(token) ? "true}" : "false}";
  }
  return out += "]}";
}

ApiResult<std::string> chat_tokens_body(std::string_view body, const ServedModel& model,
                                        const ApiLimits& limits) {
  OUTRIDER_TRY(const RequestBody parsed, RequestBody::parse(body, limits.json_depth));
  OUTRIDER_RETURN_IF_ERROR(check_model(parsed.root(), model));
  OUTRIDER_TRY(const ChatPrompt prompt, make_chat_prompt(parsed.root(), model, limits));
  return R"({"object":"chat.completion.input_tokens","input_tokens":)" +
         std::to_string(prompt.tokens.size()) + "}";
}

ApiResult<std::string> response_tokens_body(std::string_view body, const ServedModel& model,
                                            const ApiLimits& limits) {
  OUTRIDER_TRY(const RequestBody parsed, RequestBody::parse(body, limits.json_depth));
  OUTRIDER_RETURN_IF_ERROR(check_model(parsed.root(), model));
  CallContext context;
  context.model = &model;
  context.limits = limits;
  OUTRIDER_TRY(const ResponsesSpec spec, read_responses_request(parsed.root(), context));
  return R"({"object":"response.input_tokens","input_tokens":)" + std::to_string(spec.prompt.tokens.size()) +
         "}";
}

ApiResult<std::string> message_tokens_body(std::string_view body, const ServedModel& model,
                                           const ApiLimits& limits) {
  OUTRIDER_TRY(const RequestBody parsed, RequestBody::parse(body, limits.json_depth));
  OUTRIDER_RETURN_IF_ERROR(check_model(parsed.root(), model));
  OUTRIDER_TRY(const ChatPrompt prompt, make_messages_prompt(parsed.root(), model, limits));
  return R"({"input_tokens":)" + std::to_string(prompt.tokens.size()) + "}";
}

std::string models_body(const ServedModel& model) {
  std::string out = R"({"object":"list","data":[)";
  append_model(out, model);
  return out += "]}";
}

ApiResult<std::string> model_body(std::string_view name, const ServedModel& model) {
  if (name != model.name) return wrong_model(name, model);
  std::string out;
  append_model(out, model);
  return out;
}

std::string version_body() { return R"({"version":")" OUTRIDER_VERSION R"("})"; }

}  // namespace outrider
