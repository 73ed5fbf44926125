// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "device/device_list.h"
#include "device_kernels/choice/trees.h"
#include "models/backend/float_address.h"
#include "outrider/drafter.h"

namespace outrider {

// The part of a drafter that drafts trees within the steps which a device makes by itself (DeviceLoop). Its
// trees are those that Drafter::draft() makes of the same texts.
class DeviceDraft {
 public:
  virtual ~DeviceDraft() = default;

  struct Shape {
    int64_t max_sequences = 0;
    int max_levels = 0;
    int max_nodes = 0;       // of a tree, below its root
    int max_tokens = 0;      // that a sequence may get in a run
    int64_t max_length = 0;  // tokens of a sequence
  };
  // Makes room on the device, once. Error: the drafter's network cannot be recorded. Throws std::bad_alloc.
  virtual Status reserve(const Shape& shape) = 0;

  // Levels that its trees have at most.
  virtual int max_levels() const = 0;
  // Whether trees of this request can be drafted there.
  virtual bool takes(const DraftRequest& request) const = 0;
  // Whether its trees have more than one path.
  virtual bool has_branches() const = 0;

  // A sequence of a run, which may get so many tokens in it, and so many before its last step. Requests of no
  // levels draft nothing.
  struct Row {
    DraftRequest request;
    int tokens = 0;
    int before_last = 0;
  };
  // Brings the drafter's entries up to the pending tokens, and stages entries for the run. False: there is no
  // room for it. Either way finish() follows.
  virtual bool start(std::span<const Row> rows) = 0;
  // Appends to a list what drafts a tree for each sequence. Sequences are numbered as in start().
  virtual void record(const simt::Trees& trees, DeviceList& list) = 0;
  // Appends what follows the walk through the trees: it brings the entries of accepted nodes to their places,
  // or keeps the target's features of them. The features are of the target's pass over all roots, all first
  // nodes and so on.
  virtual void record_after_walk(const simt::Trees& /*trees*/, FloatAddress /*features*/,
                                 DeviceList& /*list*/) {}
  // Changes whenever a list recorded before may name memory that is gone.
  virtual int64_t moves() const = 0;
  // The run is over. tokens: the text of the sequence, with what it has got; empty: nothing counts.
  virtual void finish(uint64_t sequence, std::span<const TokenId> tokens) = 0;
};

}  // namespace outrider
