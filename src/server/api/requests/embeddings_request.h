// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "server/api/requests/completion_request.h"

namespace outrider {

enum class EmbeddingsLayout : uint8_t { kOpenAi, kOllama, kOllamaOne };

struct EmbeddingsSpec : CompletionSpec {
  bool is_base64 = false;             // of 32-bit numbers, little-endian; else a list of numbers
  std::optional<int64_t> dimensions;  // only these first numbers are kept
  EmbeddingsLayout layout = EmbeddingsLayout::kOpenAi;
};

// Reads the body of /v1/embeddings. Error: the model is served to rank texts.
ApiResult<EmbeddingsSpec> read_embeddings_request(const RequestField& root, const CallContext& context);

}  // namespace outrider
