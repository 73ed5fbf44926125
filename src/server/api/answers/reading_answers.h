// SPDX-License-Identifier: Apache-2.0
// Answers about given texts: embeddings and ranks.
#pragma once

#include <string>
#include <vector>

#include "server/api/generation_call.h"
#include "server/api/json_writer.h"
#include "server/api/requests/embeddings_request.h"
#include "server/api/requests/rerank_request.h"

namespace outrider {

// The answer of /v1/embeddings and of Ollama's routes: one vector of length 1 for each input.
class EmbeddingsAnswer final : public GenerationCall {
 public:
  EmbeddingsAnswer(EmbeddingsSpec spec, std::vector<Request> requests);

  void add(int choice, ChoiceDelta delta, std::string& events) override;
  std::string body() override;

 private:
  std::string ollama_body();
  void write_embedding(JsonWriter& json, std::vector<float> embedding) const;

  EmbeddingsSpec spec_;
  std::vector<std::vector<float>> embeddings_;  // by input
  int64_t prompt_tokens_ = 0;
};

// The answer of /v1/rerank, in the form that Jina, llama-server and vLLM share.
class RerankAnswer final : public GenerationCall {
 public:
  // Requests 2 i and 2 i + 1 ask for the log-probabilities of "yes" and of "no" about document i.
  RerankAnswer(RerankSpec spec, std::vector<Request> requests);

  void add(int choice, ChoiceDelta delta, std::string& events) override;
  std::string body() override;

 private:
  void write_result(JsonWriter& json, size_t document) const;
  double score(size_t document) const;

  RerankSpec spec_;
  std::vector<double> logprobs_;  // by request
  int64_t prompt_tokens_ = 0;
};

}  // namespace outrider
