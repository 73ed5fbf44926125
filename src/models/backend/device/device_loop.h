// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "models/backend/device/device_backend.h"
#include "models/backend/device/device_chooser.h"
#include "models/backend/device/device_draft.h"
#include "models/backend/device/pass_rows.h"
#include "models/model.h"

namespace outrider {

// Why steps of this model cannot follow one another on its device; empty: they can.
std::string part_without_loops(const ModelConfig& config);

// Steps that follow one another on a device: chains of drafts, a pass over the pending tokens and the drafts,
// choices, and the next step after the tokens chosen. The host reads the tokens while the loop runs.
class DeviceLoop {
 public:
  struct Shape {
    int64_t max_rows = 0;    // of a pass
    int max_levels = 0;      // of a chain
    int max_steps = 0;       // of one run
    int64_t max_length = 0;  // tokens of a sequence
    int64_t vocab_size = 0;  // ids that may be chosen: [0, vocab_size)
    std::span<const TokenId> unused = {};
  };
  // Model, cache and draft outlive the loop; null: nothing is drafted. Error: the model is not on a device,
  // or has a part that cannot be recorded; the device has no loops.
  static Result<std::unique_ptr<DeviceLoop>> make(Model& model, KvCache& cache, const Shape& shape,
                                                  DeviceDraft* draft = nullptr);
  ~DeviceLoop();
  const Shape& shape() const { return shape_; }
  DeviceDraft* draft() const { return draft_; }
  // Sequences that a run may have.
  int64_t max_sequences(bool drafts) const {
    return drafts ? shape_.max_rows / (shape_.max_levels + 1) : shape_.max_rows;
  }

  // A sequence: its last token is pending, and it has staged an entry for each token that it may get.
  struct Row {
    const KvSequence* kv = nullptr;
    TokenId token = 0;
    ChoiceRow choice = {};
    std::span<const TokenId> stops = {};  // tokens after which no more steps are worth while
    int64_t remaining = 1;                // the run ends when it has got so many tokens
    int max_draft_len = 0;                // levels; such a run begins after DeviceDraft::start()
  };
  // Begins a run of `steps` steps. A step of which a row gets no token does not take place.
  void start(std::span<const Row> rows, int steps);
  // A row of a step: its chain, how much of it the target chose, too, and the target's token after that.
  struct Outcome {
    std::vector<TokenId> chain = {};
    int accepted = 0;
    TokenId token = 0;
  };
  // Waits for a step of the run, from 0 on. Empty: the run has ended before it. Valid until the next call.
  std::span<const Outcome> outcomes_of(int step);
  // Lets the run end after the step that it is at, and waits for that. Later tokens are no text: nothing but
  // staged entries has changed.
  void stop();

 private:
  DeviceLoop(DeviceBackend& backend, Model& model, KvCache& cache, const Shape& shape, DeviceDraft* draft);

  // A list for sequences up to a power of two and for chains up to some levels, and the moves when it was
  // recorded.
  using Key = std::pair<int64_t, int>;
  struct Recorded {
    std::unique_ptr<LoadedList> list;
    int64_t moves = -1;
  };
  Status record(const Key& key);
  Status ready(const Key& key);
  DeviceList record_body(const Key& key);
  int64_t moves(const Key& key) const;
  simt::Chains chains(const Key& key) const;
  // Where the numbers begin in the block that start() writes.
  struct Block {
    Block(int64_t sequences, int levels);
    int64_t pending, positions, remaining, limits, accepted, drafted, tokens, stops, words, count;
  };
  simt::Rows<int> numbers(int64_t begin, int64_t count) const;
  std::vector<int> block_of(std::span<const Row> rows, int steps) const;
  void set_choices(std::span<const Row> rows);
  int word(simt::RingWord index) const;

  DeviceBackend& backend_;
  Model& model_;
  KvCache& cache_;
  DeviceDraft* draft_;
  Shape shape_;
  Block at_;
  DeviceNumbers<int> block_;
  DevicePassRows rows_;
  DeviceChooser chooser_;
  MappedMemory ring_;
  std::map<Key, Recorded> lists_;
  Key run_ = {};  // the list that runs
  std::vector<Outcome> outcomes_;
  int64_t used_rows_ = 0;
  bool runs_ = false;
};

}  // namespace outrider
