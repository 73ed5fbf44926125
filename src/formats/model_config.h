// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "formats/layer_kind.h"
#include "outrider/result.h"
#include "outrider/sampling_params.h"
#include "outrider/token.h"
#include "tensor/activation.h"

namespace outrider {

// How the frequencies of RoPE change for contexts longer than in training.
// - kLinear: all are divided by `factor`.
// - kDynamic: from position `original_context` on, a row's base grows with its own position.
// - kLlama3: wavelengths above original_context / low_freq_factor are divided by `factor`, wavelengths below
//   original_context / high_freq_factor are kept, and wavelengths between are blended.
// - kYarn: frequencies that turn less than beta_slow times within the original context are divided by
//   `factor`, frequencies that turn more than beta_fast times are kept, and the rest is blended.
// - kLongRope: a divisor for each frequency, one set for contexts up to the original one, one for longer.
enum class RopeScalingKind : uint8_t { kNone, kLinear, kDynamic, kLlama3, kYarn, kLongRope };

struct RopeScaling {
  RopeScalingKind kind = RopeScalingKind::kNone;
  double factor = 1.0;
  double low_freq_factor = 1.0;
  double high_freq_factor = 4.0;
  double beta_fast = 32.0;
  double beta_slow = 1.0;
  bool truncates_range = true;    // kYarn: the range of blended frequencies begins and ends at whole numbers
  double attention_factor = 1.0;  // cosines and sines are multiplied by it
  int64_t original_context = 8192;
  // Divisors per frequency, [rotated numbers / 2]: kLongRope's, or the divisors in a GGUF file
  // (rope_freqs.weight), which replace the formula of kLlama3 when not empty.
  std::vector<float> frequency_divisors;
  std::vector<float> long_divisors;  // kLongRope, for contexts longer than the original one
};

// A rotary position embedding.
struct RopeTraits {
  double theta = 10000.0;
  int64_t rotated_dim = 0;  // the first numbers of a head, which turn; 0: all
  double turning_part = 1;  // of the frequencies, from the fastest on; the others are zero
  RopeScaling scaling;
};

// The traits in which layers of one model differ.
struct LayerTraits {
  static constexpr int kNoRope = -1;
  static constexpr int64_t kOwn = -1;

  const LayerKind* kind = &kAttentionKind;
  int64_t window = 0;    // a row sees the last `window` positions, itself included; 0: all
  int64_t chunk = 0;     // a row sees the positions of its own chunk of that many, up to itself; 0: all
  int rope = 0;          // index in ModelConfig::ropes; kNoRope: queries and keys do not depend on positions
  int64_t head_dim = 0;  // this and the next two replace the model's sizes; 0: they stay
  int64_t kv_head_count = 0;
  int64_t ffn_size = 0;  // of the dense MLP
  const LayerKind* mlp = &kDenseMlpKind;
  int64_t kv_layer = kOwn;       // the earlier layer whose keys and values it reads
  bool values_are_keys = false;  // one projection makes both, before norms and RoPE

  bool operator==(const LayerTraits&) const = default;
};

// The sizes of one layer.
struct LayerSizes {
  int64_t head_count = 0;
  int64_t kv_head_count = 0;
  int64_t head_dim = 0;
  int64_t ffn_size = 0;

  int64_t q_size() const { return head_count * head_dim; }
  int64_t kv_size() const { return kv_head_count * head_dim; }
};

// A second, smaller embedding of every token for every layer, which the layer gates and adds at its end.
struct LayerInputTraits {
  int64_t size = 0;        // numbers per layer; 0: there is none
  int64_t vocab_size = 0;  // rows of its table
};

// Queries grow with their position: by 1 + beta * ln(1 + floor((position + offset) / original_context)).
struct QueryTemperature {
  double beta = 0.0;  // 0: they do not
  int64_t original_context = 8192;
  int64_t offset = 0;
  bool without_rope = false;  // only in layers without RoPE
};

enum class NormKind : uint8_t { kRms, kLayer };

// Where the norms of a layer stand, f being its attention or its MLP.
enum class NormPlacement : uint8_t {
  kInput,   // x + f(norm(x))
  kOutput,  // x + norm(f(x))
  kBoth,    // x + norm(f(norm(x)))
  kSum,     // norm(x + f(x))
};

struct NormTraits {
  NormKind kind = NormKind::kRms;
  NormPlacement placement = NormPlacement::kInput;
  float epsilon = 1e-5f;
  bool adds_one = false;   // stored weights w stand for a scale of 1 + w
  bool has_weight = true;  // else all weights are 1
  bool has_bias = false;
  bool has_final = true;  // a norm between the last layer and the output head

