// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "device/device.h"
#include "models/backend/attention_shape.h"
#include "models/backend/float_address.h"
#include "models/pass_profile.h"
#include "models/weights/norm.h"
#include "models/weights/weight_loader.h"

namespace outrider {

class BlockStep;
struct DecoderWeights;
struct RepeatedPass;

// Where a Decoder's numbers are and what computes with them. The Decoder says what a layer does, and names
// all that it does it with: weights by their places in weights(), rows by address, cached entries by KvCache
// and slot. Lists of rows, tokens, slots and pages, and the numbers that a row's position decides, are plain
// host memory and go along with a call. Operations run in the order of the calls.
class LayerBackend {
 public:
  virtual ~LayerBackend() = default;

  // Names and sizes are anyone's, the numbers in it are the backend's. In place for its whole life.
  virtual const DecoderWeights& weights() const = 0;
  // The memory of a cache that the operations read and write.
  virtual std::unique_ptr<KvStorage> make_storage(const KvShape& shape) = 0;
  // The memory of the network's own cache.
  virtual std::unique_ptr<KvStorage> make_own_storage(const KvShape& shape) { return make_storage(shape); }
  // Bytes that are free in its memory; nullopt: it uses this machine's.
  virtual std::optional<int64_t> free_bytes() const { return std::nullopt; }
  // From now on operations add their times to the profile; nullptr: to none.
  virtual void measure_into(PassProfile* profile) = 0;
  // Links its device to the devices of the other ranks that have parts of the network. All of them call it
  // when they have loaded theirs. Throws RankFailure.
  virtual void link() {}
  // Whether repeat() can compute a pass over the batch.
  virtual bool repeats(const ForwardBatch& /*batch*/) const { return false; }
  // Computes the pass, perhaps with operations that were ordered before. Precondition: repeats().
  virtual void repeat(const RepeatedPass& /*pass*/) {}
  // Why no pass is repeated; empty: passes may be.
  virtual std::string_view repeat_problem() const { return {}; }
  // Orders so far to its device; nullopt: this machine computes.
  virtual std::optional<DeviceCounts> device_counts() const { return std::nullopt; }
  virtual std::optional<double> device_copy_ms(int64_t /*bytes*/) { return std::nullopt; }  // see Model
  // Returns when the operations so far are complete.
  virtual void wait() {}
  // Makes room for what operations need beside their arguments. Throws std::bad_alloc, as allocate().
  virtual void reserve(int64_t rows, int64_t logits_rows) = 0;

  // Makes room for a projection of a draft head.
  virtual void reserve_product(const Projection& projection, int64_t rows) = 0;

  virtual FloatAddress allocate(int64_t count) = 0;
  virtual void release(FloatAddress numbers) = 0;
  virtual void write(std::span<const float> numbers, FloatAddress to) = 0;
  // Valid until an operation writes there.
  virtual std::span<const float> read(FloatAddress from, int64_t count) = 0;

  // to[i] = from[rows[i]]; `rows` rise where both are in the same place.
  struct RowCopy {
    FloatAddress from;
    int64_t from_stride = 0;
    std::span<const int32_t> rows;
    FloatAddress to;
    int64_t to_stride = 0;
    int64_t dim = 0;
  };
  virtual void copy(const RowCopy& copy) = 0;
  // to[i * to_stride] = from[i * from_stride], `dim` numbers each; the two places do not overlap.
  struct StridedCopy {
    FloatAddress from;
    int64_t from_stride = 0;
    FloatAddress to;
    int64_t to_stride = 0;
    int64_t rows = 0;
    int64_t dim = 0;
  };
  virtual void copy_strided(const StridedCopy& copy) = 0;
  virtual void clear(FloatAddress numbers, int64_t count) = 0;
  // The residual stream on its way between the stages of a pipeline.
  virtual void send_states(FloatAddress states, int64_t count) = 0;
  virtual void receive_states(FloatAddress states, int64_t count) = 0;

