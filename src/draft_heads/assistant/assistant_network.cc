// SPDX-License-Identifier: Apache-2.0
#include "draft_heads/assistant/assistant_network.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>
#include <string>
#include <utility>

namespace outrider {
namespace {

// The tokens of all clusters, one after the other.
Result<std::vector<TokenId>> read_ordering(const HeadFile& head, int64_t vocab) {
  const StoredTensor& stored = head.tensors.find("masked_embedding.token_ordering")->second;
  std::vector<TokenId> tokens;
  for (int64_t i = 0; i < vocab && stored.dtype_name == "I64"; ++i) {
    int64_t token = 0;
    std::memcpy(&token, stored.data.data() + i * int64_t{sizeof token}, sizeof token);
    if (token < 0 || token >= vocab) break;
    tokens.push_back(static_cast<TokenId>(token));
  }
  if (std::ssize(tokens) == vocab) return tokens;
  return head.fail("tensor masked_embedding.token_ordering: expected tokens below " + std::to_string(vocab) +
                   " of the type I64, found others");
}

// The size of the heads that a RoPE turns.
int64_t turned_head_dim(const ModelConfig& config, size_t rope) {
  for (int64_t layer = 0; layer < config.layer_count; ++layer)
    if (std::cmp_equal(config.traits_of(layer).rope, rope)) return config.sizes_of(layer).head_dim;
  return config.head_dim;
}

}  // namespace

AssistantNetwork::AssistantNetwork(AssistantConfig config, Model* target)
    : config_(std::move(config)),
      target_(target),
      backend_(target->backend()),
      norm_(empty_norm(config_.layers.norm.epsilon)),
      layers_(static_cast<size_t>(config_.layers.layer_count)) {
  for (size_t i = 0; i < config_.layers.ropes.size(); ++i)
    ropes_.emplace_back(config_.layers.ropes[i], turned_head_dim(config_.layers, i), /*context=*/0);
  for (size_t i = 0; i < layers_.size(); ++i) {
    AttentionShape& shape = shapes_.emplace_back(AttentionShape::of(config_.layers, static_cast<int64_t>(i)));
    shape.kv_head_count = target->config().sizes_of(config_.target_layers[i]).kv_head_count;
    shape.stores = false;
    if (shape.window != 0) ++shape.window;  // so many entries before the row, which has none itself
  }
}

Result<std::unique_ptr<AssistantNetwork>> AssistantNetwork::load(const HeadFile& head, Model* target,
                                                                 const ModelOptions& options) {
  OUTRIDER_TRY(AssistantConfig config, read_assistant_config(head, target->config()));
  auto network = std::unique_ptr<AssistantNetwork>(new AssistantNetwork(std::move(config), target));
  OUTRIDER_RETURN_IF_ERROR(network->load_weights(head, options));
  return network;
}

Status AssistantNetwork::load_weights(const HeadFile& head, const ModelOptions& options) {
  const int64_t hidden = config_.layers.hidden_size, vocab = config_.layers.vocab_size;
  WeightLoader loader(head.file, options);
  OUTRIDER_RETURN_IF_ERROR(
      loader.plan({{"pre_projection", hidden}}, 2 * config_.target_hidden, /*bias=*/false, before_));
  OUTRIDER_RETURN_IF_ERROR(
      loader.plan({{"post_projection", config_.target_hidden}}, hidden, /*bias=*/false, after_));
  OUTRIDER_RETURN_IF_ERROR(loader.read_vector("model.norm.weight", hidden, norm_.weight));
  for (size_t i = 0; i < layers_.size(); ++i) OUTRIDER_RETURN_IF_ERROR(load_layer(head, loader, i));
  if (config_.clusters == 0) {
    OUTRIDER_RETURN_IF_ERROR(loader.plan({{"model.embed_tokens", vocab}}, hidden, /*bias=*/false, output_));
  } else {
    OUTRIDER_RETURN_IF_ERROR(loader.plan({{"masked_embedding.centroids", config_.clusters}}, hidden,
                                         /*bias=*/false, clusters_));
    OUTRIDER_RETURN_IF_ERROR(loader.plan_table({"model.embed_tokens", vocab}, hidden, embeddings_));
    OUTRIDER_TRY(ordering_, read_ordering(head, vocab));
  }
  OUTRIDER_TRY(memory_, loader.pack_all());
  weight_bytes_ = loader.packed_bytes();
  return {};
}

Status AssistantNetwork::load_layer(const HeadFile& head, WeightLoader& loader, size_t index) {
  Layer& layer = layers_[index];
  const int64_t hidden = config_.layers.hidden_size;
  const LayerSizes sizes = config_.layers.sizes_of(static_cast<int64_t>(index));
  const std::string prefix = "model.layers." + std::to_string(index) + ".";
  const std::pair<const char*, Norm*> norms[] = {{"input_layernorm", &layer.attention_norm},
                                                 {"post_attention_layernorm", &layer.attention_output_norm},
                                                 {"pre_feedforward_layernorm", &layer.mlp_norm},
                                                 {"post_feedforward_layernorm", &layer.mlp_output_norm}};
  for (const auto& [name, norm] : norms) {
    *norm = empty_norm(config_.layers.norm.epsilon);
    OUTRIDER_RETURN_IF_ERROR(loader.read_vector(prefix + name + ".weight", hidden, norm->weight));
  }
  OUTRIDER_RETURN_IF_ERROR(
      loader.read_vector(prefix + "self_attn.q_norm.weight", sizes.head_dim, layer.q_norm));
  OUTRIDER_TRY(const std::vector<float> scalar, read_numbers(head, prefix + "layer_scalar"));
  layer.scalar = scalar.front();
  const auto plan = [&](std::vector<WeightLoader::Part> parts, int64_t k, Projection& projection) {
    for (WeightLoader::Part& part : parts) part.name = prefix + part.name;
    return loader.plan(parts, k, /*bias=*/false, projection);
  };
  OUTRIDER_RETURN_IF_ERROR(plan({{"self_attn.q_proj", sizes.q_size()}}, hidden, layer.qkv));
  OUTRIDER_RETURN_IF_ERROR(plan({{"self_attn.o_proj", hidden}}, sizes.q_size(), layer.attention_output));
  OUTRIDER_RETURN_IF_ERROR(
      plan({{"mlp.gate_proj", sizes.ffn_size}, {"mlp.up_proj", sizes.ffn_size}}, hidden, layer.gate_up));
  return plan({{"mlp.down_proj", hidden}}, sizes.ffn_size, layer.down);
}

void AssistantNetwork::reserve(int64_t rows) {
  const int64_t hidden = config_.layers.hidden_size;
  embedded_.reserve(rows, config_.target_hidden);
  joined_.reserve(rows, 2 * config_.target_hidden);
  for (BackendRows* scratch : {&hidden_, &normed_, &delta_}) scratch->reserve(rows, hidden);
  for (size_t i = 0; i < layers_.size(); ++i) {
    const Layer& layer = layers_[i];
    queries_.reserve(rows, layer.qkv.n);
    attended_.reserve(rows, layer.qkv.n);
    gate_up_rows_.reserve(rows, layer.gate_up.n);
    gated_.reserve(rows, layer.down.k);
    rotations_.resize(std::max(rotations_.size(), static_cast<size_t>(rows * shapes_[i].head_dim)));
    for (const Projection* projection : {&layer.qkv, &layer.attention_output, &layer.gate_up, &layer.down})
      backend_.reserve_product(*projection, rows);
  }
  for (const Projection* projection : {&before_, &after_, &clusters_, &output_})
    if (projection->n > 0) backend_.reserve_product(*projection, rows);
  cluster_logits_.reserve(rows, std::max<int64_t>(1, config_.clusters));
  logits_.reserve(rows, config_.layers.vocab_size);
  states_.reserve(rows, config_.target_hidden);
}

// hidden_ = what the layers read, and what every row sees.
void AssistantNetwork::enter(std::span<const Row> rows, FloatAddress states) {
  const int64_t size = config_.target_hidden;
  pages_.clear();
  tokens_.clear();
  positions_.clear();
  numbers_.resize(rows.size());
  std::iota(numbers_.begin(), numbers_.end(), 0);
  for (const Row& row : rows) {
    tokens_.push_back(row.token);
    positions_.push_back(row.sequence->length());
    const std::span<const int32_t> pages = row.sequence->pages();
    pages_.insert(pages_.end(), pages.begin(), pages.end());
  }
  seen_.clear();
  size_t first = 0;
  for (const Row& row : rows) {
    seen_.push_back({.pages = pages_.data() + first,
                     .prefix_len = row.sequence->length(),
                     .tail = nullptr,
                     .tail_len = 0});
    first += row.sequence->pages().size();
  }
  target_->embed_tokens(tokens_, embedded_.data());
  backend_.copy_strided({embedded_.data(), size, joined_.data(), 2 * size, std::ssize(rows), size});
  backend_.copy_strided({states, size, joined_.data() + size, 2 * size, std::ssize(rows), size});
  backend_.project(before_, joined_.data(), hidden_.data(), std::ssize(rows));
}

AssistantNetwork::Output AssistantNetwork::run(std::span<const Row> rows, FloatAddress states,
                                               KvCache& cache) {
  const int64_t count = std::ssize(rows);
  reserve(count);
  enter(rows, states);
  for (size_t i = 0; i < layers_.size(); ++i) run_layer(i, count, cache);
  backend_.normalize(hidden_.data(), norm_, hidden_.data(), count);
  backend_.project(after_, hidden_.data(), states_.data(), count);
  return {.logits = make_logits(count), .states = states_.data()};
}

void AssistantNetwork::run_layer(size_t index, int64_t rows, KvCache& cache) {
  const Layer& layer = layers_[index];
  const int64_t hidden = config_.layers.hidden_size;
  const RotaryEmbedding& rope =
      ropes_[static_cast<size_t>(config_.layers.traits_of(static_cast<int64_t>(index)).rope)];
  for (int64_t row = 0; row < rows; ++row)
    rope.fill(positions_[static_cast<size_t>(row)], rotations_.data() + row * rope.rotated());
  backend_.normalize(hidden_.data(), layer.attention_norm, normed_.data(), rows);
  backend_.project(layer.qkv, normed_.data(), queries_.data(), rows);
  const LayerBackend::Attention attention{.shape = &shapes_[index],
                                          .q_norm = layer.q_norm,
                                          .cache = &cache,
                                          .layer = config_.cache_layers[index],
                                          .qkv = queries_.data()};
  backend_.rotate_and_store(attention, {.rows = numbers_,
                                        .slots = numbers_,  // nothing is stored
                                        .rotations = {rotations_.data(), rope.rotated()},
                                        .query_factors = {}});
  backend_.attend(attention, seen_, attended_.data());
  backend_.project(layer.attention_output, attended_.data(), delta_.data(), rows);
  add_normed(layer.attention_output_norm, rows);
  backend_.normalize(hidden_.data(), layer.mlp_norm, normed_.data(), rows);
  backend_.project(layer.gate_up, normed_.data(), gate_up_rows_.data(), rows);
  backend_.activate({.x = gate_up_rows_.data(),
                     .y = gated_.data(),
                     .rows = rows,
                     .dim = layer.down.k,
                     .activation = config_.layers.mlp.activation});
  backend_.project(layer.down, gated_.data(), delta_.data(), rows);
  add_normed(layer.mlp_output_norm, rows);
  if (layer.scalar != 1.0f) backend_.scale(layer.scalar, hidden_.data(), rows * hidden);
}

// hidden_ += norm(delta_)
void AssistantNetwork::add_normed(const Norm& norm, int64_t rows) {
  backend_.normalize(delta_.data(), norm, delta_.data(), rows);
  backend_.add(delta_.data(), hidden_.data(), rows * config_.layers.hidden_size);
}

std::span<const float> AssistantNetwork::make_logits(int64_t rows) {
  const int64_t hidden = config_.layers.hidden_size, vocab = config_.layers.vocab_size;
  if (config_.clusters == 0) {
    backend_.project(output_, hidden_.data(), logits_.data(), rows);
    return backend_.read(logits_.data(), rows * vocab);
  }
  backend_.project(clusters_, hidden_.data(), cluster_logits_.data(), rows);
  clustered_logits_.resize(static_cast<size_t>(rows * vocab));
  for (int64_t row = 0; row < rows; ++row)
    make_cluster_logits(
        hidden_.data() + row * hidden,
        backend_.read(cluster_logits_.data() + row * config_.clusters, config_.clusters),
        std::span(clustered_logits_).subspan(static_cast<size_t>(row * vocab), static_cast<size_t>(vocab)));
  return clustered_logits_;
}

// Tokens of the likeliest clusters have logits. All other tokens get one logit, which is
// below all of them.
void AssistantNetwork::make_cluster_logits(FloatAddress state, std::span<const float> clusters,
                                           std::span<float> logits) {
  const auto size = static_cast<size_t>(config_.layers.vocab_size / config_.clusters);
  const auto used = static_cast<ptrdiff_t>(config_.used_clusters);
  order_.resize(clusters.size());
  std::iota(order_.begin(), order_.end(), size_t{0});
  std::partial_sort(order_.begin(), order_.begin() + used, order_.end(), [&](size_t a, size_t b) {
    return clusters[a] != clusters[b] ? clusters[a] > clusters[b] : a < b;
  });
  likely_.clear();
  for (ptrdiff_t i = 0; i < used; ++i) {
    const auto tokens = std::span(ordering_).subspan(order_[static_cast<size_t>(i)] * size, size);
    likely_.insert(likely_.end(), tokens.begin(), tokens.end());
  }
  backend_.project_rows(embeddings_, likely_, state, logits_.data());
  const std::span<const float> found = backend_.read(logits_.data(), std::ssize(likely_));
  float least = std::numeric_limits<float>::infinity();
  for (const float logit : found) least = std::min(least, logit);
  std::ranges::fill(logits, least - 1.0f);
  for (size_t i = 0; i < likely_.size(); ++i) logits[static_cast<size_t>(likely_[i])] = found[i];
}

}  // namespace outrider
