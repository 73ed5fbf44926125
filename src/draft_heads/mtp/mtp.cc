// SPDX-License-Identifier: Apache-2.0
#include "draft_heads/mtp/mtp.h"

#include <utility>

#include "draft_heads/gguf_module.h"
#include "draft_heads/mtp/family_module.h"
#include "draft_heads/mtp/mtp_layout.h"
#include "draft_heads/vocabulary/output_rows.h"

namespace outrider {
namespace {

struct Module {
  Norm embedding_norm, hidden_norm, norm;
  Projection fc;  // [hidden, 2 hidden]: embedding, state
  HeadLayer layer;
};

class Mtp final : public RecurrentHead {
 public:
  Mtp(const ModelConfig& config, Model* target, const ModelOptions& options, const MtpLayout& layout)
      : RecurrentHead(config, target, options), layout_(layout) {
    taps_.final_norm = true;
    cache_layers_ = layout.modules;
    modules_.resize(static_cast<size_t>(layout.modules));
    for (Module& module : modules_) module.embedding_norm = module.hidden_norm = module.norm = norm();
  }

  Status load(const HeadFile& head, ModelConfig config, const ModelOptions& options);
  int64_t state_size() const override { return layout_.modules * hidden_size_; }
  int max_draft_len() const override {
    return is_chained() ? static_cast<int>(layout_.modules) : RecurrentHead::max_draft_len();
  }
  bool carries_state() const override { return is_chained(); }
  Output forward(const Pass& pass) override;
  void reserve(int64_t rows, int64_t wanted) override;

 private:
  bool is_chained() const { return layout_.modules > 1; }
  Status load_module(WeightLoader& loader, const ModelConfig& config, int64_t index);
  void run(const Pass& pass, size_t module, FloatAddress inputs, FloatAddress states);
  Output forward_chained(const Pass& pass);
  void gather_inputs(const Pass& pass, size_t module, FloatAddress previous);
  FloatAddress normalise(size_t module, FloatAddress states, int64_t rows);

  MtpLayout layout_;
  std::vector<Module> modules_;
  BackendRows embedded_{backend_}, hidden_{backend_}, joined_{backend_};  // [rows, hidden], joined twice that
  BackendRows states_{backend_};                   // [rows, hidden] of each module in turn
  BackendRows inputs_{backend_};                   // [rows, hidden] of a module after the first
  BackendRows normed_{backend_}, kept_{backend_};  // [wanted rows, hidden]; [wanted rows, state_size()]
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

// states[rows] of the module from inputs[rows, hidden]; then only of wanted rows, if it is the only
// one.
void Mtp::run(const Pass& pass, size_t index, FloatAddress inputs, FloatAddress states) {
  const Module& module = modules_[index];
  const int64_t rows = pass.batch->rows();
  backend_.normalize(embedded_.data(), module.embedding_norm, normed_.data(), rows);
  backend_.normalize(inputs, module.hidden_norm, hidden_.data(), rows);
  join(normed_.data(), hidden_.data(), joined_.data(), rows, hidden_size_);
  layers_.begin(*pass.batch, *pass.cache, static_cast<int32_t>(index));
  backend_.project(module.fc, joined_.data(), states, rows);
  layers_.run(module.layer, static_cast<int64_t>(index), states, !is_chained());
}

FloatAddress Mtp::normalise(size_t module, FloatAddress states, int64_t rows) {
  backend_.normalize(states, modules_[module].norm, normed_.data(), rows);
  return normed_.data();
}

void Mtp::reserve(int64_t rows, int64_t wanted) {
  for (BackendRows* scratch : {&embedded_, &hidden_, &states_, &inputs_, &normed_})
    scratch->reserve(rows, hidden_size_);
  joined_.reserve(rows, 2 * hidden_size_);
  if (is_chained()) kept_.reserve(wanted, state_size());
  for (const Module& module : modules_) {
    backend_.reserve_product(module.fc, rows);
    layers_.reserve(rows, {&module.layer, 1});
  }
  vocabulary_.reserve(wanted);
}

RecurrentHead::Output Mtp::forward(const Pass& pass) {
  reserve(pass.batch->rows(), static_cast<int64_t>(pass.batch->logits_rows.size()));
  vocabulary_.embed(pass.batch->tokens, embedded_.data());
  if (is_chained()) return forward_chained(pass);
  run(pass, 0, pass.inputs, states_.data());
  const int64_t wanted = layers_.rows();
  if (wanted == 0) return {};
  const FloatAddress normed = normalise(0, states_.data(), wanted);
  return {.logits = vocabulary_.read_logits(normed, wanted),
          .states = layout_.is_qwen ? normed : states_.data()};
}

// A row of level j takes modules j.. one entry further: module k reads the state of module k - 1 at the entry
// before, whose token came one place earlier.
RecurrentHead::Output Mtp::forward_chained(const Pass& pass) {
  const ForwardBatch& batch = *pass.batch;
  const auto wanted = static_cast<int64_t>(batch.logits_rows.size());
  const auto level = static_cast<size_t>(pass.level);
  backend_.clear(kept_.data(), wanted * state_size());
  for (size_t k = level; k < modules_.size(); ++k) {
    const bool reads_features = k == 0;
    const int64_t offset = static_cast<int64_t>(k) * hidden_size_;
    if (!reads_features) gather_inputs(pass, k, states_.data());
    run(pass, k, reads_features ? pass.inputs : inputs_.data(), states_.data());
    if (pass.entry_states) {
      backend_.copy_strided({states_.data(), hidden_size_, pass.entry_states + offset, state_size(),
                             batch.rows(), hidden_size_});
    }
    backend_.copy(
        {states_.data(), hidden_size_, batch.logits_rows, kept_.data() + offset, state_size(), hidden_size_});
  }
  if (!pass.wants_logits || wanted == 0) return {.logits = {}, .states = kept_.data()};
  backend_.copy_strided({kept_.data() + static_cast<int64_t>(level) * hidden_size_, state_size(),
                         inputs_.data(), hidden_size_, wanted, hidden_size_});
  const FloatAddress normed = normalise(level, inputs_.data(), wanted);
  return {.logits = vocabulary_.read_logits(normed, wanted), .states = kept_.data()};
}

// inputs_: the states of module k - 1 at the entry before each row; `previous`: at the rows of this pass.
void Mtp::gather_inputs(const Pass& pass, size_t module, FloatAddress previous) {
  const ForwardBatch& batch = *pass.batch;
  const int64_t dim = hidden_size_, offset = static_cast<int64_t>(module - 1) * dim;
  if (pass.level > 0)
    return backend_.copy_strided(
        {pass.inputs + offset, state_size(), inputs_.data(), dim, batch.rows(), dim});
  for (int64_t begin = 0, end = 0; begin < batch.rows(); begin = end) {
    const int32_t sequence = batch.sequences[static_cast<size_t>(begin)];
    while (end < batch.rows() && batch.sequences[static_cast<size_t>(end)] == sequence) ++end;
    const FloatAddress inputs = inputs_.data() + begin * dim;
    backend_.copy_strided({pass.carried + sequence * state_size() + offset, 0, inputs, 0, 1, dim});
    backend_.copy_strided({previous + begin * dim, dim, inputs + dim, dim, end - begin - 1, dim});
  }
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
