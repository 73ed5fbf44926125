// SPDX-License-Identifier: Apache-2.0
#include "draft_heads/mtp/family_module.h"

#include <fmt/format.h>

#include <memory>
#include <new>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "draft_heads/gguf_module.h"
#include "draft_heads/vocabulary/output_rows.h"
#include "formats/families.h"
#include "formats/model_tensors.h"
#include "models/backend/backend_kinds.h"
#include "models/decoder.h"

namespace outrider {
namespace {

// GGUF files hold the sums of norms that add 1, and are read with expected names.
bool is_gguf(const HeadFile& head) { return head.file.format == "gguf"; }

// The tensors of a module, found by their stored names.
class ModuleTensors {
 public:
  ModuleTensors(const HeadFile& head, const MtpLayout& layout)
      : head_(head), layout_(layout), names_(layout.names(0)) {}

  // The name of the layer's tensors as the network expects them: "model.layers.61."
  std::string layer_prefix() const { return fmt::format("model.layers.{}.", layer()); }

  // A file of the module's tensors: its layer's by expected names, the others by their own.
  Result<ModelFile> read(const ModelConfig& config) {
    StoredLayout stored = is_gguf(head_) ? StoredLayout() : find_family(config.family)->hf_layout;
    if (layout_.is_qwen) stored.layers = "mtp.layers.";
    const TensorSource source{.has = [&](const std::string& name) { return is_stored(name); },
                              .find = [&](const std::string& name) { return find(name); }};
    std::vector<ExpectedTensor> expected = expected_layer_tensors(config, layer());
    const int64_t hidden = config.hidden_size;
    for (const std::string* norm : {&names_.embedding_norm, &names_.hidden_norm, &names_.norm})
      expected.push_back({*norm, {hidden}});
    expected.push_back({names_.fc + ".weight", {hidden, 2 * hidden}});
    ModelFile file;
    file.path = head_.file.path;
    file.files = head_.file.files;
    OUTRIDER_RETURN_IF_ERROR(attach_expected(
        std::move(expected), expected_lookup(stored, source, config, storage_.get()), storage_.get(), &file));
    file.storage = storage_;
    const auto rows = head_.file.tensors.find(std::string(kOutputRows));
    if (rows != head_.file.tensors.end()) file.tensors.insert(*rows);
    OUTRIDER_RETURN_IF_ERROR(check_all_used());
    return file;
  }

 private:
  int64_t layer() const { return layout_.is_qwen ? 0 : layout_.first_layer; }
  bool is_stored(const std::string& name) const { return head_.tensors.contains(name); }

  Result<TensorView> find(const std::string& name) {
    used_.insert(name);
    const auto found = head_.file.tensors.find(name);
    if (found != head_.file.tensors.end()) return found->second;
    if (!is_stored(name)) return head_.fail("tensor " + name + " of an MTP drafter is missing");
    return head_.fail("tensor " + name + ": expected plain numbers, found the type " +
                      head_.tensors.find(name)->second.dtype_name);
  }

  // Error: a tensor of the module that its layer does not have.
  Status check_all_used() const {
    for (const auto& [name, tensor] : head_.tensors) {
      const bool is_copy = name == names_.embed_tokens + ".weight" || name == names_.output + ".weight";
      const bool is_map = name == "d2t" || name == "t2d";
      if (is_copy || is_map || layout_.is_targets(name) || used_.contains(name)) continue;
      return head_.fail("tensor " + name + " does not belong to an MTP drafter of this target");
    }
    return {};
  }

  const HeadFile& head_;
  const MtpLayout& layout_;
  const MtpNames names_;
  std::set<std::string> used_;
  std::shared_ptr<ModelStorage> storage_ = std::make_shared<ModelStorage>();
};

class FamilyModule final : public RecurrentHead {
 public:
  FamilyModule(const ModelConfig& layer, Model* target, const ModelOptions& options)
      : RecurrentHead(layer, target, options), config_(layer) {
    taps_.final_norm = true;
  }

  Status load(const HeadFile& head, const MtpLayout& layout, const ModelOptions& options);
  KvShape kv_shape() const override { return layer_->kv_shape(); }
  Output forward(const Pass& pass) override;
  void reserve(int64_t rows, int64_t wanted) override;

 private:
  // hidden[rows] = what the layer reads of the rows' embeddings and states
  void make_inputs(const Pass& pass, int64_t rows);

