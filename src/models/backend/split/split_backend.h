// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <unordered_set>

#include "models/backend/device/device_backend.h"
#include "models/backend/placement.h"
#include "models/backend/split/mirrored_rows.h"
#include "models/backend/split/split_storage.h"

namespace outrider {

// The projections and norms that this machine keeps.
using KeptWeights = std::unordered_set<const void*>;
KeptWeights kept_weights(const DecoderWeights& weights, const Placement& placement);

// A device and this machine, which share a network. An operation runs where its weights or its entries are,
// and one without any where its rows are. Rows follow it: nothing crosses within a layer whose parts are
// together.
class SplitBackend final : public LayerBackend {
 public:
  // kept: of `weights`. As DeviceBackend.
  SplitBackend(Device& device, const ModelConfig& config, const ModelOptions& options, DecoderWeights weights,
               KeptWeights kept);

  const DecoderWeights& weights() const override { return device_.weights(); }
  // Others' caches, such as caches of draft heads, are on the device.
  std::unique_ptr<KvStorage> make_storage(const KvShape& shape) override {
    return device_.make_storage(shape);
  }
  std::unique_ptr<KvStorage> make_own_storage(const KvShape& shape) override;
  std::optional<int64_t> free_bytes() const override { return device_.free_bytes(); }
  void wait() override { device_.wait(); }
  std::optional<DeviceCounts> device_counts() const override { return device_.device_counts(); }
  std::optional<double> device_copy_ms(int64_t bytes) override { return device_.device_copy_ms(bytes); }
  std::string_view repeat_problem() const override { return "parts on this machine"; }
  void measure_into(PassProfile* profile) override;
  void reserve(int64_t rows, int64_t logits_rows) override { host_.reserve(rows, logits_rows); }
  void reserve_product(const Projection& projection, int64_t rows) override {
    device_.reserve_product(projection, rows);
  }

  FloatAddress allocate(int64_t count) override;
  void release(FloatAddress numbers) override;
  void write(std::span<const float> numbers, FloatAddress to) override;
  std::span<const float> read(FloatAddress from, int64_t count) override;
  void copy(const RowCopy& copy) override;
  void copy_strided(const StridedCopy& copy) override;
  void clear(FloatAddress numbers, int64_t count) override;
  void send_states(FloatAddress states, int64_t count) override;
  void receive_states(FloatAddress states, int64_t count) override;

  void embed(std::span<const TokenId> tokens, FloatAddress y) override;
  void add_table_rows(const TableRows& args) override;
  void look_up(const PackedMatrix& table, std::span<const int32_t> rows, FloatAddress y) override;
  void project_rows(const PackedMatrix& table, std::span<const int32_t> rows, FloatAddress x,
                    FloatAddress y) override;
  void project(const Projection& projection, FloatAddress x, FloatAddress y, int64_t rows) override;
  void normalize(FloatAddress x, const Norm& norm, FloatAddress y, int64_t rows) override;
  void add_and_normalize(const AddAndNormalize& args) override;
  void normalize_parts(FloatAddress x, std::span<const Norm> parts, FloatAddress y, int64_t rows) override;
  void activate(const Activate& args) override;
  void project_and_activate(const Projection& projection, FloatAddress x, const Activate& args) override;
  void add(FloatAddress y, FloatAddress x, int64_t count) override;
  void scale(float factor, FloatAddress x, int64_t count) override;
  void gate(FloatAddress gates, FloatAddress x, int64_t count) override;
  void softcap(FloatAddress x, int64_t count, float cap) override;
  void clamp(float limit, FloatAddress x, int64_t count) override;
  void gate_rows(FloatAddress gates, FloatAddress x, int64_t rows, int64_t dim) override;
  void multiply_rows(const RowProduct& args) override;
  void add_silu(const AddSilu& args) override;
  void average(const Means& args) override;
  void spread_columns(const Columns& args) override;
  void add_columns(const Columns& args, FloatAddress base) override;
  void convolve_blocks(const Convolution& args) override;
  void step_cells(const CellStep& args) override;
  void rotate_and_store(const Attention& attention, const RowPlaces& places) override;
  void attend(const Attention& attention, std::span<const AttentionRow> rows, FloatAddress y) override;
  void read_entries(const Entries& entries, FloatAddress y) override;
  void run(BlockStep& step) override;

 private:
  // The backend that runs an operation. Its functions return the places of rows there.
  class Side {
   public:
    Side(LayerBackend& backend, MirroredRows& rows, bool is_host)
        : backend_(backend), rows_(rows), is_host_(is_host) {}

    LayerBackend* operator->() const { return &backend_; }
    bool is_host() const { return is_host_; }
    FloatAddress read(FloatAddress rows, int64_t count) const { return use(rows, count, RowUse::kRead); }
    FloatAddress write(FloatAddress rows, int64_t count) const { return use(rows, count, RowUse::kWrite); }
    FloatAddress change(FloatAddress rows, int64_t count) const { return use(rows, count, RowUse::kChange); }
    FloatAddress use(FloatAddress rows, int64_t count, RowUse use) const {
      if (is_host_) return rows_.use_on_host(rows, count, use);
      rows_.use_on_device(rows, count, use);
      return rows;
    }

   private:
    LayerBackend& backend_;
    MirroredRows& rows_;
    bool is_host_;
  };
  Side side(bool is_host) { return {is_host ? static_cast<LayerBackend&>(host_) : device_, rows_, is_host}; }
  Side side_of(const void* weights) { return side(kept_.contains(weights)); }
  Side side_of(FloatAddress rows, int64_t count) { return side(rows_.is_on_host(rows, count)); }
  // Where the norm is, or the rows that it is for where it has no weights.
  Side side_of(const Norm& norm, FloatAddress rows, int64_t count) {
    return norm.empty() ? side_of(rows, count) : side_of(&norm);
  }
  // Tables are in this machine's memory. Rows of others than allocate() have no place here.
  Side side_of_table(FloatAddress rows) { return side(rows_.has(rows)); }
  Side side_of(const KvCache& cache, int64_t layer);
  // The cache that the side's operations see.
  static KvCache* cache_at(const Side& at, KvCache* cache);

  int64_t token_size_;
  KeptWeights kept_;
  int64_t host_layers_;
  DeviceBackend device_;
  HostBackend& host_;  // of the device's backend, which has the weights
  MirroredRows rows_;
};

// The backend of a network of which the options place a part on this machine; else as make_device_backend().
// Errors also: ranks that share the network.
Result<std::unique_ptr<LayerBackend>> make_placed_backend(Device& device, const ModelConfig& config,
                                                          const ModelOptions& options,
                                                          const LoadWeights& load);

}  // namespace outrider
