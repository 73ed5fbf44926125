// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "device/device_list.h"
#include "device_kernels/choice/chains.h"
#include "models/backend/float_address.h"
#include "outrider/drafter.h"

namespace outrider {

// The part of a drafter that drafts chains within the steps which a device makes by itself (DeviceLoop). Its
// chains are those that Drafter::draft() makes of the same texts.
class DeviceDraft {
 public:
  virtual ~DeviceDraft() = default;

  struct Shape {
    int64_t max_sequences = 0;
    int max_levels = 0;
    int64_t max_length = 0;  // tokens of a sequence
  };
  // Makes room on the device, once. Error: the drafter's network cannot be recorded. Throws std::bad_alloc.
  virtual Status reserve(const Shape& shape) = 0;

  // Whether chains of this request can be drafted there.
  virtual bool takes(const DraftRequest& request) const = 0;

  // A sequence of a run, which may get `entries` tokens in it. Requests of no levels draft nothing.
  struct Row {
    DraftRequest request;
    int entries = 0;
  };
  // Brings the drafter's entries up to the pending tokens, and stages entries for the run. False: there is no
  // room for it. Either way finish() follows.
  virtual bool start(std::span<const Row> rows) = 0;
  // Appends to a list what drafts a chain for each sequence, at most `levels` deep. Sequences are numbered as
  // in start().
  virtual void record(const simt::Chains& chains, DeviceList& list) = 0;
  // Appends what keeps the target's features for the next chain, after its pass over all pending tokens, all
  // first drafts and so on. features: [(levels + 1) * sequences, numbers of a token].
  virtual void record_after_target(const simt::Chains& /*chains*/, FloatAddress /*features*/,
                                   DeviceList& /*list*/) {}
  // Changes whenever a list recorded before may name memory that is gone.
  virtual int64_t moves() const = 0;
  // The run is over. tokens: the text of the sequence, with what it has got; empty: nothing counts.
  virtual void finish(uint64_t sequence, std::span<const TokenId> tokens) = 0;
};

}  // namespace outrider
