// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "models/backend/block_step.h"
#include "models/backend/host/host.h"
#include "models/backend/layer_backend.h"
#include "models/decoder_weights.h"

namespace outrider {

// The processors of this machine: rows, weights and cached entries (HostPages) lie in its memory.
class HostBackend final : public LayerBackend {
 public:
  HostBackend(ModelConfig config, const ModelOptions& options, DecoderWeights weights);

  const DecoderWeights& weights() const override { return weights_; }
  std::unique_ptr<KvStorage> make_storage(const KvShape& shape) override;
  void measure_into(PassProfile* profile) override { ops_.measure_into(profile); }
  void reserve(int64_t rows, int64_t logits_rows) override;

  void reserve_product(const Projection& projection, int64_t rows) override {
    ops_.reserve(projection, rows);
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
  void run(BlockStep& step) override { step.run(host_); }

  Host& host() { return host_; }

 private:
  // Row `token` of the embedding table, scaled [token_size], where this shard has it.
  void embed_token(TokenId token, float* out) const;

  ModelConfig config_;
  ShardExchange exchange_;
  Range own_tokens_;  // tokens with rows of embedding and output head in this shard
  LayerOps ops_;
  DecoderWeights weights_;
  Host host_;
  int64_t reserved_rows_ = 0, reserved_logits_rows_ = 0;
  Scratch table_rows_;          // [workers, numbers of a row]
  std::vector<Buffer> memory_;  // allocated and not released
};

// Makes the backend of a BackendKind.
Result<std::unique_ptr<LayerBackend>> make_host_backend(const ModelConfig& config,
                                                        const ModelOptions& options, const LoadWeights& load);

}  // namespace outrider
