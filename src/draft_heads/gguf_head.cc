// SPDX-License-Identifier: Apache-2.0
#include "draft_heads/gguf_head.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/gguf/architecture_keys.h"
#include "formats/gguf/gguf_metadata.h"
#include "formats/hf/hf_config.h"
#include "formats/interleaved_rows.h"
#include "formats/model_tensors.h"

namespace outrider {
namespace {

using NamePair = std::pair<std::string_view, std::string_view>;

// Parts of tensors' names: the file's, and the published one.
constexpr NamePair kNames[] = {{"token_embd", "embed_tokens"},
                               {"output_norm", "norm"},
                               {"output", "lm_head"},
                               {"markov_w1", "markov_head.markov_w1"},
                               {"markov_w2", "markov_head.markov_w2"},
                               {"conf_proj", "confidence_head.proj"},
                               {"selector_hidden", "candidate_selector.hidden_projection"}};
// Names that end otherwise in the published layout.
constexpr NamePair kWholeNames[] = {
    {"selector_predecessor.weight", "candidate_selector.predecessor_codebook"},
    {"selector_successor.weight", "candidate_selector.successor_codebook"},
    {"attn_conv_base", "attention_conv.base_kernel"},
    {"attn_conv_proj.weight", "attention_conv.kernel_projection.weight"},
    {"ffn_conv_base", "mlp_conv.base_kernel"},
    {"ffn_conv_proj.weight", "mlp_conv.kernel_projection.weight"}};
constexpr NamePair kLayerNames[] = {{"attn_norm", "input_layernorm"},
                                    {"attn_norm_2", "hidden_norm"},
                                    {"attn_q", "self_attn.q_proj"},
                                    {"attn_k", "self_attn.k_proj"},
                                    {"attn_v", "self_attn.v_proj"},
                                    {"attn_output", "self_attn.o_proj"},
                                    {"attn_q_norm", "self_attn.q_norm"},
                                    {"attn_k_norm", "self_attn.k_norm"},
                                    {"ffn_norm", "post_attention_layernorm"},
                                    {"ffn_gate", "mlp.gate_proj"},
                                    {"ffn_up", "mlp.up_proj"},
                                    {"ffn_down", "mlp.down_proj"}};

template <size_t size>
std::string_view published(const NamePair (&names)[size], std::string_view name) {
  const auto* const found = std::ranges::find(names, name, &NamePair::first);
  return found == std::end(names) ? name : found->second;
}

// "blk.0.attn_q.weight" -> "layers.0.self_attn.q_proj.weight". Unknown names stay as they are.
std::string published_name(std::string_view name, bool is_eagle) {
  const size_t layer_end = name.starts_with("blk.") ? name.find('.', 4) : std::string_view::npos;
  const size_t own = layer_end == std::string_view::npos ? 0 : layer_end + 1;
  if (const auto whole = published(kWholeNames, name.substr(own)); whole != name.substr(own))
    return own == 0 ? std::string(whole) : fmt::format("layers.{}.{}", name.substr(4, layer_end - 4), whole);
  const size_t end = name.rfind('.');
  if (end == std::string_view::npos) return std::string(name);
  const std::string_view part = name.substr(0, end), kind = name.substr(end);
  if (part == "enc.output_norm")
    return std::string(is_eagle ? "input_norm" : "hidden_norm") + std::string(kind);
  if (!part.starts_with("blk.")) return std::string(published(kNames, part)) + std::string(kind);
  const size_t dot = part.find('.', 4);
  if (dot == std::string_view::npos) return std::string(name);
  return fmt::format("layers.{}.{}{}", part.substr(4, dot - 4), published(kLayerNames, part.substr(dot + 1)),
                     kind);
}

// The keys of a head's file as keys of its config.json.
class ConfigReader {
 public:
  ConfigReader(const GgufFile& file, std::string_view name, std::string_view architecture)
      : file_(file),
        metadata_(file, name),
        keys_(metadata_, architecture),
        is_eagle_(architecture == "eagle3") {}

