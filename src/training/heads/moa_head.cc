// SPDX-License-Identifier: Apache-2.0
#include "training/heads/moa_head.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "base/counter_rng.h"
#include "config/methods.h"
#include "training/core/autograd_ops.h"
#include "training/core/decoder_layers.h"
#include "training/head_data/frozen_target.h"
#include "training/heads/row_loss.h"
#include "training/heads/vocabulary/draft_vocabulary.h"
#include "training/heads/vocabulary/loss_vocabulary.h"

namespace outrider::training {
namespace {

struct MoaOptions {
  int64_t target_layers = 0;  // number of the target's last layers that drafts run through
  bool without_layers = false;
  bool without_cross = false;
  int64_t kv_heads = 0;  // in all layers; 0: half as many as in the target
  int64_t mlp = 0;       // inner units in all layers; 0: 1.5 times the width of their inputs
  int64_t lsa_mlp = 0;   // inner units of layer self-attention; 0: as in other layers
  // Weight of the KL divergence, as published; the distance between states has weight 1.
  double distribution_weight = 0.1;
  int64_t draft_vocab = 0;    // tokens that it can draft; 0: see draft_tokens()
  int64_t loss_vocab = 8192;  // tokens that a step compares; 0: all
};

// Numbers of the keys and values of one layer.
int64_t kv_hidden_of(const ModelConfig& target) { return 2 * target.kv_head_count * target.head_dim; }

// Heads rotate pairs of numbers.
bool has_even_heads(int64_t hidden, int64_t heads) { return hidden % (2 * heads) == 0; }

class MoaHead final : public DraftHead {
 public:
  MoaHead(const HeadContext& context, const MoaOptions& options, const at::Tensor& draft_tokens);

  FeatureNeeds needs() const override;
  NamedTensors parameters() const override;
  HeadLoss loss(const HeadBatch& batch) const override;
  HeadExport exported() const override;
  nlohmann::json fingerprint() const override {
    return {{"distribution_weight", options_.distribution_weight}, {"loss_vocab", options_.loss_vocab}};
  }

 private:
  struct Layer {
    LayerShape shape;
    LayerWeights weights;
  };
  // A layer of the target on the training device, matrices in the type of products.
  Layer frozen_layer(const FrozenTarget& target, int64_t index) const;
  // Projects normalised rows to heads, [batch, n, heads, head_dim]; places = {batch, n}.
  static at::Tensor heads_of(const at::Tensor& normed, const at::Tensor& weight, const Layer& layer,
                             at::IntArrayRef places);
  at::Tensor normed(const at::Tensor& x, const Layer& layer) const {
    return normalized(x, layer.weights.input_norm, layer.shape.epsilon, type_);
  }
  bool uses_layers() const { return !options_.without_layers && !options_.without_cross; }

  // The input of cross-attention for every token, f32 [rows, hidden].
  at::Tensor context_states(const HeadBatch& batch) const;
  // f32 [rows, hidden]
  at::Tensor self_attention(const HeadBatch& batch) const;
  // Keys and values of cross-attention.
  std::pair<at::Tensor, at::Tensor> context_entries(const HeadBatch& batch) const;
  // In the next two, row t sees what is known of the tokens up to last_known[t], int64 [windows, length].
  at::Tensor cross_attention(const HeadBatch& batch, const at::Tensor& states,
                             const at::Tensor& last_known) const;
  // The target's last layers and its final norm, [rows, hidden], as in drafting: a row attends to the
  // target's own entries of the known tokens, and to drafted entries of the tokens after them. (The authors'
  // training has drafted entries of all tokens, except where nothing new is known after them.)
  at::Tensor frozen_layers(const HeadBatch& batch, at::Tensor states, const at::Tensor& last_known) const;
  // The output head's input at one depth of a draft, [windows * (length - depth), hidden]; rows with a token
  // after the end are left out. `self` is the output of self-attention, [windows, length, hidden], `context`
  // holds the entries of cross-attention and `memories` the entries of the target's last layers, to which the
  // draft's entries are added.
  at::Tensor drafted(const at::Tensor& self, int64_t depth, const UnrolledMemory& context,
                     std::vector<UnrolledMemory>& memories) const;
  // Measures as in drafting: the target's state is known for the tokens up to t and token t + 1 is pending.
  // In step d, row t stands for token t + d.
  std::vector<DepthAgreement> measure(const HeadBatch& batch) const;
  // The cached keys and values of the target's last layers, each [windows, length, kv_heads, head_dim].
  std::vector<UnrolledMemory> target_memories(const HeadBatch& batch) const;

