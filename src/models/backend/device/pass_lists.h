// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "models/backend/device/attended_lists.h"
#include "models/backend/device/device_ops.h"
#include "models/backend/repeated_pass.h"
#include "models/model.h"

namespace outrider {

// Passes that a device repeats. A pass over some rows is recorded once as a list for up to the next power of
// two of rows. Later passes write what their rows are, in one copy, and run the list. Rows that nobody uses
// have no entries and no slot. Passes of more than kMostListedRows are ordered one operation at a time.
class PassLists {
 public:
  // embedding: of which the device has a part. All must outlive this object.
  PassLists(DeviceOps& ops, const RankLinks& ranks, const DividedTable& embedding)
      : ops_(ops), ranks_(ranks), embedding_(embedding) {}

  // Why no pass is recorded, the same at all ranks; empty: passes are.
  std::string_view problem() const {
    return ranks_.take_lists() ? std::string_view(problem_) : "parts on other ranks";
  }
  bool takes(const ForwardBatch& batch) const;
  // Precondition: takes() of its batch. Throws std::bad_alloc, and RankFailure where the device takes no list
  // although the other ranks have theirs.
  void run(const RepeatedPass& pass);

 private:
  // A pass with the same key has the same operations.
  struct Key {
    int64_t rows = 0;
    int64_t wanted = 0;  // rows with logits; all, or the rows of a list
    int64_t nodes = 0;   // of layers that keep states, and the states between them
    int64_t slots = 0;
    const KvCache* cache = nullptr;
    LayerSubset layers;
    bool keeps_features = false;
    bool operator==(const Key&) const = default;
  };
  // Where the words that a list reads begin. Pages and tails of all rows come last.
  struct Layout {
    Layout(const Key& key, const RepeatedPass& pass);
    int64_t tokens, embedded, positions, slots, entries, wanted, wanted_entries, factors;
    int64_t nodes, sequences, order, kept_rows, kept_updates;
    std::vector<int64_t> rotations;  // by RoPE
    int64_t lists;
  };
  struct Recorded {
    Recorded(simt::Rows<const int> words, const RepeatedPass& pass, const Key& key);
    Key key;
    Layout at;
    RecordedRows rows;
    std::unique_ptr<LoadedList> list = nullptr;
    int64_t moves = -1;                     // of `ops` when it was recorded
    DeviceAddress states = 0, updates = 0;  // that it names
  };
  Key key_of(const RepeatedPass& pass) const;
  // Makes room for the words of a pass. Where there was too little, lists that named the old words go.
  void reserve_words(const RepeatedPass& pass, int64_t count);
  // The list for such a pass, first in lists_, with room for so many pages and tails.
  Recorded& list_of(const RepeatedPass& pass, int64_t list_words);
  void write(const RepeatedPass& pass, const AttendedLists& lists, const Recorded& recorded);
  void put_rows(const ForwardBatch& batch, const Recorded& recorded);
  void put_numbers(const RepeatedPass& pass, const Layout& at);
  void put_states(const Key& key, const Layout& at);
  void make_room(Recorded& recorded) const;
  static void follow_states(const RepeatedPass& pass, Recorded& recorded);
  Status record(const RepeatedPass& pass, Recorded& recorded);

  DeviceOps& ops_;
  const RankLinks& ranks_;
  const DividedTable& embedding_;
  std::string problem_;
  std::unique_ptr<DeviceNumbers<int>> read_words_;  // by the list that runs; every pass writes them anew
  std::list<Recorded> lists_;                       // the last used ones first
  std::vector<AttentionRow> rows_;
  StateLists states_;
  std::vector<int> words_;
};

}  // namespace outrider
