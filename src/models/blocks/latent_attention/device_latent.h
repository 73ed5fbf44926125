// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "models/backend/device/device_ops.h"
#include "models/blocks/latent_attention/latent_ops.h"

namespace outrider {

// LatentOps on a device, with its bits. The heads of a product are the matrices of a stack: the rows of a
// head are tiles of eight.
class DeviceLatent {
 public:
  // `ops` must outlive it.
  DeviceLatent(const LatentTraits& traits, int64_t heads, DeviceOps& ops);

  // As LatentOps has them.
  void make_queries(const LatentWeights& weights, FloatAddress input, FloatAddress qkv, int64_t rows);
  void read_values(const LatentWeights& weights, FloatAddress attended, FloatAddress y, int64_t rows);

 private:
  // The places of rows that are multiplied head by head: [heads, rows in whole tiles].
  struct Places {
    int64_t tiles = 0;
    simt::Rows<const int> heads = {};    // [tiles]
    simt::Rows<const int> queries = {};  // [places]: the number of a row's query, row after row; -1: none
    simt::Rows<const int> vectors = {};  // the same, where entries follow the queries of a row

    int64_t count() const { return tiles * simt::kTileRows; }
  };
  Places place(int64_t rows);
  // Vectors of heads in rows of other sizes.
  struct HeadVectors {
    FloatAddress at;
    int64_t stride = 0;
    int64_t count = 0;                   // of strides
    simt::Rows<const int> numbers = {};  // of places
  };
  // to = from times the matrix of its head
  void multiply(const std::vector<Projection>& heads, const Places& places, const HeadVectors& from,
                const HeadVectors& to);
  void split_pairs(const HeadVectors& from, const HeadVectors& to, int64_t rows, int64_t parts);
  void make_entries(const LatentWeights& weights, FloatAddress qkv, int64_t rows);

  const LatentTraits traits_;
  const int64_t heads_;
  DeviceOps& ops_;
  DeviceBuffer query_vector_, query_rows_, entry_rows_;
  DeviceBuffer inputs_, outputs_;  // [places, numbers of a head]
  UploadedList<int> tile_heads_, query_numbers_, vector_numbers_;
};

}  // namespace outrider
