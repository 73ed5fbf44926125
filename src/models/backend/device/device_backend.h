// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "models/backend/block_step.h"
#include "models/backend/device/device_ops.h"
#include "models/backend/device/pass_lists.h"
#include "models/backend/host/host_backend.h"

namespace outrider {

// A device with its own memory: rows, entries and states lie there, and layers are launches of its kernels.
// Rows of tables beside the embedding are read on this machine.
class DeviceBackend final : public LayerBackend {
 public:
  // The device must outlive the backend. kept: projections that this machine keeps, and no operation names.
  // Throws std::bad_alloc when the device has no room for the weights.
  DeviceBackend(Device& device, const ModelConfig& config, const ModelOptions& options,
                DecoderWeights weights, const std::unordered_set<const void*>& kept = {});
  ~DeviceBackend() override;

  const DecoderWeights& weights() const override { return host_.weights(); }
  std::unique_ptr<KvStorage> make_storage(const KvShape& shape) override;
  std::optional<int64_t> free_bytes() const override { return device_.free_bytes(); }
  void wait() override { device_.wait(); }
  std::optional<DeviceCounts> device_counts() const override { return device_.counts(); }
  std::optional<double> device_copy_ms(int64_t bytes) override;
  void measure_into(PassProfile* profile) override;
  // Passes whose operations are measured are ordered one by one.
  bool repeats(const ForwardBatch& batch) const override {
    return profile_ == nullptr && !ops_.records() && lists_.takes(batch);
  }
  void repeat(const RepeatedPass& pass) override;
  std::string_view repeat_problem() const override { return lists_.problem(); }
  void link() override { ranks_.link(); }
  void reserve(int64_t /*rows*/, int64_t /*logits_rows*/) override {}
  void reserve_product(const Projection& /*projection*/, int64_t /*rows*/) override {}

  // From now on operations go to the end of the list, for these rows, and read() returns nothing; null: they
  // run at once.
  void record(const RecordedRows* rows, DeviceList* list) { ops_.record(rows, list); }
  // Changes whenever a list recorded before may name memory that is gone.
  int64_t moves() const { return ops_.moves(); }
  Launcher& launcher() { return ops_.launcher(); }
  // This machine, with the weights that were kept.
  HostBackend& host() { return host_; }
  // Whether no other rank has a part of the network.
  bool has_all() const { return ranks_.part().is_whole(); }
  RankLinks& ranks() { return ranks_; }

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
  class OnHost;
  class Timer;
  struct Measured {
    std::string_view name;
    OperationCost cost;
    int64_t begin, end;  // moments of the device
  };

  // Brings the matrices to the device, and gives this machine's memory of them back, but for `kept` ones.
  DecoderWeights uploaded(DecoderWeights weights, const std::unordered_set<const void*>& kept);

  // Waits for the operations that were measured, and adds their times to the profile.
  void settle_measured();

  Device& device_;
  RankLinks ranks_;
  DividedTable embedding_;
  DeviceOps ops_;
  float embedding_scale_;
  HostBackend host_;  // has the weights that this backend shows; of matrices, only tables of rows are there
  PassProfile* profile_ = nullptr;
  std::vector<Measured> measured_;                        // whose times are not in the profile yet
  std::map<uintptr_t, int64_t> allocated_;                // numbers
  std::map<uintptr_t, std::vector<float>> read_numbers_;  // by their places
  PassLists lists_;
};

}  // namespace outrider
