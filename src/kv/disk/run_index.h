// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "kv/disk/page_run.h"

namespace outrider {

// The runs of a folder by the texts that they belong to: a tree, in which a run of full length has the runs
// that may follow it. Texts of different scopes never meet.
class RunIndex {
 public:
  // full_length: tokens of a run that others follow; page_size: tokens per page.
  RunIndex(int64_t full_length, int page_size) : full_length_(full_length), page_size_(page_size) {}

  // Precondition: its id is new, and its tokens are whole pages, at least one and at most full_length.
  void add(PageRun run);
  // Takes the run out, and all that follow it. Returns them, itself first; none: it is not there.
  std::vector<PageRun> remove(const RunId& id);
  bool has(const RunId& id) const { return runs_.contains(id); }
  // Null: there is none.
  const PageRun* find(const RunId& id) const;
  int64_t size() const { return std::ssize(runs_); }

  // The beginning of a text.
  struct Found {
    std::vector<RunId> runs;  // of full length, but for the last
    int64_t pages = 0;        // that they have of the text
    RunId state = kNoRun;     // the latest state of the text that lies within these pages
    int64_t state_pages = 0;  // pages up to it
  };
  // The longest one of `tokens` in whole pages.
  Found find(std::span<const TokenId> tokens, uint64_t scope) const;

 private:
  using Path = std::vector<RunId>;
  void search(const RunId& before, std::span<const TokenId> tokens, uint64_t scope, Path& path,
              Found& best) const;
  void find_state(std::span<const TokenId> tokens, Found& found) const;

  int64_t full_length_;
  int page_size_;
  std::map<RunId, PageRun> runs_;
  std::map<RunId, std::vector<RunId>> after_;  // by the run before them
};

}  // namespace outrider
