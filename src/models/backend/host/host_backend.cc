// SPDX-License-Identifier: Apache-2.0
#include "models/backend/host/host_backend.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "base/portable_math.h"

namespace outrider {
namespace {

float* at(FloatAddress numbers) { return reinterpret_cast<float*>(numbers.address()); }

// Names of this machine's own memory.
class LocalNames final : public HostNames {
 public:
  float* at(FloatAddress numbers) const override { return outrider::at(numbers); }
  const Block& own(const Block& block) const override { return block; }
  HostStates& states(StateStorage& storage) const override { return dynamic_cast<HostStates&>(storage); }
};

const LocalNames kLocalNames;

}  // namespace

HostBackend::HostBackend(ModelConfig config, const ModelOptions& options, DecoderWeights weights)
    : config_(std::move(config)),
      exchange_(options.part),
      own_tokens_(options.part.shard.of(config_.vocab_size)),
      ops_(options.kernels, options.pool, &exchange_),
      weights_(std::move(weights)),
      host_(ops_, kLocalNames, weights_.stream ? weights_.stream->experts() : nullptr) {}

// Weights are many, and are not visited in every pass.
void HostBackend::reserve(int64_t rows, int64_t logits_rows) {
  if (rows <= reserved_rows_ && logits_rows <= reserved_logits_rows_) return;
  reserved_rows_ = std::max(rows, reserved_rows_);
  reserved_logits_rows_ = std::max(logits_rows, reserved_logits_rows_);
  for (const LayerBlocks& layer : weights_.layers) {
    WeightList list;
    layer.list(list);
    for (const Projection* projection : list.projections) ops_.reserve(*projection, rows);
    for (const auto* block : {&layer.mixer, &layer.mlp}) (*block)->reserve(host_, rows);
  }
  ops_.reserve(weights_.input_projection, rows);
  if (weights_.layer_inputs) ops_.reserve(weights_.layer_inputs->projection, rows);
  for (const Projection* projection : {&weights_.output_projection, &weights_.lm_head})
    ops_.reserve(*projection, logits_rows);
}

std::unique_ptr<KvStorage> HostBackend::make_storage(const KvShape& shape) {
  return std::make_unique<HostPages>(shape);
}

FloatAddress HostBackend::allocate(int64_t count) {
  Buffer& buffer = memory_.emplace_back(static_cast<size_t>(count) * sizeof(float));
  return FloatAddress(reinterpret_cast<uintptr_t>(buffer.data()));
}

void HostBackend::release(FloatAddress numbers) {
  std::erase_if(memory_, [&](const Buffer& buffer) {
    return reinterpret_cast<uintptr_t>(buffer.data()) == numbers.address();
  });
}

void HostBackend::write(std::span<const float> numbers, FloatAddress to) {
  std::ranges::copy(numbers, at(to));
}

std::span<const float> HostBackend::read(FloatAddress from, int64_t count) {
  return {at(from), static_cast<size_t>(count)};
}

void HostBackend::copy(const RowCopy& copy) {
  float* to = at(copy.to);
  for (const int32_t row : copy.rows) {
    const float* from = at(copy.from) + row * copy.from_stride;
    if (from != to) std::copy_n(from, copy.dim, to);
    to += copy.to_stride;
  }
}

void HostBackend::copy_strided(const StridedCopy& copy) {
  for (int64_t row = 0; row < copy.rows; ++row)
    std::copy_n(at(copy.from) + row * copy.from_stride, copy.dim, at(copy.to) + row * copy.to_stride);
}

void HostBackend::clear(FloatAddress numbers, int64_t count) { std::fill_n(at(numbers), count, 0.0F); }

void HostBackend::send_states(FloatAddress states, int64_t count) {
  exchange_.send_states(read(states, count));
}

void HostBackend::receive_states(FloatAddress states, int64_t count) {
  exchange_.receive_states({at(states), static_cast<size_t>(count)});
}

void HostBackend::embed_token(TokenId token, float* out) const {
  if (token < own_tokens_.begin || token >= own_tokens_.end) return;
  unpack_row(weights_.embedding(), token - own_tokens_.begin, out);
  if (config_.scales.embedding == 1) return;
  const auto scale = static_cast<float>(config_.scales.embedding);
  for (int64_t i = 0; i < config_.token_size(); ++i) out[i] *= scale;
}

void HostBackend::embed(std::span<const TokenId> tokens, FloatAddress y) {
  const OperationTimer timer = ops_.time("embedding");
  const int64_t dim = config_.token_size();
  ops_.pool().run(ops_.shares_for(std::ssize(tokens) * dim), [&](Worker worker) {
    const Range share = share_of(worker, std::ssize(tokens));
    for (int64_t i = share.begin; i < share.end; ++i)
      embed_token(tokens[static_cast<size_t>(i)], at(y) + i * dim);
  });
  exchange_.share_rows_of_table(tokens, config_.vocab_size, at(y), dim);
}

void HostBackend::add_table_rows(const TableRows& args) {
  const int64_t dim = args.table->k;
  table_rows_.reserve(ops_.pool().size(), dim);
  ops_.pool().run(ops_.shares_for(std::ssize(args.rows) * dim), [&](Worker worker) {
    float* const row = table_rows_.data() + worker.index * dim;
    const Range share = share_of(worker, std::ssize(args.rows));
    for (int64_t r = share.begin; r < share.end; ++r) {
      unpack_row(*args.table, args.rows[static_cast<size_t>(r)], row);
      const float* x = at(args.x) + r * dim;
      float* y = at(args.y) + r * dim;
      for (int64_t i = 0; i < dim; ++i) y[i] = (x[i] + row[i] * args.scale) * args.share;
    }
  });
}

void HostBackend::project(const Projection& projection, FloatAddress x, FloatAddress y, int64_t rows) {
  ops_.project(projection, at(x), at(y), rows);
}

void HostBackend::normalize(FloatAddress x, const Norm& norm, FloatAddress y, int64_t rows) {
  ops_.normalize(at(x), norm, at(y), rows);
}

void HostBackend::add_and_normalize(const AddAndNormalize& args) {
  ops_.add_and_normalize({.x = at(args.x),
                          .delta = args.has_delta ? at(args.delta) : nullptr,
                          .norm = args.norm,
                          .y = at(args.y),
                          .rows = args.rows,
                          .dim = args.dim});
}

void HostBackend::activate(const Activate& args) {
  ops_.activate({.x = at(args.x),
                 .y = at(args.y),
                 .rows = args.rows,
                 .dim = args.dim,
                 .activation = args.activation,
                 .is_gated = args.is_gated});
}

void HostBackend::normalize_parts(FloatAddress x, std::span<const Norm> parts, FloatAddress y, int64_t rows) {
  ops_.normalize_parts(at(x), parts, at(y), rows);
}

void HostBackend::add(FloatAddress y, FloatAddress x, int64_t count) { ops_.add(at(y), at(x), count); }
void HostBackend::scale(float factor, FloatAddress x, int64_t count) { ops_.scale(factor, at(x), count); }
void HostBackend::gate(FloatAddress gates, FloatAddress x, int64_t count) {
  ops_.gate(at(gates), at(x), count);
}
void HostBackend::softcap(FloatAddress x, int64_t count, float cap) { ops_.softcap(at(x), count, cap); }
void HostBackend::clamp(float limit, FloatAddress x, int64_t count) { ops_.clamp(limit, at(x), count); }

void HostBackend::gate_rows(FloatAddress gates, FloatAddress x, int64_t rows, int64_t dim) {
  for (int64_t r = 0; r < rows; ++r) {
    float* row = at(x) + r * dim;
    const float factor = portable_sigmoid(at(gates)[r]);
    for (int64_t d = 0; d < dim; ++d) row[d] *= factor;
  }
}

void HostBackend::multiply_rows(const RowProduct& args) {
  float* x = at(args.x);
  for (const int32_t row : args.rows) {
    const float* factors = at(args.factors) + row * args.stride;
    for (int64_t d = 0; d < args.dim; ++d) x[d] *= factors[d];
    x += args.dim;
  }
}

void HostBackend::look_up(const PackedMatrix& table, std::span<const int32_t> rows, FloatAddress y) {
  ops_.pool().run(ops_.shares_for(std::ssize(rows) * table.k), [&](Worker worker) {
    const Range share = share_of(worker, std::ssize(rows));
    for (int64_t i = share.begin; i < share.end; ++i)
      unpack_row(table, rows[static_cast<size_t>(i)], at(y) + i * table.k);
  });
}

void HostBackend::project_rows(const PackedMatrix& table, std::span<const int32_t> rows, FloatAddress x,
                               FloatAddress y) {
  table_rows_.reserve(1, table.k);
  float* const row = table_rows_.data();
  for (size_t i = 0; i < rows.size(); ++i) {
    unpack_row(table, rows[i], row);
    at(y)[i] = std::inner_product(row, row + table.k, at(x), 0.0F);
  }
}

void HostBackend::add_silu(const AddSilu& args) {
  ops_.pool().run(ops_.shares_for(args.rows * args.groups * args.dim), [&](Worker worker) {
    const Range share = share_of(worker, args.rows * args.groups);
    for (int64_t i = share.begin; i < share.end; ++i) {
      const int64_t row = i % args.rows, group = i / args.rows;
      const float* x = at(args.x) + (row * args.groups + group) * args.dim;
      const float* residual = at(args.residual) + row * args.dim;
      float* y = at(args.y) + i * args.dim;
      for (int64_t d = 0; d < args.dim; ++d) y[d] = residual[d] + x[d] / (1.0F + portable_exp(-x[d]));
    }
  });
}

void HostBackend::average(const Means& args) {
  clear(args.y, args.rows * args.dim);
  for (int64_t row = 0; row < args.rows * args.count; ++row) {
    const float* x = at(args.x) + row * args.dim;
    float* sum = at(args.y) + row / args.count * args.dim;
    for (int64_t d = 0; d < args.dim; ++d) sum[d] += x[d] / static_cast<float>(args.count);
  }
}

void HostBackend::spread_columns(const Columns& args) {
  ops_.pool().run(ops_.shares_for(args.rows * args.width), [&](Worker worker) {
    const Range share = share_of(worker, args.rows);
    for (int64_t row = share.begin; row < share.end; ++row) {
      const float* x = at(args.x) + row * args.count;
      float* y = at(args.y) + row * args.width;
      std::fill_n(y, args.width, -std::numeric_limits<float>::infinity());
      for (int64_t i = 0; i < args.count; ++i) y[args.columns[static_cast<size_t>(i)]] = x[i];
    }
  });
}

void HostBackend::add_columns(const Columns& args, FloatAddress base) {
  for (int64_t row = 0; row < args.rows; ++row) {
    const float* x = at(args.x) + row * args.count;
    float* y = at(args.y) + row * args.width;
    std::copy_n(at(base) + row % args.base_rows * args.width, args.width, y);
    for (int64_t i = 0; i < args.count; ++i)
      y[args.columns.empty() ? i : int64_t{args.columns[static_cast<size_t>(i)]}] += x[i];
  }
}

// From the last place of a block to its first, so that a place is read by later ones before it changes.
void HostBackend::convolve_blocks(const Convolution& args) {
  const int64_t groups = args.dim / args.group;
  for (int64_t row = args.rows - 1; row >= 0; --row) {
    const int64_t taps = std::min(args.taps, row % args.block + 1);
    const float* const weights = at(args.weights) + row * args.weight_stride;
    float* const x = at(args.x) + row * args.dim;
    for (int64_t channel = 0; channel < args.dim; ++channel) {
      float sum = 0.0F;
      for (int64_t tap = 0; tap < taps; ++tap) {
        const float weight = args.base[static_cast<size_t>(tap * args.dim + channel)] +
                             weights[tap * groups + channel / args.group];
        sum += weight * x[channel - tap * args.dim];
      }
      x[channel] = sum;
    }
  }
}

void HostBackend::step_cells(const CellStep& args) {
  const auto tanh_of = [](float x) { return 2 * portable_sigmoid(2 * x) - 1; };
  for (int64_t i = 0; i < args.rows * args.dim; ++i) {
    const float* const own = at(args.x) + i / args.dim * 3 * args.dim + i % args.dim;
    const float gate = portable_sigmoid(own[0]);
    at(args.cells)[i] = gate * at(args.before)[i] + (1 - gate) * tanh_of(own[args.dim]);
    at(args.y)[i] = tanh_of(own[2 * args.dim]);
  }
}

void HostBackend::read_entries(const Entries& entries, FloatAddress y) {
  const KvShape& shape = entries.cache->shape();
  const KvHeads heads = shape.heads(entries.layers.begin);
  const int64_t parts = shape.values_are_keys ? 1 : 2;
  const int64_t layers = entries.layers.end - entries.layers.begin;
  const int64_t rows = std::ssize(entries.slots) * layers;
  ops_.pool().run(ops_.shares_for(rows * heads.dim), [&](Worker worker) {
    const Range share = share_of(worker, rows);
    for (int64_t row = share.begin; row < share.end; ++row) {
      KvRow entry{.layer = entries.layers.begin + row % layers,
                  .slot = entries.slots[static_cast<size_t>(row / layers)]};
      float* const out = at(y) + row * parts * heads.count * heads.dim;
      entries.cache->storage().read(entry, out, parts * heads.dim);
      if (parts == 1) continue;
      entry.part = KvPart::kValues;
      entries.cache->storage().read(entry, out + heads.dim, parts * heads.dim);
    }
  });
}

void HostBackend::rotate_and_store(const Attention& attention, const RowPlaces& places) {
  ops_.rotate_and_store(*attention.shape, {.qkv = at(attention.qkv),
                                           .rows = places.rows,
                                           .slots = places.slots,
                                           .rotations = places.rotations,
                                           .query_factors = places.query_factors.numbers,
                                           .q_norm = attention.q_norm,
                                           .k_norm = attention.k_norm,
                                           .v_norm = attention.v_norm,
                                           .cache = attention.cache,
                                           .layer = attention.layer});
}

void HostBackend::attend(const Attention& attention, std::span<const AttentionRow> rows, FloatAddress y) {
  ops_.attend(*attention.shape, {.qkv = at(attention.qkv),
                                 .rows = rows,
                                 .cache = attention.cache,
                                 .layer = attention.layer,
                                 .sinks = attention.sinks,
                                 .y = at(y)});
}

Result<std::unique_ptr<LayerBackend>> make_host_backend(const ModelConfig& config,
                                                        const ModelOptions& options,
                                                        const LoadWeights& load) {
  OUTRIDER_TRY(DecoderWeights weights, load());
  return std::unique_ptr<LayerBackend>(std::make_unique<HostBackend>(config, options, std::move(weights)));
}

}  // namespace outrider
