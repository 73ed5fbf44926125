// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "outrider/token.h"
#include "tokenizer/tokenizer_spec.h"

namespace outrider {

// A stretch of text, in bytes: an added token, or (without token) the text between two of them.
struct AddedTokenSpan {
  size_t begin = 0;
  size_t end = 0;
  std::optional<TokenId> token;
};

// Finds added tokens from left to right, at each place the longest, as Hugging Face tokenizers do.
class AddedTokenMatcher {
 public:
  AddedTokenMatcher();

  // `spelling` must not be empty. Where two tokens are spelled alike, the first one counts.
  void add(std::string_view spelling, const AddedToken& token, bool special);
  bool empty() const { return tokens_.empty(); }

  // True when `text`, which is not empty, starts with the spelling of a special token.
  bool starts_special(std::string_view text) const;

  // Cuts `text` (valid UTF-8) into spans that cover it. Special tokens are text when parse_special is false.
  std::vector<AddedTokenSpan> split(std::string_view text, bool parse_special) const;

 private:
  struct Entry {
    AddedToken token;
    bool special = false;
  };
  struct Match {
    size_t length = 0;
    int32_t entry = -1;
  };
  Match longest_match(std::string_view text) const;

  std::vector<Entry> tokens_;
  std::vector<int32_t> entry_of_node_;              // -1: no token ends here; node 0 is the root
  std::array<int32_t, 256> first_;                  // children of the root, -1: none
  std::unordered_map<uint64_t, int32_t> children_;  // node << 8 | byte -> node
};

}  // namespace outrider