  // y[tokens, token_size] = the embedding, scaled
  virtual void embed(std::span<const TokenId> tokens, FloatAddress y) = 0;
  // y = (x + scale * table[rows]) * share, [rows, table.k]; y may be x.
  struct TableRows {
    const PackedMatrix* table = nullptr;
    std::span<const int32_t> rows;
    const LearnedPositions* positions = nullptr;  // which decide the rows; null: tokens do
    float scale = 1;
    float share = 1;
    FloatAddress x, y;
  };
  virtual void add_table_rows(const TableRows& args) = 0;

  // y[rows, table.k] = the rows of the table
  virtual void look_up(const PackedMatrix& table, std::span<const int32_t> rows, FloatAddress y) = 0;
  // y[i] = table[rows[i]] . x[table.k], summed in the order of the numbers
  virtual void project_rows(const PackedMatrix& table, std::span<const int32_t> rows, FloatAddress x,
                            FloatAddress y) = 0;

  virtual void project(const Projection& projection, FloatAddress x, FloatAddress y, int64_t rows) = 0;
  virtual void normalize(FloatAddress x, const Norm& norm, FloatAddress y, int64_t rows) = 0;
  struct AddAndNormalize {
    FloatAddress x;  // [rows, dim]
    bool has_delta = false;
    FloatAddress delta;  // [rows, dim]
    const Norm* norm = nullptr;
    FloatAddress y;  // [rows, dim]
    int64_t rows = 0;
    int64_t dim = 0;
  };
  virtual void add_and_normalize(const AddAndNormalize& args) = 0;
  // A row has the parts of all norms side by side, which are of one size; y may be x.
  virtual void normalize_parts(FloatAddress x, std::span<const Norm> parts, FloatAddress y, int64_t rows) = 0;
  struct Activate {
    FloatAddress x;  // [rows, dim], or [rows, 2 * dim] where it is gated
    FloatAddress y;  // [rows, dim]
    int64_t rows = 0;
    int64_t dim = 0;
    Activation activation = Activation::kSilu;
    bool is_gated = true;
  };
  virtual void activate(const Activate& args) = 0;
  // args.x = the projection of x, and args.y = its activation
  virtual void project_and_activate(const Projection& projection, FloatAddress x, const Activate& args) {
    project(projection, x, args.x, args.rows);
    activate(args);
  }
  virtual void add(FloatAddress y, FloatAddress x, int64_t count) = 0;
  virtual void scale(float factor, FloatAddress x, int64_t count) = 0;
  virtual void gate(FloatAddress gates, FloatAddress x, int64_t count) = 0;
  virtual void softcap(FloatAddress x, int64_t count, float cap) = 0;
  virtual void clamp(float limit, FloatAddress x, int64_t count) = 0;
  // x[rows, dim]: each row is multiplied by the sigmoid of its gate.
  virtual void gate_rows(FloatAddress gates, FloatAddress x, int64_t rows, int64_t dim) = 0;
  // x[i] *= factors[rows[i]], number by number
  struct RowProduct {
    FloatAddress x;  // [rows, dim]
    int64_t dim = 0;
    std::span<const int32_t> rows;
    FloatAddress factors;
    int64_t stride = 0;  // of factors
  };
  virtual void multiply_rows(const RowProduct& args) = 0;
  // y[groups, rows, dim] = residual[rows, dim] + SiLU(x[rows, groups, dim]); y may be residual.
  struct AddSilu {
    FloatAddress x, residual, y;
    int64_t rows = 0;
    int64_t groups = 1;
    int64_t dim = 0;
  };
  virtual void add_silu(const AddSilu& args) = 0;
  // y[rows, dim] = the mean of `count` rows of x[rows, count, dim]
  struct Means {
    FloatAddress x, y;
    int64_t rows = 0;
    int64_t count = 0;
    int64_t dim = 0;
  };
  virtual void average(const Means& args) = 0;
  // Columns of x[rows, count] in y[rows, width]: number i of a row belongs to column columns[i], or i where
  // the list is empty.
  struct Columns {
    FloatAddress x;
    std::span<const int32_t> columns;
    int64_t count = 0;
    FloatAddress y;
    int64_t width = 0;
    int64_t rows = 0;
    int64_t base_rows = 1;  // of add_columns()
  };
  // All other numbers of y become -infinity.
  virtual void spread_columns(const Columns& args) = 0;
  // Row r of y becomes row r % base_rows of base[base_rows, width] with its columns of x added.
  virtual void add_columns(const Columns& args, FloatAddress base) = 0;
  // A convolution over the places of blocks, in place: channel c of place t becomes the sum over taps o of
  // (base[o][c] + weights[t][o][c / group]) * x[t - o][c], where x is 0 before the block.
  struct Convolution {
    std::span<const float> base;  // [taps, dim]
    FloatAddress weights;         // of a place: [taps, dim / group], rows weight_stride apart
    int64_t weight_stride = 0;
    FloatAddress x;  // [rows, dim]
    int64_t rows = 0;
    int64_t block = 0;  // places of a block
    int64_t taps = 0;
    int64_t dim = 0;
    int64_t group = 0;  // channels
  };
  virtual void convolve_blocks(const Convolution& args) = 0;
  // A step of cells by x[rows, 3, dim], which are gates g, candidates c and outputs o: cells = s(g) * before
  // + (1 - s(g)) * tanh(c) and y = tanh(o). s is portable_sigmoid(), and tanh(z) = 2 * s(2 * z) - 1.
  struct CellStep {
    FloatAddress x;
    FloatAddress before, cells, y;  // [rows, dim]
    int64_t rows = 0;
    int64_t dim = 0;
  };
  virtual void step_cells(const CellStep& args) = 0;

