// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "models/backend/device/device_backend.h"
#include "models/backend/device/device_chooser.h"
#include "models/model.h"

namespace outrider {

// Why steps of this model cannot follow one another on its device; empty: they can.
std::string part_without_loops(const ModelConfig& config);

// Steps of plain decoding that follow one another on a device: a pass over one row of each sequence, a
// choice, and the next pass with the chosen tokens. The host reads the tokens while the loop runs.
class DeviceLoop {
 public:
  struct Shape {
    int64_t max_rows = 0;
    int max_steps = 0;       // of one run
    int64_t max_length = 0;  // tokens of a sequence
    int64_t vocab_size = 0;  // ids that may be chosen: [0, vocab_size)
    std::span<const TokenId> unused = {};
  };
  // Model and cache outlive the loop. Error: the model is not on a device, or has a part that cannot be
  // recorded; the device has no loops.
  static Result<std::unique_ptr<DeviceLoop>> make(Model& model, KvCache& cache, const Shape& shape);
  ~DeviceLoop();
  const Shape& shape() const { return shape_; }

  // A sequence: its last token is pending, and it has staged an entry for each step.
  struct Row {
    const KvSequence* kv = nullptr;
    TokenId token = 0;
    ChoiceRow choice = {};
    std::span<const TokenId> stops = {};  // tokens after which no more steps are worth while
  };
  // Begins a run of `steps` steps. A step of which a row gets no token does not take place.
  void start(std::span<const Row> rows, int steps);
  // Waits for a step of the run, from 0 on; tokens of its rows. Empty: the run has ended before it.
  std::span<const TokenId> tokens_of(int step);
  // Lets the run end after the step that it is at, and waits for that. Later tokens are no text: nothing but
  // staged entries has changed.
  void stop();

 private:
  DeviceLoop(DeviceBackend& backend, Model& model, KvCache& cache, const Shape& shape);

  // A list for rows up to a power of two, and the moves of the backend when it was recorded.
  struct Recorded {
    std::unique_ptr<LoadedList> list;
    int64_t moves = -1;
  };
  Status record(int64_t rows);
  Status ready(int64_t rows);
  DeviceList record_body(int64_t rows);
  // Numbers of lists in the block that start() writes, and where they begin.
  struct Block {
    explicit Block(const Shape& shape, int page_size);
    int64_t pages_of_row;
    int64_t tokens, positions, places, slots, entries, pages, stops, words, count;
  };
  simt::Rows<int> numbers(int64_t begin, int64_t count) const;
  std::vector<int> block_of(std::span<const Row> rows, int steps) const;
  int word(simt::RingWord index) const;

  DeviceBackend& backend_;
  Model& model_;
  KvCache& cache_;
  Shape shape_;
  Block at_;
  DeviceNumbers<int> block_;
  RecordedRows rows_;
  DeviceChooser chooser_;
  MappedMemory ring_;
  std::map<int64_t, Recorded> lists_;  // by rows
  int64_t row_count_ = 0;              // of the run's list
  int64_t used_rows_ = 0;
  bool runs_ = false;
};

}  // namespace outrider
