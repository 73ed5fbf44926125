// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <utility>
#include <vector>

#include "base/quote.h"
#include "formats/adapters/adapter_tensors.h"
#include "formats/hf/tensor_directory.h"
#include "formats/json_file.h"
#include "formats/json_object.h"

namespace outrider {
namespace {

namespace fs = std::filesystem;

// Numbers of an adapter_config.json that some modules have instead of the usual one, by the ends of their
// names.
using Exceptions = std::vector<std::pair<std::string, double>>;

struct PeftConfig {
  double alpha = 8;
  bool is_rank_stable = false;  // alpha / sqrt(rank), arXiv 2312.03732
  Exceptions alphas;
};

// Keys are regular expressions that PEFT matches with the end of a module's name. Names and "^" are read
// here.
Result<Exceptions> read_exceptions(const JsonObject& root, std::string_view key) {
  OUTRIDER_TRY(const auto map, root.object(key));
  Exceptions exceptions;
  if (!map) return exceptions;
  for (const auto& [pattern, value] : map->fields()) {
    std::string name(pattern);
    std::erase(name, '\\');
    const bool is_plain = name.find_first_of("*+?()[]{}|$") == std::string::npos;
    double number = 0;
    if (!is_plain || value.get(number) != simdjson::SUCCESS)
      return root.fail("'" + std::string(key) + "' must have numbers by names of modules, found " +
                       quote(pattern));
    exceptions.emplace_back(std::move(name), number);
  }
  return exceptions;
}

bool matches_module(std::string_view module, std::string_view pattern) {
  if (pattern.starts_with('^')) return module == pattern.substr(1);
  if (!module.ends_with(pattern)) return false;
  const size_t before = module.size() - pattern.size();
  return before == 0 || module[before - 1] == '.';
}

// Error: the adapter changes the model in a way that low-rank products do not.
Status check_peft_kind(const JsonObject& root) {
  OUTRIDER_TRY(const auto type, root.string("peft_type"));
  if (type != "LORA") {
    return root.fail("'peft_type' must be \"LORA\", the kind of adapter that is supported, found " +
                     quote(type.value_or("none")));
  }
  for (const auto& [key, value] : root.fields()) {
    // Variants of LoRA have a flag each, of which one changes no more than the scale.
    bool is_set = false;
    const bool is_flag = key.starts_with("use_") || key == "lora_bias";
    if (is_flag && key != "use_rslora" && value.get(is_set) == simdjson::SUCCESS && is_set)
      return root.fail("'" + std::string(key) + "' is not supported; only plain LoRA is");
  }
  OUTRIDER_TRY(const auto bias, root.string("bias"));
  if (bias.value_or("none") != "none")
    return root.fail("'bias' must be \"none\", found " + quote(*bias) + "; trained biases are not supported");
  constexpr std::array<const char*, 8> kParts = {
      "modules_to_save",   "target_parameters",       "trainable_token_indices",
      "layer_replication", "alora_invocation_tokens", "arrow_config",
      "kasa_config",       "monteclora_config"};
  for (const char* part : kParts) {
    const auto value = root.find(part);
    if (!value || value->is_null()) continue;
    const bool is_empty = (value->is_array() && value->get_array().value_unsafe().size() == 0) ||
                          (value->is_object() && value->get_object().value_unsafe().size() == 0);
    if (!is_empty) return root.fail("'" + std::string(part) + "' is not supported; only plain LoRA is");
  }
  return {};
}

Result<PeftConfig> read_peft_config(const JsonObject& root) {
  OUTRIDER_RETURN_IF_ERROR(check_peft_kind(root));
  PeftConfig config;
  OUTRIDER_TRY(const auto alpha, root.number("lora_alpha"));
  OUTRIDER_TRY(const auto is_rank_stable, root.boolean("use_rslora"));
  OUTRIDER_TRY(config.alphas, read_exceptions(root, "alpha_pattern"));
  config.alpha = alpha.value_or(config.alpha);
  config.is_rank_stable = is_rank_stable.value_or(false);
  return config;
}

float peft_scale(const PeftConfig& config, std::string_view module, int64_t rank) {
  double alpha = config.alpha;
  const auto own = std::ranges::find_if(config.alphas,
                                        [&](const auto& each) { return matches_module(module, each.first); });
  if (own != config.alphas.end()) alpha = own->second;
  const auto size = static_cast<double>(rank);
  return static_cast<float>(alpha / (config.is_rank_stable ? std::sqrt(size) : size));
}

// "base_model.model.model.layers.0.mlp.up_proj.lora_A.weight", perhaps with the adapter's name before
// ".weight".
struct UpdateName {
  std::string_view module;
  bool is_a = false;
};

std::optional<UpdateName> parse_update_name(std::string_view name) {
  constexpr std::string_view kBase = "base_model.model.";
  if (name.starts_with(kBase)) name.remove_prefix(kBase.size());
  for (const std::string_view part : {".lora_A.", ".lora_B."}) {
    const size_t at = name.find(part);
    if (at == name.npos || !name.ends_with("weight")) continue;
    return UpdateName{.module = name.substr(0, at), .is_a = part == ".lora_A."};
  }
  return std::nullopt;
}

}  // namespace

Result<AdapterTensors> read_peft_adapter(const fs::path& folder, ModelStorage& storage) {
  OUTRIDER_TRY(const JsonFile document, JsonFile::read(folder / "adapter_config.json"));
  OUTRIDER_TRY(const PeftConfig config, read_peft_config(document.root()));
  std::error_code ignored;
  const bool is_torch = !fs::exists(folder / "adapter_model.safetensors", ignored);
  OUTRIDER_TRY(const TensorDirectory tensors,
               TensorDirectory::open_file(folder, storage.files,
                                          is_torch ? "adapter_model.bin" : "adapter_model.safetensors"));
  AdapterTensors adapter{.format = "peft"};
  for (const auto& [name, stored] : tensors.tensors()) {
    const std::optional<UpdateName> parsed = parse_update_name(name);
    if (!parsed) {
      return input_error(
          folder.string() + ": tensor " + quote(name) +
          " is no part of a low-rank update of a matrix; expected names with lora_A and lora_B, which "
          "PEFT writes for layers of the model");
    }
    OUTRIDER_TRY(const TensorView view, tensors.find(name));
    StoredUpdate& update = adapter.updates[std::string(parsed->module) + ".weight"];
    (parsed->is_a ? update.a : update.b) = aligned(view, storage);
    if (parsed->is_a && !view.shape.empty())
      update.scale = peft_scale(config, parsed->module, view.shape.front());
  }
  return adapter;
}

}  // namespace outrider
