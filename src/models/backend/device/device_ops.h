// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "kv/device_pages.h"
#include "models/backend/device/device_views.h"
#include "models/backend/device/device_weights.h"
#include "models/backend/device/launcher.h"
#include "models/backend/device/packing_memory.h"
#include "models/backend/device/row_limits.h"
#include "models/backend/layer_backend.h"
#include "models/backend/shared_objects.h"
#include "models/rotary_embedding.h"
#include "models/sharding/rank_links.h"
#include "models/sharding/shard_exchange.h"

namespace outrider {

// Numbers of the host that a launch reads. They are uploaded when they differ from the last ones.
template <typename T>
class UploadedList {
 public:
  explicit UploadedList(Launcher& launcher) : launcher_(launcher), memory_(launcher.device()) {}
  simt::List<T> view(std::vector<T> numbers) {
    OUTRIDER_CHECK(!launcher_.records());  // a list would always have these numbers
    if (numbers != held_) {
      held_ = std::move(numbers);
      memory_.reserve(static_cast<int64_t>(held_.size() * sizeof(T)));
      launcher_.device().upload(std::as_bytes(std::span(held_)), memory_.address());
    }
    return {reinterpret_cast<const T*>(memory_.address()), std::ssize(held_)};
  }

 private:
  Launcher& launcher_;
  std::vector<T> held_;
  DeviceBuffer memory_;
};

// The nodes of a recorded pass in layers that keep states, with room for as many as there may be.
struct RecordedStates {
  simt::StateNodes nodes = {};          // without a row and an update: no node
  simt::StateSequences sequences = {};  // without nodes: none
  simt::List<int> order = {};
  simt::Rows<const int> kept_rows = {}, kept_updates = {};  // to update -1: kept nowhere
  int slots = 0;
};

// The rows of recorded passes, in the memory of the device. Every pass reads these lists anew,
// and rows that nobody uses have slot -1 and no entries.
struct RecordedRows {
  simt::Rows<const int> tokens;     // [rows], in the part of the embedding that is there
  simt::Rows<const int> positions;  // [rows], below max_length
  simt::List<int> slots;            // [rows]
  simt::List<int> entries;          // [rows, simt::RowEntries::kNumbers]
  simt::List<int> pages;
  simt::List<int> tails = {};
  int64_t max_length = 0;  // entries of a row's list; positions are below
  // Rows that go on where some are left out, and their entries; null: the first rows.
  simt::Rows<const int> wanted = {};
  simt::List<int> wanted_entries = {};
  // The rows' rotations by RoPE. A RoPE that is not here is read for positions.
  std::vector<std::pair<const RotaryEmbedding*, simt::List<float>>> rotations = {};
  simt::List<float> query_factors = {};  // of the rows; null: they are read for positions
  simt::Rows<const int> embedded = {};   // [rows], see DividedTable::places(); null: the embedding is whole
  RecordedStates states = {};
};

// The kernels of products on tensor cores: of inputs, of few and of many rows, of a stack of matrices.
struct TensorKernels {
  KernelName pack, few, many, stacked;
};
TensorKernels tensor_kernels(WeightForm form);

// The operations of a layer as launches of kernels. Rows are places on the device.
class DeviceOps {
 public:
  // ranks: the ways to the other ranks of the network; null: there are none.
  // pool, profile: see DeviceWeights. All must outlive it.
  explicit DeviceOps(Device& device, const RankLinks* ranks = nullptr, ThreadPool* pool = nullptr,
                     ProductProfile profile = ProductProfile::kPortable);

  // From now on launches go to the end of the list, for these rows; null: they run at once.
  void record(const RecordedRows* rows, DeviceList* list);
  bool records() const { return recorded_ != nullptr; }
  // The slots of the rows of a recorded pass, -1 where nobody uses a row; null: all of them are used.
  simt::List<int> slots_of_recorded(int64_t rows) const {
    return records() && recorded_->slots.count == rows ? recorded_->slots : simt::List<int>{};
  }
  // Precondition: records().
  const RecordedStates& recorded_states() const { return recorded_->states; }
  // Scratch as numbers, of which there become enough.
  FloatAddress numbers_in(DeviceBuffer& scratch, int64_t count);
  simt::Rows<int> integers_in(DeviceBuffer& scratch, int64_t count);
  // Counts how often scratch has moved: lists recorded before name memory that is gone.
  int64_t moves() const { return moves_; }
  void count_move() { ++moves_; }  // of other memory
  // Numbers of scratch that attention shares among rows; tests have less.
  void limit_chunk_sums(int64_t numbers) { most_chunk_numbers_ = numbers; }

