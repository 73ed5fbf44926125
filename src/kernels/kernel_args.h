// SPDX-License-Identifier: Apache-2.0
// Arguments of the kernels: plain data, shared by the table and the instruction sets' loops.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/packed_matrix.h"
#include "tensor/activation.h"

namespace outrider {

// y[r, j] = sum_i x[r, i] * w[j, i] for j in [0, n); rows are contiguous.
struct LinearArgs {
  const PackedMatrix* weights = nullptr;
  const float* x = nullptr;       // [rows, k]
  std::byte* packed_x = nullptr;  // input_bytes(weights->inputs, rows, k) bytes, 64-byte aligned
  float* y = nullptr;             // [rows, n]
  int64_t rows = 0;
};

// One row's view of the cache: the first `prefix_len` entries of its sequence in order, then the entries
// `tail` (indices into the sequence, its ancestors within a drafted tree, itself last). Entry e of the
// sequence lies in slot pages[e / page_size] * page_size + e % page_size.
struct AttentionRow {
  const int32_t* pages = nullptr;
  int32_t prefix_len = 0;
  const int32_t* tail = nullptr;
  int32_t tail_len = 0;
};

// Scaled dot-product attention, grouped queries: y[r, h] = softmax(cap(q[r, h] . K * scale) - slope[h] *
// distance) V, where sinks[h] is one more score in the softmax, with the value zero. The distance of an entry
// is the number of entries that follow it in the row's list, which is the difference of their positions. The
// sum runs over a row's entries in their order, so a chain staged as prefix and the same chain staged as tail
// give the same bits.
struct AttentionArgs {
  const float* q = nullptr;  // [rows, head_count, head_dim], rows q_stride numbers apart
  int64_t q_stride = 0;
  const std::byte* k = nullptr;  // one layer's keys [slots, kv_head_count], see StoreKvArgs
  const std::byte* v = nullptr;  // one layer's values, same shape
  DType kv_type = DType::kF32;
  float* y = nullptr;  // [rows, head_count, head_dim]
  std::span<const AttentionRow> rows;
  int64_t head_count = 0;
  int64_t kv_head_count = 0;
  int64_t head_dim = 0;
  int64_t page_size = 0;
  int64_t window = 0;             // only the last `window` entries of a row's list count; 0: all
  int64_t chunk = 0;              // only entries from the last multiple of `chunk` before the end on; 0: all
  float scale = 0;                // of the scores, usually 1 / sqrt(head_dim)
  float softcap = 0;              // cap(s) = softcap * tanh(s / softcap); 0: cap(s) = s
  const float* slopes = nullptr;  // [head_count]: ALiBi; null: distance does not matter
  const float* sinks = nullptr;   // [head_count]; null: there are none
};

struct NormArgs {
  const float* x = nullptr;       // [rows, dim]
  const float* weight = nullptr;  // [dim]
  float* y = nullptr;             // [rows, dim]; may be x
  int64_t rows = 0;
  int64_t dim = 0;
  float epsilon = 0;
  const float* bias = nullptr;  // [dim], only of layer_norm; null: none
};

// y = act(gate) * up where `is_gated`, x being [rows, 2 * dim] with the gate first; else y = act(x), x [rows,
// dim].
struct ActivationArgs {
  const float* x = nullptr;
  float* y = nullptr;  // [rows, dim]
  int64_t rows = 0;
  int64_t dim = 0;
  Activation activation = Activation::kSilu;
  bool is_gated = true;
};

// x = cap * tanh(x / cap), in place.
struct SoftcapArgs {
  float* x = nullptr;
  int64_t count = 0;
  float cap = 0;
};

// Keys or values of one row, written to the cache and rounded to its type: head vectors of
// cached_head_bytes() each. A NaN or infinity stays NaN or infinity. In Q8_0 it makes its block of 32 NaN.
// E4M3 has NaN for both, and 448 for larger numbers.
struct StoreKvArgs {
  const float* x = nullptr;  // [heads, head_dim]
  std::byte* out = nullptr;
  DType type = DType::kF32;  // F32, BF16, F16, E4M3 or Q8_0
  int64_t heads = 0;
  int64_t head_dim = 0;
};

// Rotates pairs (i, i + rotated / 2) of the first `rotated` numbers of each head, in place.
struct RopeArgs {
  float* x = nullptr;                // [rows, heads, head_dim]
  const float* rotations = nullptr;  // [rows, rotated], see fill_rotations
  int64_t rows = 0;
  int64_t heads = 0;
  int64_t head_dim = 0;
  int64_t rotated = 0;
};

// One step of one head of a gated delta net:
//   new_state = decay * state + k' (rate * (v - decay * state' k)), and y = new_state' q. A state is a matrix
//   [key_dim, value_dim] in tiles of kTileColumns columns, one after the other, each by rows. Columns of a
//   tile that were further apart would compete for few places in the first-level cache.
// Its functions are always inlined: a copy compiled for one instruction set may not serve the whole program.
struct DeltaArgs {
  static constexpr int64_t kTileColumns = 64;

  const float* state = nullptr;  // [key_dim, value_dim] in tiles
  float* new_state = nullptr;    // [key_dim, value_dim] in tiles; may be state
  float* y = nullptr;            // [value_dim], or null: it is not wanted
  const float* q = nullptr;      // [key_dim]
  const float* k = nullptr;      // [key_dim]
  const float* v = nullptr;      // [value_dim]
  float decay = 1;
  float rate = 0;
  int64_t key_dim = 0;
  int64_t value_dim = 0;

  // Columns of the tile that begins at column `first`, the last one is narrower.
  [[gnu::always_inline]] int64_t tile_columns(int64_t first) const {
    return value_dim - first < kTileColumns ? value_dim - first : kTileColumns;
  }
  // The place of an element in a state.
  [[gnu::always_inline]] int64_t place(int64_t row, int64_t column) const {
    const int64_t first = column / kTileColumns * kTileColumns;
    return first * key_dim + row * tile_columns(first) + column - first;
  }
};

}  // namespace outrider
