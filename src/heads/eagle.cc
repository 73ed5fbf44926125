// SPDX-License-Identifier: Apache-2.0
#include "heads/eagle.h"

#include <utility>

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
  void reserve(int64_t rows, int64_t wanted) override;

 private:
  Projection fc_;  // [hidden, 2 hidden]: embedding, state
  std::vector<DecoderLayer> decoder_;
  Scratch embedded_, joined_, states_;
};

LayerPlace place_of(int64_t layer, int64_t hidden_size) {
  return {.prefix = "layers." + std::to_string(layer) + ".",
          .input_size = hidden_size,
          .has_input_norm = layer > 0};
}

Status Eagle::load(const HeadFile& head, ModelConfig config, const ModelOptions& options) {
  const int64_t hidden = config.hidden_size;
  const bool has_bias = head.tensors.contains("fc.bias");
  std::vector<HeadTensor> expected = {
      {.name = "fc.weight", .shape = {hidden, 2 * hidden}},
      {.name = "fc.bias", .shape = {hidden}, .is_optional = true},
      {.name = "embed_tokens.weight", .shape = {config.vocab_size, hidden}, .is_optional = true}};
  detect_layer_variant(head, "layers.0.", config);
  for (int64_t i = 0; i < config.layer_count; ++i)
    append_layer_tensors(config, place_of(i, hidden), expected);
  OUTRIDER_RETURN_IF_ERROR(check_head_tensors(head, expected));
  WeightLoader loader(head.file, options);
  if (head.tensors.contains("embed_tokens.weight"))
    OUTRIDER_RETURN_IF_ERROR(vocabulary_.plan_embedding(loader, "embed_tokens"));
  OUTRIDER_RETURN_IF_ERROR(loader.plan({{"fc", hidden}}, 2 * hidden, has_bias, fc_));
  decoder_.resize(static_cast<size_t>(config.layer_count));
  for (int64_t i = 0; i < config.layer_count; ++i) {
    OUTRIDER_RETURN_IF_ERROR(
        load_decoder_layer(loader, config, place_of(i, hidden), decoder_[static_cast<size_t>(i)]));
  }
  cache_layers_ = config.layer_count;
  return pack(loader);
}

void Eagle::reserve(int64_t rows, int64_t wanted) {
  embedded_.reserve(rows, hidden_size_);
  joined_.reserve(rows, 2 * hidden_size_);
  states_.reserve(rows, hidden_size_);
  layers_.ops().reserve(fc_, rows);
  layers_.reserve(rows, decoder_);
  vocabulary_.reserve(layers_.ops(), wanted);
}

RecurrentHead::Output Eagle::forward(const Pass& pass) {
  const ForwardBatch& batch = *pass.batch;
  const int64_t rows = batch.rows();
  reserve(rows, 0);
  vocabulary_.embed(batch.tokens, embedded_.data());
  join(embedded_.data(), pass.inputs, joined_.data(), rows, hidden_size_);
  layers_.begin(batch, *pass.cache);
  layers_.ops().project(fc_, joined_.data(), states_.data(), rows);
  for (size_t i = 0; i < decoder_.size(); ++i) {
    const bool is_last = i + 1 == decoder_.size();
    layers_.run(decoder_[i], static_cast<int64_t>(i), states_.data(), is_last);
  }
  if (layers_.rows() == 0) return {};
  return {.logits = vocabulary_.logits(layers_.ops(), states_.data(), layers_.rows()),
          .states = states_.data()};
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