  Result<std::string> read() {
    OUTRIDER_RETURN_IF_ERROR(read_layers());
    OUTRIDER_RETURN_IF_ERROR(refuse_variants());
    OUTRIDER_TRY(const std::vector<int64_t> layers, keys_.integers("target_layers"));
    if (layers.empty()) return keys_.fail(keys_.full("target_layers") + " is missing");
    if (is_eagle_) {
      put("eagle_aux_hidden_state_layer_ids", fmt::format("[{}]", fmt::join(layers, ", ")));
      OUTRIDER_RETURN_IF_ERROR(copy_flag("norm_before_residual", "norm_before_residual"));
      OUTRIDER_RETURN_IF_ERROR(copy_flag("norm_before_fc", "norm_before_fc"));
    } else {
      OUTRIDER_RETURN_IF_ERROR(read_block(layers));
    }
    if (const auto ids = file_.integers.find("d2t"); ids != file_.integers.end())
      put("draft_vocab_size", std::to_string(ids->second.shape.back()));
    return fmt::format("{{{}}}", fmt::join(entries_, ", "));
  }

 private:
  // `value` as JSON writes it
  void put(std::string_view key, std::string_view value) {
    entries_.push_back(fmt::format("\"{}\": {}", key, value));
  }
  Status copy_number(std::string_view key, const char* published, bool is_needed = true) {
    OUTRIDER_TRY(const auto value, keys_.number(key));
    if (!value && is_needed) return keys_.fail(keys_.full(key) + " is missing");
    if (value) put(published, fmt::format("{}", *value));
    return {};
  }
  Status copy_integer(std::string_view key, const char* published) {
    OUTRIDER_TRY(const int64_t value, keys_.require_integer(key));
    put(published, std::to_string(value));
    return {};
  }
  Status copy_flag(std::string_view key, const char* published) {
    OUTRIDER_TRY(const auto value, keys_.boolean(key));
    if (value) put(published, *value ? "true" : "false");
    return {};
  }

  Status read_layers() {
    put("hidden_act", "\"silu\"");
    OUTRIDER_RETURN_IF_ERROR(copy_integer("embedding_length", "hidden_size"));
    OUTRIDER_RETURN_IF_ERROR(copy_integer("block_count", "num_hidden_layers"));
    OUTRIDER_RETURN_IF_ERROR(copy_integer("feed_forward_length", "intermediate_size"));
    OUTRIDER_RETURN_IF_ERROR(copy_integer("attention.head_count", "num_attention_heads"));
    OUTRIDER_RETURN_IF_ERROR(copy_integer("attention.head_count_kv", "num_key_value_heads"));
    OUTRIDER_RETURN_IF_ERROR(copy_integer("context_length", "max_position_embeddings"));
    OUTRIDER_RETURN_IF_ERROR(copy_number("attention.layer_norm_rms_epsilon", "rms_norm_eps"));
    OUTRIDER_RETURN_IF_ERROR(copy_number("rope.freq_base", "rope_theta", /*is_needed=*/false));
    OUTRIDER_TRY(const auto head_dim, keys_.integer("attention.key_length"));
    if (head_dim) put("head_dim", std::to_string(*head_dim));
    OUTRIDER_TRY(const auto rotated, keys_.integer("rope.dimension_count"));
    if (rotated && head_dim && *head_dim > 0)
      put("partial_rotary_factor",
          fmt::format("{}", static_cast<double>(*rotated) / static_cast<double>(*head_dim)));
    OUTRIDER_TRY(const auto vocab, keys_.integer("vocab_size"));
    const GgufValue* tokens = file_.find("tokenizer.ggml.tokens");
    if (!vocab && tokens == nullptr) return keys_.fail(keys_.full("vocab_size") + " is missing");
    put("vocab_size", std::to_string(vocab ? *vocab : static_cast<int64_t>(tokens->count())));
    return {};
  }

  Status refuse_variants() {
    OUTRIDER_TRY(const auto scaling, keys_.string("rope.scaling.type"));
    if (scaling && *scaling != "none")
      return keys_.fail(fmt::format("expected no {} of a drafter, found {}; it is not supported",
                                    keys_.full("rope.scaling.type"), *scaling));
    for (const std::string_view key :
         {"embedding_scale", "logit_scale", "attention.scale", "attention.value_scale",
          "final_logit_softcapping", "rope.dimension_sections"}) {
      if (file_.find(keys_.full(key)) != nullptr)
        return keys_.fail(fmt::format("expected no {} of a drafter; it is not supported", keys_.full(key)));
    }
    return {};
  }

