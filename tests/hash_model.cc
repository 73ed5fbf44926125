// SPDX-License-Identifier: Apache-2.0
#include "hash_model.h"

#include "base/counter_rng.h"

namespace outrider {
namespace {

uint64_t absorb(uint64_t hash, int64_t token, int64_t position) {
  return mix64(mix64(hash ^ static_cast<uint64_t>(token)) ^ static_cast<uint64_t>(position));
}

// Logits in [-4, 4): flat enough that sampling has a choice, peaked enough that top-k and top-p cut.
void fill_logits(uint64_t hash, std::span<float> out) {
  for (size_t i = 0; i < out.size(); ++i) {
    out[i] = static_cast<float>(static_cast<int64_t>(mix64(hash ^ (i + 1)) % 4096) - 2048) / 512.0f;
  }
}

}  // namespace

HashModel::HashModel(int64_t vocab_size) {
  config_.family = "hash";
  config_.vocab_size = vocab_size;
  config_.max_context = 1 << 20;
}

std::span<const float> HashModel::forward(const ForwardBatch& batch, KvCache& cache) {
  const auto entry_of_slot = [&](int64_t slot) {
    return reinterpret_cast<float*>(cache.keys(0) + slot * cache.shape().row_bytes());
  };
  const auto page_size = static_cast<int64_t>(cache.shape().page_size);
  for (int row = 0; row < batch.rows(); ++row) {
    float* entry = entry_of_slot(batch.slots[static_cast<size_t>(row)]);
    entry[0] = static_cast<float>(batch.tokens[static_cast<size_t>(row)]);
    entry[1] = static_cast<float>(batch.positions[static_cast<size_t>(row)]);
  }
  const auto vocab = static_cast<size_t>(config_.vocab_size);
  logits_.resize(batch.logits_rows.size() * vocab);
  for (size_t i = 0; i < batch.logits_rows.size(); ++i) {
    const auto row = static_cast<size_t>(batch.logits_rows[i]);
    const int32_t* pages = batch.pages.data() + batch.page_begin[static_cast<size_t>(batch.sequences[row])];
    uint64_t hash = 0;
    const auto see = [&](int64_t entry) {
      const float* kv = entry_of_slot(pages[entry / page_size] * page_size + entry % page_size);
      hash = absorb(hash, static_cast<int64_t>(kv[0]), static_cast<int64_t>(kv[1]));
    };
    for (int32_t entry = 0; entry < batch.prefix_len[row]; ++entry) see(entry);
    for (int32_t t = batch.tail_begin[row]; t < batch.tail_begin[row + 1]; ++t)
      see(batch.tails[static_cast<size_t>(t)]);
    fill_logits(hash, std::span(logits_).subspan(i * vocab, vocab));
  }
  return logits_;
}

std::vector<float> HashModel::logits_after(std::span<const TokenId> tokens) const {
  uint64_t hash = 0;
  for (size_t i = 0; i < tokens.size(); ++i) hash = absorb(hash, tokens[i], static_cast<int64_t>(i));
  std::vector<float> logits(static_cast<size_t>(config_.vocab_size));
  fill_logits(hash, logits);
  return logits;
}

}  // namespace outrider
