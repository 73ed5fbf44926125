// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "corpus/corpus.h"
#include "outrider/token.h"

namespace outrider {

// Places side by side in the order of a corpus.
struct PlaceRange {
  int64_t begin = 0, end = 0;

  int64_t size() const { return end - begin; }
  bool operator==(const PlaceRange&) const = default;
};

// Finds the ends of a sequence in a corpus: one binary search for the longest end that occurs, and a few
// steps outwards for each shorter one.
class ContextSearch {
 public:
  explicit ContextSearch(const Corpus& corpus) : corpus_(&corpus) {}

  // How many of the last tokens of `context`, at most kContextDepth, stand in one document with a token after
  // them. `context` stays in place while range() is called.
  int find(std::span<const TokenId> context);

  // The places after the last `length` tokens. Precondition: 1 <= length, at most what find() returned, and
  // at most the length of the call before.
  PlaceRange range(int length);

 private:
  // How the context of a place compares with the end.
  struct Comparison {
    int shared = 0;          // tokens
    bool is_before = false;  // in the order of places
  };
  Comparison compare(int64_t index) const;
  template <typename Id>
  Comparison compare_ids(int64_t place) const;
  bool shares(int64_t index, int length) const { return compare(index).shared >= length; }

  const Corpus* corpus_;
  std::span<const TokenId> context_;  // kContextDepth tokens at most
  PlaceRange all_;                    // places after the last token
  PlaceRange range_;                  // of the last call
};

}  // namespace outrider
