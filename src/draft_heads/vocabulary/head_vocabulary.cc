// SPDX-License-Identifier: Apache-2.0
#include "draft_heads/vocabulary/head_vocabulary.h"

#include <string_view>
#include <utility>

#include "draft_heads/vocabulary/output_rows.h"

namespace outrider {

Status HeadVocabulary::plan_embedding(WeightLoader& loader, const std::string& name) {
  const ModelConfig& config = target_->config();
  return loader.plan_table({name, config.vocab_size}, config.hidden_size, embedding_.emplace());
}

Status HeadVocabulary::plan_output(WeightLoader& loader, const std::string& name, std::vector<TokenId> ids) {
  const int64_t count = ids.empty() ? target_->config().vocab_size : std::ssize(ids);
  ids_ = std::move(ids);
  return loader.plan({{name, count}}, target_->config().hidden_size, /*bias=*/false, output_.emplace());
}

Status HeadVocabulary::plan_output_rows(WeightLoader& loader, const ModelFile& file,
                                        std::vector<TokenId> ids) {
  if (ids.empty()) return {};
  is_targets_ = true;
  ids_ = std::move(ids);
  std::string name(kOutputRows);
  const DType stored = file.tensors.at(name).dtype;
  name.resize(name.size() - std::string_view(".weight").size());
  return loader.plan({{.name = name, .n = std::ssize(ids_), .type = stored}}, target_->config().hidden_size,
                     /*bias=*/false, output_.emplace());
}

void HeadVocabulary::embed(std::span<const TokenId> tokens, FloatAddress out) const {
  embedding_ ? backend_.look_up(*embedding_, tokens, out) : target_->embed_tokens(tokens, out);
}

void HeadVocabulary::reserve(int64_t rows) {
  if (!output_) return;
  logits_.reserve(rows, target_->config().vocab_size);
  if (!ids_.empty()) own_.reserve(rows, output_->n);
  backend_.reserve_product(*output_, rows);
}

void HeadVocabulary::finish_target_logits(int64_t rows) {
  const ModelConfig& config = target_->config();
  const int64_t count = rows * output_->n;
  if (config.scales.logits != 1) backend_.scale(static_cast<float>(config.scales.logits), own_.data(), count);
  if (config.logit_softcap > 0)
    backend_.softcap(own_.data(), count, static_cast<float>(config.logit_softcap));
}

FloatAddress HeadVocabulary::logits(FloatAddress states, int64_t rows) {
  if (!output_) return target_->output_head(states, rows);
  reserve(rows);
  if (ids_.empty()) {
    backend_.project(*output_, states, logits_.data(), rows);
    return logits_.data();
  }
  backend_.project(*output_, states, own_.data(), rows);
  if (is_targets_) finish_target_logits(rows);
  backend_.spread_columns({.x = own_.data(),
                           .columns = ids_,
                           .count = output_->n,
                           .y = logits_.data(),
                           .width = target_->config().vocab_size,
                           .rows = rows});
  return logits_.data();
}

}  // namespace outrider
