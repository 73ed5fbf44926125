// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "models/sharding/shard.h"

namespace outrider {

// The exchanges of a pass between the ranks of a model. All shards of a stage make the same ones in the same
// order. Without other ranks nothing is exchanged.
class ShardExchange {
 public:
  explicit ShardExchange(const ModelPart& part) : part_(part) {}

  const ModelPart& part() const { return part_; }

  // Columns of rows, by shard.
  struct Columns {
    std::span<const Range> shares;  // they follow one another
    bool only_first = false;        // only the first shard gets the columns of all

    bool reach(int shard) const { return !only_first || shard == 0; }
  };
  // whole[rows, sum of shares] = the columns of all shards; `part` has this shard's, [rows, its share].
  void gather(const float* part, const Columns& columns, float* whole, int64_t rows);

  // Completes rows[owners.size(), dim], of which row i has been written by shard owners[i].
  void share_rows(std::span<const int> owners, float* rows, int64_t dim);
  // Completes rows of a table of `table_rows` rows, of which each shard has written the ones that it has.
  void share_rows_of_table(std::span<const int32_t> numbers, int64_t table_rows, float* rows, int64_t dim);

  // The residual stream on its way to the same shard of the next stage.
  void send_states(std::span<const float> states);
  void receive_states(std::span<float> states);

 private:
  int peer(int shard) const { return part_.rank_of(part_.stage, shard); }

  ModelPart part_;
  std::vector<float> parts_;  // of other shards, before they are put into rows
};

}  // namespace outrider
