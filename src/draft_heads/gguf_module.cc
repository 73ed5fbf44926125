// SPDX-License-Identifier: Apache-2.0
#include "draft_heads/gguf_module.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "formats/families.h"
#include "formats/gguf/architecture_keys.h"
#include "formats/gguf/gguf_config.h"
#include "formats/gguf/gguf_metadata.h"
#include "formats/gguf/gguf_tokenizer.h"
#include "formats/interleaved_rows.h"
#include "formats/model_tensors.h"
#include "formats/stored_layout.h"

namespace outrider {
namespace {

// The names of a module's tensors beside its layer: the file's, Qwen's and DeepSeek's.
struct ModuleName {
  const char *stored, *qwen, *deepseek;
};
constexpr std::array kModuleNames = {
    ModuleName{"nextn.enorm.weight", "mtp.pre_fc_norm_embedding.weight", "enorm.weight"},
    ModuleName{"nextn.hnorm.weight", "mtp.pre_fc_norm_hidden.weight", "hnorm.weight"},
    ModuleName{"nextn.eh_proj.weight", "mtp.fc.weight", "eh_proj.weight"},
    ModuleName{"nextn.shared_head_norm.weight", "mtp.norm.weight", "shared_head.norm.weight"}};

class ModuleFile {
 public:
  ModuleFile(const GgufFile& file, const ModelConfig& config, std::string path, ModelStorage& storage)
      : file_(file), config_(config), path_(std::move(path)), storage_(storage) {}

  // Adds the tensors to the head, by their published names.
  Status read(GgufHead& head) const {
    OUTRIDER_TRY(const ModelFile layer, read_layer());
    for (const auto& [name, view] : layer.tensors) add(head, published_layer_name(name), view);
    for (const ModuleName& name : kModuleNames) {
      OUTRIDER_TRY(const TensorView view, find(stored_prefix() + name.stored));
      add(head, is_qwen() ? name.qwen : expected_prefix() + name.deepseek, aligned(view, storage_));
    }
    return {};
  }

 private:
  std::string stored_prefix() const { return fmt::format("{}{}.", kGgufLayers, config_.layer_count); }
  std::string expected_prefix() const { return fmt::format("model.layers.{}.", config_.layer_count); }
  // Among the families with modules Qwen's gate their attention.
  bool is_qwen() const { return config_.gates_attention; }
  std::string published_layer_name(const std::string& name) const {
    return is_qwen() ? "mtp.layers.0." + name.substr(expected_prefix().size()) : name;
  }

  Result<TensorView> find(const std::string& name) const {
    const auto found = file_.tensors.find(name);
    if (found != file_.tensors.end()) return found->second;
    return input_error(fmt::format("{}: tensor {} of its MTP module is missing", path_, name));
  }

  Result<ModelFile> read_layer() const {
    const TensorSource source{.has = [&](const std::string& name) { return file_.tensors.contains(name); },
                              .find = [&](const std::string& name) { return find(name); }};
    const ModelFamily& family = *find_family(config_.family);
    const std::vector<TensorName> names = gguf_names(family);
    const StoredLayout layout{.layers = kGgufLayers, .names = names};
    ModelFile layer;
    layer.config = module_layer_config(config_);
    OUTRIDER_RETURN_IF_ERROR(attach_expected(expected_layer_tensors(layer.config, config_.layer_count),
                                             expected_lookup(layout, source, layer.config, &storage_),
                                             &storage_, &layer));
    if (family.has_interleaved_rows) uninterleave_model(&storage_, &layer);
    return layer;
  }

  static void add(GgufHead& head, const std::string& name, const TensorView& view) {
    const auto bytes = view.data == nullptr ? size_t{0} : static_cast<size_t>(view.bytes());
    head.tensors.emplace(name, StoredTensor{.dtype_name = std::string(dtype_name(view.dtype)),
                                            .dtype = view.dtype,
                                            .shape = view.shape,
                                            .data = {view.data, bytes}});
    head.file.tensors.emplace(name, view);
  }

  const GgufFile& file_;
  const ModelConfig& config_;
  std::string path_;
  ModelStorage& storage_;
};

struct ModulePlace {
  int64_t modules = 0;
  int64_t layer = 0;  // of the first one, after the target's last
};
Result<ModulePlace> module_place(const GgufFile& file, const std::string& name) {
  const GgufMetadata metadata(file, name);
  OUTRIDER_TRY(const auto architecture, metadata.string("general.architecture"));
  if (!architecture) return ModulePlace();
  const ArchitectureKeys keys(metadata, *architecture);
  OUTRIDER_TRY(const auto modules, keys.integer("nextn_predict_layers"));
  OUTRIDER_TRY(const auto layers, keys.integer("block_count"));
  return ModulePlace{.modules = modules.value_or(0), .layer = layers.value_or(0) - modules.value_or(0)};
}

// The target's configuration says what its layers have by their tensors. In a file without them the module's
// stand for every layer's.
GgufFile with_missing_layers(GgufFile file, int64_t module) {
  const std::string prefix = fmt::format("{}{}.", kGgufLayers, module);
  std::vector<std::pair<std::string, TensorView>> own;
  for (const auto& [name, view] : file.tensors) {
    if (name.starts_with(prefix)) own.emplace_back(name.substr(prefix.size()), view);
  }
  constexpr int64_t kMaxLayers = 1024;  // gguf_model_config() has the message for more
  for (int64_t layer = 0; layer < std::min(module, kMaxLayers); ++layer) {
    for (const auto& [name, view] : own)
      file.tensors.emplace(fmt::format("{}{}.{}", kGgufLayers, layer, name), view);
  }
  return file;
}

}  // namespace

ModelConfig module_layer_config(const ModelConfig& target) {
  int64_t last = target.layer_count - 1;
  while (last > 0 && !target.has_attention(last)) --last;
  ModelConfig config = target;
  config.layer_count = 1;
  config.layer_traits = {target.traits_of(last)};
  return config;
}

Result<std::optional<GgufHead>> find_gguf_module(const std::shared_ptr<const StoredFiles>& files,
                                                 bool may_be_model) {
  const GgufFile& stored = *files->gguf();
  const std::string name = files->path.string();
  OUTRIDER_TRY(const ModulePlace place, module_place(stored, name));
  const std::string fc = fmt::format("{}{}.nextn.eh_proj.weight", kGgufLayers, place.layer);
  const bool has_target = stored.tensors.contains(fmt::format("{}0.attn_norm.weight", kGgufLayers));
  if (place.modules < 1 || !stored.tensors.contains(fc) || (has_target && !may_be_model))
    return std::optional<GgufHead>();
  const std::string keys = fmt::format(R"({{"num_nextn_predict_layers": {}}})", place.modules);
  OUTRIDER_TRY(JsonFile config_file, JsonFile::parse(keys, name));
  const GgufFile file = has_target ? stored : with_missing_layers(stored, place.layer);
  OUTRIDER_TRY(const TokenizerSpec tokenizer, gguf_tokenizer_spec(file, name));
  OUTRIDER_TRY(const ModelConfig config, gguf_model_config(file, tokenizer, name));
  GgufHead head = head_from(files, std::move(config_file));
  OUTRIDER_RETURN_IF_ERROR(ModuleFile(file, config, name, *files->storage).read(head));
  return std::optional<GgufHead>(std::move(head));
}

}  // namespace outrider
