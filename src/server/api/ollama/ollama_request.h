// SPDX-License-Identifier: Apache-2.0
// The bodies of Ollama's /api/chat and /api/generate.
#pragma once

#include <string_view>

#include "server/api/requests/chat_request.h"
#include "server/api/requests/embeddings_request.h"

namespace outrider {

struct OllamaSpec : ChatSpec {
  bool is_chat = true;           // else /api/generate
  bool only_loads = false;       // there is nothing to answer: clients load a model so
  bool returns_context = false;  // the answer lists the tokens of the conversation
};

// The name that clients give a model may end in ":latest".
bool names_model(std::string_view name, const ServedModel& model);
// Error: 404, the field names another model.
ApiStatus check_model_name(const RequestField& field, const ServedModel& model);

// Read a whole request except for the constraints on its output.
ApiResult<OllamaSpec> read_ollama_chat(const RequestField& root, const CallContext& context);
ApiResult<OllamaSpec> read_ollama_generate(const RequestField& root, const CallContext& context);
// `inputs`: the field that holds the texts. Error: the model is served to rank texts.
ApiResult<EmbeddingsSpec> read_ollama_embed(const RequestField& root, std::string_view inputs,
                                            const CallContext& context);

}  // namespace outrider
