// SPDX-License-Identifier: Apache-2.0
#include "draft_heads/vocabulary/head_vocabulary.h"

#include <algorithm>
#include <limits>
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

void HeadVocabulary::embed(std::span<const TokenId> tokens, float* out) const {
  if (!embedding_) return target_->embed_tokens(tokens, out);
  for (size_t i = 0; i < tokens.size(); ++i)
    unpack_row(*embedding_, tokens[i], out + static_cast<int64_t>(i) * embedding_->k);
}

void HeadVocabulary::reserve(LayerOps& ops, int64_t rows) {
  if (!output_) return;
  logits_.reserve(rows, target_->config().vocab_size);
  if (!ids_.empty()) own_.reserve(rows, output_->n);
  ops.reserve(*output_, rows);
}

void HeadVocabulary::finish_target_logits(LayerOps& ops, int64_t rows) {
  const ModelConfig& config = target_->config();
  const int64_t count = rows * output_->n;
  if (config.scales.logits != 1) ops.scale(static_cast<float>(config.scales.logits), own_.data(), count);
  if (config.logit_softcap > 0) ops.softcap(own_.data(), count, static_cast<float>(config.logit_softcap));
}

std::span<const float> HeadVocabulary::logits(LayerOps& ops, const float* states, int64_t rows) {
  if (!output_) return target_->output_head(states, rows);
  reserve(ops, rows);
  const int64_t vocab = target_->config().vocab_size;
  const std::span<float> logits(logits_.data(), static_cast<size_t>(rows * vocab));
  if (ids_.empty()) {
    ops.project(*output_, states, logits.data(), rows);
    return logits;
  }
  ops.project(*output_, states, own_.data(), rows);
  if (is_targets_) finish_target_logits(ops, rows);
  ops.pool().run(ops.shares_for(rows * vocab), [&](Worker worker) {
    const Range share = share_of(worker, rows);
    for (int64_t row = share.begin; row < share.end; ++row) {
      float* out = logits.data() + row * vocab;
      const float* own = own_.data() + row * output_->n;
      std::fill_n(out, vocab, -std::numeric_limits<float>::infinity());
      for (size_t i = 0; i < ids_.size(); ++i) out[ids_[i]] = own[i];
    }
  });
  return logits;
}

}  // namespace outrider
