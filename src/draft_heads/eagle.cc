// SPDX-License-Identifier: Apache-2.0
#include "draft_heads/eagle.h"

#include <utility>

#include "draft_heads/vocabulary/output_rows.h"

namespace outrider {
namespace {

class Eagle final : public RecurrentHead {
 public:
  Eagle(const ModelConfig& config, Model* target, const ModelOptions& options)
      : RecurrentHead(config, target, options) {
    taps_.final_norm = true;
  }

  Status load(const HeadFile& head, ModelConfig config, const ModelOptions& options);
  Output forward(const Pass& pass) override;
  bool can_be_recorded() const override { return true; }
  void reserve(int64_t rows, int64_t wanted) override;

 private:
  Projection fc_;  // [hidden, 2 hidden]: embedding, state
  std::vector<HeadLayer> decoder_;
  BackendRows embedded_{backend_}, joined_{backend_}, states_{backend_};
};

std::vector<LayerPlace> places_of(const ModelConfig& config) {
  std::vector<LayerPlace> places;
  for (int64_t i = 0; i < config.layer_count; ++i) {
    places.push_back({.prefix = "layers." + std::to_string(i) + ".",
                      .input_size = config.hidden_size,
                      .has_input_norm = i > 0});
  }
  return places;
}

Status Eagle::load(const HeadFile& head, ModelConfig config, const ModelOptions& options) {
  const int64_t hidden = config.hidden_size;
  const bool has_bias = head.tensors.contains("fc.bias");
  std::vector<HeadTensor> expected = {
      {.name = "fc.weight", .shape = {hidden, 2 * hidden}},
      {.name = "fc.bias", .shape = {hidden}, .is_optional = true},
      {.name = "embed_tokens.weight", .shape = {config.vocab_size, hidden}, .is_optional = true}};
  detect_layer_variant(head, "layers.0.", config);
  const std::vector<LayerPlace> places = places_of(config);
  append_layer_tensors(config, places, expected);
  append_map_tensors(head, config.vocab_size, expected);
  OUTRIDER_RETURN_IF_ERROR(check_head_tensors(head, expected));
  WeightLoader loader(head.file, options);
  OUTRIDER_RETURN_IF_ERROR(plan_own_embedding(head, loader));
  OUTRIDER_RETURN_IF_ERROR(vocabulary_.plan_output_rows(loader, head.file, head.output_rows));
  OUTRIDER_RETURN_IF_ERROR(loader.plan({{"fc", hidden}}, 2 * hidden, has_bias, fc_));
  OUTRIDER_RETURN_IF_ERROR(load_layers(loader, config, places, decoder_));
  cache_layers_ = config.layer_count;
  return pack(loader);
}

void Eagle::reserve(int64_t rows, int64_t wanted) {
  embedded_.reserve(rows, hidden_size_);
  joined_.reserve(rows, 2 * hidden_size_);
  states_.reserve(rows, hidden_size_);
  backend_.reserve_product(fc_, rows);
  layers_.reserve(rows, decoder_);
  vocabulary_.reserve(wanted);
}

RecurrentHead::Output Eagle::forward(const Pass& pass) {
  const ForwardBatch& batch = *pass.batch;
  const int64_t rows = batch.rows();
  reserve(rows, 0);
  vocabulary_.embed(batch.tokens, embedded_.data());
  join(embedded_.data(), pass.inputs, joined_.data(), rows, hidden_size_);
  layers_.begin(batch, *pass.cache);
  backend_.project(fc_, joined_.data(), states_.data(), rows);
  for (size_t i = 0; i < decoder_.size(); ++i) {
    const bool is_last = i + 1 == decoder_.size();
    layers_.run(decoder_[i], static_cast<int64_t>(i), states_.data(), is_last);
  }
  if (layers_.rows() == 0) return {};
  return output(states_.data(), states_.data(), layers_.rows());
}

}  // namespace

Result<std::unique_ptr<RecurrentHead>> load_eagle(const HeadFile& head, Model* target,
                                                  const ModelOptions& options) {
  OUTRIDER_TRY(const ModelConfig config, read_head_config(head, *target));
  auto eagle = std::make_unique<Eagle>(config, target, options);
  OUTRIDER_RETURN_IF_ERROR(eagle->load(head, config, options));
  return std::unique_ptr<RecurrentHead>(std::move(eagle));
}

}  // namespace outrider
