// SPDX-License-Identifier: Apache-2.0
#include "draft_heads/eagle3.h"

#include <fmt/format.h>

#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "draft_heads/vocabulary/vocabulary_map.h"

namespace outrider {
namespace {

constexpr std::string_view kMaskFeatures = "mask_hidden";

// Variants of the network that a config may name.
struct Variant {
  bool norm_before_residual = false;  // the residual stream begins after hidden_norm
  bool norm_before_fc = false;        // one norm over all target states
  bool fc_norm = false;               // a norm for each
  bool norm_output = false;           // the normalised state is passed to the next level
};

class Eagle3 final : public RecurrentHead {
 public:
  Eagle3(const ModelConfig& config, Model* target, const ModelOptions& options, const Variant& variant,
         FeatureTaps taps)
      : RecurrentHead(config, target, options), variant_(variant) {
    taps_ = std::move(taps);
  }

  Status load(const HeadFile& head, ModelConfig config, const ModelOptions& options);
  Output forward(const Pass& pass) override;
  bool can_be_recorded() const override { return !masked_place_.token; }
  void reserve(int64_t rows, int64_t wanted) override;

 private:
  std::vector<HeadTensor> tensors(const HeadFile& head, std::span<const LayerPlace> places,
                                  const ModelConfig& config, int64_t draft_vocab) const;
  Status load_norms(WeightLoader& loader, const std::string& first_layer);
  Status load_masked_place(const HeadFile& head);
  void fuse(FloatAddress features, int64_t rows);

