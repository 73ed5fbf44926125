// SPDX-License-Identifier: Apache-2.0
#include "server/api/ollama/ollama_calls.h"

#include <memory>
#include <utility>

#include "server/api/ollama/ollama_answer.h"
#include "server/api/ollama/ollama_request.h"

namespace outrider {
namespace {

ParsedCall parse_ollama(OllamaSpec spec, const CallContext& context) {
  const std::string_view field = spec.is_chat ? "messages" : "prompt";
  OUTRIDER_TRY(std::vector<Request> requests, chat_requests(spec, context, field));
  return std::unique_ptr<GenerationCall>(
      std::make_unique<OllamaAnswer>(std::move(spec), context, std::move(requests)));
}

}  // namespace

ParsedCall parse_ollama_chat(const RequestField& root, const CallContext& context) {
  OUTRIDER_TRY(OllamaSpec spec, read_ollama_chat(root, context));
  return parse_ollama(std::move(spec), context);
}

ParsedCall parse_ollama_generate(const RequestField& root, const CallContext& context) {
  OUTRIDER_TRY(OllamaSpec spec, read_ollama_generate(root, context));
  return parse_ollama(std::move(spec), context);
}

ParsedCall parse_ollama_embed(const RequestField& root, const CallContext& context) {
  OUTRIDER_TRY(EmbeddingsSpec spec, read_ollama_embed(root, "input", context));
  return embeddings_call(std::move(spec), context, "input");
}

ParsedCall parse_ollama_embeddings(const RequestField& root, const CallContext& context) {
  OUTRIDER_TRY(EmbeddingsSpec spec, read_ollama_embed(root, "prompt", context));
  spec.layout = EmbeddingsLayout::kOllamaOne;
  return embeddings_call(std::move(spec), context, "prompt");
}

}  // namespace outrider
