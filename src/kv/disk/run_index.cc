// SPDX-License-Identifier: Apache-2.0
#include "kv/disk/run_index.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace outrider {
namespace {

int64_t common_length(std::span<const TokenId> a, std::span<const TokenId> b) {
  return std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin();
}

}  // namespace

void RunIndex::add(PageRun run) {
  const int64_t length = std::ssize(run.tokens);
  OUTRIDER_CHECK(!has(run.id) && length > 0 && length <= full_length_ && length % page_size_ == 0);
  after_[run.before].push_back(run.id);
  const RunId id = run.id;
  runs_.emplace(id, std::move(run));
}

const PageRun* RunIndex::find(const RunId& id) const {
  const auto found = runs_.find(id);
  return found == runs_.end() ? nullptr : &found->second;
}

std::vector<PageRun> RunIndex::remove(const RunId& id) {
  std::vector<PageRun> removed;
  std::vector<RunId> left = {id};
  while (!left.empty()) {
    const auto found = runs_.find(left.back());
    left.pop_back();
    if (found == runs_.end()) continue;
    const auto beside = after_.find(found->second.before);
    if (beside != after_.end()) std::erase(beside->second, found->first);
    if (beside != after_.end() && beside->second.empty()) after_.erase(beside);
    const auto after = after_.find(found->first);
    if (after != after_.end()) left.insert(left.end(), after->second.begin(), after->second.end());
    removed.push_back(std::move(found->second));
    runs_.erase(found);
  }
  return removed;
}

RunIndex::Found RunIndex::find(std::span<const TokenId> tokens, uint64_t scope) const {
  Found best;
  Path path;
  search(kNoRun, tokens, scope, path, best);
  find_state(tokens, best);
  return best;
}

// Other processes may have written a run twice, so that several paths have the same tokens.
void RunIndex::search(const RunId& before, std::span<const TokenId> tokens, uint64_t scope, Path& path,
                      Found& best) const {
  const auto after = after_.find(before);
  if (after == after_.end()) return;
  const int64_t begin = std::ssize(path) * full_length_;
  const auto rest = tokens.subspan(static_cast<size_t>(std::min<int64_t>(begin, std::ssize(tokens))));
  for (const RunId& id : after->second) {
    const PageRun& run = runs_.at(id);
    if (run.is_state || run.scope != scope) continue;
    const int64_t common = common_length(run.tokens, rest);
    if (common < page_size_) continue;
    path.push_back(id);
    const int64_t pages = (begin + common) / page_size_;
    if (pages > best.pages) best = {.runs = path, .pages = pages};
    if (common == full_length_) search(id, tokens, scope, path, best);
    path.pop_back();
  }
}

void RunIndex::find_state(std::span<const TokenId> tokens, Found& found) const {
  RunId before = kNoRun;
  for (size_t i = 0; i < found.runs.size(); ++i) {
    const int64_t begin = static_cast<int64_t>(i) * full_length_;
    for (const RunId& id : after_.at(before)) {
      const PageRun& run = runs_.at(id);
      if (!run.is_state || run.scope != runs_.at(found.runs[i]).scope) continue;
      const int64_t pages = (begin + std::ssize(run.tokens)) / page_size_;
      if (pages > found.pages || pages <= found.state_pages) continue;
      if (!std::ranges::equal(run.tokens, tokens.subspan(static_cast<size_t>(begin), run.tokens.size())))
        continue;
      found.state = id;
      found.state_pages = pages;
    }
    before = found.runs[i];
  }
}

}  // namespace outrider
