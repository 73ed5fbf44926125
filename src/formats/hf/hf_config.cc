// SPDX-License-Identifier: Apache-2.0
#include "formats/hf/hf_config.h"

#include <limits>
#include <string>
#include <utility>

#include "base/quote.h"
#include "formats/families.h"
#include "formats/json_file.h"
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
  if (const ModelFamily* family = find_family(name, &ModelFamily::hf_architecture)) return family;
  if (const ModelFamily* family = find_family(name)) return family;
  return root.fail("architecture " + quote(name) + " is not supported; supported are " +
                   list_families(&ModelFamily::hf_architecture));
}

Result<int64_t> require_integer(const JsonObject& root, std::string_view key) {
  OUTRIDER_TRY(const auto value, root.integer(key));
  if (!value) return root.fail(quote(key) + " is missing");
  return *value;
}

Status read_sizes(const JsonObject& root, const ModelFamily& family, ModelConfig* config) {
  OUTRIDER_TRY(config->vocab_size, require_integer(root, "vocab_size"));
  OUTRIDER_TRY(config->hidden_size, require_integer(root, "hidden_size"));
  OUTRIDER_TRY(config->layer_count, require_integer(root, "num_hidden_layers"));
  OUTRIDER_TRY(config->head_count, require_integer(root, "num_attention_heads"));
  OUTRIDER_TRY(config->ffn_size, require_integer(root, "intermediate_size"));
  OUTRIDER_TRY(const auto max_context, root.integer("max_position_embeddings"));
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

// Whether "layer_types" gives all layers a sliding window; nullopt: the key is absent. Error: layers differ.
Result<std::optional<bool>> all_layers_slide(const JsonObject& root) {
  OUTRIDER_TRY(const auto types, root.array("layer_types"));
  std::optional<bool> slides;
  if (!types) return slides;
  for (const simdjson::dom::element element : *types) {
    std::string_view type;
    if (element.get(type) != simdjson::SUCCESS) return root.wrong_type("layer_types", "a list of strings");
    if (type != "full_attention" && type != "sliding_attention") {
      return root.fail("layer type " + quote(type) +
                       " is not supported; full_attention and sliding_attention are");
    }
    const bool slides_here = type == "sliding_attention";
    if (slides && *slides != slides_here) {
      return root.fail("layer_types: full_attention and sliding_attention in one model are not supported");
    }
    slides = slides_here;
  }
  return slides;
}

Status read_sliding_window(const JsonObject& root, const ModelFamily& family, ModelConfig* config) {
  if (family.window_rule == WindowRule::kIgnored) return {};
  OUTRIDER_TRY(const auto stated, root.integer("sliding_window"));
  const int64_t window = stated.value_or(root.contains("sliding_window") ? 0 : family.sliding_window);
  OUTRIDER_TRY(const auto slides, all_layers_slide(root));
  if (family.window_rule == WindowRule::kStated) {
    config->sliding_window = slides.value_or(true) ? window : 0;
    return {};
  }
  OUTRIDER_TRY(const auto enabled, root.boolean("use_sliding_window"));
  if (!enabled.value_or(false)) return {};
  if (slides) {
    config->sliding_window = *slides ? window : 0;
    return {};
  }
  // Only layers from max_window_layers on have the window.
  OUTRIDER_TRY(const auto full_layers, root.integer("max_window_layers"));
  const int64_t full = full_layers.value_or(28);
  if (full > 0 && full < config->layer_count) {
    return root.fail("layers with and without a sliding window in one model are not supported");
  }
  config->sliding_window = full <= 0 ? window : 0;
  return {};
}

Status read_llama3_scaling(const JsonObject& rope, RopeScaling* scaling) {
  OUTRIDER_TRY(const auto low, rope.number("low_freq_factor"));
  OUTRIDER_TRY(const auto high, rope.number("high_freq_factor"));
  OUTRIDER_TRY(const auto original, rope.integer("original_max_position_embeddings"));
  if (!low || !high || !original) {
    return rope.fail(
        "RoPE scaling 'llama3' needs low_freq_factor, high_freq_factor and "
        "original_max_position_embeddings");
  }
  scaling->kind = RopeScalingKind::kLlama3;
  scaling->low_freq_factor = *low;
  scaling->high_freq_factor = *high;
  scaling->original_context = *original;
  return {};
}

// "rope_parameters" is the newer spelling of "rope_theta" and "rope_scaling" in one object.
Status read_rope(const JsonObject& root, ModelConfig* config) {
  OUTRIDER_TRY(auto rope, root.object("rope_parameters"));
  OUTRIDER_TRY(auto theta, root.number("rope_theta"));
  if (!rope) {
    OUTRIDER_TRY(rope, root.object("rope_scaling"));
  } else {
    OUTRIDER_TRY(const auto inner_theta, rope->number("rope_theta"));
    if (inner_theta) theta = inner_theta;
  }
  config->rope_theta = theta.value_or(10000.0);
  OUTRIDER_TRY(
      const auto partial,
      (rope && rope->contains("partial_rotary_factor") ? *rope : root).number("partial_rotary_factor"));
  if (partial.value_or(1.0) != 1.0) return root.fail("a partial_rotary_factor other than 1 is not supported");
  if (!rope) return {};
  OUTRIDER_TRY(auto type, rope->string("rope_type"));
  if (!type) {
    OUTRIDER_TRY(type, rope->string("type"));
  }
  if (!type || *type == "default") return {};
  if (*type != "linear" && *type != "llama3") {
    return root.fail("RoPE scaling " + quote(*type) + " is not supported; default, linear and llama3 are");
  }
  OUTRIDER_TRY(const auto factor, rope->number("factor"));
  if (!factor) return root.fail("RoPE scaling " + quote(*type) + " needs a factor");
  config->rope_scaling.factor = *factor;
  if (*type == "llama3") return read_llama3_scaling(*rope, &config->rope_scaling);
  config->rope_scaling.kind = RopeScalingKind::kLinear;
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

// The traits that a family has and those that its configuration states.
Status read_traits(const JsonObject& root, const ModelFamily& family, ModelConfig* config) {
  config->norm = family.norm;
  config->mlp = family.mlp;
  config->scales = family.scales;
  OUTRIDER_TRY(const auto epsilon, root.number("rms_norm_eps"));
  if (epsilon) config->norm.epsilon = static_cast<float>(*epsilon);
  OUTRIDER_TRY(const auto activation, root.string("hidden_act"));
  if (activation) {
    OUTRIDER_TRY(config->mlp.activation, activation_named(*activation, root));
  }
  OUTRIDER_RETURN_IF_ERROR(read_flags(root, family, config));
  return family.read_hf_traits == nullptr ? Status() : family.read_hf_traits(root, config);
}

Status refuse_quantization(const JsonObject& root) {
  if (!root.find("quantization_config")) return {};
  return root.fail("quantization is not supported in a drafter's layers; use F32, F16 or BF16 weights");
}

// Reads a number or a list of numbers; an absent key changes nothing.
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

}  // namespace

Result<ModelConfig> parse_hf_config(std::string_view config_json, std::string_view generation_config_json) {
  OUTRIDER_TRY(const JsonFile document, JsonFile::parse(config_json, "config.json"));
  const JsonObject& root = document.root();
  OUTRIDER_TRY(const ModelFamily* family, read_family(root));
  if (const auto quantization = read_quantization(root); !quantization.ok()) return quantization.error();
  ModelConfig config;
  config.family = family->name;
  OUTRIDER_RETURN_IF_ERROR(read_sizes(root, *family, &config));
  OUTRIDER_RETURN_IF_ERROR(read_sliding_window(root, *family, &config));
  OUTRIDER_RETURN_IF_ERROR(read_rope(root, &config));
  OUTRIDER_RETURN_IF_ERROR(read_traits(root, *family, &config));
  OUTRIDER_RETURN_IF_ERROR(read_stop_tokens(root, &config.stop_tokens));
  if (!generation_config_json.empty()) {
    OUTRIDER_TRY(const JsonFile generation,
                 JsonFile::parse(generation_config_json, "generation_config.json"));
    OUTRIDER_RETURN_IF_ERROR(read_stop_tokens(generation.root(), &config.stop_tokens));
    OUTRIDER_TRY(config.sampling, read_sampling(generation.root()));
  }
  if (const Status valid = validate(config); !valid.ok()) return root.fail(valid.error().message);
  return config;
}

Result<ModelConfig> read_layer_config(const JsonObject& root) {
  ModelFamily family = *find_family("llama");
  family.window_rule = WindowRule::kSwitched;
  family.sliding_window = 4096;
  family.qkv_bias = family.output_bias = family.mlp_bias = Use::kNever;
  OUTRIDER_RETURN_IF_ERROR(refuse_quantization(root));
  ModelConfig config;
  config.family = family.name;
  OUTRIDER_RETURN_IF_ERROR(read_sizes(root, family, &config));
  OUTRIDER_RETURN_IF_ERROR(read_sliding_window(root, family, &config));
  OUTRIDER_RETURN_IF_ERROR(read_rope(root, &config));
  OUTRIDER_RETURN_IF_ERROR(read_traits(root, family, &config));
  if (config.mlp.activation != Activation::kSilu)
    return root.fail("layers of drafters need the activation silu");
  if (const Status valid = validate(config); !valid.ok()) return root.fail(valid.error().message);
  return config;
}

Result<ModelConfig> read_hf_config(const std::filesystem::path& directory) {
  const auto text = [](const MappedFile& file) {
    return std::string_view(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
  };
  OUTRIDER_TRY(const MappedFile config, MappedFile::open(directory / "config.json"));
  const auto generation_path = directory / "generation_config.json";
  std::error_code ignored;
  if (!std::filesystem::exists(generation_path, ignored)) return parse_hf_config(text(config));
  OUTRIDER_TRY(const MappedFile generation, MappedFile::open(generation_path));
  return parse_hf_config(text(config), text(generation));
}

}  // namespace outrider
