// SPDX-License-Identifier: Apache-2.0
#include "draft_heads/head_vocabulary.h"

#include <algorithm>
#include <limits>
#include <utility>

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
