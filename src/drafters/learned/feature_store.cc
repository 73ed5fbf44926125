// SPDX-License-Identifier: Apache-2.0
#include "drafters/learned/feature_store.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"
#include "base/counter_rng.h"

namespace outrider {
namespace {

// A feature depends on all tokens before it, so the tokens are part of the scope of its page.
uint64_t scope_after(uint64_t scope, std::span<const TokenId> tokens) {
  for (const TokenId token : tokens) scope = mix64(scope + static_cast<uint64_t>(token));
  return scope;
}

// Pages of what all sequences keep after FeatureStore::drop().
int64_t kept_pages(const KvShape& head, int max_batch, int kept) {
  return int64_t{max_batch} * (kept / head.page_size + 2);
}

KvShape store_shape(int64_t size, const KvShape& head, int64_t kept_pages) {
  return {.layer_count = 1,
          .kv_head_count = 1,
          .head_dim = size,
          .type = DType::kF32,
          .page_size = head.page_size,
          .page_count = 2 * kept_pages + 1 + head.page_count / 4,
          .values_are_keys = true};
}

}  // namespace

FeatureStore::FeatureStore(LayerBackend& backend, int64_t size, const KvShape& head, int max_batch, int kept)
    : backend_(backend),
      size_(size),
      spare_pages_(kept_pages(head, max_batch, kept)),
      cache_(store_shape(size, head, spare_pages_), KvOptions(),
             backend.make_storage(store_shape(size, head, spare_pages_))) {
  const int64_t most = kept + head.page_size;
  tokens_.reserve(static_cast<size_t>(most));
  slots_.reserve(static_cast<size_t>(most));
  kept_.reserve(most, size);
  taken_.reserve(most, size);
}

FeatureStore::Waiting FeatureStore::open(std::span<const TokenId> tokens, uint64_t scope, int cached) {
  OUTRIDER_CHECK(cached % cache_.shape().page_size == 0);
  const auto first = static_cast<size_t>(cached);
  Waiting waiting{.first = cached, .scope = scope_after(scope, tokens.first(first))};
  waiting.rows = cache_.open(tokens.subspan(first), waiting.scope);
  waiting.rows.reserve(cache_.shape().page_count * cache_.shape().page_size);
  return waiting;
}

int64_t FeatureStore::find(std::span<const TokenId> tokens, uint64_t scope, int cached) const {
  const auto first = static_cast<size_t>(cached);
  return cached + cache_.find(tokens.subspan(first), scope_after(scope, tokens.first(first))).length;
}

bool FeatureStore::append(Waiting& waiting, std::span<const TokenId> tokens, FloatAddress rows) {
  auto staged = cache_.stage(waiting.rows, static_cast<int>(tokens.size()));
  if (!staged.ok()) return false;
  slots_.clear();
  for (size_t i = 0; i < tokens.size(); ++i) slots_.push_back(staged->slot(static_cast<int>(i)));
  while (path_.size() < tokens.size()) path_.push_back(static_cast<int>(path_.size()));
  const std::span<const int> path = std::span(path_).first(tokens.size());
  store(path, slots_, rows);
  staged->commit(path, tokens);
  return true;
}

void FeatureStore::store(std::span<const int> path, std::span<const int32_t> slots, FloatAddress rows) {
  const AttentionShape shape{.kv_head_count = 1, .head_dim = size_, .values_are_keys = true};
  backend_.rotate_and_store({.shape = &shape, .cache = &cache_, .layer = 0, .qkv = rows},
                            {.rows = path, .slots = slots, .rotations = {}, .query_factors = {}});
}

std::optional<KvTransaction> FeatureStore::stage(Waiting& waiting, int count) {
  if (cache_.pages_needed(waiting.rows, count) + spare_pages_ > cache_.available_pages()) return std::nullopt;
  auto staged = cache_.stage(waiting.rows, count);
  return staged.ok() ? std::optional(std::move(*staged)) : std::nullopt;
}

void FeatureStore::record_keep(FloatAddress features, int64_t rows) {
  while (std::ssize(path_) < rows) path_.push_back(static_cast<int>(path_.size()));
  slots_.assign(static_cast<size_t>(rows), 0);
  store(std::span(path_).first(static_cast<size_t>(rows)), slots_, features);
}

void FeatureStore::record_gather(int64_t rows, FloatAddress out) {
  slots_.assign(static_cast<size_t>(rows), 0);
  backend_.read_entries({.cache = &cache_, .layers = {0, 1}, .slots = slots_}, out);
}

bool FeatureStore::take(Waiting& waiting, const CommittedFeatures& committed) {
  const int end = waiting.end();
  const int given = committed.first + static_cast<int>(committed.rows.size());
  waiting.is_complete &= committed.first <= end || committed.rows.empty();
  if (!waiting.is_complete || given <= end) return true;
  const int64_t length = waiting.rows.length();
  const int64_t pages =
      cache_.pages_for(length) + std::max<int64_t>(cache_.available_pages() - spare_pages_, 0);
  const auto count = std::min<int64_t>(pages * cache_.shape().page_size - length, given - end);
  const auto first = static_cast<size_t>(end - committed.first);
  if (count <= 0) return false;
  taken_.reserve(count, size_);
  for (int64_t i = 0; i < count; ++i)
    backend_.write(committed.at(first + static_cast<size_t>(i)), taken_.data() + i * size_);
  const auto tokens = committed.tokens.subspan(static_cast<size_t>(end), static_cast<size_t>(count));
  return append(waiting, tokens, taken_.data()) && count == given - end;
}

void FeatureStore::gather(const Waiting& waiting, int token, int64_t count, FloatAddress out) {
  const int page_size = cache_.shape().page_size;
  const std::span<const int32_t> pages = waiting.rows.pages();
  slots_.clear();
  for (int entry = token - waiting.first; std::ssize(slots_) < count; ++entry)
    slots_.push_back(pages[static_cast<size_t>(entry / page_size)] * page_size + entry % page_size);
  backend_.read_entries({.cache = &cache_, .layers = {0, 1}, .slots = slots_}, out);
}

void FeatureStore::drop(Waiting& waiting, int cached) {
  const int first = cached - cached % cache_.shape().page_size;
  if (first == waiting.first || !waiting.is_complete) return;
  const auto tokens = waiting.rows.tokens();
  const auto dropped = static_cast<size_t>(first - waiting.first);
  waiting.scope = scope_after(waiting.scope, tokens.first(dropped));
  tokens_.assign(tokens.begin() + static_cast<std::ptrdiff_t>(dropped), tokens.end());
  kept_.reserve(std::ssize(tokens_), size_);
  gather(waiting, first, std::ssize(tokens_), kept_.data());
  waiting.first = first;
  cache_.reopen(waiting.rows, tokens_, waiting.scope);
  const auto found = static_cast<size_t>(waiting.rows.length());
  if (found == tokens_.size()) return;
  waiting.is_complete =
      append(waiting, std::span(tokens_).subspan(found), kept_.data() + static_cast<int64_t>(found) * size_);
}

}  // namespace outrider
