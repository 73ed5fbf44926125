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
#include "models/backend/device/entry_moves.h"
#include "models/backend/device/pass_rows.h"
#include "models/model.h"

namespace outrider {

// The part for which a device cannot go from one pass of a network to the next by itself; empty: it can.
std::string part_without_loop(const ModelConfig& config);

// Steps that follow one another on a device: trees of drafts, a pass over the pending tokens and the drafts,
// choices, the walk through the trees, and the next step after it. The host reads trees and tokens while the
// loop runs.
class DeviceLoop {
 public:
  struct Shape {
    int64_t max_rows = 0;    // of a pass
    int max_levels = 0;      // of a tree
    int max_nodes = 0;       // of a tree, below its root
    int max_steps = 0;       // of one run
    int64_t max_length = 0;  // tokens of a sequence
    int64_t vocab_size = 0;  // ids that may be chosen: [0, vocab_size)
    std::span<const TokenId> unused = {};
  };
  // Model, cache and draft outlive the loop; null: nothing is drafted. Error: the model is not on a device,
  // or has a part without loops; the device has no loops.
  static Result<std::unique_ptr<DeviceLoop>> make(Model& model, KvCache& cache, const Shape& shape,
                                                  DeviceDraft* draft = nullptr);
  ~DeviceLoop();
  const Shape& shape() const { return shape_; }
  DeviceDraft* draft() const { return draft_; }
  // Sequences that a run may have.
  int64_t max_sequences(bool drafts) const {
    return drafts ? shape_.max_rows / (shape_.max_nodes + 1) : shape_.max_rows;
  }

  // A sequence: its last token is pending, and it has staged an entry for each token that it may get.
  struct Row {
    const KvSequence* kv = nullptr;
    TokenId token = 0;
    ChoiceRow choice = {};
    std::span<const TokenId> stops = {};  // tokens after which no more steps are worth while
    int64_t remaining = 1;                // the run ends when it has got so many tokens
    // Levels; such a run begins after DeviceDraft::start().
    int max_draft_len = 0;
    int max_nodes = 0;
    int max_children = 0;  // 0: as many as the shape of the tree says
  };
  // Begins a run of `steps` steps. A step of which a row gets no token does not take place.
  void start(std::span<const Row> rows, int steps);
  // A row of a step.
  struct Outcome {
    struct Node {
      int parent = 0;  // 0: the pending token; node i is nodes[i - 1]
      TokenId token = 0;
    };
    std::vector<Node> nodes = {};    // the tree that was verified
    std::vector<int> accepted = {};  // the nodes on the path that the target chose, too
    TokenId token = 0;               // the target's after them
  };
  // Waits for a step of the run, from 0 on. Empty: the run has ended before it. Valid until the next call.
  std::span<const Outcome> outcomes_of(int step);
  // Lets the run end after the step that it is at, and waits for that. Later tokens are no text: nothing but
  // staged entries has changed.
  void stop();

 private:
  DeviceLoop(DeviceBackend& backend, Model& model, KvCache& cache, const Shape& shape, DeviceDraft* draft);

  // A list for sequences up to a power of two and for trees up to some levels, and the moves when it was
  // recorded.
  using Key = std::pair<int64_t, int>;
  struct Recorded {
    std::unique_ptr<LoadedList> list;
    int64_t moves = -1;
  };
  Status record(const Key& key);
  Status ready(const Key& key);
  DeviceList record_body(const Key& key);
  void record_end(const simt::Trees& trees, DeviceList& body);
  int64_t moves(const Key& key) const;
  simt::Trees trees(const Key& key) const;
  // Where the numbers begin in the block that start() writes.
  struct Block {
    explicit Block(int64_t rows);
    int64_t pending, positions, remaining, limits, accepted, drafted, tokens, parents, path, stops, words,
        count;
  };
  simt::Rows<int> numbers(int64_t begin, int64_t count) const;
  std::vector<int> block_of(std::span<const Row> rows, int steps) const;
  void set_choices(std::span<const Row> rows);
  int word(simt::RingWord index) const;
  bool wait_for_step(int step) const;  // false: the run has ended before it

  DeviceBackend& backend_;
  Model& model_;
  KvCache& cache_;
  DeviceDraft* draft_;
  Shape shape_;
  Block at_;
  DeviceNumbers<int> block_;
  DevicePassRows rows_;
  DeviceChooser chooser_;
  std::unique_ptr<EntryMoves> moves_;  // of the target's entries, where trees have branches
  MappedMemory ring_;
  std::map<Key, Recorded> lists_;
  Key run_ = {};  // the list that runs
  std::vector<Outcome> outcomes_;
  int64_t used_rows_ = 0;
  bool runs_ = false;
};

}  // namespace outrider
