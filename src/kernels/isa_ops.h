// SPDX-License-Identifier: Apache-2.0
// The interface of an instruction-set folder: loops over a worker's share, on plain data. These folders call
// no inline function of a shared header, because the linker could keep the copy compiled with their flags for
// all callers; tools/check_isa_symbols.py proves it. Division of work, packing and allocation stay outside.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/thread_pool.h"
#include "kernels/kernel_args.h"
#include "kernels/nibble_values.h"

namespace outrider {

// Matrices are stored panel by panel. A step is kTileDepth inputs, a block kCodeBlock inputs.
inline constexpr int64_t kDotFeatures = 16;   // features per panel of kPanels, kPairs, kDot* and kChannels
inline constexpr int64_t kTileFeatures = 32;  // features per panel of kTile*: two tiles of 16
inline constexpr int64_t kTileDepth = 32;     // bf16 inputs of a tile
inline constexpr int64_t kCodeBlock = 128;
inline constexpr int64_t kChannelDepth = 64;  // 8-bit inputs of a tile
// Bytes before the codes of a panel: one unit (f32), or the 16 f32 scales of kChannels.
inline constexpr int64_t kPanelHeader = 64;

// Panels of F8 are blocks of kF8Block inputs: the scales of the features, then [inputs][features]. Products
// read the bits of E4M3 as half precision, which is 2^-8 times the number, so the scales are kF8Unit times
// larger.
inline constexpr int64_t kF8Block = 128;
inline constexpr int64_t kF8Scales = kDotFeatures * 4;  // bytes
inline constexpr int64_t kF8PanelBlock = kF8Scales + kF8Block * kDotFeatures;
inline constexpr float kF8Unit = 256;

// The code of zero of NibbleValues::kCentred.
inline constexpr int kNibbleZero = 8;

// Added to 8-bit weights where an instruction multiplies unsigned ones only.
inline constexpr int kByteZero = 128;

// Packed 8-bit inputs are in tiles of so many rows.
inline constexpr int64_t kInputRows = 16;

// Inputs as kInt8Groups are InputGroup[inputs / kInputGroup][row] for each tile, of which the last one may
// have fewer rows.
inline constexpr int64_t kInputGroup = 32;
struct InputGroup {
  float scale;                // x[i] = scale * codes[i]
  float scaled_sum;           // scale * sum of codes
  int32_t sums[2];            // sums of codes 0 to 15 and 16 to 31
  int32_t zero_sum;           // -kNibbleZero * sum of codes
  int32_t byte_zero_sum;      // -kByteZero * sum of codes
  int32_t byte_zero_sums[2];  // -kByteZero * sums
  int8_t codes[kInputGroup];
};

// Inputs as kInt8Rows: every tile has this head, then codes [step][kInputRows][kChannelDepth].
struct InputRowsHead {
  float scales[kInputRows];
  int32_t sums[kInputRows];  // sums of codes
};

// Inputs as kF32Tiles are in tiles of kFloatRows rows (the last two may have fewer): [inputs][row], so that
// numbers that are multiplied together lie side by side. Products of up to kUntiledRows rows read x itself.
inline constexpr int64_t kFloatRows = 12;
inline constexpr int64_t kUntiledRows = 2;

// Inputs as kBF16Pairs are in tiles of kPairRows rows (the last one may have fewer): [inputs / 2][row][2].
// The sums of so many rows fit the register file.
inline constexpr int64_t kPairRows = 16;

// Inputs as kBF16Tiles are in chunks of kChunkRows rows, which share one pass over the weights; row tiles of
// 16 rows (fewer if the chunk has fewer) by steps: [inputs / 2][row][2] is a right-hand tile. Tiles follow
// the order of use: blocks of four steps, pairs of row tiles, steps, row tiles.
inline constexpr int64_t kChunkRows = 128;

// Vector kernels prefetch weights this many bytes ahead, which gave the highest memory rate; tiles have their
// own.
inline constexpr int64_t kPrefetchBytes = 2048;

struct LinearShare {
  WeightLayout layout = WeightLayout::kRows;
  DType dtype = DType::kF32;
  // Fields of CodeType, for block types.
  int code_group = 0;
  bool has_min = false;
  NibbleValues code_values = NibbleValues::kCentred;
  const int8_t* code_numbers = nullptr;  // [16] numbers of 4-bit codes without a min
  const std::byte* weights = nullptr;    // [n, k], packed
  int64_t panel_bytes = 0;
  int64_t n = 0;
  int64_t k = 0;
  const float* x = nullptr;       // [rows, k]
  std::byte* packed_x = nullptr;  // in the layout that the weights need
  float* y = nullptr;             // [rows, n]
  int64_t rows = 0;
  Range features;  // begins at a whole panel
};

struct InputShare {
  InputLayout layout = InputLayout::kF32;
  const float* x = nullptr;  // [rows, k]
  std::byte* packed = nullptr;
  int64_t rows = 0;
  int64_t k = 0;
  Range items;  // see input_items() in shared_work.cc
};

// Items are (key/value head, row, query head of the group) triples, flattened in this order.
struct AttentionShare {
  const AttentionArgs* args = nullptr;
  const AttentionRow* rows = nullptr;
  int64_t row_count = 0;
  Range items;
};

// An operation that workers divide among themselves, and the function of an instruction set for one share.
template <typename Args, typename Share>
struct DividedOp {
  void (*run)(const Share& share);
  // Computes the worker's share of the call.
  void operator()(const Args& args, Worker worker) const;
};

// An operation of which a share is a range of the items that a call has.
template <typename Args>
struct RangeOp {
  void (*run)(const Args& args, Range items);
  void operator()(const Args& args, Worker worker) const;
};

// All operations of a kernel table.
struct IsaOps {
  // Converts x to the layout that the weights need; one call serves all products that share x and layout.
  // Not needed where input_bytes() is 0.
  DividedOp<LinearArgs, InputShare> pack_inputs;
  // The call must follow pack_inputs() of all workers.
  DividedOp<LinearArgs, LinearShare> linear;
  DividedOp<AttentionArgs, AttentionShare> attention;
  RangeOp<NormArgs> rms_norm, layer_norm;     // items are rows
  RangeOp<RopeArgs> rope;                     // items are rows
  void (*store_kv)(const StoreKvArgs& args);  // one row: callers share rows among workers
  RangeOp<ActivationArgs> activate;           // items are the numbers of y [rows, dim], flattened
  RangeOp<SoftcapArgs> softcap;               // items are numbers
  // The steps of one head in turn, all of one size; a state may be the new state of an earlier step. Callers
  // share heads among workers.
  void (*delta_steps)(const DeltaArgs* steps, int64_t count);
  // Multiplies and adds numbers in registers, as products with such inputs do, for that many rounds. Returns
  // the number of multiplications and additions; the time of many rounds gives the most that a thread can do.
  int64_t (*multiply_add)(InputLayout inputs, int64_t rounds);
};

// A program has the tables of its architecture.
IsaOps reference_ops();
IsaOps avx2_ops();
IsaOps avx2_portable_ops();
IsaOps avx2_vnni_ops();
IsaOps avx512_ops();
IsaOps avx512_vnni_ops();
IsaOps avx512_bf16_ops();
IsaOps amx_ops();
IsaOps neon_ops();
IsaOps i8mm_ops();
IsaOps bf16_ops();

}  // namespace outrider
