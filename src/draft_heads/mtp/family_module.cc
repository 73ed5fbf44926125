// SPDX-License-Identifier: Apache-2.0
#include "draft_heads/mtp/family_module.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <new>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "draft_heads/gguf_module.h"
#include "draft_heads/mtp/module_chain.h"
#include "draft_heads/vocabulary/output_rows.h"
#include "formats/families.h"
#include "formats/model_tensors.h"
#include "models/backend/backend_kinds.h"
#include "models/decoder.h"

namespace outrider {
namespace {

// GGUF files hold the sums of norms that add 1, and are read with expected names.
bool is_gguf(const HeadFile& head) { return head.file.format == "gguf"; }

// The tensors of the modules, found by their stored names.
class ModuleTensors {
 public:
  ModuleTensors(const HeadFile& head, const MtpLayout& layout) : head_(head), layout_(layout) {
    for (int64_t module = 0; module < layout.modules; ++module) names_.push_back(layout.names(module));
  }

  // The name of a module's tensors as the network expects them: "model.layers.61."
  std::string layer_prefix(int64_t module) const { return fmt::format("model.layers.{}.", layer(module)); }

  // A file of the modules' tensors: their layers' by expected names, the others by their own.
  Result<ModelFile> read(const ModelConfig& config) {
    StoredLayout stored = is_gguf(head_) ? StoredLayout() : find_family(config.family)->hf_layout;
    if (layout_.is_qwen) stored.layers = "mtp.layers.";
    const TensorSource source{.has = [&](const std::string& name) { return is_stored(name); },
                              .find = [&](const std::string& name) { return find(name); }};
    std::vector<ExpectedTensor> expected;
    for (int64_t module = 0; module < layout_.modules; ++module) append_expected(config, module, expected);
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
  int64_t layer(int64_t module) const { return layout_.is_qwen ? 0 : layout_.first_layer + module; }

  void append_expected(const ModelConfig& config, int64_t module,
                       std::vector<ExpectedTensor>& expected) const {
    const std::vector<ExpectedTensor> of_layer = expected_layer_tensors(config, layer(module));
    expected.insert(expected.end(), of_layer.begin(), of_layer.end());
    const MtpNames& names = names_[static_cast<size_t>(module)];
    const int64_t hidden = config.hidden_size;
    for (const std::string* norm : {&names.embedding_norm, &names.hidden_norm, &names.norm})
      expected.push_back({*norm, {hidden}});
    expected.push_back({names.fc + ".weight", {hidden, 2 * hidden}});
  }

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
    for (const auto& entry : head_.tensors) {
      const std::string& name = entry.first;
      const bool is_copy = std::ranges::any_of(names_, [&](const MtpNames& names) {
        return name == names.embed_tokens + ".weight" || name == names.output + ".weight";
      });
      const bool is_map = name == "d2t" || name == "t2d";
      if (is_copy || is_map || layout_.is_targets(name) || used_.contains(name)) continue;
      return head_.fail("tensor " + name + " does not belong to an MTP drafter of this target");
    }
    return {};
  }

  const HeadFile& head_;
  const MtpLayout& layout_;
  std::vector<MtpNames> names_;  // by module
  std::set<std::string> used_;
  std::shared_ptr<ModelStorage> storage_ = std::make_shared<ModelStorage>();
};

class FamilyModules final : public ModuleChain {
 public:
  FamilyModules(const ModelConfig& layer, Model* target, const ModelOptions& options, int64_t count)
      : ModuleChain(layer, target, options, count), config_(layer), modules_(static_cast<size_t>(count)) {
    for (Module& module : modules_) module.embedding_norm = module.hidden_norm = module.norm = norm();
  }

  Status load(const HeadFile& head, const MtpLayout& layout, const ModelOptions& options);
  KvShape kv_shape() const override { return layers_of_family_->kv_shape(); }
  bool can_be_recorded() const override { return can_be_recorded_; }
  LayerBackend* own_backend() override { return &layers_of_family_->backend(); }
  void reserve(int64_t rows, int64_t wanted) override;
  void reserve_trees(int64_t rows, int64_t tree_rows, int64_t entries) override {
    if (is_chained()) layers_of_family_->reserve_hiding(rows, tree_rows, entries);
  }

 private:
  struct Module {
    Norm embedding_norm, hidden_norm, norm;
    Projection fc;  // [hidden, 2 hidden]: embedding, state
  };

  Status load_module(WeightLoader& loader, const MtpNames& names, Module& module);
  Status load_layers(const ModelFile& file, const ModuleTensors& tensors, const ModelOptions& options);
  void run(const Pass& pass, size_t module, FloatAddress inputs, FloatAddress states) override;
  Output run_single(const Pass& pass) override;
  const Norm& output_norm(size_t module) const override { return modules_[module].norm; }
  // Runs the layer of a module, which wants the outputs of some rows.
  void run_layer(const Pass& pass, size_t module, FloatAddress inputs, std::span<const int32_t> wanted);

