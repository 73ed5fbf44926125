// SPDX-License-Identifier: Apache-2.0
#include "server/api/requests/embeddings_request.h"

#include <array>

#include "server/api/requests/common_fields.h"

namespace outrider {
namespace {

ApiStatus read_encoding(const RequestField& field, EmbeddingsSpec& spec) {
  constexpr std::array<std::string_view, 2> kEncodings = {"float", "base64"};
  OUTRIDER_TRY(const int encoding, field.one_of(kEncodings));
  spec.is_base64 = encoding == 1;
  return api_ok();
}

ApiStatus read_dimensions(const RequestField& field, EmbeddingsSpec& spec) {
  OUTRIDER_TRY(spec.dimensions, field.integer(1, spec.model->hidden_size));
  return api_ok();
}

ApiStatus read_special_tokens(const RequestField& field, EmbeddingsSpec& spec) {
  OUTRIDER_TRY(spec.add_special_tokens, field.boolean());
  return api_ok();
}

ApiStatus read_shared_field(const RequestField& field, EmbeddingsSpec& spec) {
  return read_common_field(field, spec);
}

ApiStatus skip_inputs(const RequestField&, EmbeddingsSpec&) { return api_ok(); }

constexpr FieldRule<EmbeddingsSpec> kEmbeddingsRules[] = {{"input", skip_inputs},
                                                          {"encoding_format", read_encoding},
                                                          {"dimensions", read_dimensions},
                                                          {"add_special_tokens", read_special_tokens},
                                                          {"truncate_prompt_tokens", read_shared_field},
                                                          {"model", read_shared_field},
                                                          {"user", read_shared_field}};

}  // namespace

ApiResult<EmbeddingsSpec> read_embeddings_request(const RequestField& root, const CallContext& context) {
  if (!context.model->pooling) {
    return not_served_error(
        "the model is served to rank texts; start the server with --pooling last or mean");
  }
  EmbeddingsSpec spec;
  spec.model = context.model;
  spec.limits = &context.limits;
  spec.max_tokens = 1;
  OUTRIDER_RETURN_IF_ERROR(read_members<EmbeddingsSpec>(root, kEmbeddingsRules, spec));
  OUTRIDER_TRY(const RequestField input, root.at("input"));
  OUTRIDER_RETURN_IF_ERROR(read_prompts(input, spec));
  for (CompletionPrompt& one : spec.prompts) truncate_prompt(spec, one.tokens);
  spec.request.sampling.temperature = 0;
  spec.request.pooling = *context.model->pooling;
  return spec;
}

}  // namespace outrider
