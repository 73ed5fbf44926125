// SPDX-License-Identifier: Apache-2.0
#include "formats/hf/hf_config.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "base/quote.h"
#include "formats/families.h"
#include "formats/hf/hf_attention.h"
#include "formats/hf/hf_rope.h"
#include "formats/json_file.h"
#include "formats/json_object.h"
#include "formats/quantized/quantization.h"
#include "platform/mapped_file.h"

namespace outrider {
namespace {

Result<const ModelFamily*> read_family(const JsonObject& root) {
  OUTRIDER_TRY(const auto architectures, root.array("architectures"));
  OUTRIDER_TRY(const auto model_type, root.string("model_type"));
  std::string_view name = model_type.value_or("");
  if (architectures && architectures->size() > 0) {
    if (architectures->at(0).get(name) != simdjson::SUCCESS) {
      return root.wrong_type("architectures", "a list of strings");
    }
  }
  for (const auto column : {&ModelFamily::hf_architecture, &ModelFamily::hf_alias}) {
    if (const ModelFamily* family = find_family(name, column)) return family;
  }
  constexpr std::string_view kText = "_text";
  const std::string_view stem = name.ends_with(kText) ? name.substr(0, name.size() - kText.size()) : name;
  if (const ModelFamily* family = find_family(stem)) return family;
  return root.fail("architecture " + quote(name) + " is not supported; supported are those of " +
                   list_families(&ModelFamily::name));
}

// usual: the value of an absent key; 0: it must be there.
Result<int64_t> integer_or(const JsonObject& root, std::string_view key, int64_t usual) {
  if (usual == 0) return root.require_integer(key);
  OUTRIDER_TRY(const auto value, root.integer(key));
  return value.value_or(usual);
}

Status read_sizes(const JsonObject& root, const ModelFamily& family, ModelConfig* config) {
  OUTRIDER_TRY(config->vocab_size, integer_or(root, "vocab_size", family.vocab_size));
  const HfKeys& keys = family.hf_keys;
  OUTRIDER_TRY(config->hidden_size, root.require_integer(keys.hidden_size));
  OUTRIDER_TRY(config->layer_count, root.require_integer(keys.layers));
  OUTRIDER_TRY(config->head_count, integer_or(root, keys.heads, family.heads));
  OUTRIDER_TRY(const auto ffn_size, root.integer(keys.ffn_size));
  if (!ffn_size && family.ffn_factor == 0) return root.fail(quote(keys.ffn_size) + " is missing");
  config->ffn_size = ffn_size.value_or(family.ffn_factor * std::min(config->hidden_size, int64_t{1} << 32));
  OUTRIDER_TRY(const auto max_context, root.integer(keys.context));
  config->max_context = max_context.value_or(family.max_context);
  // An explicit null means one key-value head per head in every family; the default of an absent key may
  // differ.
  OUTRIDER_TRY(const auto kv_heads, root.integer("num_key_value_heads"));
  const bool defaulted = family.kv_heads != 0 && !root.contains("num_key_value_heads");
  config->kv_head_count = kv_heads.value_or(defaulted ? family.kv_heads : config->head_count);
  OUTRIDER_TRY(const auto head_dim, root.integer("head_dim"));
  if (head_dim || family.head_dim != 0) {
    config->head_dim = head_dim.value_or(family.head_dim);
    return {};
  }
  if (config->head_count < 1 || config->hidden_size % config->head_count != 0) {
    return root.fail("hidden_size " + std::to_string(config->hidden_size) + " is not a multiple of " +
                     std::to_string(config->head_count) + " heads, and there is no head_dim");
  }
  config->head_dim = config->hidden_size / config->head_count;
  return {};
}

bool has(Use use, std::optional<bool> stated) {
  return use == Use::kAlways || (use == Use::kOptional && stated.value_or(false));
}

Result<Activation> activation_named(std::string_view name, const JsonObject& root) {
  if (name == "silu" || name == "swish") return Activation::kSilu;
  if (name == "gelu") return Activation::kGelu;
  if (name == "gelu_new" || name == "gelu_fast" || name == "gelu_pytorch_tanh") return Activation::kGeluTanh;
  if (name == "relu") return Activation::kRelu;
  return root.fail("activation " + quote(name) +
                   " is not supported; silu, gelu, gelu_pytorch_tanh and relu are");
}

Status read_flags(const JsonObject& root, const ModelFamily& family, ModelConfig* config) {
  OUTRIDER_TRY(const auto tied, root.boolean("tie_word_embeddings"));
  config->tied_embeddings = tied.value_or(family.tied_embeddings);
  OUTRIDER_TRY(const auto attention_bias, root.boolean("attention_bias"));
  OUTRIDER_TRY(const auto mlp_bias, root.boolean("mlp_bias"));
  config->output_bias = has(family.output_bias, attention_bias);
  config->qkv_bias = has(family.qkv_bias, attention_bias);
  config->mlp.bias = has(family.mlp_bias, mlp_bias);
  config->qk_norm = family.qk_norm == Use::kAlways ? family.qk_norm_kind : QkNorm::kNone;
  return {};
}

// The traits that a family has and the traits that its configuration states.
Status read_traits(const JsonObject& root, const ModelFamily& family, ModelConfig* config) {
  config->norm = family.norm;
  config->mlp = family.mlp;
  config->experts = family.experts;
  config->scales = family.scales;
  OUTRIDER_TRY(const auto epsilon, root.number(family.hf_keys.epsilon));
  if (epsilon) config->norm.epsilon = static_cast<float>(*epsilon);
  OUTRIDER_TRY(auto activation, root.string("hidden_activation"));
  if (!activation) {
    OUTRIDER_TRY(activation, root.string(family.hf_keys.activation));
  }
  if (activation) {
    OUTRIDER_TRY(config->mlp.activation, activation_named(*activation, root));
  }
  OUTRIDER_RETURN_IF_ERROR(read_flags(root, family, config));
  if (family.read_hf_traits != nullptr) OUTRIDER_RETURN_IF_ERROR(family.read_hf_traits(root, config));
  if (family.derive_traits != nullptr) family.derive_traits(config);
  return {};
}

Result<std::optional<double>> read_within(const JsonObject& root, std::string_view key, double min,
                                          double max) {
  OUTRIDER_TRY(const auto value, root.number(key));
  if (!value || (*value >= min && *value <= max)) return value;
  return root.fail(std::string(key) + " must be " + std::to_string(min) + " to " + std::to_string(max) +
                   ", found " + std::to_string(*value));
}

// The recommended sampling; none where the likeliest token is recommended (do_sample: false).
Result<SamplingChoices> read_sampling(const JsonObject& root) {
  SamplingChoices sampling;
  OUTRIDER_TRY(const auto does_sample, root.boolean("do_sample"));
  if (does_sample && !*does_sample) return sampling;
  OUTRIDER_TRY(sampling.temperature, read_within(root, "temperature", 0.0, 100.0));
  OUTRIDER_TRY(sampling.top_p, read_within(root, "top_p", 0.0, 1.0));
  OUTRIDER_TRY(sampling.min_p, read_within(root, "min_p", 0.0, 1.0));
  OUTRIDER_TRY(sampling.repetition_penalty, read_within(root, "repetition_penalty", 0.001, 1000.0));
  OUTRIDER_TRY(const auto top_k, root.integer("top_k"));
  if (top_k && (*top_k < 0 || *top_k > std::numeric_limits<int32_t>::max()))
    return root.fail("top_k must not be negative, found " + std::to_string(*top_k));
  if (top_k) sampling.top_k = static_cast<int32_t>(*top_k);
  return sampling;
}

std::string_view text_of(const MappedFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

Result<ModelConfig> config_of(const JsonFile& document, std::string_view generation_config_json) {
  // Models that also see describe their language model in a separate object.
  OUTRIDER_TRY(const auto text, document.root().object("text_config"));
  const JsonObject& root = text ? *text : document.root();
  OUTRIDER_TRY(const ModelFamily* family, read_family(root));
  if (const auto quantization = read_quantization(document.root()); !quantization.ok())
    return quantization.error();
  ModelConfig config;
  config.family = family->name;
  OUTRIDER_RETURN_IF_ERROR(read_sizes(root, *family, &config));
  OUTRIDER_RETURN_IF_ERROR(read_hf_attention(root, *family, &config));
  OUTRIDER_RETURN_IF_ERROR(read_hf_ropes(root, *family, &config));
  OUTRIDER_RETURN_IF_ERROR(read_traits(root, *family, &config));
  OUTRIDER_RETURN_IF_ERROR(read_stop_tokens(root, &config.stop_tokens));
  OUTRIDER_RETURN_IF_ERROR(read_stop_tokens(document.root(), &config.stop_tokens));
  if (!generation_config_json.empty()) {
    OUTRIDER_TRY(const JsonFile generation,
                 JsonFile::parse(generation_config_json, "generation_config.json"));
    OUTRIDER_RETURN_IF_ERROR(read_stop_tokens(generation.root(), &config.stop_tokens));
    OUTRIDER_TRY(config.sampling, read_sampling(generation.root()));
  }
  if (const Status valid = validate(config); !valid.ok()) return root.fail(valid.error().message);
  return config;
}

}  // namespace

Status read_stop_tokens(const JsonObject& root, std::vector<TokenId>* stop_tokens) {
  const auto element = root.find("eos_token_id");
  if (!element) return {};
  std::vector<TokenId> tokens;
  const auto append = [&](simdjson::dom::element value) {
    int64_t id = 0;
    if (value.get(id) != simdjson::SUCCESS || id < 0 || id > std::numeric_limits<TokenId>::max())
      return false;
    tokens.push_back(static_cast<TokenId>(id));
    return true;
  };
  bool valid = true;
  simdjson::dom::array list;
  if (element->get(list) == simdjson::SUCCESS) {
    for (const simdjson::dom::element item : list) valid = valid && append(item);
  } else {
    valid = append(*element);
  }
  if (!valid) return root.wrong_type("eos_token_id", "a token id or a list of token ids");
  *stop_tokens = std::move(tokens);
  return {};
}

Result<ModelConfig> parse_hf_config(std::string_view config_json, std::string_view generation_config_json) {
  OUTRIDER_TRY(const JsonFile document, JsonFile::parse(config_json, "config.json"));
  return config_of(document, generation_config_json);
}

Result<ModelConfig> read_layer_config(const JsonObject& root) {
  ModelFamily family = *find_family("llama");
  family.window_rule = WindowRule::kSwitched;
  family.sliding_window = 4096;
  family.qkv_bias = family.output_bias = family.mlp_bias = Use::kNever;
  ModelConfig config;
  config.family = family.name;
  OUTRIDER_RETURN_IF_ERROR(read_sizes(root, family, &config));
  OUTRIDER_RETURN_IF_ERROR(read_hf_attention(root, family, &config));
  OUTRIDER_RETURN_IF_ERROR(read_hf_ropes(root, family, &config));
  OUTRIDER_RETURN_IF_ERROR(read_traits(root, family, &config));
  if (config.mlp.activation != Activation::kSilu)
    return root.fail("layers of drafters need the activation silu");
  if (const Status valid = validate(config); !valid.ok()) return root.fail(valid.error().message);
  return config;
}

Result<JsonFile> read_hf_document(const std::filesystem::path& directory) {
  OUTRIDER_TRY(const MappedFile file, MappedFile::open(directory / "config.json"));
  return JsonFile::parse(text_of(file), "config.json");
}

Result<ModelConfig> read_hf_config(const JsonFile& document, const std::filesystem::path& directory) {
  const auto generation_path = directory / "generation_config.json";
  std::error_code ignored;
  if (!std::filesystem::exists(generation_path, ignored)) return config_of(document, {});
  OUTRIDER_TRY(const MappedFile generation, MappedFile::open(generation_path));
  return config_of(document, text_of(generation));
}

Result<ModelConfig> read_hf_config(const std::filesystem::path& directory) {
  OUTRIDER_TRY(const JsonFile document, read_hf_document(directory));
  return read_hf_config(document, directory);
}

}  // namespace outrider
