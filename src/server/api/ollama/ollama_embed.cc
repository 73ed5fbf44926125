// SPDX-License-Identifier: Apache-2.0
// The bodies of Ollama's /api/embed and /api/embeddings.
#include "server/api/field_rules.h"
#include "server/api/ollama/ollama_request.h"
#include "server/api/requests/common_fields.h"

namespace outrider {
namespace {

ApiStatus skip_embed_field(const RequestField&, EmbeddingsSpec&) { return api_ok(); }

ApiStatus log_embed_field(const RequestField& field, EmbeddingsSpec& spec) {
  spec.ignored.push_back(field.path());
  return api_ok();
}

ApiStatus read_embed_model(const RequestField& field, EmbeddingsSpec& spec) {
  return check_model_name(field, *spec.model);
}

// A longer text is cut, unless it is false.
ApiStatus read_embed_truncate(const RequestField& field, EmbeddingsSpec& spec) {
  OUTRIDER_TRY(const bool truncates, field.boolean());
  if (!truncates) spec.prompt_limit.reset();
  return api_ok();
}

ApiStatus read_embed_dimensions(const RequestField& field, EmbeddingsSpec& spec) {
  OUTRIDER_TRY(spec.dimensions, field.integer(1, spec.model->hidden_size));
  return api_ok();
}

constexpr FieldRule<EmbeddingsSpec> kEmbedRules[] = {
    {"model", read_embed_model},          {"input", skip_embed_field},  {"prompt", skip_embed_field},
    {"truncate", read_embed_truncate},    {"options", log_embed_field}, {"keep_alive", log_embed_field},
    {"dimensions", read_embed_dimensions}};

}  // namespace

ApiResult<EmbeddingsSpec> read_ollama_embed(const RequestField& root, std::string_view inputs,
                                            const CallContext& context) {
  if (!context.model->pooling) {
    return not_served_error(
        "the model is served to rank texts; start the server with --pooling last or mean");
  }
  EmbeddingsSpec spec;
  spec.model = context.model;
  spec.limits = &context.limits;
  spec.layout = EmbeddingsLayout::kOllama;
  spec.max_tokens = 1;
  spec.prompt_limit = -1;
  OUTRIDER_RETURN_IF_ERROR(read_members<EmbeddingsSpec>(root, kEmbedRules, spec));
  OUTRIDER_TRY(const RequestField input, root.at(inputs));
  OUTRIDER_RETURN_IF_ERROR(read_prompts(input, spec));
  if (inputs == "prompt" && spec.prompts.size() > 1) return input.expected("a string");
  for (CompletionPrompt& one : spec.prompts) truncate_prompt(spec, one.tokens);
  spec.request.sampling.temperature = 0;
  spec.request.pooling = *context.model->pooling;
  return spec;
}

}  // namespace outrider