  // For steps of blocks.
  Launcher& launcher() { return launcher_; }
  Device& device() { return launcher_.device(); }
  DeviceWeights& weights() { return weights_; }
  // The object that all blocks of a kind share, made of `args` when it is first wanted.
  template <typename Shared, typename... Args>
  Shared& shared(Args&&... args) {
    return shared_.of<Shared>(std::forward<Args>(args)...);
  }
  template <typename Args>
  void launch(KernelName kernel, const Args& args, const LaunchShape& shape) {
    launcher_.launch(kernel, args, shape);
  }
  template <typename Args>
  void launch_items(KernelName kernel, const Args& args, int64_t items) {
    launcher_.launch_items(kernel, args, items);
  }
  // A warp for each 32 numbers of each row.
  template <typename Args>
  void launch_rows(KernelName kernel, const Args& args, int64_t rows, int64_t dim) {
    launch_items(kernel, args, rows * ((dim + simt::kWarp - 1) / simt::kWarp));
  }

  // A list that the numbers of a pass do not change. Recorded passes name lists that stay.
  simt::List<int> fixed_list(UploadedList<int>& uploaded, std::vector<int> numbers);

  // Brings the matrices to the device, where they would else come with their first product.
  void upload(const Projection& projection);
  void upload(std::span<const Projection* const> stack);
  void upload_table(const PackedMatrix& table) {
    if (table.n > 0) weights_.table(table);
  }

  // y[tokens, table.k] = rows of the table times the factor
  void look_up(const PackedMatrix& table, std::span<const int32_t> tokens, float factor, FloatAddress y);

  // In a pass that is recorded. Rows by position are added in place, and rows of tokens are not.
  void add_table_rows(const LayerBackend::TableRows& args);

  // whole[rows, sum of shares] = the columns of all shards, of which `part` are this shard's
  void gather(FloatAddress part, const ShardExchange::Columns& columns, FloatAddress whole, int64_t rows);
  // As look_up(), in a table of which this shard has a part
  void embed(const PackedMatrix& table, const DividedTable& divided, std::span<const TokenId> tokens,
             float factor, FloatAddress y);
  void send_states(FloatAddress states, int64_t count);
  void receive_states(FloatAddress states, int64_t count);

  // y[rows, n] = x[rows, k] W' + bias; where the projection is cut, see LayerOps::project()
  void project(const Projection& projection, FloatAddress x, FloatAddress y, int64_t rows);
  // y[rows, part.n] = x[rows, part.k] W', rows of y being y_stride apart
  struct Product {
    const UploadedMatrix& matrix;
    const PackedMatrix& part;
    FloatAddress x, y;
    int64_t rows;
    int64_t y_stride;
    int64_t y_count;  // numbers from y on
  };
  void multiply(const Product& product);
  // y[8 * tiles, n] = x[8 * tiles, k] W' + bias, with the projection that the list names for each tile of
  // eight rows. Tiles of an entry below 0 stay as they are.
  struct StackedProduct {
    std::span<const Projection* const> stack;  // of one shape
    simt::Rows<const int> list;                // [tiles]
    FloatAddress x, y;
    int64_t tiles;
  };
  void project_stacked(const StackedProduct& product);

