// SPDX-License-Identifier: Apache-2.0
#include "models/backend/host_backend.h"

#include <algorithm>
#include <cmath>
#include <utility>

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

void HostBackend::share_embedding(std::span<const TokenId> tokens, float* rows) {
  const Shard& shard = exchange_.part().shard;
  if (shard.is_whole()) return;
  const std::vector<Range> cut = shard.cut(config_.vocab_size);
  std::vector<int> owners;
  for (const TokenId token : tokens) {
    const auto owner = std::ranges::find_if(cut, [&](const Range& range) { return token < range.end; });
    owners.push_back(static_cast<int>(owner - cut.begin()));
  }
  exchange_.share_rows(owners, rows, config_.token_size());
}

void HostBackend::embed(std::span<const TokenId> tokens, FloatAddress y) {
  const OperationTimer timer = ops_.time("embedding");
  const int64_t dim = config_.token_size();
  ops_.pool().run(ops_.shares_for(std::ssize(tokens) * dim), [&](Worker worker) {
    const Range share = share_of(worker, std::ssize(tokens));
    for (int64_t i = share.begin; i < share.end; ++i)
      embed_token(tokens[static_cast<size_t>(i)], at(y) + i * dim);
  });
  share_embedding(tokens, at(y));
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
    const float factor = 1 / (1 + std::exp(-at(gates)[r]));
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

void HostBackend::rotate_and_store(const Attention& attention, const RowPlaces& places) {
  ops_.rotate_and_store(*attention.shape, {.qkv = at(attention.qkv),
                                           .rows = places.rows,
                                           .slots = places.slots,
                                           .rotations = places.rotations,
                                           .query_factors = places.query_factors,
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

}  // namespace outrider