  ModelConfig config_;  // of the layer
  bool goes_on_normed_ = false;
  Norm embedding_norm_ = norm(), hidden_norm_ = norm(), norm_ = norm();
  Projection fc_;  // [hidden, 2 hidden]: embedding, state
  std::optional<Decoder> layer_;
  ForwardBatch batch_;  // the rows of a pass as they enter the layer
  BackendRows embedded_{backend_}, hidden_{backend_}, joined_{backend_};  // [rows, hidden], joined twice that
  BackendRows normed_{backend_};                                          // [wanted rows, hidden]
};

Status FamilyModule::load(const HeadFile& head, const MtpLayout& layout, const ModelOptions& options) {
  ModuleTensors tensors(head, layout);
  // The target's files may be of the other kind.
  config_.norm.adds_one = !is_gguf(head) && find_family(config_.family)->norm.adds_one;
  OUTRIDER_TRY(const ModelFile file, tensors.read(config_));
  const MtpNames names = layout.names(0);
  goes_on_normed_ = layout.is_qwen;
  WeightLoader loader(file, options);
  OUTRIDER_RETURN_IF_ERROR(loader.read_vector(names.embedding_norm, hidden_size_, embedding_norm_.weight));
  OUTRIDER_RETURN_IF_ERROR(loader.read_vector(names.hidden_norm, hidden_size_, hidden_norm_.weight));
  OUTRIDER_RETURN_IF_ERROR(loader.read_vector(names.norm, hidden_size_, norm_.weight));
  for (Norm* norm : {&embedding_norm_, &hidden_norm_, &norm_})
    if (config_.norm.adds_one) add_one(norm->weight);
  OUTRIDER_RETURN_IF_ERROR(loader.plan({{names.fc, hidden_size_}}, 2 * hidden_size_, /*bias=*/false, fc_));
  OUTRIDER_RETURN_IF_ERROR(vocabulary_.plan_output_rows(loader, file, head.output_rows));
  OUTRIDER_RETURN_IF_ERROR(pack(loader));
  int64_t layer_bytes = 0;
  const auto load_weights = [&]() -> Result<DecoderWeights> {
    WeightLoader layer_loader(file, options);
    DecoderWeights weights;
    weights.layers = make_layers(config_);
    OUTRIDER_RETURN_IF_ERROR(load_layer(layer_loader, config_,
                                        {.prefix = tensors.layer_prefix(), .input_size = hidden_size_},
                                        weights.layers[0]));
    OUTRIDER_TRY(weights.memory, layer_loader.pack_all());
    layer_bytes = layer_loader.packed_bytes();
    return weights;
  };
  OUTRIDER_TRY(auto backend, make_backend(config_, options, load_weights));
  layer_.emplace(config_, options, std::move(backend));
  weight_bytes_ += layer_bytes;
  return {};
}

void FamilyModule::reserve(int64_t rows, int64_t wanted) {
  for (BackendRows* scratch : {&embedded_, &hidden_, &normed_}) scratch->reserve(rows, hidden_size_);
  joined_.reserve(rows, 2 * hidden_size_);
  batch_.resumed_rows.reserve(static_cast<size_t>(rows));
  batch_.resumed_states.reserve(static_cast<size_t>(rows * hidden_size_));
  backend_.reserve_product(fc_, rows);
  vocabulary_.reserve(wanted);
  if (!layer_->reserve(rows, 0).ok()) throw std::bad_alloc();
}

void FamilyModule::make_inputs(const Pass& pass, int64_t rows) {
  vocabulary_.embed(pass.batch->tokens, embedded_.data());
  backend_.normalize(embedded_.data(), embedding_norm_, embedded_.data(), rows);
  backend_.normalize(pass.inputs, hidden_norm_, hidden_.data(), rows);
  join(embedded_.data(), hidden_.data(), joined_.data(), rows, hidden_size_);
  backend_.project(fc_, joined_.data(), hidden_.data(), rows);
}

RecurrentHead::Output FamilyModule::forward(const Pass& pass) {
  const int64_t rows = pass.batch->rows();
  const auto wanted = std::ssize(pass.batch->logits_rows);
  reserve(rows, wanted);
  make_inputs(pass, rows);
  batch_ = *pass.batch;
  batch_.hidden_state_rows = batch_.logits_rows;
  batch_.logits_rows.clear();
  batch_.resumed_rows.resize(static_cast<size_t>(rows));
  std::iota(batch_.resumed_rows.begin(), batch_.resumed_rows.end(), 0);
  const std::span<const float> inputs = backend_.read(hidden_.data(), rows * hidden_size_);
  batch_.resumed_states.assign(inputs.begin(), inputs.end());
  layer_->forward(batch_, *pass.cache);
  if (wanted == 0) return {};
  const FloatAddress states = layer_->hidden_rows();
  backend_.normalize(states, norm_, normed_.data(), wanted);
  return {.logits = vocabulary_.read_logits(normed_.data(), wanted),
          .states = goes_on_normed_ ? normed_.data() : states};
}

}  // namespace

Result<std::unique_ptr<RecurrentHead>> load_family_module(const HeadFile& head, const MtpLayout& layout,
                                                          Model* target, const ModelOptions& options) {
  if (layout.modules != 1) {
    return head.fail(fmt::format("expected one MTP module for a target of the family {}, found {}",
                                 target->config().family, layout.modules));
  }
  auto module = std::make_unique<FamilyModule>(module_layer_config(target->config()), target, options);
  OUTRIDER_RETURN_IF_ERROR(module->load(head, layout, options));
  return std::unique_ptr<RecurrentHead>(std::move(module));
}

}  // namespace outrider
