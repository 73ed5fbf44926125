// SPDX-License-Identifier: Apache-2.0
#include "training/heads/head_export.h"

#include <ATen/ATen.h>

#include <string>
#include <unordered_map>
#include <utility>

#include "platform/durable_file.h"
#include "tensor/tensor_view.h"
#include "training/core/safetensors_file.h"
#include "training/head_data/initial_head.h"

namespace outrider::training {

namespace {

Status write_config(nlohmann::json config, const FrozenTarget& target, const nlohmann::json& learned,
                    const std::filesystem::path& folder) {
  config.update(learned);
  config["outrider_target"] = target.fingerprint();
  config["outrider_target_name"] = target.name();
  return write_durably(folder / "config.json", config.dump(2) + "\n");
}

}  // namespace

nlohmann::json layer_config(const ModelConfig& target, const LayerShape& shape) {
  nlohmann::json config = {{"hidden_size", shape.hidden},
                           {"intermediate_size", shape.ffn},
                           {"num_attention_heads", shape.heads},
                           {"num_key_value_heads", shape.kv_heads},
                           {"head_dim", shape.head_dim},
                           {"rms_norm_eps", static_cast<double>(target.norm.epsilon)},
                           {"rope_theta", shape.rope.theta},
                           {"max_position_embeddings", target.max_context},
                           {"vocab_size", target.vocab_size},
                           {"hidden_act", "silu"},
                           {"attention_bias", false},
                           {"mlp_bias", false},
                           {"torch_dtype", "bfloat16"}};
  const RopeScaling& scaling = shape.rope.scaling;
  if (scaling.kind == RopeScalingKind::kLinear) {
    config["rope_scaling"] = {{"rope_type", "linear"}, {"factor", scaling.factor}};
  } else if (scaling.kind == RopeScalingKind::kLlama3) {
    config["rope_scaling"] = {{"rope_type", "llama3"},
                              {"factor", scaling.factor},
                              {"low_freq_factor", scaling.low_freq_factor},
                              {"high_freq_factor", scaling.high_freq_factor},
                              {"original_max_position_embeddings", scaling.original_context}};
  }
  return config;
}

std::vector<std::filesystem::path> tokenizer_files(const FrozenTarget& target) {
  std::vector<std::filesystem::path> files;
  for (const char* name : {"tokenizer.json", "tokenizer_config.json", "generation_config.json"}) {
    if (std::filesystem::exists(target.file().path / name)) files.push_back(target.file().path / name);
  }
  return files;
}

Status check_tokenizer_file(const FrozenTarget& target) {
  const std::filesystem::path& path = target.file().path;
  if (std::filesystem::exists(path / "tokenizer.json")) return {};
  return usage_error("--target: a draft takes the target's tokenizer.json along, found none in " +
                     path.string() + "; give the Hugging Face folder of this target");
}

Status write_head(const DraftHead& head, const FrozenTarget& target, const nlohmann::json& learned,
                  const std::filesystem::path& folder) {
  HeadExport exported = head.exported();
  for (auto& [name, tensor] : exported.tensors) {
    if (tensor.is_floating_point()) tensor = tensor.detach().to(at::kBFloat16).contiguous();
  }
  OUTRIDER_RETURN_IF_ERROR(make_directories(folder));
  OUTRIDER_RETURN_IF_ERROR(write_config(std::move(exported.config), target, learned, folder));
  for (const std::filesystem::path& file : exported.files) {
    std::error_code error;
    std::filesystem::copy_file(file, folder / file.filename(),
                               std::filesystem::copy_options::overwrite_existing, error);
    if (error) return io_error("cannot copy " + file.string() + ": " + error.message());
  }
  return write_safetensors(folder / "model.safetensors", exported.tensors);
}

Status write_head_config(const DraftHead& head, const FrozenTarget& target, const nlohmann::json& learned,
                         const std::filesystem::path& folder) {
  return write_config(head.exported().config, target, learned, folder);
}

Status read_head(const std::filesystem::path& folder, const DraftHead& head) {
  OUTRIDER_TRY(NamedTensors tensors, read_initial_head(folder));
  const NamedTensors stored = head.fitted(std::move(tensors));
  const std::unordered_map<std::string, at::Tensor> by_name(stored.begin(), stored.end());
  const at::NoGradGuard no_grad;
  for (const auto& [name, parameter] : head.parameters()) {
    const auto found = by_name.find(name);
    if (found == by_name.end() || found->second.sizes() != parameter.sizes())
      return usage_error("--init: " + folder.string() + ": expected a tensor " + name + " of shape " +
                         shape_text(parameter.sizes()) + ", found " +
                         (found == by_name.end() ? "none" : shape_text(found->second.sizes())));
    parameter.copy_(found->second);
  }
  return {};
}

Status move_head(const std::filesystem::path& from, const std::filesystem::path& to) {
  std::error_code error, ignored;
  for (const auto& file : std::filesystem::directory_iterator(from, error)) {
    std::filesystem::rename(file.path(), to / file.path().filename(), error);
    if (error) return io_error("cannot move " + file.path().string() + ": " + error.message());
  }
  if (error) return io_error("cannot read " + from.string() + ": " + error.message());
  std::filesystem::remove_all(from, ignored);
  return sync_directory(to);
}

}  // namespace outrider::training
