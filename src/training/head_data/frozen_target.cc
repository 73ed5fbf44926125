// SPDX-License-Identifier: Apache-2.0
#include "training/head_data/frozen_target.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <initializer_list>
#include <numeric>
#include <utility>

#include "draft_heads/head_file.h"
#include "kernels/kernel_table.h"
#include "models/backend/layer_backend.h"
#include "models/forward_batch.h"
#include "training/core/target_form.h"
#include "training/core/tensor_values.h"
#include "training/head_data/torch_target.h"

namespace outrider::training {
namespace {

constexpr int kPageSize = 16;  // tokens

// Replaces the weights by copies that have the same shapes; changes nothing where one differs.
void take_over(std::initializer_list<std::pair<at::Tensor*, at::Tensor>> copies) {
  for (const auto& [weight, copy] : copies)
    if (!copy.defined() || copy.sizes() != weight->sizes()) return;
  for (const auto& [weight, copy] : copies) *weight = copy;
}

}  // namespace

FrozenTarget::FrozenTarget(ModelFile file, int threads) : file_(std::move(file)), pool_(threads) {}
FrozenTarget::~FrozenTarget() = default;

Result<std::unique_ptr<FrozenTarget>> FrozenTarget::open(const std::filesystem::path& path, int threads,
                                                         std::string_view kernels) {
  OUTRIDER_TRY(ModelFile file, open_model(path));
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

at::Tensor FrozenTarget::embedding() const {
  const int64_t vocab = config().vocab_size, hidden = config().hidden_size;
  constexpr int64_t kRows = 4096;  // tokens that are looked up at a time
  BackendRows rows(model_->backend());
  rows.reserve(std::min(kRows, vocab), hidden);
  at::Tensor all = at::empty({vocab, hidden});
  std::vector<TokenId> tokens;
  for (int64_t first = 0; first < vocab; first += kRows) {
    tokens.resize(static_cast<size_t>(std::min(kRows, vocab - first)));
    std::iota(tokens.begin(), tokens.end(), static_cast<TokenId>(first));
    model_->embed_tokens(tokens, rows.data());
    const std::span<const float> found = model_->backend().read(rows.data(), std::ssize(tokens) * hidden);
    std::copy(found.begin(), found.end(), all.data_ptr<float>() + first * hidden);
  }
  return all;
}

at::Tensor FrozenTarget::output_head() const {
  at::Tensor head = weight(config().tied_embeddings ? "model.embed_tokens.weight" : "lm_head.weight");
  if (const at::Tensor adapted = weight("model.project_out.weight"); adapted.defined())
    head = at::matmul(head, adapted);
  const double scale = config().scales.logits;
  return scale == 1 ? head : head * scale;
}

at::Tensor FrozenTarget::norm(const std::string& name) const {
  const NormTraits& traits = config().norm;
  const at::Tensor found = traits.kind == NormKind::kRms ? weight(name + ".weight") : at::Tensor();
  if (!found.defined()) return at::ones({config().hidden_size});
  return traits.adds_one ? found + 1 : found;
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

LayerWeights FrozenTarget::last_layer(const LayerShape& shape, at::Generator& generator) const {
  if (has_llama_form(config())) return layer(config().layer_count - 1);
  const int64_t index = last_attention_layer(config());
  const std::string prefix = "model.layers." + std::to_string(index) + ".";
  const LayerWeights found = layer(index);
  LayerWeights weights = initial_layer(shape, /*has_input_norm=*/true, generator);
  take_over({{&weights.q, found.q}, {&weights.k, found.k}, {&weights.v, found.v}, {&weights.o, found.o}});
  take_over({{&weights.gate, found.gate}, {&weights.up, found.up}, {&weights.down, found.down}});
  weights.input_norm = norm(prefix + "input_layernorm");
  weights.mlp_norm = norm(prefix + "post_attention_layernorm");
  return weights;
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
