// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "kv/kv_storage.h"
#include "models/backend/block_step.h"
#include "models/backend/host/host.h"
#include "models/blocks/block_pass.h"
#include "models/weights/layer_place.h"
#include "models/weights/weight_list.h"

namespace outrider {

// The layer that a block is made for.
struct BlockSite {
  const ModelConfig& config;
  int64_t layer = 0;
  Shard shard = {};
};

// The part of the cache that belongs to a block: keys and values of every entry, or a state of each sequence.
struct BlockCache {
  bool reads_entries = false;         // keys and values, its own or an earlier layer's
  int64_t window = 0;                 // entries that are read, the last ones; 0: all
  std::optional<KvHeads> heads = {};  // of the keys and values that it stores
  bool values_are_keys = false;       // see KvShape
  int64_t state_size = 0;             // numbers of a state; 0: it has none
  int64_t update_size = 0;            // numbers by which an entry changes the state
};

// The rows of one block in a pass.
struct BlockRows {
  FloatAddress input;       // [rows, hidden_size], normalised
  FloatAddress output;      // [rows, hidden_size]: what the block adds to the residual stream
  FloatAddress residual;    // [rows, hidden_size]: the residual stream
  int64_t cache_layer = 0;  // where the cache has the keys and values that the block reads, or its state
};

// A part of a layer: what reads earlier entries (a mixer), or the MLP. It is made of a configuration, loads
// its weights, and computes with a LayerBackend. A kind of block is a folder here and a row of kinds.cc.
class Block {
 public:
  virtual ~Block() = default;

  // Plans the loading of the weights. The block must not move before WeightLoader::pack_all() has returned.
  virtual Status load(WeightLoader& loader, const ModelConfig& config, const LayerPlace& place) = 0;
  // Appends all weights.
  virtual void list(WeightList& weights) const = 0;
  // The products that run() computes by BlockPass::project(), which adapters can change.
  virtual std::vector<const Projection*> adaptable() const = 0;

  virtual BlockCache cache() const { return {}; }
  // The numbers of a row in BlockPass::scratch(0), scratch(1) and so on.
  virtual std::vector<int64_t> scratch() const = 0;
  // Makes room for what the block's steps need on this machine.
  virtual void reserve(Host& /*host*/, int64_t /*rows*/) const {}
  // The part of it that ranks cannot divide; empty: they can divide all.
  virtual std::string_view undivided() const { return {}; }

  // Where rows choose among parts of the block, as among experts, weights on disk are read part by part. The
  // number of matrices of each part, which are planned after all others:
  virtual std::vector<size_t> part_matrices() const { return {}; }
  virtual int64_t used_parts() const { return 0; }  // that a row chooses
  virtual int64_t part_bytes() const { return 0; }  // of one, the mean

  // Computes rows.output. A mixer calls BlockPass::keep_wanted() once later rows can read what they need.
  virtual void run(BlockPass& pass, const BlockRows& rows) const = 0;
};

}  // namespace outrider
