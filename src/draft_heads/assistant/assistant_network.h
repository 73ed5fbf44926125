// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "draft_heads/head_file.h"
#include "draft_heads/head_layer.h"
#include "models/backend/layer_backend.h"
#include "models/model.h"
#include "models/rotary_embedding.h"

namespace outrider {

struct AssistantConfig {
  ModelConfig layers;                  // the assistant's own layers, which make only queries
  std::vector<int64_t> target_layers;  // by layer: the target's layer that it reads keys and values of
  std::vector<int64_t> cache_layers;   // by layer: the place of that layer in the target's cache
  int64_t target_hidden = 0;
  int64_t clusters = 0;       // of tokens; 0: all tokens have logits
  int64_t used_clusters = 0;  // clusters with tokens that have logits
};

// Errors: a target of another family; keys that are missing or contradict the target; the first tensor that
// is missing, has another shape, or does not belong there.
Result<AssistantConfig> read_assistant_config(const HeadFile& head, const ModelConfig& target);

// The drafter that is published with Gemma 4 models. Its layers have no keys and values: they attend to the
// target's, of its last layer with a window and its last one without. A row reads a token's embedding in the
// target and a state: the target's of the token before, or the state of the drafted token's parent. All rows
// of a draft have the position of the pending token.
class AssistantNetwork {
 public:
  // Errors: as of read_assistant_config() and of loading weights. The target must outlive the network.
  static Result<std::unique_ptr<AssistantNetwork>> load(const HeadFile& head, Model* target,
                                                        const ModelOptions& options);

  const AssistantConfig& config() const { return config_; }
  int64_t weight_bytes() const { return weight_bytes_; }
  void reserve(int64_t rows);

  // A row of a draft.
  struct Row {
    TokenId token = 0;
    const KvSequence* sequence = nullptr;  // the target's; the row sees all its entries; not empty
  };
  struct Output {
    std::span<const float> logits;  // [rows, vocab_size]
    FloatAddress states;            // [rows, hidden size of the target]
  };
  // states [rows, hidden size of the target]: what each row reads beside its token. The output is valid until
  // the next call.
  Output run(std::span<const Row> rows, FloatAddress states, KvCache& cache);

 private:
  // Its attention has only queries.
  struct Layer : HeadLayer {
    Norm attention_output_norm, mlp_output_norm;  // [hidden]
    float scalar = 1.0f;                          // of the residual stream after the layer
  };

  AssistantNetwork(AssistantConfig config, Model* target);
  Status load_weights(const HeadFile& head, const ModelOptions& options);
  Status load_layer(const HeadFile& head, WeightLoader& loader, size_t index);
  void enter(std::span<const Row> rows, FloatAddress states);
  void run_layer(size_t index, int64_t rows, KvCache& cache);
  void add_normed(const Norm& norm, int64_t rows);
  std::span<const float> make_logits(int64_t rows);
  void make_cluster_logits(FloatAddress state, std::span<const float> clusters, std::span<float> logits);

  AssistantConfig config_;
  Model* target_;
  LayerBackend& backend_;
  std::vector<RotaryEmbedding> ropes_;  // of config_.layers.ropes
  WeightMemory memory_;
  int64_t weight_bytes_ = 0;
  Projection before_, after_, clusters_, output_;
  PackedMatrix embeddings_;        // [vocab_size, hidden], where there are clusters
  std::vector<TokenId> ordering_;  // [vocab_size]: tokens by cluster
  Norm norm_;
  std::vector<Layer> layers_;
  std::vector<AttentionShape> shapes_;  // by layer
  // Scratch of a pass, and the entries that its rows see.
  std::vector<int32_t> pages_, numbers_;
  std::vector<AttentionRow> seen_;
  std::vector<int32_t> positions_;
  std::vector<TokenId> tokens_;
  std::vector<size_t> order_;
  std::vector<TokenId> likely_;  // tokens of the used clusters
  std::vector<float> rotations_, clustered_logits_;
  BackendRows embedded_{backend_}, joined_{backend_}, hidden_{backend_}, normed_{backend_},
      queries_{backend_}, attended_{backend_}, delta_{backend_}, gate_up_rows_{backend_}, gated_{backend_},
      cluster_logits_{backend_}, logits_{backend_}, states_{backend_};
};

}  // namespace outrider
