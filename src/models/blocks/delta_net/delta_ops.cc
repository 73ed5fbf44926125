// SPDX-License-Identifier: Apache-2.0
#include "models/blocks/delta_net/delta_ops.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "base/portable_math.h"

namespace outrider {
namespace {

constexpr Worker kOneWorker{0, 1};
constexpr float kNormEpsilon = 1e-6F;  // of the lengths of queries and keys

float softplus(float x) {
  return x > 20 ? x : static_cast<float>(portable_log1p(portable_exp(static_cast<double>(x))));
}

}  // namespace

// One key head with its value heads, over all sequences.
class DeltaShare {
 public:
  DeltaShare(DeltaOps& ops, const DeltaWeights& net, const DeltaRows& rows, const LayerStates& states,
             DeltaOps::Scratch& scratch, int64_t key_head)
      : ops_(ops),
        traits_(ops.traits_),
        kernels_(ops.ops_.kernels()),
        net_(net),
        rows_(rows),
        states_(states),
        scratch_(scratch),
        key_head_(key_head) {}

  void run(const StateSequence& sequence) {
    sequence_ = &sequence;
    state_ = states_.state(sequence);
    const auto nodes = std::ssize(sequence.nodes);
    scratch_.convolved.resize(static_cast<size_t>((nodes + 1) * convolved_size()));
    scratch_.states.resize(static_cast<size_t>(sequence.slot_count * matrix_size()));
    apply_committed();
    for (const StateNode& node : sequence.nodes) {
      if (node.row != StateNode::kOtherPass && node.update != StateNode::kNotKept) keep_update(node);
    }
    for (int64_t i = 0; i < nodes; ++i) convolve_node(i);
    for (int64_t head = 0; head < traits_.values_per_key(); ++head) follow_nodes(head);
    // Entries before the last few leave no trace in the state of the convolution.
    const int64_t applied = sequence.is_chain ? nodes - 1 : 0;
    for (int64_t i = std::max<int64_t>(0, applied - (traits_.taps - 1)); i < applied; ++i)
      push(update_of(sequence.nodes[static_cast<size_t>(i)]));
  }

 private:
  int64_t matrix_size() const { return traits_.key_dim * traits_.value_dim; }
  int64_t convolved_size() const {
    return 2 * traits_.key_dim + traits_.values_per_key() * traits_.value_dim;
  }
  int64_t width() const { return traits_.update_size() + traits_.value_size(); }
  float* projected(const StateNode& node) const { return rows_.projected + node.row * width(); }
  float* matrix(int64_t value_head) const {
    return state_ + (traits_.taps - 1) * traits_.conv_size() + value_head * matrix_size();
  }
  const float* update_of(const StateNode& node) const {
    return node.row != StateNode::kOtherPass ? projected(node) : states_.update(*sequence_, node.update);
  }

  // Calls work(first, count) for each run of an update's numbers that the convolution of this head reads: its
  // queries, its keys, the values of each of its value heads.
  template <typename Work>
  void for_each_part(Work&& work) const {
    const int64_t keys = traits_.key_heads * traits_.key_dim;
    work(key_head_ * traits_.key_dim, traits_.key_dim);
    work(keys + key_head_ * traits_.key_dim, traits_.key_dim);
    for (int64_t i = 0; i < traits_.values_per_key(); ++i)
      work(2 * keys + traits_.value_head(key_head_, i) * traits_.value_dim, traits_.value_dim);
  }

  void apply_committed() {
    float* convolved = scratch_.convolved.data();
    states_.for_each_committed(*sequence_, [&](const float* update) {
      std::vector<const float*>& inputs = inputs_of_committed(update);
      convolve(inputs, convolved);
      for (int64_t i = 0; i < traits_.values_per_key(); ++i) {
        float* state = matrix(traits_.value_head(key_head_, i));
        const DeltaArgs applied = step(convolved, update, i, {.state = state, .new_state = state});
        kernels_.delta_steps(&applied, 1);
      }
      push(update);
    });
  }

  std::vector<const float*>& inputs_of_committed(const float* update) {
    inputs_.clear();
    for (int64_t row = 0; row + 1 < traits_.taps; ++row)
      inputs_.push_back(state_ + row * traits_.conv_size());
    inputs_.push_back(update);
    return inputs_;
  }

  // The state of the convolution moves on by one entry.
  void push(const float* update) const {
    const int64_t size = traits_.conv_size();
    for_each_part([&](int64_t first, int64_t count) {
      float* part = state_ + first;
      for (int64_t row = 0; row + 2 < traits_.taps; ++row)
        std::copy_n(part + (row + 1) * size, count, part + row * size);
      std::copy_n(update + first, count, part + (traits_.taps - 2) * size);
    });
  }

