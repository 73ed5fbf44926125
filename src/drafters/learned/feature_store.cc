// SPDX-License-Identifier: Apache-2.0
#include "drafters/learned/feature_store.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"
#include "base/counter_rng.h"

namespace outrider {
namespace {

// A feature depends on all tokens before it, so these are part of the scope that its page is found in.
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

FeatureStore::FeatureStore(int64_t size, const KvShape& head, int max_batch, int kept)
    : size_(size),
      spare_pages_(kept_pages(head, max_batch, kept)),
      cache_(store_shape(size, head, spare_pages_)) {
  const auto most = static_cast<size_t>(kept + head.page_size);
  tokens_.reserve(most);
  kept_.reserve(most * static_cast<size_t>(size));
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

float* FeatureStore::row(int32_t slot) {
  return reinterpret_cast<float*>(cache_.keys(0) + slot * cache_.shape().row_bytes());
}

template <typename RowOf>
bool FeatureStore::append(Waiting& waiting, std::span<const TokenId> tokens, RowOf&& row_of) {
  auto staged = cache_.stage(waiting.rows, static_cast<int>(tokens.size()));
  if (!staged.ok()) return false;
  for (size_t i = 0; i < tokens.size(); ++i)
    std::copy_n(row_of(i), size_, row(staged->slot(static_cast<int>(i))));
  while (path_.size() < tokens.size()) path_.push_back(static_cast<int>(path_.size()));
  staged->commit(std::span(path_).first(tokens.size()), tokens);
  return true;
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
  return count > 0 &&
         append(waiting, committed.tokens.subspan(static_cast<size_t>(end), static_cast<size_t>(count)),
                [&](size_t i) { return committed.at(first + i).data(); }) &&
         count == given - end;
}

void FeatureStore::gather(const Waiting& waiting, int token, int64_t count, std::vector<float>& out) {
  const int page_size = cache_.shape().page_size;
  const std::span<const int32_t> pages = waiting.rows.pages();
  for (int entry = token - waiting.first; count > 0; ++entry, --count) {
    const float* features =
        row(pages[static_cast<size_t>(entry / page_size)] * page_size + entry % page_size);
    out.insert(out.end(), features, features + size_);
  }
}

void FeatureStore::drop(Waiting& waiting, int cached) {
  const int first = cached - cached % cache_.shape().page_size;
  if (first == waiting.first || !waiting.is_complete) return;
  const auto tokens = waiting.rows.tokens();
  const auto dropped = static_cast<size_t>(first - waiting.first);
  waiting.scope = scope_after(waiting.scope, tokens.first(dropped));
  tokens_.assign(tokens.begin() + static_cast<std::ptrdiff_t>(dropped), tokens.end());
  kept_.clear();
  gather(waiting, first, std::ssize(tokens_), kept_);
  waiting.first = first;
  cache_.reopen(waiting.rows, tokens_, waiting.scope);
  const auto found = static_cast<size_t>(waiting.rows.length());
  if (found == tokens_.size()) return;
  waiting.is_complete = append(waiting, std::span(tokens_).subspan(found), [&](size_t i) {
    return kept_.data() + (found + i) * static_cast<size_t>(size_);
  });
}

}  // namespace outrider
