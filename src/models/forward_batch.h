// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kv/kv_cache.h"
#include "outrider/token.h"

namespace outrider {

// Everything one pass computes: rows of any mix of prompt chunks, single tokens, chains and trees of several
// sequences. A plain value without pointers; there is no mode: rows differ only in what they see and whether
// their logits are wanted.
struct ForwardBatch {
  std::vector<TokenId> tokens;     // [rows]
  std::vector<int32_t> positions;  // [rows] committed length + depth
  std::vector<int32_t> slots;      // [rows] where keys and values of the row go
  std::vector<int32_t> sequences;  // [rows] index of the row's page table
  std::vector<int32_t>
      prefix_len;  // [rows] entries of its sequence the row sees in order; then come its tail entries
  std::vector<int32_t> tail_begin;  // [rows + 1] into `tails`
  std::vector<int32_t>
      tails;  // entries of the sequence: ancestors within the staged tree, the row itself last
  std::vector<int32_t> page_begin;  // [sequences + 1] into `pages`
  std::vector<int32_t> pages;
  std::vector<int32_t> logits_rows;  // rows whose logits are wanted, ascending
  // Rows that an earlier pass over the first layers has computed, ascending: the keys and values of these
  // layers are in their slots, and they enter at `resume_layer`; the others enter at 0.
  int64_t resume_layer = 0;
  std::vector<int32_t> resumed_rows;
  std::vector<float> resumed_states;  // [resumed_rows, hidden_size]: the residual stream they enter with

  ForwardBatch() { clear(); }
  void clear();
  // Makes room for rows of `max_sequences` sequences with `max_entries` entries each in pages of `page_size`,
  // none deeper than `max_depth` in its tree, so that appending them does not allocate.
  struct Limits {
    int64_t rows = 0;
    int64_t max_sequences = 0;
    int64_t max_entries = 0;
    int64_t page_size = 1;
    int64_t max_depth = 0;
  };
  void reserve(const Limits& limits);
  int rows() const { return static_cast<int>(tokens.size()); }
};

enum class LogitsWanted : uint8_t { kNone, kLast, kAll };

// Appends `tokens` as staged entries 0..n-1 of `sequence`, a chain: row i sees everything before it.
// Returns the index into logits_rows of the first row whose logits are wanted.
int append_chain(ForwardBatch& batch, const KvSequence& sequence, const KvTransaction& transaction,
                 std::span<const TokenId> tokens, LogitsWanted wanted);
// The same with logits of tokens[first_wanted_token] and all behind it.
int append_chain(ForwardBatch& batch, const KvSequence& sequence, const KvTransaction& transaction,
                 std::span<const TokenId> tokens, int first_wanted_token);

// The same for a tree, of which entries first.. are appended (the others were computed by earlier passes):
// staged entry i holds tokens[i] and continues entry parents[i] < i, or what is committed (-1). A row sees
// the committed entries and its ancestors.
struct StagedTree {
  std::span<const TokenId> tokens;
  std::span<const int> parents;
  int first = 0;
};
int append_tree(ForwardBatch& batch, const KvSequence& sequence, const KvTransaction& transaction,
                const StagedTree& tree, LogitsWanted wanted);

}  // namespace outrider