  // The attention of a layer. `rotate_and_store()` normalizes queries, keys and values where norms are given,
  // rotates queries and keys, scales queries, and caches keys and values. Row i of qkv is rows[i] of the
  // batch. `attend()` is attention of every row over the entries that it sees, y[rows, q_size].
  struct Attention {
    const AttentionShape* shape = nullptr;
    std::span<const float> q_norm = {}, k_norm = {}, v_norm = {};  // see RotateAndStore
    std::span<const float> sinks = {};                             // [head_count], or empty
    KvCache* cache = nullptr;
    int64_t layer = 0;  // of the cache
    FloatAddress qkv;   // [rows, shape.qkv_size()], changed in place
  };
  struct RowPlaces {
    std::span<const int32_t> rows;
    std::span<const int32_t> slots;  // [batch rows]
    RowRotations rotations;
    QueryFactors query_factors;
  };
  virtual void rotate_and_store(const Attention& attention, const RowPlaces& places) = 0;
  virtual void attend(const Attention& attention, std::span<const AttentionRow> rows, FloatAddress y) = 0;
  // y[slots, layers, heads, head_dim] = the keys of entries; where values are not keys, each head has its
  // value behind its key. The layers are alike.
  struct Entries {
    const KvCache* cache = nullptr;
    Range layers;
    std::span<const int32_t> slots;
  };
  virtual void read_entries(const Entries& entries, FloatAddress y) = 0;
  // A step of a block that none of the operations is (block_step.h).
  virtual void run(BlockStep& step) = 0;
};

// Rows of f32 in a backend's memory that grow with the largest batch seen and never shrink, so that a steady
// state does not allocate.
class BackendRows {
 public:
  explicit BackendRows(LayerBackend& backend) : backend_(backend) {}
  ~BackendRows() { backend_.release(data_); }
  BackendRows(const BackendRows&) = delete;
  BackendRows& operator=(const BackendRows&) = delete;

  // Growing loses the contents.
  void reserve(int64_t rows, int64_t dim) {
    if (rows * dim <= count_) return;
    backend_.release(data_);
    data_ = FloatAddress();
    count_ = 0;
    data_ = backend_.allocate(rows * dim);
    count_ = rows * dim;
  }
  FloatAddress data() const { return data_; }
  // Growing keeps the contents.
  void extend(int64_t rows, int64_t dim) {
    if (rows * dim <= count_) return;
    const FloatAddress grown = backend_.allocate(2 * rows * dim);
    if (count_ > 0) backend_.copy_strided({data_, 0, grown, 0, 1, count_});
    backend_.release(data_);
    data_ = grown;
    count_ = 2 * rows * dim;
  }
  // Writes row `index` of rows of that size.
  void write(std::span<const float> row, int64_t index) {
    backend_.write(row, data_ + index * std::ssize(row));
  }

 private:
  LayerBackend& backend_;
  FloatAddress data_;
  int64_t count_ = 0;
};

}  // namespace outrider
