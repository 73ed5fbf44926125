// SPDX-License-Identifier: Apache-2.0
#include "formats/gguf/gguf_export.h"

#include <algorithm>
#include <numbers>
#include <optional>
#include <utility>

#include "base/portable_math.h"
#include "formats/families.h"
#include "formats/gguf/gguf_config.h"
#include "formats/gguf/gguf_model.h"
#include "formats/gguf/gguf_tokenizer.h"
#include "formats/gguf/gguf_tokenizer_export.h"
#include "formats/interleaved_rows.h"
#include "formats/model_file.h"
#include "formats/model_tensors.h"
#include "formats/stored_layout.h"

namespace outrider {
namespace {

namespace fs = std::filesystem;

std::string architecture_of(const ModelConfig& config) {
  return std::string(find_family(config.family)->gguf_architecture);
}

void export_config(const ModelConfig& config, GgufMetadataWriter* metadata) {
  const std::string prefix = architecture_of(config) + ".";
  const auto integer = [&](const char* key, int64_t value) { metadata->set_u32(prefix + key, value); };
  integer("vocab_size", config.vocab_size);
  integer("context_length", config.max_context);
  integer("embedding_length", config.hidden_size);
  integer("block_count", config.layer_count);
  integer("feed_forward_length", config.ffn_size);
  integer("attention.head_count", config.head_count);
  integer("attention.head_count_kv", config.kv_head_count);
  integer("attention.key_length", config.head_dim);
  integer("attention.value_length", config.head_dim);
  integer("rope.dimension_count", config.head_dim);
  const int64_t window = config.layer_traits.front().window;
  if (window != 0) integer("attention.sliding_window", window);
  metadata->set_f32(prefix + "attention.layer_norm_rms_epsilon", config.norm.epsilon);
  const ScaleTraits& scales = config.scales;
  if (scales.embedding != 1) metadata->set_f32(prefix + "embedding_scale", scales.embedding);
  if (scales.residual != 1) metadata->set_f32(prefix + "residual_scale", scales.residual);
  if (scales.attention != 0) metadata->set_f32(prefix + "attention.scale", scales.attention);
  if (scales.logits != 1) metadata->set_f32(prefix + "logit_scale", 1 / scales.logits);
  const RopeTraits& rope = config.ropes.front();
  metadata->set_f32(prefix + "rope.freq_base", rope.theta);
  if (rope.scaling.kind == RopeScalingKind::kLinear) {
    metadata->set_string(prefix + "rope.scaling.type", "linear");
    metadata->set_f32(prefix + "rope.scaling.factor", rope.scaling.factor);
  }
}

// The contents of rope_freqs.weight for Llama 3.1: the divisor of each frequency.
std::vector<float> llama3_divisors(const ModelConfig& config) {
  const RopeScaling& scaling = config.ropes.front().scaling;
  const auto context = static_cast<double>(scaling.original_context);
  std::vector<float> divisors;
  for (int64_t i = 0; i < config.head_dim / 2; ++i) {
    const double exponent = static_cast<double>(2 * i) / static_cast<double>(config.head_dim);
    const double wavelength =
        2 * std::numbers::pi * portable_exp(exponent * portable_log(config.ropes.front().theta));
    const double kept = (context / wavelength - scaling.low_freq_factor) /
                        (scaling.high_freq_factor - scaling.low_freq_factor);
    const double share = std::clamp(kept, 0.0, 1.0);
    divisors.push_back(static_cast<float>(1 / ((1 - share) / scaling.factor + share)));
  }
  return divisors;
}

// Writes the stop tokens beside EOS that their spelling does not tell; GGUF has room for two.
void export_stop_tokens(const ModelFile& model, GgufModel* gguf) {
  std::optional<TokenId> eos = model.tokenizer.eos;
  if (!eos && !model.config.stop_tokens.empty()) {
    eos = model.config.stop_tokens.front();
    gguf->metadata.set_u32("tokenizer.ggml.eos_token_id", *eos);
  }
  std::vector<const char*> keys = {"tokenizer.ggml.eom_token_id", "tokenizer.ggml.eot_token_id"};
  for (const TokenId token : model.config.stop_tokens) {
    const auto id = static_cast<size_t>(token);
    if (token == eos) continue;
    if (id < model.tokenizer.pieces.size() && model.tokenizer.attributes[id] == TokenAttribute::kControl &&
        ends_text_by_spelling(model.tokenizer.pieces[id])) {
      continue;
    }
    if (keys.empty()) {
      gguf->notes.push_back("GGUF has no room for end-of-text token " + std::to_string(token));
      continue;
    }
    gguf->metadata.set_u32(keys.back(), token);
    keys.pop_back();
  }
}

Status export_metadata(const ModelFile& model, GgufModel* gguf) {
  GgufMetadataWriter& metadata = gguf->metadata;
  metadata.set_string("general.architecture", architecture_of(model.config));
  metadata.set_string("general.type", "model");
  metadata.set_string("general.name", fs::weakly_canonical(model.path).filename().string());
  export_config(model.config, &metadata);
  auto notes = export_tokenizer(model.tokenizer, model.config.vocab_size, &metadata);
  if (!notes.ok()) return input_error(model.path.string() + ": " + notes.error().message);
  gguf->notes = std::move(notes).value();
  export_stop_tokens(model, gguf);
  if (!model.chat_template.empty()) metadata.set_string("tokenizer.chat_template", model.chat_template);
  return {};
}

// Error: a trait that export_config() has no key for.
Status check_writable(const ModelFile& model) {
  const ModelConfig& config = model.config;
  const RopeTraits& rope = config.ropes.front();
  const RopeScalingKind kind = rope.scaling.kind;
  const bool has_plain_rope = config.ropes.size() == 1 && rope.rotated_dim == 0 &&
                              (kind == RopeScalingKind::kNone || kind == RopeScalingKind::kLinear ||
                               kind == RopeScalingKind::kLlama3);
  const bool has_plain_layers = config.layer_traits.size() == 1 && config.attention_softcap == 0 &&
                                config.logit_softcap == 0 && config.query_temperature.beta == 0;
  const ModelFamily& family = *find_family(config.family);
  if (has_plain_rope && has_plain_layers && family.writes_gguf && !config.norm.adds_one) return {};
  return input_error(model.path.string() + ": expected a model that can be written as GGUF, found " +
                     config.family + "; convert it with llama.cpp, then quantize the GGUF file");
}

Result<GgufModel> translate(const fs::path& path) {
  OUTRIDER_TRY(ModelFile model, open_model(path));
  OUTRIDER_RETURN_IF_ERROR(check_writable(model));
  const ModelConfig& config = model.config;
  const ModelFamily& family = *find_family(config.family);
  const std::vector<TensorName> names = gguf_names(family);
  const StoredLayout layout{.layers = kGgufLayers, .names = names};
  GgufModel gguf;
  OUTRIDER_RETURN_IF_ERROR(export_metadata(model, &gguf));
  gguf.tied_embeddings = config.tied_embeddings;
  auto storage =
      std::make_shared<std::pair<std::shared_ptr<void>, ModelStorage>>(model.storage, ModelStorage());
  for (const ExpectedTensor& expected : expected_tensors(config)) {
    TensorView view = model.tensors.at(expected.name);
    if (family.has_interleaved_rows && is_rotated(expected.name))
      view = interleave_rows(view, config, &storage->second);
    gguf.tensors.push_back({stored_name(layout, expected.name), std::move(view)});
  }
  if (config.ropes.front().scaling.kind == RopeScalingKind::kLlama3) {
    const std::vector<float> divisors = llama3_divisors(config);
    Buffer& copy = storage->second.copies.emplace_back(divisors.size() * sizeof(float));
    std::copy(divisors.begin(), divisors.end(), copy.as<float>().begin());
    gguf.tensors.push_back(
        {"rope_freqs.weight", {DType::kF32, {static_cast<int64_t>(divisors.size())}, copy.data()}});
  }
  gguf.storage = std::move(storage);
  return gguf;
}

bool is_about_the_container(std::string_view key) {
  return key.starts_with("split.") || key == "general.alignment";
}

Result<GgufModel> take_over(const fs::path& path) {
  OUTRIDER_TRY(const StoredFiles files, read_gguf_shards(path));
  const GgufFile& file = *files.gguf();
  OUTRIDER_TRY(const TokenizerSpec tokenizer, gguf_tokenizer_spec(file, path.string()));
  OUTRIDER_TRY(const ModelConfig config, gguf_model_config(file, tokenizer, path.string()));
  GgufModel gguf;
  gguf.tied_embeddings = config.tied_embeddings;
  for (const auto& [key, value] : file.metadata) {
    if (!is_about_the_container(key)) gguf.metadata.copy(key, value);
  }
  for (const auto& [name, view] : file.tensors) gguf.tensors.push_back({name, view});
  gguf.files = files.storage->paths;
  gguf.storage = files.storage;
  return gguf;
}

}  // namespace

Result<GgufModel> open_as_gguf(const fs::path& path) {
  return path.extension() == ".gguf" ? take_over(path) : translate(path);
}

}  // namespace outrider