  // `layers`: layers that read the outputs that the drafter reads
  Status read_block(std::vector<int64_t> layers) {
    for (int64_t& layer : layers) --layer;
    put("target_layer_ids", fmt::format("[{}]", fmt::join(layers, ", ")));
    OUTRIDER_RETURN_IF_ERROR(copy_integer("block_size", "block_size"));
    OUTRIDER_RETURN_IF_ERROR(copy_flag("sample_from_anchor", "sample_from_anchor"));
    OUTRIDER_RETURN_IF_ERROR(copy_flag("attention.causal", "is_causal"));
    OUTRIDER_TRY(const auto mask, metadata_.integer("tokenizer.ggml.mask_token_id"));
    if (mask) put("mask_token_id", std::to_string(*mask));
    if (const auto head = file_.tensors.find("markov_w1.weight"); head != file_.tensors.end())
      put("markov_rank", std::to_string(head->second.cols()));
    for (const char* key : {"conv_kernel_size", "conv_group_size", "selector_rank", "selector_top_k"}) {
      OUTRIDER_TRY(const auto size, keys_.integer(key));
      if (size) put(key, std::to_string(*size));
    }
    OUTRIDER_TRY(const auto window, keys_.integer("attention.sliding_window"));
    if (!window || *window == 0) return {};
    OUTRIDER_TRY(const std::vector<bool> slides, keys_.booleans("attention.sliding_window_pattern"));
    std::vector<std::string_view> types;
    for (const bool layer : slides) types.push_back(layer ? "\"sliding_attention\"" : "\"full_attention\"");
    put("use_sliding_window", "true");
    put("sliding_window", std::to_string(*window));
    put("layer_types", fmt::format("[{}]", fmt::join(types, ", ")));
    return {};
  }

  const GgufFile& file_;
  GgufMetadata metadata_;
  ArchitectureKeys keys_;
  bool is_eagle_;
  std::vector<std::string> entries_;
};

// Published maps hold the distance between a row and its token, files the token.
StoredTensor published_map(const GgufIntegers& ids, ModelStorage& storage) {
  const auto count = static_cast<size_t>(ids.shape.back());
  Buffer& offsets = storage.copies.emplace_back(count * sizeof(int64_t));
  for (size_t row = 0; row < count; ++row) {
    int64_t id = 0;
    std::memcpy(&id, ids.data + row * sizeof(id), sizeof(id));
    id -= static_cast<int64_t>(row);
    std::memcpy(offsets.data() + row * sizeof(id), &id, sizeof(id));
  }
  return {.dtype_name = "I64", .dtype = {}, .shape = ids.shape, .data = {offsets.data(), offsets.size()}};
}

void attach(const GgufFile& opened, const ModelConfig& layers, bool is_eagle, ModelStorage& storage,
            GgufHead& head) {
  for (const auto& [name, view] : opened.tensors) {
    std::string own = published_name(name, is_eagle);
    TensorView tensor = aligned(view, storage);
    // EAGLE-3's files have the order of Llama's, the others have Qwen's.
    const bool is_whole = tensor.shape.front() % layers.head_dim == 0;
    if (is_eagle && is_rotated(own) && is_whole) tensor = uninterleave_rows(tensor, layers, &storage);
    head.tensors.emplace(own, StoredTensor{.dtype_name = std::string(dtype_name(tensor.dtype)),
                                           .dtype = tensor.dtype,
                                           .shape = tensor.shape,
                                           .data = {tensor.data, static_cast<size_t>(tensor.bytes())}});
    head.file.tensors.emplace(std::move(own), std::move(tensor));
  }
  for (const auto& [name, ids] : opened.integers) head.tensors.emplace(name, published_map(ids, storage));
}

}  // namespace

Result<std::optional<GgufHead>> find_gguf_head(const std::shared_ptr<const StoredFiles>& files) {
  const GgufFile& opened = *files->gguf();
  const std::string name = files->path.string();
  OUTRIDER_TRY(const auto stated, GgufMetadata(opened, name).string("general.architecture"));
  const std::string_view architecture = stated.value_or("");
  if (architecture != "eagle3" && architecture != "dflash") return std::optional<GgufHead>();
  OUTRIDER_TRY(const std::string keys, ConfigReader(opened, name, architecture).read());
  OUTRIDER_TRY(JsonFile config, JsonFile::parse(keys, name));
  OUTRIDER_TRY(const ModelConfig layers, read_layer_config(config.root()));
  GgufHead head = head_from(files, std::move(config));
  attach(opened, layers, architecture == "eagle3", *files->storage, head);
  return std::optional<GgufHead>(std::move(head));
}

GgufHead head_from(const std::shared_ptr<const StoredFiles>& files, JsonFile config) {
  GgufHead head{.config = std::move(config), .file = {}, .tensors = {}};
  head.file.path = files->path;
  head.file.format = "gguf";
  files->storage->list_files(head.file);
  head.file.storage = files->storage;
  head.file.stored = files;
  return head;
}

}  // namespace outrider
