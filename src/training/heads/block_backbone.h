// SPDX-License-Identifier: Apache-2.0
// The network that block drafters share: one pass over a block of places, each of which sees the target's
// features of all tokens before the block, and the block itself.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <vector>

#include "outrider/result.h"
#include "training/core/decoder_layers.h"
#include "training/heads/draft_head.h"

namespace outrider::training {

struct BlockOptions {
  int64_t layers = 2;
  int64_t block = 8;
  int64_t anchors = 16;           // blocks per window in one step
  double gamma = 4.0;             // the k-th place that drafts weighs exp(-(k - 1) / gamma)
  std::vector<int64_t> ids = {};  // layers of the target that it reads outputs of; empty: the published ones
  int64_t mask = -1;              // token at places to be drafted; -1: the last of the vocabulary
  int64_t mlp = 0;                // inner units of the MLPs; 0: as many as in the target
};

void add_block_options(CLI::App& command, BlockOptions& options);
// With the published layers and mask where none are given. Errors: layers that the target does not have.
Result<BlockOptions> completed(BlockOptions options, const ModelConfig& target);

class BlockBackbone {
 public:
  BlockBackbone(const HeadContext& context, const BlockOptions& options);

  const BlockOptions& options() const { return options_; }
  const at::Tensor& output_head() const { return output_head_; }  // the target's, in the type of products
  at::ScalarType type() const { return type_; }
  at::Device device() const { return device_; }
  FeatureNeeds needs() const;
  NamedTensors parameters() const;
  // Where the blocks of a step begin, int64 [windows, count], so that `following` tokens come after each;
  // undefined: no block fits into the windows.
  at::Tensor anchors(const HeadBatch& batch, int64_t following) const;
  // A loss of 0 that depends on the parameters.
  at::Tensor no_loss() const { return (fc_ * 0).sum(); }
  // The normalised states of blocks that begin at `anchors`, int64 [windows, count], with the token there:
  // [windows * count * block, hidden] in the type of products.
  at::Tensor states(const HeadBatch& batch, const at::Tensor& anchors) const;
  // The keys of config.json that all kinds of block drafters have.
  nlohmann::json config() const;

 private:
  struct Layer {
    LayerWeights weights;
    at::Tensor q_norm, k_norm;  // [head_dim]
  };
  // Projects rows, x [windows * rows, width], to heads, normalises and rotates them by their positions,
  // places int64 [windows, rows]; returns [windows, rows, heads, head_dim].
  at::Tensor turned(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& norm,
                    const at::Tensor& places) const;

  BlockOptions options_;
  ModelConfig target_;
  at::Device device_;
  at::ScalarType type_;
  LayerShape shape_;
  at::Tensor fc_, hidden_norm_, norm_;
  std::vector<Layer> layers_;
  at::Tensor embedding_, output_head_;
  Rotations rotations_;
};

// Draws the positions at which blocks begin, int64 [windows, count], from the batch's seed: one in each of
// `count` equal sections of every window. Within `length` a token comes before and `following` tokens come
// after each position.
at::Tensor sampled_anchors(uint64_t seed, at::IntArrayRef windows_and_count, int64_t length,
                           int64_t following);

}  // namespace outrider::training
