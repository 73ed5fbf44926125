// SPDX-License-Identifier: Apache-2.0
#include "draft_heads/mtp/mtp.h"

#include <utility>

#include "draft_heads/gguf_module.h"
#include "draft_heads/mtp/family_module.h"
#include "draft_heads/mtp/module_chain.h"
#include "draft_heads/mtp/mtp_layout.h"
#include "draft_heads/vocabulary/output_rows.h"

namespace outrider {
namespace {

struct Module {
  Norm embedding_norm, hidden_norm, norm;
  Projection fc;  // [hidden, 2 hidden]: embedding, state
  HeadLayer layer;
};

class Mtp final : public ModuleChain {
 public:
  Mtp(const ModelConfig& config, Model* target, const ModelOptions& options, const MtpLayout& layout)
      : ModuleChain(config, target, options, layout.modules), layout_(layout) {
    cache_layers_ = layout.modules;
    modules_.resize(static_cast<size_t>(layout.modules));
    for (Module& module : modules_) module.embedding_norm = module.hidden_norm = module.norm = norm();
  }

  Status load(const HeadFile& head, ModelConfig config, const ModelOptions& options);
  bool can_be_recorded() const override { return true; }
  void reserve(int64_t rows, int64_t wanted) override;

 private:
  Status load_module(WeightLoader& loader, const ModelConfig& config, int64_t index);
  void run(const Pass& pass, size_t module, FloatAddress inputs, FloatAddress states) override;
  Output run_single(const Pass& pass) override;
  const Norm& output_norm(size_t module) const override { return modules_[module].norm; }

  MtpLayout layout_;
  std::vector<Module> modules_;
};

void append_module_tensors(const ModelConfig& config, const MtpNames& names,
                           std::vector<HeadTensor>& tensors) {
  const int64_t hidden = config.hidden_size;
  tensors.push_back({.name = names.embedding_norm, .shape = {hidden}});
  tensors.push_back({.name = names.hidden_norm, .shape = {hidden}});
  tensors.push_back({.name = names.fc + ".weight", .shape = {hidden, 2 * hidden}});
  tensors.push_back({.name = names.norm, .shape = {hidden}});
  for (const std::string& name : {names.embed_tokens, names.output}) {
    if (name.empty()) continue;
    tensors.push_back({.name = name + ".weight", .shape = {config.vocab_size, hidden}, .is_optional = true});
  }
  append_layer_tensors(config, {.prefix = names.layer, .input_size = hidden}, tensors);
}

Status Mtp::load_module(WeightLoader& loader, const ModelConfig& config, int64_t index) {
  const MtpNames names = layout_.names(index);
  Module& module = modules_[static_cast<size_t>(index)];
  OUTRIDER_RETURN_IF_ERROR(
      loader.read_vector(names.embedding_norm, hidden_size_, module.embedding_norm.weight));
  OUTRIDER_RETURN_IF_ERROR(loader.read_vector(names.hidden_norm, hidden_size_, module.hidden_norm.weight));
  OUTRIDER_RETURN_IF_ERROR(loader.read_vector(names.norm, hidden_size_, module.norm.weight));
  OUTRIDER_RETURN_IF_ERROR(
      loader.plan({{names.fc, hidden_size_}}, 2 * hidden_size_, /*bias=*/false, module.fc));
  OUTRIDER_RETURN_IF_ERROR(
      load_decoder_layer(loader, config, {.prefix = names.layer, .input_size = hidden_size_}, module.layer));
  if (!layout_.is_qwen) return {};
  for (Norm* norm : {&module.embedding_norm, &module.hidden_norm, &module.norm}) add_one(norm->weight);
  add_one_to_norms(module.layer);
  return {};
}

Status Mtp::load(const HeadFile& head, ModelConfig config, const ModelOptions& options) {
  detect_layer_variant(head, layout_.names(0).layer, config);
  std::vector<HeadTensor> expected;
  for (int64_t i = 0; i < layout_.modules; ++i) append_module_tensors(config, layout_.names(i), expected);
  append_map_tensors(head, config.vocab_size, expected);
  OUTRIDER_RETURN_IF_ERROR(
      check_head_tensors(head, expected, [&](std::string_view name) { return layout_.is_targets(name); }));
  WeightLoader loader(head.file, options);
  OUTRIDER_RETURN_IF_ERROR(vocabulary_.plan_output_rows(loader, head.file, head.output_rows));
  for (int64_t i = 0; i < layout_.modules; ++i) OUTRIDER_RETURN_IF_ERROR(load_module(loader, config, i));
  return pack(loader);
}

// A single module computes only wanted rows to the end.
void Mtp::run(const Pass& pass, size_t index, FloatAddress inputs, FloatAddress states) {
  const Module& module = modules_[index];
  join_inputs(module.embedding_norm, module.hidden_norm, inputs, pass.batch->rows());
  layers_.begin(*pass.batch, *pass.cache, static_cast<int32_t>(index));
  backend_.project(module.fc, joined_.data(), states, pass.batch->rows());
  layers_.run(module.layer, static_cast<int64_t>(index), states, !is_chained());
}

void Mtp::reserve(int64_t rows, int64_t wanted) {
  ModuleChain::reserve(rows, wanted);
  for (const Module& module : modules_) {
    backend_.reserve_product(module.fc, rows);
    layers_.reserve(rows, {&module.layer, 1});
  }
}

RecurrentHead::Output Mtp::run_single(const Pass& pass) {
  run(pass, 0, pass.inputs, states_.data());
  const int64_t wanted = layers_.rows();
  if (wanted == 0) return {};
  const FloatAddress normed = normalise(0, states_.data(), wanted);
  return output(normed, layout_.is_qwen ? normed : states_.data(), wanted);
}

// Whether the layers of the target are more than HeadLayers computes.
bool has_own_layers(const ModelConfig& target) {
  return target.gates_attention || module_layer_config(target).layer_traits.front().kind != &kAttentionKind ||
         target.experts.count != 0;
}

}  // namespace

Result<std::unique_ptr<RecurrentHead>> load_mtp(const HeadFile& head, Model* target,
                                                const ModelOptions& options) {
  OUTRIDER_TRY(const MtpLayout layout, read_mtp_layout(head, *target));
  if (has_own_layers(target->config()) || head.file.format == "gguf")
    return load_family_module(head, layout, target, options);
  OUTRIDER_TRY(const JsonObject object, layer_config_object(head));
  OUTRIDER_TRY(const auto is_gated, object.boolean("attn_output_gate"));
  if (is_gated.value_or(false)) {
    return head.fail(
        "config.json: expected no attn_output_gate of an MTP drafter for a target of the family " +
        target->config().family + ", found one");
  }
  OUTRIDER_TRY(const ModelConfig config, read_head_config(head, *target));
  auto mtp = std::make_unique<Mtp>(config, target, options, layout);
  OUTRIDER_RETURN_IF_ERROR(mtp->load(head, config, options));
  return std::unique_ptr<RecurrentHead>(std::move(mtp));
}

}  // namespace outrider