  Variant variant_;
  Projection fc_;                  // [hidden, taps * hidden]
  std::vector<Norm> input_norms_;  // one over all taps, one for each, or none
  Norm embedding_norm_ = norm(), hidden_norm_ = norm(), norm_ = norm();
  std::vector<HeadLayer> decoder_;
  BackendRows features_{backend_};                                       // [rows, taps * hidden], normalised
  BackendRows states_{backend_};                                         // [rows, hidden]
  BackendRows embedded_{backend_}, hidden_{backend_}, input_{backend_};  // [rows, hidden] twice, side by side
  BackendRows normed_{backend_};                                         // [wanted rows, hidden]
};

// SafeAILab's single layer has a name; speculators' have numbers.
std::vector<LayerPlace> places_of(const HeadFile& head, const ModelConfig& config) {
  std::vector<LayerPlace> places;
  for (int64_t i = 0; i < config.layer_count; ++i) {
    const bool is_named = i == 0 && head.tensors.contains("midlayer.hidden_norm.weight");
    places.push_back({.prefix = is_named ? "midlayer." : "layers." + std::to_string(i) + ".",
                      .input_size = (i == 0 ? 2 : 1) * config.hidden_size,
                      .has_input_norm = i > 0});  // the first layer's is the embedding's
  }
  return places;
}

std::vector<HeadTensor> Eagle3::tensors(const HeadFile& head, std::span<const LayerPlace> places,
                                        const ModelConfig& config, int64_t draft_vocab) const {
  const int64_t hidden = config.hidden_size;
  const std::string& first = places.front().prefix;
  const bool maps = draft_vocab != config.vocab_size;
  std::vector<HeadTensor> expected = {
      {.name = "fc.weight", .shape = {hidden, taps_.count() * hidden}},
      {.name = first + "input_layernorm.weight", .shape = {hidden}},
      {.name = first + "hidden_norm.weight", .shape = {hidden}},
      {.name = "norm.weight", .shape = {hidden}},
      {.name = "lm_head.weight", .shape = {draft_vocab, hidden}},
      {.name = "d2t", .shape = {draft_vocab}, .is_optional = !maps},
      {.name = "t2d", .shape = {config.vocab_size}, .is_optional = true},
      {.name = "embed_tokens.weight", .shape = {config.vocab_size, hidden}, .is_optional = true}};
  if (const auto mask = head.tensors.find(kMaskFeatures); mask != head.tensors.end()) {
    // Published with one leading dimension of 1 or with two.
    Shape shape(mask->second.shape.size() == 2 ? 1 : 2, 1);
    shape.push_back(taps_.count() * hidden);
    expected.push_back({.name = std::string(kMaskFeatures), .shape = std::move(shape)});
  }
  if (variant_.norm_before_fc)
    expected.push_back({.name = "input_norm.weight", .shape = {taps_.count() * hidden}});
  for (int64_t i = 0; variant_.fc_norm && i < taps_.count(); ++i)
    expected.push_back({.name = fmt::format("fc_norm.{}.weight", i), .shape = {hidden}});
  append_layer_tensors(config, places, expected);
  return expected;
}

Status Eagle3::load_norms(WeightLoader& loader, const std::string& first_layer) {
  OUTRIDER_RETURN_IF_ERROR(
      loader.read_vector(first_layer + "input_layernorm.weight", hidden_size_, embedding_norm_.weight));
  OUTRIDER_RETURN_IF_ERROR(
      loader.read_vector(first_layer + "hidden_norm.weight", hidden_size_, hidden_norm_.weight));
  OUTRIDER_RETURN_IF_ERROR(loader.read_vector("norm.weight", hidden_size_, norm_.weight));
  if (variant_.norm_before_fc) {
    return loader.read_vector("input_norm.weight", taps_.count() * hidden_size_,
                              input_norms_.emplace_back(norm()).weight);
  }
  for (int64_t i = 0; variant_.fc_norm && i < taps_.count(); ++i) {
    OUTRIDER_RETURN_IF_ERROR(loader.read_vector(fmt::format("fc_norm.{}.weight", i), hidden_size_,
                                                input_norms_.emplace_back(norm()).weight));
  }
  return {};
}

Status Eagle3::load(const HeadFile& head, ModelConfig config, const ModelOptions& options) {
  OUTRIDER_TRY(const auto stated_vocab, head.config.root().integer("draft_vocab_size"));
  const int64_t draft_vocab = stated_vocab.value_or(config.vocab_size);
  const std::vector<LayerPlace> places = places_of(head, config);
  detect_layer_variant(head, places.front().prefix, config);
  OUTRIDER_RETURN_IF_ERROR(check_head_tensors(head, tensors(head, places, config, draft_vocab)));
  OUTRIDER_TRY(std::vector<TokenId> ids, read_vocabulary_map(head, draft_vocab, config.vocab_size));
  WeightLoader loader(head.file, options);
  OUTRIDER_RETURN_IF_ERROR(plan_own_embedding(head, loader));
  OUTRIDER_RETURN_IF_ERROR(vocabulary_.plan_output(loader, "lm_head", std::move(ids)));
  OUTRIDER_RETURN_IF_ERROR(load_norms(loader, places.front().prefix));
  OUTRIDER_RETURN_IF_ERROR(
      loader.plan({{"fc", hidden_size_}}, taps_.count() * hidden_size_, /*bias=*/false, fc_));
  OUTRIDER_RETURN_IF_ERROR(load_layers(loader, config, places, decoder_));
  if (head.method == Method::kPEagle) OUTRIDER_RETURN_IF_ERROR(load_masked_place(head));
  cache_layers_ = config.layer_count;
  return pack(loader);
}

// P-EAGLE reads one token and one vector of features, which stand for the target's, at all places that it
// drafts.
Status Eagle3::load_masked_place(const HeadFile& head) {
  const int64_t vocab = target_->config().vocab_size;
  std::optional<int64_t> token;
  for (const std::string_view key : {"pard_token", "ptd_token_id", "mask_token_id"}) {
    if (token) break;
    OUTRIDER_TRY(token, head.config.root().integer(key));
  }
  if (!token || *token < 0 || *token >= vocab) {
    return head.fail(fmt::format(
        "config.json: expected a token of the target as pard_token, ptd_token_id or mask_token_id, 0 to {}, "
        "found {}",
        vocab - 1, token ? std::to_string(*token) : "none"));
  }
  OUTRIDER_TRY(masked_place_.features, read_numbers(head, std::string(kMaskFeatures)));
  masked_place_.token = static_cast<TokenId>(*token);
  return {};
}

// The target's states as one: states_ = fc(features).
void Eagle3::fuse(FloatAddress features, int64_t rows) {
  if (!input_norms_.empty()) {
    backend_.normalize_parts(features, input_norms_, features_.data(), rows);
    features = features_.data();
  }
  backend_.project(fc_, features, states_.data(), rows);
}

void Eagle3::reserve(int64_t rows, int64_t wanted) {
  if (!input_norms_.empty()) features_.reserve(rows, taps_.count() * hidden_size_);
  for (BackendRows* scratch : {&states_, &embedded_, &hidden_, &normed_})
    scratch->reserve(rows, hidden_size_);
  input_.reserve(rows, 2 * hidden_size_);
  backend_.reserve_product(fc_, rows);
  layers_.reserve(rows, decoder_);
  vocabulary_.reserve(wanted);
}

RecurrentHead::Output Eagle3::forward(const Pass& pass) {
  const ForwardBatch& batch = *pass.batch;
  const int64_t rows = batch.rows();
  reserve(rows, 0);
  if (pass.level == 0) {
    fuse(pass.inputs, rows);
  } else {
    backend_.copy_strided({pass.inputs, 0, states_.data(), 0, 1, rows * hidden_size_});
  }
  vocabulary_.embed(batch.tokens, embedded_.data());
  backend_.normalize(embedded_.data(), embedding_norm_, embedded_.data(), rows);
  backend_.normalize(states_.data(), hidden_norm_, hidden_.data(), rows);
  join(embedded_.data(), hidden_.data(), input_.data(), rows, hidden_size_);
  BackendRows& residual = variant_.norm_before_residual ? hidden_ : states_;
  layers_.begin(batch, *pass.cache);
  layers_.store(decoder_.front(), 0, input_.data());
  if (decoder_.size() == 1) layers_.keep_wanted(residual.data());
  layers_.finish(decoder_.front(), 0, residual.data());
  for (size_t i = 1; i < decoder_.size(); ++i)
    layers_.run(decoder_[i], static_cast<int64_t>(i), residual.data(), i + 1 == decoder_.size());
  const int64_t wanted = layers_.rows();
  if (wanted == 0) return {};
  backend_.normalize(residual.data(), norm_, normed_.data(), wanted);
  return output(normed_.data(), variant_.norm_output ? normed_.data() : residual.data(), wanted);
}

Result<Variant> read_variant(const HeadFile& head) {
  const JsonObject& root = head.config.root();
  Variant variant;
  for (const auto& [key, flag] :
       {std::pair{"norm_before_residual", &variant.norm_before_residual},
        std::pair{"norm_before_fc", &variant.norm_before_fc}, std::pair{"fc_norm", &variant.fc_norm},
        std::pair{"norm_output", &variant.norm_output}}) {
    OUTRIDER_TRY(const auto stated, root.boolean(key));
    *flag = stated.value_or(false);
  }
  if (variant.norm_before_fc && variant.fc_norm)
    return head.fail("expected norm_before_fc or fc_norm, found both; one of them has no weights");
  return variant;
}

constexpr std::string_view kTapKey = "eagle_aux_hidden_state_layer_ids";

// The layers that the head's config names; nullopt: none.
Result<std::optional<std::vector<int64_t>>> listed_taps(const HeadFile& head) {
  OUTRIDER_TRY(auto list, head.config.root().array(kTapKey));
  if (!list) {
    OUTRIDER_TRY(const auto nested, head.config.root().object("eagle_config"));
    if (nested) {
      OUTRIDER_TRY(list, nested->array(kTapKey));
    }
  }
  if (!list) return std::optional<std::vector<int64_t>>();
  std::vector<int64_t> layers;
  for (const simdjson::dom::element element : *list) {
    int64_t layer = 0;
    if (element.get(layer) != simdjson::SUCCESS)
      return head.fail(fmt::format("{}: expected integers", kTapKey));
    layers.push_back(layer);
  }
  return std::optional(std::move(layers));
}

// The layers with inputs that the head reads: after the captured outputs, else by its config, else the
// paper's.
Result<FeatureTaps> read_taps(const HeadFile& head, const Model& target, std::span<const int> captured) {
  const int64_t layers = target.config().layer_count;
  OUTRIDER_TRY(const auto listed, listed_taps(head));
  FeatureTaps taps{.layers = listed.value_or(std::vector<int64_t>{2, layers / 2, layers - 3})};
  if (!captured.empty()) taps.layers.clear();
  for (const int layer : captured) taps.layers.push_back(layer + 1);
  bool fits = !taps.layers.empty();
  for (size_t i = 0; i < taps.layers.size(); ++i) {
    fits = fits && taps.layers[i] >= 0 && taps.layers[i] <= layers;
    fits = fits && (i == 0 || taps.layers[i] > taps.layers[i - 1]);
  }
  if (fits) return taps;
  const std::string_view source = captured.empty() ? kTapKey : "eagle3_layers_to_capture, counted after them";
  const bool is_default = captured.empty() && !listed;
  return head.fail(fmt::format("{}: expected rising layers from 0 to {}, the target's count, found [{}]{}",
                               source, layers, fmt::join(taps.layers, ", "),
                               is_default ? " by default; list those that this head was trained on" : ""));
}

}  // namespace

Result<std::unique_ptr<RecurrentHead>> load_eagle3(const HeadFile& head, Model* target,
                                                   const ModelOptions& options,
                                                   std::span<const int> captured) {
  OUTRIDER_TRY(const ModelConfig config, read_head_config(head, *target));
  OUTRIDER_TRY(const Variant variant, read_variant(head));
  OUTRIDER_TRY(FeatureTaps taps, read_taps(head, *target, captured));
  auto eagle = std::make_unique<Eagle3>(config, target, options, variant, std::move(taps));
  OUTRIDER_RETURN_IF_ERROR(eagle->load(head, config, options));
  return std::unique_ptr<RecurrentHead>(std::move(eagle));
}

}  // namespace outrider
