// SPDX-License-Identifier: Apache-2.0
#include "models/forward_batch.h"

#include <algorithm>

#include "base/check.h"

namespace outrider {
namespace {

// Adds the page table of `sequence` and returns its index in the batch.
int32_t add_sequence(ForwardBatch& batch, const KvSequence& sequence, bool is_chain) {
  const auto pages = sequence.pages();
  batch.pages.insert(batch.pages.end(), pages.begin(), pages.end());
  batch.page_begin.push_back(static_cast<int32_t>(batch.pages.size()));
  const auto adapters = sequence.adapters();
  batch.adapters.insert(batch.adapters.end(), adapters.begin(), adapters.end());
  batch.adapter_begin.push_back(static_cast<int32_t>(batch.adapters.size()));
  batch.states.push_back({.id = sequence.state(),
                          .length = sequence.length(),
                          .kept_updates = sequence.kept_updates(),
                          .is_chain = is_chain});
  return static_cast<int32_t>(batch.page_begin.size()) - 2;
}

}  // namespace

void ForwardBatch::clear() {
  for (auto* field : {&positions, &slots, &sequences, &prefix_len, &tails, &pages, &logits_rows,
                      &hidden_state_rows, &resumed_rows}) {
    field->clear();
  }
  states.clear();
  resumed_states.clear();
  tokens.clear();
  adapters.clear();
  tail_begin.assign(1, 0);
  page_begin.assign(1, 0);
  adapter_begin.assign(1, 0);
}

void ForwardBatch::reserve(const Limits& limits) {
  const auto rows = static_cast<size_t>(limits.rows);
  for (auto* field : {&positions, &slots, &sequences, &prefix_len, &logits_rows, &resumed_rows}) {
    field->reserve(rows);
  }
  tokens.reserve(rows);
  tail_begin.reserve(rows + 1);
  tails.reserve(rows * static_cast<size_t>(limits.max_draft_len + 1));
  page_begin.reserve(static_cast<size_t>(limits.max_sequences) + 1);
  adapter_begin.reserve(static_cast<size_t>(limits.max_sequences) + 1);
  states.reserve(static_cast<size_t>(limits.max_sequences));
  const int64_t pages_each = (limits.max_entries + limits.page_size - 1) / limits.page_size;
  pages.reserve(static_cast<size_t>(limits.max_sequences * pages_each));
}

int append_chain(ForwardBatch& batch, const KvSequence& sequence, const KvTransaction& transaction,
                 std::span<const TokenId> tokens, LogitsWanted wanted) {
  const auto count = static_cast<int>(tokens.size());
  const int unwanted = wanted == LogitsWanted::kNone ? count : wanted == LogitsWanted::kLast ? count - 1 : 0;
  return append_chain(batch, sequence, transaction, tokens, unwanted);
}

int append_chain(ForwardBatch& batch, const KvSequence& sequence, const KvTransaction& transaction,
                 std::span<const TokenId> tokens, int first_wanted_token) {
  const auto count = static_cast<int>(tokens.size());
  OUTRIDER_CHECK(count <= transaction.count());
  const int32_t index = add_sequence(batch, sequence, /*is_chain=*/true);
  const auto first_wanted = static_cast<int>(batch.logits_rows.size());
  for (int i = 0; i < count; ++i) {
    if (i >= first_wanted_token) batch.logits_rows.push_back(batch.rows());
    batch.tokens.push_back(tokens[static_cast<size_t>(i)]);
    batch.positions.push_back(sequence.length() + i);
    batch.slots.push_back(transaction.slot(i));
    batch.sequences.push_back(index);
    batch.prefix_len.push_back(sequence.length() + i + 1);
    batch.tail_begin.push_back(static_cast<int32_t>(batch.tails.size()));
  }
  return first_wanted;
}

int append_tree(ForwardBatch& batch, const KvSequence& sequence, const KvTransaction& transaction,
                const StagedTree& tree, LogitsWanted wanted) {
  const auto count = static_cast<int>(tree.tokens.size());
  OUTRIDER_CHECK(count <= transaction.count() && tree.tokens.size() == tree.parents.size());
  const int32_t index = add_sequence(batch, sequence, /*is_chain=*/false);
  const auto first_wanted = static_cast<int>(batch.logits_rows.size());
  for (int i = tree.first; i < count; ++i) {
    const auto begin = static_cast<std::ptrdiff_t>(batch.tails.size());
    for (int entry = i; entry >= 0; entry = tree.parents[static_cast<size_t>(entry)]) {
      OUTRIDER_CHECK(tree.parents[static_cast<size_t>(entry)] < entry);
      batch.tails.push_back(sequence.length() + entry);
    }
    std::reverse(batch.tails.begin() + begin, batch.tails.end());
    const auto depth = static_cast<int32_t>(batch.tails.size()) - batch.tail_begin.back() - 1;
    if (wanted == LogitsWanted::kAll || (wanted == LogitsWanted::kLast && i + 1 == count)) {
      batch.logits_rows.push_back(batch.rows());
    }
    batch.tokens.push_back(tree.tokens[static_cast<size_t>(i)]);
    batch.positions.push_back(sequence.length() + depth);
    batch.slots.push_back(transaction.slot(i));
    batch.sequences.push_back(index);
    batch.prefix_len.push_back(sequence.length());
    batch.tail_begin.push_back(static_cast<int32_t>(batch.tails.size()));
  }
  return first_wanted;
}

}  // namespace outrider
