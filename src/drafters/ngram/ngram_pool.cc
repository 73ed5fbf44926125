// SPDX-License-Identifier: Apache-2.0
#include "drafters/ngram/ngram_pool.h"

#include <algorithm>

#include "base/counter_rng.h"

namespace outrider {
namespace {

// Bounds one entry: a chain proposes one continuation, so more than a few only cost memory.
constexpr size_t kMaxContinuations = 16;

bool starts_with(std::span<const TokenId> whole, std::span<const TokenId> start) {
  return start.size() <= whole.size() && std::equal(start.begin(), start.end(), whole.begin());
}

}  // namespace

size_t NgramPool::TokensHash::operator()(const Tokens& tokens) const {
  uint64_t hash = tokens.size();
  for (const TokenId token : tokens) hash = mix64(hash ^ static_cast<uint32_t>(token));
  return hash;
}

void NgramPool::learn(std::span<const TokenId> tokens, size_t known) {
  // Continuations that reached the old end may have grown, so their patterns are learned again.
  const size_t reach = static_cast<size_t>(options_.max_draft_len + options_.max_pattern - 1);
  const size_t start = known > reach ? known - reach : 0;
  for (size_t begin = start; begin + 1 < tokens.size(); ++begin) {
    for (size_t size = 1; size <= static_cast<size_t>(options_.max_pattern); ++size) {
      const size_t end = begin + size;
      if (end >= tokens.size()) break;
      const size_t length = std::min(static_cast<size_t>(options_.max_draft_len), tokens.size() - end);
      insert(tokens.subspan(begin, size), tokens.subspan(end, length));
    }
  }
}

void NgramPool::insert(std::span<const TokenId> pattern, std::span<const TokenId> continuation) {
  key_.assign(pattern.begin(), pattern.end());
  auto [found, is_new] = entries_.try_emplace(key_);
  Entry& entry = found->second;
  if (is_new) {
    entry.age = ages_.insert(ages_.end(), &found->first);
  } else {
    touch(entry);
  }
  std::vector<Tokens>& kept = entry.continuations;
  // A continuation that was cut by the end of the text grows in place and keeps its age.
  const auto grown = std::find_if(kept.begin(), kept.end(), [&](const Tokens& old) {
    return old.size() < continuation.size() && starts_with(continuation, old);
  });
  if (grown != kept.end()) {
    grown->assign(continuation.begin(), continuation.end());
  } else if (std::none_of(kept.begin(), kept.end(),
                          [&](const Tokens& old) { return starts_with(old, continuation); })) {
    if (kept.empty() || options_.keep_all) {
      kept.emplace_back(continuation.begin(), continuation.end());
    } else if (continuation.size() > kept[0].size() ||
               (!options_.use_oldest && continuation.size() == kept[0].size())) {
      kept[0].assign(continuation.begin(), continuation.end());
    }
  } else if (!options_.use_oldest) {
    // Seen again: it is the latest now.
    const auto again = std::find_if(kept.begin(), kept.end(),
                                    [&](const Tokens& old) { return starts_with(old, continuation); });
    std::rotate(again, again + 1, kept.end());
  }
  if (kept.size() > kMaxContinuations) kept.erase(options_.use_oldest ? kept.end() - 1 : kept.begin());
  if (static_cast<int64_t>(entries_.size()) > options_.max_patterns) {
    entries_.erase(entries_.find(*ages_.front()));
    ages_.pop_front();
  }
}

const std::vector<NgramPool::Tokens>* NgramPool::continuations(std::span<const TokenId> tokens, size_t size) {
  key_.assign(tokens.end() - static_cast<std::ptrdiff_t>(size), tokens.end());
  const auto found = entries_.find(key_);
  if (found == entries_.end()) return nullptr;
  touch(found->second);
  return &found->second.continuations;
}

std::span<const TokenId> NgramPool::find(std::span<const TokenId> tokens) {
  for (size_t size = longest_pattern(tokens); size >= 1; --size) {
    const std::vector<Tokens>* kept = continuations(tokens, size);
    if (kept != nullptr) return options_.use_oldest ? kept->front() : kept->back();
  }
  return {};
}

void NgramPool::touch(Entry& entry) { ages_.splice(ages_.end(), ages_, entry.age); }

}  // namespace outrider