  bool has_inputs() const { return placement == NormPlacement::kInput || placement == NormPlacement::kBoth; }
  bool has_outputs() const { return placement != NormPlacement::kInput; }
};

// Whether attention and MLP of a layer follow one another.
enum class BlockKind : uint8_t {
  kSequential,
  kParallel,      // both read the layer's input, each through a separate norm
  kParallelNorm,  // both read one norm of the layer's input
};

// Norms of queries and keys before RoPE, of the kind of the other norms and without bias.
enum class QkNorm : uint8_t {
  kNone,
  kHead,   // of every attention head, with one weight [head_dim] for all
  kWhole,  // of all heads together, weight [heads * head_dim]
  kEach,   // of every attention head, each with separate weights [head_dim]
  kPlain,  // of every attention head in layers with RoPE, without weights
};

struct MlpTraits {
  Activation activation = Activation::kSilu;
  bool is_gated = true;  // down(act(gate(x)) * up(x)); else down(act(up(x)))
  bool bias = false;
};

// How a router's outputs become weights of the experts that a row chooses.
enum class RouterWeights : uint8_t {
  kSoftmax,          // of all outputs
  kSoftmaxOfChosen,  // of the chosen outputs: as kSoftmax, divided by its sum over the chosen
  kSigmoid,          // of each chosen output by itself
  kSigmoidOfChosen,  // as kSigmoid, divided by its sum over the chosen
};

// The experts of every layer that has some. Each is an MLP of the model's activation. A row chooses the
// experts with the largest outputs of the router, and of equal ones the first.
struct ExpertTraits {
  int64_t count = 0;  // 0: no layer has any
  int64_t used = 0;   // experts that each row chooses
  int64_t ffn_size = 0;
  RouterWeights weights = RouterWeights::kSoftmaxOfChosen;
  double scale = 1;                   // factor of all weights
  bool ranks_groups_by_best = false;  // groups are chosen only by their largest value
  bool choice_bias = false;           // the choice is by sigmoid(output) + a number of each expert
  // The experts are this many groups of neighbours; a row chooses among the experts of the `used_groups`
  // groups with the largest sums of their two largest choice values.
  int64_t groups = 1;
  int64_t used_groups = 1;
  bool router_bias = false;
  bool bias = false;           // of the experts' products
  bool weighs_inputs = false;  // weights multiply the inputs of experts, else their outputs
  bool gates_dense = false;    // a dense MLP beside experts is multiplied by sigmoid(w . input)
  // Router and experts read the residual stream through separate norms. The outputs of experts and dense MLP
  // are normalised, and the weight of an expert is multiplied by a number that belongs to it.
  bool has_own_norms = false;
};

// Constant factors.
struct ScaleTraits {
  double embedding = 1;  // of the rows of the embedding table
  double residual = 1;   // of what attention and MLP add to the residual stream
  double attention = 0;  // of the scores; 0: 1 / sqrt(head_dim)
  double logits = 1;
  bool attention_by_layer = false;  // scores of layer i, from 0 on, are divided by i + 1
};

// A table of learned positions [offset + count, hidden_size]: position p adds row offset + p.
struct LearnedPositions {
  int64_t count = 0;  // 0: there is no table
  int64_t offset = 0;

