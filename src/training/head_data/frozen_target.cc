// SPDX-License-Identifier: Apache-2.0
#include "training/head_data/frozen_target.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <utility>

#include "draft_heads/head_file.h"
#include "kernels/kernel_table.h"
#include "models/forward_batch.h"
#include "training/core/tensor_values.h"
#include "training/head_data/torch_target.h"

namespace outrider::training {
namespace {

constexpr int kPageSize = 16;  // tokens

// Error: layers that the trainer's own network, which has the form of Llama, does not have.
Status check_form(const ModelFile& file) {
  const ModelConfig& config = file.config;
  const ScaleTraits& scales = config.scales;
  const bool has_norms = config.norm.kind == NormKind::kRms && config.norm.has_inputs() &&
                         !config.norm.has_outputs() && !config.norm.adds_one &&
                         (config.qk_norm == QkNorm::kNone || config.qk_norm == QkNorm::kHead);
  const bool has_mlp = config.mlp.is_gated && config.mlp.activation == Activation::kSilu &&
                       config.block == BlockKind::kSequential && config.experts.count == 0;
  const bool has_scales =
      scales.embedding == 1 && scales.residual == 1 && scales.attention == 0 && scales.logits == 1;
  const bool has_attention = config.layer_traits.size() == 1 && config.layer_traits.front().rope == 0 &&
                             config.attention_softcap == 0 && config.logit_softcap == 0 &&
                             config.query_temperature.beta == 0;
  const RopeTraits& rope = config.ropes.front();
  const bool has_rope = rope.rotated_dim == 0 && rope.turning_part == 1 &&
                        rope.scaling.attention_factor == 1 && rope.scaling.kind != RopeScalingKind::kDynamic;
  if (has_norms && has_mlp && has_scales && has_attention && has_rope) return {};
  return input_error(file.path.string() +
                     ": expected a target of the form of Llama, Mistral or Qwen, found " + config.family +
                     "; heads for other families cannot be trained yet");
}

}  // namespace

FrozenTarget::FrozenTarget(ModelFile file, int threads) : file_(std::move(file)), pool_(threads) {}
FrozenTarget::~FrozenTarget() = default;

Result<std::unique_ptr<FrozenTarget>> FrozenTarget::open(const std::filesystem::path& path, int threads,
                                                         std::string_view kernels) {
  OUTRIDER_TRY(ModelFile file, open_model(path));
  OUTRIDER_RETURN_IF_ERROR(check_form(file));
  std::unique_ptr<FrozenTarget> target(new FrozenTarget(std::move(file), threads));
  OUTRIDER_TRY(const KernelTable* table, select_kernels(kernels));
  OUTRIDER_TRY(
      target->model_,
      Model::load(target->file_, {.kernels = table, .pool = &target->pool_, .weights = std::nullopt}));
  target->fingerprint_ = target_fingerprint(target->file_);
  OUTRIDER_RETURN_IF_ERROR(target->want({}));
  return target;
}

void FrozenTarget::move_to(at::Device device, at::ScalarType products) {
  moved_ = std::make_unique<const TorchTarget>(
      config(), [this](const std::string& name) { return weight(name); }, device, products);
  arithmetic_ = device.str() + " " + c10::toString(products);
}

at::Tensor FrozenTarget::weight(const std::string& name) const {
  const auto found = file_.tensors.find(name);
  if (found == file_.tensors.end()) return {};
  return tensor_values(found->second);
}

at::Tensor FrozenTarget::output_head() const {
  return config().tied_embeddings ? embedding() : weight("lm_head.weight");
}

LayerWeights FrozenTarget::layer(int64_t index) const {
  const auto copy = [&](const char* name) {
    return weight("model.layers." + std::to_string(index) + "." + name + ".weight");
  };
  return {.input_norm = copy("input_layernorm"),
          .q = copy("self_attn.q_proj"),
          .k = copy("self_attn.k_proj"),
          .v = copy("self_attn.v_proj"),
          .o = copy("self_attn.o_proj"),
          .mlp_norm = copy("post_attention_layernorm"),
          .gate = copy("mlp.gate_proj"),
          .up = copy("mlp.up_proj"),
          .down = copy("mlp.down_proj")};
}

Status FrozenTarget::want(const FeatureNeeds& needs) {
  const int64_t layers = config().layer_count;
  for (size_t i = 0; i < needs.taps.size(); ++i) {
    const int64_t tap = needs.taps[i];
    if (tap >= 0 && tap <= layers && (i == 0 || tap > needs.taps[i - 1])) continue;
    return usage_error("--taps: rising layers from 0 to " + std::to_string(layers) + " are expected, found " +
                       std::to_string(tap) + "; " + name() + " has " + std::to_string(layers) + " layers");
  }
  needs_ = needs;
  head_ = needs.likeliest ? output_head().to(needs.type) : at::Tensor();
  if (head_.defined() && moved_ != nullptr) head_ = head_.to(moved_->device());
  model_->tap({.layers = needs.taps, .final_norm = true});
  return {};
}

at::Tensor FrozenTarget::keys_values_of(const KvTransaction& staged) {
  const KvShape& shape = cache_->shape();
  const int64_t dim = shape.head_dim;
  at::Tensor values = at::empty({staged.count(), shape.layer_count, shape.kv_head_count, 2, dim});
  float* out = values.data_ptr<float>();
  for (int token = 0; token < staged.count(); ++token) {
    for (int64_t layer = 0; layer < shape.layer_count; ++layer) {
      const int64_t slot = staged.slot(token);
      cache_->storage().read({.layer = layer, .part = KvPart::kKeys, .slot = slot}, out, 2 * dim);
      cache_->storage().read({.layer = layer, .part = KvPart::kValues, .slot = slot}, out + dim, 2 * dim);
      out += 2 * shape.kv_head_count * dim;
    }
  }
  return values;
}

Result<std::vector<TargetStates>> FrozenTarget::run(std::span<const std::span<const TokenId>> windows) {
  OUTRIDER_TRY(std::vector<TargetStates> states,
               moved_ != nullptr ? moved_->run(windows, needs_) : run_kernels(windows));
  for (TargetStates& of_window : states) finish(of_window);
  return states;
}

// Rounds the states and adds what follows from them.
void FrozenTarget::finish(TargetStates& states) const {
  for (at::Tensor* part : {&states.hidden, &states.features, &states.keys_values}) {
    if (part->defined()) *part = part->to(needs_.type);
  }
  if (needs_.likeliest) states.likeliest = likeliest_tokens(states.hidden, head_);
}

Result<std::vector<TargetStates>> FrozenTarget::run_kernels(
    std::span<const std::span<const TokenId>> windows) {
  int64_t pages = 0;
  for (const auto& window : windows) pages += (std::ssize(window) + kPageSize - 1) / kPageSize;
  if (cache_ == nullptr || cache_->shape().page_count < pages) {
    KvShape shape = model_->kv_shape();
    shape.type = DType::kBF16;  // the type of the served cache
    shape.page_size = kPageSize;
    shape.page_count = pages;
    cache_ = std::make_unique<outrider::KvCache>(shape);
  }
  // Nothing is committed to the prefix cache: a window that reused another one's tokens would not compute
  // their features.
  std::vector<KvSequence> sequences(windows.size());
  std::vector<KvTransaction> staged;
  ForwardBatch batch;
  for (size_t i = 0; i < windows.size(); ++i) {
    sequences[i] = cache_->open(windows[i], i);
    OUTRIDER_TRY(KvTransaction transaction, cache_->stage(sequences[i], static_cast<int>(windows[i].size())));
    append_chain(batch, sequences[i], transaction, windows[i], LogitsWanted::kNone);
    staged.push_back(std::move(transaction));
  }
  model_->forward(batch, *cache_);
  const int64_t width = model_->feature_size(), hidden = config().hidden_size;
  const at::Tensor all = at::from_blob(const_cast<float*>(model_->features().data()), {batch.rows(), width});
  std::vector<TargetStates> states;
  for (int64_t first = 0; const KvTransaction& window : staged) {
    const at::Tensor rows = all.narrow(0, first, window.count());
    TargetStates state{.hidden = rows.narrow(1, width - hidden, hidden).clone(),
                       .features = {},
                       .keys_values = {},
                       .likeliest = {}};
    if (width > hidden) state.features = rows.narrow(1, 0, width - hidden).clone();
    if (needs_.keys_values) state.keys_values = keys_values_of(window);
    states.push_back(std::move(state));
    first += window.count();
  }
  return states;
}

}  // namespace outrider::training
