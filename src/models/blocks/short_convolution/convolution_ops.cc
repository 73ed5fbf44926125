// SPDX-License-Identifier: Apache-2.0
#include "models/blocks/short_convolution/convolution_ops.h"

#include <algorithm>
#include <string>

namespace outrider {
namespace {

// The share of one worker: some numbers of every row.
class ConvolutionShare {
 public:
  ConvolutionShare(const ConvolutionWeights& convolution, const ConvolutionRows& rows,
                   const LayerStates& states, Range share)
      : convolution_(convolution), rows_(rows), states_(states), share_(share) {}

  void run(const StateSequence& sequence) const {
    float* state = states_.state(sequence);
    states_.for_each_committed(sequence, [&](const float* update) { apply(update, state); });
    for (const StateNode& node : sequence.nodes) {
      if (node.row != StateNode::kOtherPass) make_update(sequence, node);
    }
    for (const StateNode& node : sequence.nodes) {
      if (node.row != StateNode::kOtherPass) convolve_row(sequence, node, state);
    }
    for (size_t i = 0; sequence.is_chain && i + 1 < sequence.nodes.size(); ++i)
      apply(update_of(sequence, sequence.nodes[i]), state);
  }

 private:
  int64_t last_rows() const { return convolution_.tap_count() - 1; }  // of the state

  // The state moves on by one entry.
  void apply(const float* update, float* state) const {
    const int64_t size = convolution_.size;
    for (int64_t i = share_.begin; i < share_.end; ++i) {
      for (int64_t row = 0; row + 1 < last_rows(); ++row) state[row * size + i] = state[(row + 1) * size + i];
      state[(last_rows() - 1) * size + i] = update[i];
    }
  }

  float* projected(const StateNode& node) const { return rows_.projected + node.row * 3 * convolution_.size; }

  const float* update_of(const StateSequence& sequence, const StateNode& node) const {
    return node.row != StateNode::kOtherPass ? projected(node) : states_.update(sequence, node.update);
  }

  // b becomes b * x.
  void make_update(const StateSequence& sequence, const StateNode& node) const {
    float* b = projected(node);
    const float* x = b + 2 * convolution_.size;
    for (int64_t i = share_.begin; i < share_.end; ++i) b[i] *= x[i];
    if (node.update == StateNode::kNotKept) return;
    std::copy(b + share_.begin, b + share_.end, states_.update(sequence, node.update) + share_.begin);
  }

  // b * x of the entry `back` >= 1 entries before a node.
  const float* before(const StateSequence& sequence, const StateNode& node, int64_t back,
                      const float* state) const {
    const StateNode* at = &node;
    for (; back > 0 && at->parent != StateNode::kCommitted; --back)
      at = &sequence.nodes[static_cast<size_t>(at->parent)];
    return back == 0 ? update_of(sequence, *at) : state + (last_rows() - back) * convolution_.size;
  }

  void convolve_row(const StateSequence& sequence, const StateNode& node, const float* state) const {
    const int64_t size = convolution_.size;
    const float* gate = projected(node) + size;
    float* y = rows_.y + node.row * size;
    std::fill(y + share_.begin, y + share_.end, 0.0F);
    for (int64_t tap = 0; tap <= last_rows(); ++tap) {
      const float* input = before(sequence, node, last_rows() - tap, state);
      const float* taps = convolution_.taps.data() + tap * size;
      for (int64_t i = share_.begin; i < share_.end; ++i) y[i] += taps[i] * input[i];
    }
    for (int64_t i = share_.begin; i < share_.end; ++i) {
      const float bias = convolution_.bias.empty() ? 0.0F : convolution_.bias[static_cast<size_t>(i)];
      y[i] = gate[i] * (y[i] + bias);
    }
  }

  const ConvolutionWeights& convolution_;
  const ConvolutionRows& rows_;
  const LayerStates& states_;
  Range share_;
};

}  // namespace

Status load_convolution(WeightLoader& loader, const ModelConfig& config, const LayerPlace& place,
                        ConvolutionWeights& weights) {
  const std::string name = place.prefix + "conv.";
  const int64_t size = config.hidden_size;
  const auto [taps, bias] = config.of_kinds.of<ConvolutionTraits>();
  weights.size = size;
  OUTRIDER_RETURN_IF_ERROR(loader.plan({{name + "in_proj", 3 * size}}, size, bias, weights.input));
  OUTRIDER_RETURN_IF_ERROR(loader.plan({{name + "out_proj", size}}, size, bias, weights.output));
  OUTRIDER_RETURN_IF_ERROR(loader.read_columns(name + "conv.weight", size, taps, weights.taps));
  return bias ? loader.read_vector(name + "conv.bias", size, weights.bias) : Status();
}

void convolve(const LayerOps& ops, const ConvolutionWeights& weights, const StatePlan& plan,
              const ConvolutionRows& rows, const LayerStates& states) {
  constexpr int64_t kParts = 4;  // b, c and x, and what is made of them
  const int64_t numbers = kParts * rows.rows * weights.size;
  const OperationTimer timer =
      ops.time("short convolution", {.bytes = numbers * static_cast<int64_t>(sizeof(float))});
  ops.pool().run(ops.shares_for(rows.rows * weights.size), [&](Worker worker) {
    const ConvolutionShare share(weights, rows, states, share_of(worker, weights.size));
    for (const StateSequence& sequence : plan.sequences()) share.run(sequence);
  });
}

}  // namespace outrider
