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

// An added token found in a text, or (no token) the text between two of them; in bytes.
struct AddedTokenSpan {
  size_t begin = 0;
  size_t end = 0;
  std::optional<TokenId> token;
};

// Finds added tokens: at each place the longest, from left to right, as Hugging Face tokenizers do.
class AddedTokenMatcher {
 public:
  AddedTokenMatcher();

  // `spelling` must not be empty. Of two tokens spelled alike the first is kept.
  void add(std::string_view spelling, const AddedToken& token, bool special);
  bool empty() const { return tokens_.empty(); }

  // A special token is spelled at the start of `text`, which is not empty.
  bool starts_special(std::string_view text) const;

  // Spans that cover `text` (valid UTF-8). Special tokens are passed over when parse_special is false.
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