  // x += delta where there is one, and y = norm(x), of parts of rows.
  struct NormOfParts {
    FloatAddress x, delta, y;
    NormKind kind = NormKind::kRms;
    std::span<const float> weight = {};  // empty: nothing is normalized
    std::span<const float> bias = {};
    simt::NormParts of = {};
  };
  void normalize(const NormOfParts& args);
  void activate(const LayerBackend::Activate& args);
  // Whether the projection and its activation are one launch.
  bool activates_with(const Projection& projection, const LayerBackend::Activate& args);
  // Precondition: activates_with().
  void project_and_activate(const Projection& projection, FloatAddress x, const LayerBackend::Activate& args);
  void softcap(FloatAddress x, int64_t count, float cap);
  // x[rows, dim] += y, and the like; see ElementwiseArgs.
  struct Elementwise {
    FloatAddress x, y;
    int64_t rows = 1;
    int64_t dim = 0;
    int64_t x_stride = 0;
    int64_t y_stride = 0;
    float number = 0;
  };
  void run(KernelName kernel, const Elementwise& args);

  void copy(const LayerBackend::RowCopy& copy);
  void copy_strided(const LayerBackend::StridedCopy& copy);
  // x[i] *= factors[rows[i]]
  void multiply_rows(const LayerBackend::RowProduct& args);
  void add_silu(const LayerBackend::AddSilu& args);
  void average(const LayerBackend::Means& args);
  // Columns without a place have the number of the base; without a base they are -infinity.
  void place_columns(const LayerBackend::Columns& args, FloatAddress base);
  void convolve_blocks(const LayerBackend::Convolution& args);
  void step_cells(const LayerBackend::CellStep& args);
  void read_entries(const LayerBackend::Entries& entries, FloatAddress y);

  void rotate_and_store(const LayerBackend::Attention& attention, const LayerBackend::RowPlaces& places);
  void attend(const LayerBackend::Attention& attention, std::span<const AttentionRow> rows, FloatAddress y);

 private:
  void reserve(DeviceBuffer& scratch, int64_t bytes);
  void exchange_shares(FloatAddress part, const ShardExchange::Columns& columns, FloatAddress parts,
                       int64_t rows);
  void project_share(const Projection& projection, FloatAddress x, FloatAddress y, int64_t rows);
  bool are_wanted(int64_t rows) const;
  void copy_recorded(const LayerBackend::RowCopy& copy);
  void copy_listed(const LayerBackend::RowCopy& copy, simt::Rows<const int> list, int64_t reached);

  // Counters for arrive(), which are 0.
  simt::Rows<int> arrivals(int64_t count);
  // Room for the codes of inputs, whose launch follows. The launch may read the codes that were packed last.
  simt::InputCodes room_for_codes(int64_t rows, int64_t k);
  // Room for rows that products of k inputs may read; null where there are no such products. Kernels that
  // make rows take it, and packing_ remembers the rows after their launch.
  simt::InputCodes codes_for_products(int64_t rows, int64_t k);
  // The codes of inputs, which are packed unless the memory holds them.
  simt::GroupedInputs pack_groups(const PackingMemory::Inputs& inputs);
  // After a product of packed inputs, which has written only y: they stay packed unless y has changed them.
  void keep_packed(const PackingMemory::Inputs& inputs, FloatAddress y, int64_t y_count);
  simt::ChannelInputs pack_channels(FloatAddress x, int64_t rows, int64_t k);
  simt::TensorInputs pack_tensor(FloatAddress x, int64_t rows, int64_t k, KernelName kernel);
  void multiply_groups(const Product& product);
  simt::GroupedProductArgs grouped_args(const Product& product, const simt::GroupedInputs& x) const;
  void multiply_channels(const Product& product, const simt::ChannelInputs& x);
  void multiply_tensor(const Product& product);
  void normalize_rows(const NormOfParts& args);
  template <typename Numbers>
  void multiply_plain(const Product& product, KernelName kernel);

  // One matrix of each projection of a stack.
  struct StackedPart {
    const UploadedStack& stack;
    const PackedMatrix& part;
    simt::Rows<const int> list;
    FloatAddress x, y;
    int64_t tiles;
    int64_t y_stride;
    int64_t y_count;
  };
  void multiply_stacked(const StackedPart& part);
  void multiply_stacked_groups(const StackedPart& part);
  void multiply_tensor_stacked(const StackedPart& part);
  template <typename Args>
  void launch_stacked(KernelName kernel, const StackedPart& part, const Args& product, int shared_bytes);
  template <typename Numbers>
  void multiply_plain_stacked(const StackedPart& part, KernelName kernel);

