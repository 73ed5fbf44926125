// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "kv/kv_cache.h"
#include "models/backend/layer_backend.h"
#include "outrider/drafter.h"
#include "outrider/token.h"

namespace outrider {

// Features of tokens that a head has not read yet. They wait for the next draft, so that a head with unwanted
// drafts costs no pass. Pages are shared and stay findable as pages of keys and values do: a sequence that
// begins like an earlier one needs no features again, whether the head has read them or not.
class FeatureStore {
 public:
  // The features of one sequence.
  struct Waiting {
    KvSequence rows = {};     // a row per token, from `first` on
    int first = 0;            // a multiple of the page size
    uint64_t scope = 0;       // key of the request's scope and the tokens before `first`
    bool is_complete = true;  // none is missing before end()

    int end() const { return first + rows.length(); }
  };

  // size: numbers per token; head: the shape of the cache that the features end up in (a quarter
  // of its tokens may wait); max_batch: sequences; kept: tokens of each that may wait in any
  // case
  FeatureStore(LayerBackend& backend, int64_t size, const KvShape& head, int max_batch, int kept);

  int64_t bytes() const { return cache_.shape().total_bytes(); }

  // Begins with the features of a text, as far as they are here; the head has read its first `cached`
  // tokens.
  Waiting open(std::span<const TokenId> tokens, uint64_t scope, int cached);
  // end() of what open() would return.
  int64_t find(std::span<const TokenId> tokens, uint64_t scope, int cached) const;

  // Keeps features of committed tokens with their owners, `sequences` by id, in the members `waiting`. Where
  // there are no pages make_room() is called, which reads what waits and drops it.
  template <typename Sequences, typename MakeRoom>
  void absorb(std::span<const CommittedFeatures> committed, Sequences& sequences, MakeRoom&& make_room) {
    for (const CommittedFeatures& features : committed) {
      const auto found = sequences.find(features.sequence);
      if (found == sequences.end()) continue;
      Waiting& waiting = found->second.waiting;
      for (int end = -1; !take(waiting, features); end = waiting.end()) {
        waiting.is_complete = waiting.end() > end;
        make_room();
      }
    }
  }

  // out[count, size] = the features of waiting tokens from `token` on
  void gather(const Waiting& waiting, int token, int64_t count, FloatAddress out);
  // Drops the features of full pages of tokens among the first `cached`, which the head has read.
  void drop(Waiting& waiting, int cached);

  // For steps that a device makes by itself: room for the features of that many more tokens; nullopt: there
  // are no pages. The transaction commits what has been kept.
  std::optional<KvTransaction> stage(Waiting& waiting, int count);
  int page_size() const { return cache_.shape().page_size; }
  // Records, for the slots of recorded rows, that features[rows, size] are kept, or brought to out[rows,
  // size].
  void record_keep(FloatAddress features, int64_t rows);
  void record_gather(int64_t rows, FloatAddress out);

 private:
  // Appends as many features as there are pages for. False: others are left.
  bool take(Waiting& waiting, const CommittedFeatures& committed);
  // Appends the features of the tokens, rows [tokens, size]. False: there are no pages.
  bool append(Waiting& waiting, std::span<const TokenId> tokens, FloatAddress rows);
  // Stores rows[path] in the slots with these numbers.
  void store(std::span<const int> path, std::span<const int32_t> slots, FloatAddress rows);

  LayerBackend& backend_;
  int64_t size_;
  int64_t spare_pages_;  // drop() needs some before it gives back others, which sequences may share
  KvCache cache_;
  std::vector<int> path_;        // 0, 1, ...
  std::vector<int32_t> slots_;   // scratch of append() and gather()
  BackendRows taken_{backend_};  // scratch of take()
  BackendRows kept_{backend_};   // scratch of drop()
  std::vector<TokenId> tokens_;  // scratch of drop()
};

}  // namespace outrider
