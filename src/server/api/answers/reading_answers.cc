// SPDX-License-Identifier: Apache-2.0
#include "server/api/answers/reading_answers.h"

#include <openssl/evp.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "server/api/answers/answer_figures.h"

namespace outrider {
namespace {

// Makes the Euclidean length 1; a vector of zeros stays as it is.
void normalize_length(std::vector<float>& vector) {
  double sum = 0;
  for (const float value : vector) sum += static_cast<double>(value) * value;
  if (sum == 0) return;
  const double factor = 1 / std::sqrt(sum);
  for (float& value : vector) value = static_cast<float>(value * factor);
}

std::string base64_of(const std::vector<float>& vector) {
  const size_t bytes = vector.size() * sizeof(float);
  std::string text((bytes + 2) / 3 * 4 + 1, '\0');  // EVP_EncodeBlock ends it with a zero
  const int length =
      EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()),
                      reinterpret_cast<const unsigned char*>(vector.data()), static_cast<int>(bytes));
  text.resize(static_cast<size_t>(length));
  return text;
}

}  // namespace

EmbeddingsAnswer::EmbeddingsAnswer(EmbeddingsSpec spec, std::vector<Request> requests)
    : GenerationCall(std::move(requests), false, spec.ignored),
      spec_(std::move(spec)),
      embeddings_(this->requests().size()) {}

void EmbeddingsAnswer::add(int choice, ChoiceDelta delta, std::string&) {
  if (!delta.completion) return;
  prompt_tokens_ += delta.completion->prompt_tokens;
  embeddings_[static_cast<size_t>(choice)] = std::move(delta.completion->embedding);
}

void EmbeddingsAnswer::write_embedding(JsonWriter& json, std::vector<float> embedding) const {
  if (spec_.dimensions) embedding.resize(static_cast<size_t>(*spec_.dimensions));
  normalize_length(embedding);
  spec_.is_base64 ? json.value(base64_of(embedding)) : json.value(embedding);
}

// Ollama's: vectors alone.
std::string EmbeddingsAnswer::ollama_body() {
  std::string out;
  JsonWriter json(out);
  json.begin_object();
  if (spec_.layout == EmbeddingsLayout::kOllamaOne) {
    json.key("embedding");
    write_embedding(json, std::move(embeddings_.front()));
    json.end_object();
    return out;
  }
  json.member("model", spec_.model->name).key("embeddings").begin_array();
  for (std::vector<float>& embedding : embeddings_) write_embedding(json, std::move(embedding));
  json.end_array().member("prompt_eval_count", prompt_tokens_).end_object();
  return out;
}

std::string EmbeddingsAnswer::body() {
  if (spec_.layout != EmbeddingsLayout::kOpenAi) return ollama_body();
  std::string out;
  JsonWriter json(out);
  json.begin_object().member("object", "list").key("data").begin_array();
  for (size_t i = 0; i < embeddings_.size(); ++i) {
    json.begin_object().member("object", "embedding").member("index", i).key("embedding");
    write_embedding(json, std::move(embeddings_[i]));
    json.end_object();
  }
  json.end_array().member("model", spec_.model->name).key("usage");
  write_usage(json, {.prompt_tokens = prompt_tokens_});
  json.end_object();
  return out;
}

RerankAnswer::RerankAnswer(RerankSpec spec, std::vector<Request> requests)
    : GenerationCall(std::move(requests), false, spec.ignored),
      spec_(std::move(spec)),
      logprobs_(this->requests().size()) {}

void RerankAnswer::add(int choice, ChoiceDelta delta, std::string&) {
  if (!delta.completion) return;
  const std::vector<TokenLogprobs>& logprobs = delta.completion->logprobs;
  if (!logprobs.empty()) logprobs_[static_cast<size_t>(choice)] = logprobs.front().logprob;
  if (choice % 2 == 0) prompt_tokens_ += delta.completion->prompt_tokens;
}

// The probability of "yes" against "no".
double RerankAnswer::score(size_t document) const {
  return 1 / (1 + std::exp(logprobs_[2 * document + 1] - logprobs_[2 * document]));
}

void RerankAnswer::write_result(JsonWriter& json, size_t document) const {
  json.begin_object().member("index", document);
  if (spec_.lists_documents)
    json.key("document").begin_object().member("text", spec_.documents[document]).end_object();
  json.member("relevance_score", score(document)).end_object();
}

std::string RerankAnswer::body() {
  std::vector<size_t> order(spec_.documents.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return score(a) > score(b); });
  order.resize(std::min(order.size(), spec_.max_results));
  std::string out;
  JsonWriter json(out);
  json.begin_object().member("object", "list").member("model", spec_.model->name).key("usage");
  write_usage(json, {.prompt_tokens = prompt_tokens_});
  json.key("results").begin_array();
  for (const size_t document : order) write_result(json, document);
  json.end_array().end_object();
  return out;
}

}  // namespace outrider
