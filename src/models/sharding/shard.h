// SPDX-License-Identifier: Apache-2.0
// Which part of a model a rank has. Ranks that share a layer are its shards: each has some attention heads
// and some output features of every matrix. A product needs all its inputs and each of its outputs is
// computed by one shard, whole, so outputs have the bits that a single rank would give them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/thread_pool.h"
#include "formats/model_config.h"
#include "ranks/communicator.h"

namespace outrider {

// One of `count` shards of every layer.
struct Shard {
  int index = 0;
  int count = 1;

  bool is_whole() const { return count == 1; }
  // The shard's features among `total`. Shards begin with whole panels of every weight layout.
  Range of(int64_t total) const;
  // The features of all shards.
  std::vector<Range> cut(int64_t total) const;
};

// A table whose rows shards divide, for look-ups in which each shard finds a row for every number.
struct DividedTable {
  Shard shard = {};
  int64_t rows = 0;

  // The rows of this shard's part; 0 where another shard has the row.
  std::vector<int32_t> own_rows(std::span<const int32_t> numbers) const;
  // Which rows are the right ones, where each shard finds `count` and they lie one shard after another.
  std::vector<int32_t> places(std::span<const int32_t> numbers, int64_t count) const;
};

// The attention heads of a shard. Where shards are more than heads of keys and values, several of them have a
// copy of one such head, each with a part of the query heads that read it.
struct HeadShare {
  HeadShare(const LayerSizes& sizes, Shard shard);

  int64_t kv_heads() const { return units.end - units.begin; }
  Range query_heads() const { return {units.begin * queries, units.end * queries}; }
  // The rows of the projections of queries, and of keys or values, that the shard has.
  Range query_rows() const { return {units.begin * queries * head_dim, units.end * queries * head_dim}; }
  std::vector<Range> kv_rows() const;

  Range units;          // a unit is a head of keys and values with query heads that read it
  int64_t copies = 1;   // units of one head of keys and values
  int64_t queries = 1;  // query heads of a unit
  int64_t head_dim = 0;
};

// The outputs of attention, [head_count * head_dim], of all shards.
std::vector<Range> cut_heads(const LayerSizes& sizes, int shards);

// The part of a model that a rank has, and its way to the others: pipeline stages of `shard.count` ranks
// each, in the order of their layers.
struct ModelPart {
  Shard shard;
  int stage = 0;
  int stage_count = 1;
  Communicator* ranks = nullptr;  // of the whole job; null: there is one rank

  bool is_whole() const { return ranks == nullptr; }
  bool is_first_stage() const { return stage == 0; }
  bool is_last_stage() const { return stage + 1 == stage_count; }
  // The layers of this rank among `layer_count`.
  Range layers(int64_t layer_count) const { return share_of({stage, stage_count}, layer_count); }
  // The rank with shard `index` of a stage.
  int rank_of(int at_stage, int index) const { return at_stage * shard.count + index; }
};

// The part of rank `rank` where layers have `shards` shards and there are `stages` stages.
ModelPart part_of(Communicator& ranks, int shards, int stages);

}  // namespace outrider