  void keep_update(const StateNode& node) const {
    const float* from = projected(node);
    float* to = states_.update(*sequence_, node.update);
    const auto copy = [&](int64_t first, int64_t count) { std::copy_n(from + first, count, to + first); };
    for_each_part(copy);
    for (int64_t i = 0; i < traits_.values_per_key(); ++i) {
      const int64_t head = traits_.value_head(key_head_, i);
      copy(traits_.conv_size() + head, 1);
      copy(traits_.conv_size() + traits_.value_heads + head, 1);
    }
  }

  // Convolves a node after the entries before it.
  void convolve_node(int64_t index) {
    const StateNode* node = &sequence_->nodes[static_cast<size_t>(index)];
    inputs_.assign(static_cast<size_t>(traits_.taps), nullptr);
    int64_t tap = traits_.taps - 1;
    for (; tap >= 0 && node != nullptr; --tap) {
      inputs_[static_cast<size_t>(tap)] = update_of(*node);
      node = node->parent == StateNode::kCommitted ? nullptr
                                                   : &sequence_->nodes[static_cast<size_t>(node->parent)];
    }
    for (int64_t row = traits_.taps - 2; tap >= 0; --tap, --row)
      inputs_[static_cast<size_t>(tap)] = state_ + row * traits_.conv_size();
    convolve(inputs_, scratch_.convolved.data() + index * convolved_size());
  }

  // out = queries and keys of length one, queries divided by sqrt(key_dim) as well, and the values.
  void convolve(const std::vector<const float*>& inputs, float* out) const {
    float* part = out;
    for_each_part([&](int64_t first, int64_t count) {
      std::fill_n(part, count, 0.0F);
      for (size_t tap = 0; tap < inputs.size(); ++tap) {
        const float* taps = net_.taps.data() + static_cast<int64_t>(tap) * traits_.conv_size() + first;
        const float* input = inputs[tap] + first;
        for (int64_t i = 0; i < count; ++i) part[i] += taps[i] * input[i];
      }
      part += count;
    });
    kernels_.activate({.x = out,
                       .y = out,
                       .rows = 1,
                       .dim = convolved_size(),
                       .activation = Activation::kSilu,
                       .is_gated = false},
                      kOneWorker);
    const int64_t dim = traits_.key_dim;
    const float epsilon = key_epsilon(traits_);
    kernels_.rms_norm({out, ops_.query_scale_.data(), out, 1, dim, epsilon}, kOneWorker);
    kernels_.rms_norm({out + dim, ops_.key_scale_.data(), out + dim, 1, dim, epsilon}, kOneWorker);
  }

  // The step of value head `index` of this key head.
  DeltaArgs step(const float* convolved, const float* update, int64_t index, DeltaArgs args) const {
    const auto head = static_cast<size_t>(traits_.value_head(key_head_, index));
    const float* rates = update + traits_.conv_size();
    const float* times = rates + traits_.value_heads;
    args.q = convolved;
    args.k = convolved + traits_.key_dim;
    args.v = convolved + 2 * traits_.key_dim + index * traits_.value_dim;
    args.rate = portable_sigmoid(rates[head]);
    args.decay = portable_exp(net_.decay[head] * softplus(times[head] + net_.time_bias[head]));
    args.key_dim = traits_.key_dim;
    args.value_dim = traits_.value_dim;
    return args;
  }

  // Takes a value head through all nodes.
  void follow_nodes(int64_t value) {
    const int64_t head = traits_.value_head(key_head_, value);
    const auto place = [&](int32_t slot) {
      return slot == StateNode::kStored ? matrix(head) : scratch_.states.data() + slot * matrix_size();
    };
    scratch_.steps.clear();
    for (const int32_t index : sequence_->order) {
      const StateNode& node = sequence_->nodes[static_cast<size_t>(index)];
      scratch_.steps.push_back(
          step(scratch_.convolved.data() + index * convolved_size(), update_of(node), value,
               {.state = place(node.from), .new_state = place(node.to), .y = output_of(node, head)}));
    }
    kernels_.delta_steps(scratch_.steps.data(), std::ssize(scratch_.steps));
    for (const StateNode& node : sequence_->nodes) {
      float* y = output_of(node, head);
      if (y != nullptr) gate(projected(node) + traits_.update_size() + head * traits_.value_dim, y);
    }
  }

  float* output_of(const StateNode& node, int64_t head) const {
    if (node.row == StateNode::kOtherPass) return nullptr;
    return rows_.y + node.row * traits_.value_size() + head * traits_.value_dim;
  }

