// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "device_kernels/choice/trees.h"
#include "kv/kv_cache.h"
#include "models/backend/device/device_ops.h"
#include "models/forward_batch.h"

namespace outrider {

// A batch of that many rows, each of another sequence; logits are wanted of the first ones. A recorded pass
// reads only these numbers.
ForwardBatch batch_of_rows(int64_t rows, int64_t logits_rows);

// The lists of recorded passes, in the memory of a device. Its kernels write the rows.
class DevicePassRows {
 public:
  struct Shape {
    int64_t rows = 0;
    int64_t sequences = 0;
    int64_t max_length = 0;  // entries of a sequence
    int page_size = 1;
    int tail_size = 0;  // see simt::PassRows
    int lag = 0;
  };
  DevicePassRows(Device& device, const Shape& shape);

  const RecordedRows& recorded() const { return recorded_; }
  simt::PassRows view() const;
  simt::Rows<const int> places() const;
  // The pages of a sequence, the first of them at entry `first`; none: it has no rows.
  struct Pages {
    std::span<const int32_t> numbers = {};
    int64_t first = 0;  // a multiple of the page size
  };
  void set_pages(std::span<const Pages> sequences);

 private:
  Shape shape_;
  int64_t pages_of_sequence_;
  DeviceNumbers<int> tokens_, positions_, places_, slots_, entries_, tails_, pages_;
  RecordedRows recorded_;
};

}  // namespace outrider
