// SPDX-License-Identifier: Apache-2.0
// The contract between models and instruction sets: one table of functions per instruction set, chosen once.
//
// Row invariance, the promise everything else stands on: the bits of an output row depend on that row's
// inputs, on the weights' shape and on the row's own KV length only; never on how many rows share the call,
// on the other rows' contents, on the worker count or on page size. Every table is deterministic; tables may
// differ by rounding.
//
// Functions compute the share of one worker and never allocate, throw, or read the environment. The caller
// separates dependent calls by a barrier (ThreadPool::run returns).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/thread_pool.h"
#include "outrider/result.h"
#include "tensor/buffer.h"
#include "tensor/tensor_view.h"

namespace outrider {

// Layouts of weights and of the inputs of a product, private to the tables; see isa_ops.h.
enum class WeightLayout : uint8_t {
  kRows,        // as stored
  kPanels,      // F32, F16, BF16: panels of features, input by input
  kPairs,       // BF16: as kStrips, two inputs of each feature side by side
  kDotNibbles,  // codes, four inputs of each feature side by side
  kDotBytes,
  kChannels,     // I8: as kDotBytes, one scale per feature
  kTiles,        // BF16: AMX tiles
  kTileNibbles,  // codes, to be decoded to such tiles
  kTileBytes,
};
enum class InputLayout : uint8_t {
  kF32,         // as they are
  kInt8Groups,  // 8-bit codes, a scale for every 32
  kInt8Rows,    // 8-bit codes, a scale for every row
  kBF16Pairs,   // bf16
  kBF16Tiles,
};

// A matrix [n, k] in a private layout.
struct PackedMatrix {
  WeightLayout form = WeightLayout::kRows;
  InputLayout inputs = InputLayout::kF32;  // that its product reads
  DType dtype = DType::kF32;
  int64_t n = 0;  // output features
  int64_t k = 0;  // input features
  int64_t panel_features = 1;
  int64_t panel_bytes = 0;
  Buffer data;

  int64_t panel_count() const { return (n + panel_features - 1) / panel_features; }
  int64_t bytes() const { return panel_count() * panel_bytes; }
};

// A matrix to be packed: the rows of the parts one after the other, each converted to `dtype` (a part of
// another type: to one that quantize_row knows).
struct MatrixSource {
  std::span<const TensorView> parts;
  DType dtype = DType::kF32;
};

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

// Scaled dot-product attention, grouped queries: y[r, h] = softmax(q[r, h] . K / sqrt(head_dim)) V. The sum
// runs over a row's entries in their order, so a chain staged as prefix and the same chain staged as tail
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
  int64_t window = 0;  // only the last `window` entries of a row's list count; 0: all
};

struct NormArgs {
  const float* x = nullptr;       // [rows, dim]
  const float* weight = nullptr;  // [dim]
  float* y = nullptr;             // [rows, dim]; may be x
  int64_t rows = 0;
  int64_t dim = 0;
  float epsilon = 0;
};

// One row's keys or values on their way into the cache, rounded to its type: head vectors of
// cached_head_bytes() each. A NaN or infinity stays NaN or infinity; in Q8_0 it makes its block of 32 NaN.
struct StoreKvArgs {
  const float* x = nullptr;  // [heads, head_dim]
  std::byte* out = nullptr;
  DType type = DType::kF32;  // F32, BF16, F16 or Q8_0
  int64_t heads = 0;
  int64_t head_dim = 0;
};

// Rotates pairs (i, i + head_dim / 2) of each head, in place.
struct RopeArgs {
  float* x = nullptr;                // [rows, heads, head_dim]
  const float* rotations = nullptr;  // [rows, head_dim], see fill_rotations
  int64_t rows = 0;
  int64_t heads = 0;
  int64_t head_dim = 0;
};

struct KernelTable {
  std::string_view name;

  // The packed matrix but for its data, which allocate() adds. Any DType; k must be a multiple of the dtype's
  // block.
  Result<PackedMatrix> (*layout)(const MatrixSource& source);
  // Takes a share of the panels from the source, converted, to the allocated matrix.
  void (*pack)(const MatrixSource& source, PackedMatrix& packed, Worker worker);

  // Brings x to the form the weights ask for, once for all products of the same x and form; nothing to do for
  // InputLayout::kF32.
  void (*pack_inputs)(const LinearArgs& args, Worker worker);
  // After all workers' pack_inputs.
  void (*linear)(const LinearArgs& args, Worker worker);
  void (*attention)(const AttentionArgs& args, Worker worker);
  void (*rms_norm)(const NormArgs& args, Worker worker);
  void (*rope)(const RopeArgs& args, Worker worker);
  void (*store_kv)(const StoreKvArgs& args);  // one row: callers share rows among workers
  // y[i] = silu(gate[i]) * up[i] over rows x dim numbers: gate_up is [rows, 2 * dim], gate first.
  void (*swiglu)(const float* gate_up, float* y, int64_t rows, int64_t dim, Worker worker);
};

// Cosines, then sines, of position * inverse_frequency[i], [head_dim]: the same in every table. Angle, cosine
// and sine are rounded to f32 one after the other, as Hugging Face's models compute them.
void fill_rotations(int32_t position, std::span<const float> inverse_frequency, float* rotations);

// Names of the tables this machine can run, slowest first; "reference" is always there.
std::vector<std::string_view> available_kernels();

// `name` empty picks the fastest table the machine can run. Error: unknown name (lists the valid ones), or an
// instruction set this machine lacks (says what is missing).
Result<const KernelTable*> select_kernels(std::string_view name);

// Bytes that `rows` rows of k inputs take in that form.
int64_t input_bytes(InputLayout form, int64_t rows, int64_t k);

// Of a matrix to be read by rows alone, kept as stored; any table's pack() fills it.
Result<PackedMatrix> row_layout(const MatrixSource& source);

// The data of a matrix that has its layout, zero until pack() has filled it. Error: out of memory.
Status allocate(PackedMatrix& packed);

// Row `row` of a packed matrix as f32 [k]: what dequantize_row() gives, but that scales of K-quants were
// rounded to half precision when they were packed for vectors or tiles.
void unpack_row(const PackedMatrix& packed, int64_t row, float* out);

// layout(), allocate() and pack() by one worker.
Result<PackedMatrix> pack_matrix(const KernelTable& kernels, const TensorView& matrix);

// Converts `elements` stored numbers of one row to f32: the scalar reading of the format's description.
void dequantize_row(DType dtype, const std::byte* row, float* out, int64_t elements);

// Converts one f32 row to any type but Q5_K (precondition violated). F16, BF16, Q8_0 and Q4_0 are rounded as
// GGUF's reference quantiser does, I8 likewise; the scales of Q4_K and Q6_K are searched for.
void quantize_row(DType dtype, const float* row, std::byte* out, int64_t elements);

}  // namespace outrider