  MoaOptions options_;
  ModelConfig target_;
  at::Device device_;
  at::ScalarType type_;
  double hard_share_;
  LossVocabulary vocabulary_;
  int64_t measured_depth_;
  Layer layers_, self_, cross_;  // layer self-attention, self-attention, cross-attention
  at::Tensor to_hidden_, to_hidden_bias_;
  std::vector<Layer> frozen_;  // the target's last layers
  at::Tensor target_norm_, embedding_, output_head_;
  Rotations layer_places_, places_, target_places_;
};

MoaHead::MoaHead(const HeadContext& context, const MoaOptions& options, const at::Tensor& draft_tokens)
    : options_(options),
      target_(context.target.config()),
      device_(context.device),
      type_(context.options.products),
      hard_share_(context.options.hard_share),
      vocabulary_(context.token_counts, draft_tokens, options.loss_vocab),
      measured_depth_(context.options.measured_depth) {
  const FrozenTarget& target = context.target;
  at::Generator generator = seeded_generator(context.options.seed);
  const auto make = [&](int64_t hidden, int64_t heads, int64_t mlp) {
    const LayerShape shape{.hidden = hidden,
                           .input = hidden,
                           .heads = heads,
                           .kv_heads = options.kv_heads,
                           .head_dim = hidden / heads,
                           .ffn = mlp > 0 ? mlp : hidden * 3 / 2,
                           .epsilon = target_.norm.epsilon};
    return Layer{shape, initial_layer(shape, /*has_input_norm=*/true, generator)};
  };
  const int64_t kv_hidden = kv_hidden_of(target_);
  self_ = make(target_.hidden_size, target_.head_count, options.mlp);
  cross_ = make(target_.hidden_size, target_.head_count, options.mlp);
  layers_ = make(kv_hidden, moa_layer_heads(target_), options.lsa_mlp > 0 ? options.lsa_mlp : options.mlp);
  constexpr double kDeviation = 0.02;
  to_hidden_ = normal_weight({target_.hidden_size, kv_hidden}, kDeviation, generator);
  to_hidden_bias_ = at::zeros({target_.hidden_size});
  make_trainable(parameters(), device_);
  const auto shared = [&](const at::Tensor& weight) { return weight.to(device_).to(type_); };
  embedding_ = shared(target.embedding());
  output_head_ = shared(target.output_head());
  target_norm_ = target.weight("model.norm.weight").to(device_);
  for (int64_t i = target_.layer_count - options.target_layers; i < target_.layer_count; ++i) {
    frozen_.push_back(frozen_layer(target, i));
  }
  ModelConfig own = target_;  // without the target's RoPE scaling, as published
  own.ropes.front().scaling = {};
  own.head_dim = self_.shape.head_dim;
  places_ = make_rotations(own, context.options.context, device_);
  own.head_dim = layers_.shape.head_dim;
  layer_places_ = make_rotations(own, target_.layer_count, device_);
  target_places_ = make_rotations(target_, context.options.context, device_);
}

MoaHead::Layer MoaHead::frozen_layer(const FrozenTarget& target, int64_t index) const {
  Layer layer{layer_shape(target_), target.layer(index)};
  for (at::Tensor* weight : {&layer.weights.q, &layer.weights.k, &layer.weights.v, &layer.weights.o,
                             &layer.weights.gate, &layer.weights.up, &layer.weights.down})
    *weight = weight->to(device_).to(type_);
  for (at::Tensor* weight : {&layer.weights.input_norm, &layer.weights.mlp_norm})
    *weight = weight->to(device_);
  return layer;
}

FeatureNeeds MoaHead::needs() const {
  FeatureNeeds needs{.taps = {},
                     .keys_values = uses_layers() || options_.target_layers > 0,
                     .likeliest = vocabulary_.draft_tokens().defined()};
  if (options_.target_layers > 0) needs.taps = {target_.layer_count - options_.target_layers};
  return needs;
}

NamedTensors MoaHead::parameters() const {
  NamedTensors named;
  append_layer(self_.weights, "self_attention.", named);
  if (!options_.without_cross) append_layer(cross_.weights, "cross_attention.", named);
  if (!uses_layers()) return named;
  append_layer(layers_.weights, "layer_self_attention.", named);
  named.emplace_back("Ekv2E.weight", to_hidden_);
  named.emplace_back("Ekv2E.bias", to_hidden_bias_);
  return named;
}

at::Tensor MoaHead::heads_of(const at::Tensor& normed, const at::Tensor& weight, const Layer& layer,
                             at::IntArrayRef places) {
  return product(normed, weight).view({places[0], places[1], -1, layer.shape.head_dim});
}

at::Tensor MoaHead::context_states(const HeadBatch& batch) const {
  const int64_t rows = batch.tokens.numel();
  if (!uses_layers()) return batch.hidden.flatten(0, 1);
  const int64_t count = target_.layer_count, width = layers_.shape.hidden;
  // A state is a layer's keys and values, head by head.
  const at::Tensor states = batch.keys_values.reshape({rows * count, width});
  const at::Tensor x = normed(states, layers_);
  const LayerWeights& weights = layers_.weights;
  const at::Tensor cos = layer_places_.cos, sin = layer_places_.sin;
  const at::Tensor q = rotate(heads_of(x, weights.q, layers_, {rows, count}), cos, sin);
  const at::Tensor k = rotate(heads_of(x, weights.k, layers_, {rows, count}), cos, sin);
  const at::Tensor v = heads_of(x, weights.v, layers_, {rows, count});
  const LayerOutput out =
      finished_layer(layers_.shape, weights, states, masked_attention(q, k, v, at::Tensor()));
  const at::Tensor mean = (out.x + out.delta.to(at::kFloat)).view({rows, count, width}).mean(1);
  return product(mean.to(type_), to_hidden_).to(at::kFloat) + to_hidden_bias_;
}

at::Tensor MoaHead::self_attention(const HeadBatch& batch) const {
  const int64_t windows = batch.tokens.size(0), length = batch.tokens.size(1);
  const at::Tensor states = at::embedding(embedding_, batch.tokens.flatten()).to(at::kFloat);
  const at::Tensor x = normed(states, self_);
  const at::Tensor cos = places_.cos.narrow(0, 0, length), sin = places_.sin.narrow(0, 0, length);
  const at::Tensor q = rotate(heads_of(x, self_.weights.q, self_, {windows, length}), cos, sin);
  const at::Tensor k = rotate(heads_of(x, self_.weights.k, self_, {windows, length}), cos, sin);
  const at::Tensor v = heads_of(x, self_.weights.v, self_, {windows, length});
  const LayerOutput out = finished_layer(self_.shape, self_.weights, states, causal_attention(q, k, v));
  return out.x + out.delta.to(at::kFloat);
}

std::pair<at::Tensor, at::Tensor> MoaHead::context_entries(const HeadBatch& batch) const {
  const int64_t windows = batch.tokens.size(0), length = batch.tokens.size(1);
  const at::Tensor x = normed(context_states(batch), cross_);
  const at::Tensor k = rotate(heads_of(x, cross_.weights.k, cross_, {windows, length}),
                              places_.cos.narrow(0, 0, length), places_.sin.narrow(0, 0, length));
  return {k, heads_of(x, cross_.weights.v, cross_, {windows, length})};
}

at::Tensor MoaHead::cross_attention(const HeadBatch& batch, const at::Tensor& states,
                                    const at::Tensor& last_known) const {
  if (options_.without_cross) return states;
  const int64_t windows = batch.tokens.size(0), length = batch.tokens.size(1);
  const at::Tensor places = at::arange(length, batch.tokens.options());
  const at::Tensor unseen = places.view({1, 1, length}).gt(last_known.unsqueeze(2));
  const auto [k, v] = context_entries(batch);
  const at::Tensor q = rotate(heads_of(normed(states, cross_), cross_.weights.q, cross_, {windows, length}),
                              places_.cos.narrow(0, 0, length), places_.sin.narrow(0, 0, length));
  const LayerOutput out =
      finished_layer(cross_.shape, cross_.weights, states, masked_attention(q, k, v, unseen));
  return out.x + out.delta.to(at::kFloat);
}

at::Tensor MoaHead::frozen_layers(const HeadBatch& batch, at::Tensor states,
                                  const at::Tensor& last_known) const {
  const int64_t windows = batch.tokens.size(0), length = batch.tokens.size(1);
  const at::Tensor entries = at::arange(length, batch.tokens.options()).view({1, 1, length});
  const at::Tensor is_drafted = entries.gt(last_known.unsqueeze(2));
  const at::Tensor is_later = entries.gt(entries.view({1, length, 1}));
  const at::Tensor unseen = at::cat({is_drafted, is_drafted.logical_not().logical_or(is_later)}, 2);
  const std::vector<UnrolledMemory> known = target_memories(batch);
  const at::Tensor cos = target_places_.cos.narrow(0, 0, length);
  const at::Tensor sin = target_places_.sin.narrow(0, 0, length);
  for (size_t i = 0; i < frozen_.size(); ++i) {
    const Layer& layer = frozen_[i];
    const at::Tensor x = normed(states, layer);
    const auto heads = [&](const at::Tensor& weight) {
      return heads_of(x, weight, layer, {windows, length});
    };
    const at::Tensor k = at::cat({known[i].keys.front(), rotate(heads(layer.weights.k), cos, sin)}, 1);
    const at::Tensor v = at::cat({known[i].values.front(), heads(layer.weights.v)}, 1);
    const at::Tensor mixed = masked_attention(rotate(heads(layer.weights.q), cos, sin), k, v, unseen);
    const LayerOutput out = finished_layer(layer.shape, layer.weights, states, mixed);
    states = out.x + out.delta.to(at::kFloat);
  }
  return normalized(states, target_norm_, target_.norm.epsilon, type_);
}

HeadLoss MoaHead::loss(const HeadBatch& batch) const {
  const int64_t windows = batch.tokens.size(0), length = batch.tokens.size(1);
  const at::Tensor places = at::arange(length, batch.tokens.options());
  const at::Tensor periods = sampled_periods(batch.seed, windows).to(device_).unsqueeze(1);
  const at::Tensor known = at::logical_or(batch.counted.eq(0), places.remainder(periods).eq(0));
  const at::Tensor last_known = std::get<0>(at::cummax(places * known.to(at::kLong), 1));
  const at::Tensor weight = vocabulary_.lessons(batch).flatten();
  const at::Tensor share = weight / weight.sum().clamp_min(1.0);
  const auto distance = [&](const at::Tensor& a, const at::Tensor& b) {
    return (at::smooth_l1_loss(a, b, at::Reduction::None).mean(-1) * share).sum();
  };
  const at::Tensor hidden = batch.hidden.flatten(0, 1);
  at::Tensor states = cross_attention(batch, self_attention(batch), last_known);
  at::Tensor feature_loss, output;
  if (options_.target_layers == 0) {
    feature_loss = distance(states, hidden);
    output = states.to(type_);
  } else {
    const at::Tensor truth = batch.features.flatten(0, 1);
    states = at::where(known.flatten().unsqueeze(1), truth, states);
    output = frozen_layers(batch, states, last_known);
    feature_loss = 0.5 * distance(output.to(at::kFloat), hidden) + 0.5 * distance(states, truth);
  }
  const LossTokens tokens = vocabulary_.compared(batch, output_head_);
  const at::Tensor head = tokens.rows_of(output_head_);
  const auto rows = [&](const at::Tensor& x) -> LossOfRows {
    return {.hidden = x, .head = head, .weight = weight, .bias = tokens.bias};
  };
  const TargetLogits truth = target_logits(rows(hidden.to(type_)));
  const RowLoss distribution = distribution_loss(rows(output), truth, hard_share_);
  HeadLoss result{.loss = options_.distribution_weight * distribution.loss + feature_loss, .depths = {}};
  if (batch.measures) result.depths = measure(batch);
  return result;
}

std::vector<UnrolledMemory> MoaHead::target_memories(const HeadBatch& batch) const {
  std::vector<UnrolledMemory> memories;
  for (int64_t i = target_.layer_count - options_.target_layers; i < target_.layer_count; ++i) {
    const at::Tensor entries = batch.keys_values.select(2, i).to(type_);
    memories.push_back({{entries.select(3, 0)}, {entries.select(3, 1)}});
  }
  return memories;
}

UnrolledMemory first_rows(const UnrolledMemory& memory, int64_t rows) {
  UnrolledMemory cut;
  for (const at::Tensor& k : memory.keys) cut.keys.push_back(k.narrow(1, 0, rows));
  for (const at::Tensor& v : memory.values) cut.values.push_back(v.narrow(1, 0, rows));
  return cut;
}

at::Tensor MoaHead::drafted(const at::Tensor& self, int64_t depth, const UnrolledMemory& context,
                            std::vector<UnrolledMemory>& memories) const {
  const int64_t windows = self.size(0), rows = self.size(1) - depth;
  const auto rotated = [&](const at::Tensor& heads, const Rotations& by) {
    return rotate(heads, by.cos.narrow(0, depth, rows), by.sin.narrow(0, depth, rows));
  };
  at::Tensor states = self.narrow(1, depth, rows).reshape({windows * rows, -1});
  const auto attend = [&](const Layer& layer, const Rotations& by, const at::Tensor& x,
                          const UnrolledMemory& memory) {
    const at::Tensor q = rotated(heads_of(x, layer.weights.q, layer, {windows, rows}), by);
    const LayerOutput out =
        finished_layer(layer.shape, layer.weights, states, unrolled_attention(q, first_rows(memory, rows)));
    states = out.x + out.delta.to(at::kFloat);
  };
  if (!options_.without_cross) attend(cross_, places_, normed(states, cross_), context);
  for (size_t i = 0; i < frozen_.size(); ++i) {
    const Layer& layer = frozen_[i];
    const at::Tensor x = normed(states, layer);
    memories[i].keys.push_back(rotated(heads_of(x, layer.weights.k, layer, {windows, rows}), target_places_));
    memories[i].values.push_back(heads_of(x, layer.weights.v, layer, {windows, rows}));
    attend(layer, target_places_, x, memories[i]);
  }
  if (frozen_.empty()) return states.to(type_);
  return normalized(states, target_norm_, target_.norm.epsilon, type_);
}

std::vector<DepthAgreement> MoaHead::measure(const HeadBatch& batch) const {
  const int64_t windows = batch.tokens.size(0), length = batch.tokens.size(1);
  const at::Tensor self = self_attention(batch).view({windows, length, -1});
  std::vector<UnrolledMemory> memories = target_memories(batch);
  UnrolledMemory context;
  if (!options_.without_cross) {
    const auto [k, v] = context_entries(batch);
    context = {{k}, {v}};
  }
  const LossTokens tokens = vocabulary_.all(output_head_);
  std::vector<DepthAgreement> depths;
  for (int64_t depth = 1; depth <= std::min(measured_depth_, length - 2); ++depth) {
    const int64_t rows = length - depth;  // the other rows would stand after the end
    const at::Tensor output = drafted(self, depth, context, memories);
    const at::Tensor hidden = batch.hidden.narrow(1, depth, rows).reshape({windows * rows, -1}).to(type_);
    at::Tensor draft = likeliest_tokens(output, tokens.rows_of(output_head_));
    if (tokens.ids.defined()) draft = tokens.ids.index_select(0, draft);
    const at::Tensor agrees =
        draft.eq(likeliest_tokens(hidden, output_head_)).view({windows, rows}).to(at::kFloat);
    depths.push_back({at::constant_pad_nd(agrees, {0, depth}), shifted(batch.counted, depth + 1), {}});
  }
  return depths;
}

HeadExport MoaHead::exported() const {
  nlohmann::json config = {{"architectures", {"MOASpecModel"}},
                           {"model_type", "moa_spec"},
                           {"hidden_size", target_.hidden_size},
                           {"num_attention_heads", target_.head_count},
                           {"rms_norm_eps", static_cast<double>(target_.norm.epsilon)},
                           {"rope_theta", target_.ropes.front().theta},
                           {"vocab_size", target_.vocab_size},
                           {"hidden_act", "silu"},
                           {"disable_LSA", options_.without_layers},
                           {"target_layer_inference", options_.target_layers},
                           {"torch_dtype", "bfloat16"}};
  const auto name = [&](const char* prefix, const LayerShape& shape) {
    config[std::string(prefix) + "_num_key_value_heads"] = shape.kv_heads;
    config[std::string(prefix) + "_intermediate_size"] = shape.ffn;
  };
  name("self_attention", self_.shape);
  if (options_.without_cross) config["disable_cross_attention"] = true;
  if (!options_.without_cross) name("cross_attention", cross_.shape);
  if (uses_layers()) {
    name("layer_self_attention", layers_.shape);
    config["kv_hidden_size"] = layers_.shape.hidden;
    if (layers_.shape.heads != target_.head_count)
      config["layer_self_attention_num_attention_heads"] = layers_.shape.heads;
  }
  HeadExport result{.tensors = parameters(), .config = std::move(config)};
  append_vocabulary_map(vocabulary_.draft_tokens(), target_.vocab_size, result);
  return result;
}

Result<std::unique_ptr<DraftHead>> make(const HeadContext& context, MoaOptions options) {
  const ModelConfig& target = context.target.config();
  if (options.kv_heads == 0) options.kv_heads = std::max<int64_t>(1, target.kv_head_count / 2);
  const int64_t heads = target.head_count, layer_heads = moa_layer_heads(target);
  if (!has_even_heads(target.hidden_size, heads)) {
    return usage_error(
        fmt::format("moa: a target whose {} numbers of a state are {} heads of an even size is expected",
                    target.hidden_size, heads));
  }
  if (heads % options.kv_heads != 0 || layer_heads % options.kv_heads != 0) {
    return usage_error(fmt::format(
        "--kv-heads: a divisor of {} heads, and of {} in layer self-attention, is expected, found {}", heads,
        layer_heads, options.kv_heads));
  }
  if (options.target_layers >= target.layer_count) {
    return usage_error("--tli: fewer layers than the target's " + std::to_string(target.layer_count) +
                       " are expected, found " + std::to_string(options.target_layers));
  }
  if (options.target_layers > 0 && (target.qkv_bias || target.qk_norm != QkNorm::kNone)) {
    return usage_error("--tli: a target without biases or norms of queries and keys is expected, found " +
                       target.family + "; train with --tli 0");
  }
  OUTRIDER_TRY(const at::Tensor tokens, draft_tokens(context, options.draft_vocab, target.vocab_size));
  return std::unique_ptr<DraftHead>(std::make_unique<MoaHead>(context, options, tokens));
}

void add_options(CLI::App& command, MoaOptions& options) {
  command.add_option("--tli", options.target_layers, "last layers of the target that drafts run through")
      ->check(CLI::Range(0, 3));
  command
      .add_option("--kv-heads", options.kv_heads, "key-value heads of its layers; 0: half of the target's")
      ->check(CLI::NonNegativeNumber);
  command.add_option("--mlp", options.mlp, "size of its layers' MLPs; 0: half as much again as their inputs")
      ->check(CLI::NonNegativeNumber);
  command.add_option("--lsa-mlp", options.lsa_mlp, "size of layer self-attention's MLP; 0: as --mlp")
      ->check(CLI::NonNegativeNumber);
  add_draft_vocab_option(command, options.draft_vocab, "all");
  add_loss_vocab_option(command, options.loss_vocab);
  command
      .add_option("--distribution-weight", options.distribution_weight,
                  "weight of the KL divergence from the target's distribution")
      ->check(CLI::NonNegativeNumber);
  command.add_flag("--no-lsa", options.without_layers,
                   "cross-attention to the last hidden state instead of all layers' keys and values");
  command.add_flag("--no-cross", options.without_cross, "only self-attention");
}

}  // namespace

int64_t moa_layer_heads(const ModelConfig& target) {
  return has_even_heads(kv_hidden_of(target), target.head_count) ? target.head_count
                                                                 : 2 * target.kv_head_count;
}

at::Tensor sampled_periods(uint64_t seed, int64_t windows) {
  constexpr int64_t kMin = 6, kChoices = 9;
  at::Tensor periods = at::empty({windows}, at::kLong);
  for (int64_t i = 0; i < windows; ++i) {
    const uint64_t bits = mix64(seed ^ mix64(static_cast<uint64_t>(i)));
    periods.data_ptr<int64_t>()[i] = kMin + static_cast<int64_t>(bits % kChoices);
  }
  return periods;
}

HeadRecipe moa_recipe() {
  auto options = std::make_shared<MoaOptions>();
  HeadOptions defaults;  // the published rate falls in a line to a twentieth
  defaults.learning_rate = 2e-3;
  defaults.final_learning_rate = 1e-4;
  defaults.is_linear = true;
  return {.command = method_key(Method::kMoa),
          .decoding_type = Method::kMoa,
          .description = "Train a Mixture of Attentions: it reads all layers of the target's cache",
          .defaults = defaults,
          .add_options = [options](CLI::App& command) { add_options(command, *options); },
          .make = [options](const HeadContext& context) { return make(context, *options); }};
}

}  // namespace outrider::training
