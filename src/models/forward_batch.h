// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kv/kv_cache.h"
#include "outrider/token.h"

namespace outrider {

// Everything that one pass computes: rows of any mix of prompt chunks, single tokens, chains and trees of
// several sequences. It is a plain value without pointers and has no modes: rows differ only in what they see
// and in whether their logits are wanted.
struct ForwardBatch {
  std::vector<TokenId> tokens;     // [rows]
  std::vector<int32_t> positions;  // [rows] committed length + depth
  std::vector<int32_t> slots;      // [rows] slot for the keys and values of the row
  std::vector<int32_t> sequences;  // [rows] index of the row's page table
  std::vector<int32_t>
      prefix_len;  // [rows] number of first entries of its sequence that the row sees, before its tail
  std::vector<int32_t> tail_begin;  // [rows + 1] into `tails`
  std::vector<int32_t>
      tails;  // entry indices of a row's ancestors within the staged tree, the row itself last
  std::vector<int32_t> page_begin;  // [sequences + 1] into `pages`
  std::vector<int32_t> pages;
  std::vector<int32_t> adapter_begin;   // [sequences + 1] into `adapters`
  std::vector<ScaledAdapter> adapters;  // of a sequence's rows, in the order in which their updates are added
  // The place of a sequence for layers with states, see KvSequence.
  struct StatePlace {
    int32_t id = KvSequence::kNoState;
    int32_t length = 0;  // committed entries
    int32_t kept_updates = 0;
    bool is_chain = false;  // its rows are its next entries in order, and all but the last become text
  };
  std::vector<StatePlace> states;          // [sequences]
  std::vector<int32_t> logits_rows;        // rows with wanted logits, ascending
  std::vector<int32_t> hidden_state_rows;  // rows with a wanted output of the final norm, ascending
  // Rows that an earlier pass over the first layers has computed, ascending. Their slots hold the keys and
  // values of these layers, and the rows enter at `resume_layer`; all others enter at layer 0.
  int64_t resume_layer = 0;
  std::vector<int32_t> resumed_rows;
  std::vector<float> resumed_states;  // [resumed_rows, hidden_size]: the residual stream they enter with

  ForwardBatch() { clear(); }
  void clear();
  // Makes room, so that appending does not allocate: rows of `max_sequences` sequences, each with up to
  // `max_entries` entries in pages of `page_size`, and trees of at most `max_draft_len` levels.
  struct Limits {
    int64_t rows = 0;
    int64_t max_sequences = 0;
    int64_t max_entries = 0;
    int64_t page_size = 1;
    int64_t max_draft_len = 0;
  };
  void reserve(const Limits& limits);
  int rows() const { return static_cast<int>(tokens.size()); }
};

enum class LogitsWanted : uint8_t { kNone, kLast, kAll };

// Appends `tokens` as staged entries 0..n-1 of `sequence`, a chain: row i sees everything before it. All of
// them but the last must become text: drafts are appended as a tree.
// Returns the index into logits_rows of the first row with wanted logits.
int append_chain(ForwardBatch& batch, const KvSequence& sequence, const KvTransaction& transaction,
                 std::span<const TokenId> tokens, LogitsWanted wanted);
// The overload that wants logits of tokens[first_wanted_token] and all tokens after it.
int append_chain(ForwardBatch& batch, const KvSequence& sequence, const KvTransaction& transaction,
                 std::span<const TokenId> tokens, int first_wanted_token);

// Appends entries `first` and up of a staged tree (earlier passes computed the entries before). Staged entry
// i holds tokens[i] and follows entry parents[i] < i, or the last committed entry (-1). A row sees the
// committed entries, its ancestors and itself.
struct StagedTree {
  std::span<const TokenId> tokens;
  std::span<const int> parents;
  int first = 0;
};
int append_tree(ForwardBatch& batch, const KvSequence& sequence, const KvTransaction& transaction,
                const StagedTree& tree, LogitsWanted wanted);

}  // namespace outrider
