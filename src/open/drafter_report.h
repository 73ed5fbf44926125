// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "open/files.h"
#include "outrider/token.h"

namespace outrider {

// A drafter of a search, for people.
struct DrafterLine {
  std::string state;   // "uses", "found", "tried", "left out"
  std::string method;  // as in --speculative; empty: unknown
  std::string name, place, path;
  std::string reason;
};

// The drafter that Auto uses, then all others of the search.
std::vector<DrafterLine> drafter_lines(const DrafterSearch& search);
std::string text_of(const DrafterLine& line);

// One line: what is used, and how many others were found, tried and left out. Empty: nothing was looked for.
std::string search_summary(const OpenedFiles& files);

// A draft model with another vocabulary than the target's.
struct OtherVocabulary {
  std::filesystem::path draft;
  int64_t target_tokens = 0, draft_tokens = 0;
  int64_t shared = 0;           // tokens of the target that the draft has as well
  std::vector<bool> is_shared;  // by the target's id

  double share_of_text(std::span<const TokenId> tokens) const;  // the share of `tokens` that the draft has
  std::string text() const;  // one line that says how much they share, and what it costs
};

// The first draft model with another vocabulary; nullopt: there is none. Errors: a tokenizer cannot be made.
Result<std::optional<OtherVocabulary>> other_vocabulary(const OpenedFiles& files);

}  // namespace outrider