  int64_t rows() const { return count == 0 ? 0 : offset + count; }
  // Drafts may reach beyond the context; they are never committed.
  int32_t row_of(int32_t position) const {
    return static_cast<int32_t>(offset + (position < count ? position : count - 1));
  }
};

inline constexpr int64_t kMaxExperts = 1024;

// The sizes and traits of a decoder-only network, independent of its file format. Only `family` is a product
// name; it names a row of formats/families.cc.
struct ModelConfig {
  std::string family;
  int64_t vocab_size = 0;
  int64_t hidden_size = 0;
  int64_t layer_count = 0;
  int64_t head_count = 0;
  int64_t kv_head_count = 0;
  int64_t head_dim = 0;
  int64_t ffn_size = 0;
  int64_t max_context = 0;  // positions that the model was trained for
  NormTraits norm;
  MlpTraits mlp;
  ExpertTraits experts;
  KindTraits of_kinds;  // traits of single kinds of layers, for example DeltaTraits
  ScaleTraits scales;
  BlockKind block = BlockKind::kSequential;
  LearnedPositions learned_positions;
  std::vector<float> alibi_slopes;  // [head_count], see AttentionArgs; empty: no ALiBi
  double qkv_limit = 0;  // queries, keys and values are clamped to [-limit, limit]; 0: they are not
  int64_t embedding_size =
      0;  // of the embedding table and the output head, which projections adapt; 0: hidden_size
  std::vector<RopeTraits> ropes{1};          // the traits that layers choose from
  std::vector<LayerTraits> layer_traits{1};  // the traits of layer i are at i modulo the size
  double attention_softcap = 0;              // scores become cap * tanh(score / cap); 0: they stay
  double logit_softcap = 0;                  // likewise the logits
  QueryTemperature query_temperature;
  LayerInputTraits layer_inputs;
  bool v_norm = false;           // RMS norm of every value head, without weights
  bool attention_sinks = false;  // see AttentionArgs::sinks
  bool gates_attention = false;  // what each head attends to is multiplied by sigmoids of a projection
  bool layer_scalars = false;    // the residual stream is multiplied by a number at the end of every layer
  bool tied_embeddings = false;
  bool qkv_bias = false;
  bool output_bias = false;  // bias of the attention output projection
  QkNorm qk_norm = QkNorm::kNone;
  // Recommendations of generation_config.json or of GGUF metadata.
  std::vector<TokenId> stop_tokens;  // end-of-text ids
  SamplingChoices sampling;          // only from generation_config.json

  // One element for each of the first `layers` layers.
  std::vector<LayerTraits> listed_traits(int64_t layers) const;
  // Keeps one element where all layers are alike. An empty list changes nothing.
  void set_layer_traits(std::vector<LayerTraits> layers);
  const LayerTraits& traits_of(int64_t layer) const {
    return layer_traits[static_cast<size_t>(layer) % layer_traits.size()];
  }
  LayerSizes sizes_of(int64_t layer) const;
  // The layer that it reads keys and values of: `layer` itself, or an earlier one.
  int64_t kv_layer_of(int64_t layer) const;
  bool has_qk_weights() const { return qk_norm != QkNorm::kNone && qk_norm != QkNorm::kPlain; }
  // The weights of a norm over that many heads of `dim` queries or keys.
  int64_t qk_norm_size(int64_t heads, int64_t dim) const {
    return qk_norm == QkNorm::kHead ? dim : heads * dim;
  }
  bool has_attention(int64_t layer) const { return traits_of(layer).kind->reads_entries; }
  // Whether the cache has separate keys and values of the layer.
  bool has_keys(int64_t layer) const { return has_attention(layer) && kv_layer_of(layer) == layer; }
  bool has_dense_mlp(int64_t layer) const { return traits_of(layer).mlp != &kExpertsKind; }
  bool has_experts(int64_t layer) const { return traits_of(layer).mlp != &kDenseMlpKind; }
  // Whether the MLP has a norm of its input to itself.
  bool has_mlp_norm() const { return norm.has_inputs() && block != BlockKind::kParallelNorm; }
  // The numbers of a row of the embedding table.
  int64_t token_size() const { return embedding_size == 0 ? hidden_size : embedding_size; }
};

// The slopes of the ALiBi paper for that many heads: powers of 2 from -max_bias / n on, then every second
// power of the list for 2n. Here n is the largest power of 2 within head_count.
std::vector<float> alibi_slopes(int64_t head_count, double max_bias);

// Checks that the numbers are positive, within limits, and consistent with one another.
Status validate(const ModelConfig& config);

}  // namespace outrider