  ModelConfig config_;  // of the layers, which are alike
  bool goes_on_normed_ = false, can_be_recorded_ = false;
  std::vector<Module> modules_;
  std::optional<Decoder> layers_of_family_;  // a layer for each module
  ForwardBatch batch_;                       // the rows of a pass as they enter a layer
  std::vector<int32_t> all_rows_;
};

Status FamilyModules::load_module(WeightLoader& loader, const MtpNames& names, Module& module) {
  OUTRIDER_RETURN_IF_ERROR(
      loader.read_vector(names.embedding_norm, hidden_size_, module.embedding_norm.weight));
  OUTRIDER_RETURN_IF_ERROR(loader.read_vector(names.hidden_norm, hidden_size_, module.hidden_norm.weight));
  OUTRIDER_RETURN_IF_ERROR(loader.read_vector(names.norm, hidden_size_, module.norm.weight));
  for (Norm* norm : {&module.embedding_norm, &module.hidden_norm, &module.norm})
    if (config_.norm.adds_one) add_one(norm->weight);
  return loader.plan({{names.fc, hidden_size_}}, 2 * hidden_size_, /*bias=*/false, module.fc);
}

Status FamilyModules::load(const HeadFile& head, const MtpLayout& layout, const ModelOptions& options) {
  ModuleTensors tensors(head, layout);
  // The target's files may be of the other kind.
  config_.norm.adds_one = !is_gguf(head) && find_family(config_.family)->norm.adds_one;
  OUTRIDER_TRY(const ModelFile file, tensors.read(config_));
  goes_on_normed_ = layout.is_qwen;
  WeightLoader loader(file, options);
  for (size_t i = 0; i < modules_.size(); ++i)
    OUTRIDER_RETURN_IF_ERROR(load_module(loader, layout.names(static_cast<int64_t>(i)), modules_[i]));
  OUTRIDER_RETURN_IF_ERROR(vocabulary_.plan_output_rows(loader, file, head.output_rows));
  OUTRIDER_RETURN_IF_ERROR(pack(loader));
  config_.layer_count = layout.modules;
  return load_layers(file, tensors, options);
}

Status FamilyModules::load_layers(const ModelFile& file, const ModuleTensors& tensors,
                                  const ModelOptions& options) {
  int64_t layer_bytes = 0;
  const auto load_weights = [&]() -> Result<DecoderWeights> {
    WeightLoader loader(file, options);
    DecoderWeights weights;
    weights.layers = make_layers(config_);
    for (size_t i = 0; i < weights.layers.size(); ++i) {
      OUTRIDER_RETURN_IF_ERROR(
          load_layer(loader, config_,
                     {.prefix = tensors.layer_prefix(static_cast<int64_t>(i)), .input_size = hidden_size_},
                     weights.layers[i]));
    }
    OUTRIDER_TRY(weights.memory, loader.pack_all());
    layer_bytes = loader.packed_bytes();
    return weights;
  };
  OUTRIDER_TRY(auto backend, make_backend(config_, options, load_weights));
  layers_of_family_.emplace(config_, options, std::move(backend));
  can_be_recorded_ = own_backend()->repeat_problem().empty();
  weight_bytes_ += layer_bytes;
  return {};
}

void FamilyModules::reserve(int64_t rows, int64_t wanted) {
  ModuleChain::reserve(rows, wanted);
  for (auto* list : {&batch_.hidden_state_rows, &all_rows_}) list->reserve(static_cast<size_t>(rows));
  for (const Module& module : modules_) backend_.reserve_product(module.fc, rows);
  if (!layers_of_family_->reserve(rows, 0).ok()) throw std::bad_alloc();
}

void FamilyModules::run_layer(const Pass& pass, size_t index, FloatAddress inputs,
                              std::span<const int32_t> wanted) {
  const int64_t rows = pass.batch->rows();
  const Module& module = modules_[index];
  join_inputs(module.embedding_norm, module.hidden_norm, inputs, rows);
  backend_.project(module.fc, joined_.data(), hidden_.data(), rows);
  batch_ = *pass.batch;
  batch_.hidden_state_rows.assign(wanted.begin(), wanted.end());
  batch_.logits_rows.clear();
  const int32_t first_entry = pass.recorded ? 0 : static_cast<int32_t>(index);  // see_from() hides them
  layers_of_family_->forward_layer(batch_, *pass.cache, static_cast<int64_t>(index), first_entry,
                                   hidden_.data());
}

void FamilyModules::run(const Pass& pass, size_t index, FloatAddress inputs, FloatAddress states) {
  all_rows_.resize(static_cast<size_t>(pass.batch->rows()));
  std::iota(all_rows_.begin(), all_rows_.end(), 0);
  run_layer(pass, index, inputs, all_rows_);
  backend_.copy_strided({layers_of_family_->hidden_rows(), hidden_size_, states, hidden_size_,
                         std::ssize(all_rows_), hidden_size_});
}

RecurrentHead::Output FamilyModules::run_single(const Pass& pass) {
  const auto wanted = std::ssize(pass.batch->logits_rows);
  run_layer(pass, 0, pass.inputs, pass.batch->logits_rows);
  if (wanted == 0) return {};
  const FloatAddress states = layers_of_family_->hidden_rows();
  const FloatAddress normed = normalise(0, states, wanted);
  return output(normed, goes_on_normed_ ? normed : states, wanted);
}

}  // namespace

Result<std::unique_ptr<RecurrentHead>> load_family_module(const HeadFile& head, const MtpLayout& layout,
                                                          Model* target, const ModelOptions& options) {
  if (layout.modules != 1 && is_gguf(head)) {
    return head.fail(
        fmt::format("expected one MTP module in a GGUF file for a target of the family {}, found {}",
                    target->config().family, layout.modules));
  }
  auto module =
      std::make_unique<FamilyModules>(module_layer_config(target->config()), target, options, layout.modules);
  OUTRIDER_RETURN_IF_ERROR(module->load(head, layout, options));
  return std::unique_ptr<RecurrentHead>(std::move(module));
}

}  // namespace outrider