  // y = norm(y) * silu(gates)
  void gate(float* gates, float* y) const {
    const int64_t dim = traits_.value_dim;
    kernels_.rms_norm({y, net_.norm.data(), y, 1, dim, ops_.epsilon_}, kOneWorker);
    kernels_.activate(
        {.x = gates, .y = gates, .rows = 1, .dim = dim, .activation = Activation::kSilu, .is_gated = false},
        kOneWorker);
    for (int64_t i = 0; i < dim; ++i) y[i] *= gates[i];
  }

  DeltaOps& ops_;
  const DeltaTraits& traits_;
  const KernelTable& kernels_;
  const DeltaWeights& net_;
  const DeltaRows& rows_;
  const LayerStates& states_;
  DeltaOps::Scratch& scratch_;
  const int64_t key_head_;
  const StateSequence* sequence_ = nullptr;
  float* state_ =
      nullptr;  // of the sequence: the last inputs of the convolution, then a matrix for each value head
  std::vector<const float*> inputs_;
};

Status load_delta_net(WeightLoader& loader, const ModelConfig& config, const LayerPlace& place,
                      DeltaWeights& net) {
  const std::string name = place.prefix + "linear_attn.";
  const DeltaTraits& delta = config.of_kinds.of<DeltaTraits>();
  OUTRIDER_RETURN_IF_ERROR(loader.plan({{name + "in_proj_qkv", delta.conv_size()},
                                        {name + "in_proj_b", delta.value_heads},
                                        {name + "in_proj_a", delta.value_heads},
                                        {name + "in_proj_z", delta.value_size()}},
                                       config.hidden_size, /*bias=*/false, net.input));
  OUTRIDER_RETURN_IF_ERROR(loader.plan({{name + "out_proj", config.hidden_size}}, delta.value_size(),
                                       /*bias=*/false, net.output));
  OUTRIDER_RETURN_IF_ERROR(
      loader.read_columns(name + "conv1d.weight", delta.conv_size(), delta.taps, net.taps));
  OUTRIDER_RETURN_IF_ERROR(loader.read_vector(name + "dt.bias", delta.value_heads, net.time_bias));
  OUTRIDER_RETURN_IF_ERROR(loader.read_vector(name + "decay.weight", delta.value_heads, net.decay));
  for (float& decay : net.decay) decay = delta.has_logs ? -portable_exp(decay) : decay;
  return loader.read_vector(name + "norm.weight", delta.value_dim, net.norm);
}

std::vector<float> query_scale(const DeltaTraits& traits) {
  return std::vector<float>(static_cast<size_t>(traits.key_dim), 1 / static_cast<float>(traits.key_dim));
}

std::vector<float> key_scale(const DeltaTraits& traits) {
  const auto dim = static_cast<float>(traits.key_dim);
  return std::vector<float>(static_cast<size_t>(traits.key_dim), 1 / std::sqrt(dim));
}

float key_epsilon(const DeltaTraits& traits) { return kNormEpsilon / static_cast<float>(traits.key_dim); }

DeltaOps::DeltaOps(const DeltaTraits& traits, float epsilon, const LayerOps& ops)
    : traits_(traits),
      epsilon_(epsilon),
      ops_(ops),
      query_scale_(query_scale(traits)),
      key_scale_(key_scale(traits)) {
  scratch_.resize(static_cast<size_t>(ops.pool().size()));
}

OperationCost DeltaOps::cost_of(const StatePlan& plan) const {
  constexpr int64_t kOperations =
      6;  // for each number of a matrix: decay aside, it is read twice and changed once
  int64_t nodes = 0;
  for (const StateSequence& sequence : plan.sequences()) nodes += std::ssize(sequence.nodes);
  const int64_t numbers = std::ssize(plan.sequences()) * traits_.state_size() +
                          nodes * (traits_.update_size() + 2 * traits_.value_size());
  return {.bytes = numbers * static_cast<int64_t>(sizeof(float)),
          .operations = kOperations * nodes * traits_.value_size() * traits_.key_dim};
}

void DeltaOps::run(const DeltaWeights& net, const StatePlan& plan, const DeltaRows& rows,
                   const LayerStates& states) {
  const OperationTimer timer = ops_.time("delta net", cost_of(plan));
  ops_.pool().run(static_cast<int>(scratch_.size()), [&](Worker worker) {
    const Range share = share_of(worker, traits_.key_heads);
    for (int64_t head = share.begin; head < share.end; ++head) {
      DeltaShare of_head(*this, net, rows, states, scratch_[static_cast<size_t>(worker.index)], head);
      for (const StateSequence& sequence : plan.sequences()) of_head.run(sequence);
    }
  });
}

}  // namespace outrider
