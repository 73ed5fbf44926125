// SPDX-License-Identifier: Apache-2.0
// The windows of text that a learned drafter is trained on, and their order.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "outrider/result.h"
#include "training/head_data/documents.h"

namespace outrider::training {

// Batches are padded to multiples of this many tokens, because every new shape of a matrix product costs a
// search for the best code.
constexpr int64_t kLengthUnit = 32;
constexpr int64_t padded_length(int64_t tokens) {
  return (tokens + kLengthUnit - 1) / kLengthUnit * kLengthUnit;
}

// Consecutive tokens of one document.
struct Window {
  std::span<const TokenId> tokens;
  std::span<const uint8_t> counted;
  int64_t id = 0;                          // unique in the run
  static constexpr int64_t kNewText = -1;  // id of text that was written during the run
};

struct HeadDataOptions {
  int64_t context = 256;
  int64_t batch_tokens = 2048;
  int64_t windows_per_source = 0;  // chosen at random; 0: all
  int64_t held_out_one_in = 50;    // documents
  uint64_t seed = 1;
};

// Documents cut into windows; one document in held_out_one_in is held out. A batch is a pure function of
// (seed, step): every epoch shuffles the windows, puts windows of similar length together, and shuffles the
// batches.
class HeadData {
 public:
  // Errors: no window with a token that counts, or none that is held out.
  static Result<HeadData> create(std::vector<DocumentSource> sources, const HeadDataOptions& options);

  std::vector<Window> batch(int64_t step) const;
  // At most `limit` held-out windows in batches, the same in every call.
  std::vector<std::vector<Window>> held_out(int64_t limit) const;

  int64_t window_count() const { return static_cast<int64_t>(training_.size()); }
  int64_t counted_tokens() const { return counted_tokens_; }
  // By token id: how often the token counts in the training windows.
  std::vector<int64_t> token_counts(int64_t vocab_size) const;
  // A hash of everything batches are made of.
  uint64_t fingerprint() const { return fingerprint_; }

 private:
  struct Place {
    size_t source = 0, document = 0;
    int64_t first = 0, count = 0;
    int64_t id = 0;
  };
  using Batch = std::vector<size_t>;  // indices into training_

  HeadData(std::vector<DocumentSource> sources, const HeadDataOptions& options)
      : sources_(std::move(sources)), options_(options) {}
  void cut(size_t source);
  Window at(const Place& place) const;
  std::vector<Batch> plan(int64_t epoch) const;

  std::vector<DocumentSource> sources_;
  HeadDataOptions options_;
  std::vector<Place> training_, held_out_;
  int64_t counted_tokens_ = 0;
  uint64_t fingerprint_ = 0;
  // The plan of the epoch asked for last, which begins with step `epoch_step_`.
  mutable std::vector<Batch> plan_;
  mutable int64_t epoch_ = -1, epoch_step_ = 0;
};

}  // namespace outrider::training