  template <typename Numbers>
  void look_up_plain(const UploadedTable& table, KernelName kernel, const simt::LookedUp& of);
  void look_up_codes(const UploadedTable& table, const simt::LookedUp& of);

  void add_position_rows(const LayerBackend::TableRows& args);
  // A table of the numbers that every position has, dim each. `fill` writes them where `of` is new.
  simt::List<float> numbers_of_positions(const void* of, int64_t dim,
                                         const std::function<void(int32_t position, float* y)>& fill);
  simt::List<float> query_factors(const LayerBackend::RowPlaces& places);
  void place_rotations(const LayerBackend::RowPlaces& places, simt::RopeArgs& args);
  simt::RopeArgs rope_args(const LayerBackend::Attention& attention, const LayerBackend::RowPlaces& places,
                           int64_t heads);
  void normalize_heads(const LayerBackend::Attention& attention, std::span<const float> norm, FloatAddress x,
                       int64_t heads, int64_t rows);
  template <typename Cached>
  void store_rotated(const LayerBackend::Attention& attention, const simt::RopeArgs& rope,
                     simt::List<int> slots, KernelName kernel);
  void store(const LayerBackend::Attention& attention, const simt::RopeArgs& rope, simt::List<int> slots);
  simt::List<int> slots_of(const LayerBackend::RowPlaces& places);
  struct Attended {
    simt::List<int> entries, pages, tails;
  };
  Attended attended(std::span<const AttentionRow> rows, int64_t page_size);
  template <typename Cached>
  void read_cached(const LayerBackend::Entries& entries, FloatAddress y, KernelName kernel);
  int64_t most_chunks(const AttentionShape& shape, std::span<const AttentionRow> rows) const;
  int64_t rows_together(const AttentionShape& shape, int64_t rows, int64_t chunks) const;
  simt::ChunkSums chunk_sums(int64_t heads, int64_t head_dim);
  // A warp takes a row and a head, or a tile of queries on tensor cores.
  struct AttentionKernel {
    KernelName name;
    bool takes_tiles = false;
  };
  AttentionKernel attention_kernel(DType cached) const;
  template <typename Cached>
  void launch_attention(const AttentionKernel& kernel, const simt::AttentionArgs<Cached>& args,
                        int64_t chunks);
  template <typename Cached>
  void attend_cached(const LayerBackend::Attention& attention, std::span<const AttentionRow> rows,
                     FloatAddress y);

  Launcher launcher_;
  const RankLinks* ranks_;
  const RecordedRows* recorded_ = nullptr;
  int64_t moves_ = 0;
  int64_t most_chunk_numbers_ = kMostChunkNumbers;
  DeviceWeights weights_;
  SharedObjects shared_;
  std::map<const void*, DeviceNumbers<float>> of_positions_;
  struct PackedInputs {
    explicit PackedInputs(Device& device) : codes(device), scales(device), sums(device) {}
    DeviceBuffer codes, scales, sums;
  };
  std::array<PackedInputs, 2> packed_;  // in turn: a launch may read one and write the other
  size_t last_packed_ = 0;
  PackingMemory packing_;                            // of their rows
  DeviceBuffer copied_;                              // rows on their way within one place
  DeviceBuffer placed_factors_{launcher_.device()};  // of queries
  DeviceBuffer arrivals_{launcher_.device()};
  DeviceBuffer chunk_softmax_{launcher_.device()}, chunk_sums_{launcher_.device()};  // of attention
  DeviceBuffer cut_inputs_;   // [rows, k] of a cut projection
  DeviceBuffer cut_outputs_;  // [rows, n] of this shard
  DeviceBuffer gathered_;     // parts of all shards, one after another
  using KeptList = std::pair<std::vector<int>, DeviceNumbers<int>>;
  std::deque<KeptList> kept_lists_;  // of recorded passes
  UploadedList<float> rotations_, factors_;
  UploadedList<int> tokens_, slots_, entries_, pages_, tails_, listed_rows_, column_places_, gathered_pieces_;
};

}  // namespace outrider
