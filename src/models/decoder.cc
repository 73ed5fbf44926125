// SPDX-License-Identifier: Apache-2.0
#include "models/decoder.h"

#include <algorithm>
#include <new>
#include <string>
#include <string_view>
#include <utility>

#include "base/check.h"

namespace outrider {
namespace {

// For a kernel called inside one worker's share.
constexpr Worker kAlone{0, 1};

// Numbers of an element-wise stage from which on handing half of it over (about 0.5 us) saves time.
constexpr int64_t kWorthSharing = 4096;

void move_row(float* rows, int64_t dim, size_t from, size_t to) {
  std::copy_n(rows + static_cast<int64_t>(from) * dim, dim, rows + static_cast<int64_t>(to) * dim);
}

struct RowOf {
  int64_t row;
  int64_t rows;
};

// Gathers one row of the parts [rows, part.n], which stand one after the other.
void join_parts(const Projection& projection, const float* parts, RowOf which, float* out) {
  for (const PackedMatrix& part : projection.parts) {
    out = std::copy_n(parts + which.row * part.n, part.n, out);
    parts += which.rows * part.n;
  }
}

Status check_use(const ModelFile& file, std::string_view what, DecoderTraits::Use use, bool asked) {
  if (use == DecoderTraits::Use::kOptional || asked == (use == DecoderTraits::Use::kAlways)) return {};
  return input_error(file.path.string() + ": expected a " + file.config.family + " model " +
                     (asked ? "without " : "with ") + std::string(what) + ", found one " +
                     (asked ? "with it" : "without") + "; this variant is not supported");
}

Status check_traits(const ModelFile& file, const DecoderTraits& traits) {
  const ModelConfig& config = file.config;
  OUTRIDER_RETURN_IF_ERROR(
      check_use(file, "biases of queries, keys and values", traits.qkv_bias, config.qkv_bias));
  OUTRIDER_RETURN_IF_ERROR(
      check_use(file, "a bias of the attention output", traits.output_bias, config.output_bias));
  OUTRIDER_RETURN_IF_ERROR(check_use(file, "biases of the MLP", traits.mlp_bias, config.mlp_bias));
  return check_use(file, "norms of queries and keys", traits.qk_norm, config.qk_norm);
}

}  // namespace

Result<std::unique_ptr<Model>> load_decoder(const ModelFile& file, const ModelOptions& options,
                                            const DecoderTraits& traits) {
  OUTRIDER_RETURN_IF_ERROR(validate(file.config));
  OUTRIDER_RETURN_IF_ERROR(check_traits(file, traits));
  OUTRIDER_TRY(DecoderWeights weights, load_decoder_weights(file, options));
  return std::unique_ptr<Model>(std::make_unique<Decoder>(file.config, options, std::move(weights)));
}

Decoder::Decoder(ModelConfig config, const ModelOptions& options, DecoderWeights weights)
    : config_(std::move(config)),
      kernels_(options.kernels),
      pool_(options.pool),
      weights_(std::move(weights)) {
  for (const DecoderLayer& layer : weights_.layers) {
    for (const auto* projection : {&layer.qkv, &layer.attention_output, &layer.gate_up, &layer.down}) {
      if (projection->parts.size() > 1) widest_split_ = std::max(widest_split_, projection->n);
    }
  }
}

KvShape Decoder::kv_shape() const {
  return {.layer_count = config_.layer_count,
          .kv_head_count = config_.kv_head_count,
          .head_dim = config_.head_dim,
          .page_count = 0};
}

std::span<const float> Decoder::forward(const ForwardBatch& batch, KvCache& cache) {
  if (batch.rows() == 0) return {};
  OUTRIDER_CHECK(cache.shape().layer_count == config_.layer_count &&
                 cache.shape().kv_head_count == config_.kv_head_count &&
                 cache.shape().head_dim == config_.head_dim);
  const auto wanted = static_cast<int64_t>(batch.logits_rows.size());
  grow(batch.rows(), wanted);
  list_attention_rows(batch);
  embed(batch);
  add_and_normalize(nullptr, weights_.layers.front().attention_norm, batch.rows());
  for (int64_t i = 0; i < config_.layer_count; ++i) run_layer(batch, i, cache);
  if (wanted == 0) return {};
  project(weights_.lm_head, normed_.data(), logits_.data(), wanted);
  return {logits_.data(), static_cast<size_t>(wanted * config_.vocab_size)};
}

Status Decoder::reserve(int64_t rows, int64_t logits_rows) {
  try {
    grow(rows, logits_rows);
  } catch (const std::bad_alloc&) {
    return resource_error("not enough memory for a pass over " + std::to_string(rows) + " tokens, " +
                          std::to_string(logits_rows) +
                          " of them with logits; lower the prefill chunk, the batch or the draft length");
  }
  return {};
}

void Decoder::grow(int64_t rows, int64_t logits_rows) {
  hidden_.reserve(rows, config_.hidden_size);
  normed_.reserve(rows, config_.hidden_size);
  delta_.reserve(rows, config_.hidden_size);
  rotations_.reserve(rows, config_.head_dim);
  qkv_.reserve(rows, qkv_size());
  attended_.reserve(rows, q_size());
  gate_up_.reserve(rows, 2 * config_.ffn_size);
  gated_.reserve(rows, config_.ffn_size);
  parts_.reserve(rows, widest_split_);
  logits_.reserve(logits_rows, config_.vocab_size);
  attention_rows_.reserve(static_cast<size_t>(rows));
  int64_t packed = 0;  // bytes
  const auto count = [&](const Projection& projection, int64_t projected_rows) {
    for (const PackedMatrix& part : projection.parts)
      packed = std::max(packed, input_bytes(part.inputs, projected_rows, part.k));
  };
  for (const DecoderLayer& layer : weights_.layers) {
    for (const auto* projection : {&layer.qkv, &layer.attention_output, &layer.gate_up, &layer.down}) {
      count(*projection, rows);
    }
  }
  count(weights_.lm_head, logits_rows);
  packed_x_.reserve(1, (packed + 3) / 4);
}

void Decoder::list_attention_rows(const ForwardBatch& batch) {
  attention_rows_.clear();
  for (size_t r = 0; r < static_cast<size_t>(batch.rows()); ++r) {
    const auto sequence = static_cast<size_t>(batch.sequences[r]);
    attention_rows_.push_back({.pages = batch.pages.data() + batch.page_begin[sequence],
                               .prefix_len = batch.prefix_len[r],
                               .tail = batch.tails.data() + batch.tail_begin[r],
                               .tail_len = batch.tail_begin[r + 1] - batch.tail_begin[r]});
  }
}

void Decoder::embed(const ForwardBatch& batch) {
  pool_->run(shares_for(batch.rows() * config_.hidden_size), [&](Worker worker) {
    const Range share = share_of(worker, batch.rows());
    for (int64_t r = share.begin; r < share.end; ++r) {
      const TokenId token = batch.tokens[static_cast<size_t>(r)];
      OUTRIDER_CHECK(token >= 0 && token < config_.vocab_size);
      unpack_row(weights_.embedding(), token, hidden_.data() + r * config_.hidden_size);
      fill_rotations(batch.positions[static_cast<size_t>(r)], weights_.inverse_frequency,
                     rotations_.data() + r * config_.head_dim);
    }
  });
}

void Decoder::run_layer(const ForwardBatch& batch, int64_t index, KvCache& cache) {
  const DecoderLayer& layer = weights_.layers[static_cast<size_t>(index)];
  const bool last = index + 1 == config_.layer_count;
  const auto& next_norm =
      last ? weights_.final_norm : weights_.layers[static_cast<size_t>(index) + 1].attention_norm;

  project(layer.qkv, normed_.data(), qkv_.data(), batch.rows());
  rotate_and_store(batch, layer, index, cache);
  if (last) keep_wanted_rows(batch);
  const auto rows = static_cast<int64_t>(attention_rows_.size());
  if (rows == 0) return;
  attend(index, cache);
  project(layer.attention_output, attended_.data(), delta_.data(), rows);
  add_and_normalize(delta_.data(), layer.mlp_norm, rows);

  project(layer.gate_up, normed_.data(), gate_up_.data(), rows);
  pool_->run(shares_for(rows * config_.ffn_size), [&](Worker worker) {
    kernels_->swiglu(gate_up_.data(), gated_.data(), rows, config_.ffn_size, worker);
  });
  project(layer.down, gated_.data(), delta_.data(), rows);
  add_and_normalize(delta_.data(), next_norm, rows);
}

// Once the last layer has stored its keys and values, nothing depends any more on rows without logits.
void Decoder::keep_wanted_rows(const ForwardBatch& batch) {
  size_t kept = 0;
  for (const int32_t row : batch.logits_rows) {  // ascending, so moving rows down in place is safe
    const auto from = static_cast<size_t>(row);
    if (from != kept) {
      attention_rows_[kept] = attention_rows_[from];
      move_row(qkv_.data(), qkv_size(), from, kept);
      move_row(hidden_.data(), config_.hidden_size, from, kept);
    }
    ++kept;
  }
  attention_rows_.resize(kept);
}

// Which worker does a share never changes its bits, so that the number of shares is free.
int Decoder::shares_for(int64_t numbers) const { return numbers < kWorthSharing ? 1 : pool_->size(); }

void Decoder::project(const Projection& projection, const float* x, float* y, int64_t rows) {
  // Parts of one row stand side by side as they are.
  const bool split = projection.parts.size() > 1 && rows > 1;
  float* parts = split ? parts_.data() : y;
  float* out = parts;
  for (size_t begin = 0, end = 0; begin < projection.parts.size(); begin = end) {
    // Neighbours that read the inputs in one form share a stage.
    int64_t features = 0;
    for (; end < projection.parts.size() && projection.parts[end].inputs == projection.parts[begin].inputs;
         ++end)
      features += projection.parts[end].n;
    multiply(std::span(projection.parts).subspan(begin, end - begin), x, out, rows);
    out += rows * features;
  }
  if (!split && projection.bias.empty()) return;
  pool_->run(shares_for(rows * projection.n), [&](Worker worker) {
    const Range share = share_of(worker, rows);
    for (int64_t r = share.begin; r < share.end; ++r) {
      float* row = y + r * projection.n;
      if (split) join_parts(projection, parts, {r, rows}, row);
      for (size_t i = 0; i < projection.bias.size(); ++i) row[i] += projection.bias[i];
    }
  });
}

void Decoder::multiply(std::span<const PackedMatrix> parts, const float* x, float* y, int64_t rows) {
  LinearArgs args{.weights = &parts.front(),
                  .x = x,
                  .packed_x = reinterpret_cast<std::byte*>(packed_x_.data()),
                  .y = y,
                  .rows = rows};
  if (parts.front().inputs != InputForm::kF32) {
    pool_->run(shares_for(rows * parts.front().k),
               [&](Worker worker) { kernels_->pack_inputs(args, worker); });
  }
  pool_->run([&](Worker worker) {
    LinearArgs part_args = args;
    for (const PackedMatrix& part : parts) {
      part_args.weights = &part;
      kernels_->linear(part_args, worker);
      part_args.y += rows * part.n;
    }
  });
}

void Decoder::rotate_and_store(const ForwardBatch& batch, const DecoderLayer& layer, int64_t index,
                               KvCache& cache) {
  const int64_t dim = config_.head_dim;
  const auto store = [&](const float* x, std::byte* rows, int64_t slot) {
    kernels_->store_kv({.x = x,
                        .out = rows + slot * cache.shape().row_bytes(),
                        .type = cache.shape().type,
                        .heads = config_.kv_head_count,
                        .head_dim = dim});
  };
  const auto normalize_heads = [&](float* x, const std::vector<float>& norm, int64_t heads) {
    if (norm.empty()) return;
    kernels_->rms_norm({x, norm.data(), x, heads, dim, config_.rms_epsilon}, kAlone);
  };
  pool_->run([&](Worker worker) {
    const Range share = share_of(worker, batch.rows());
    for (int64_t r = share.begin; r < share.end; ++r) {
      float* q = qkv_.data() + r * qkv_size();
      float* k = q + q_size();
      const float* v = k + kv_size();
      normalize_heads(q, layer.q_norm, config_.head_count);
      normalize_heads(k, layer.k_norm, config_.kv_head_count);
      kernels_->rope({.x = q,  // the heads of k follow those of q
                      .rotations = rotations_.data() + r * dim,
                      .rows = 1,
                      .heads = config_.head_count + config_.kv_head_count,
                      .head_dim = dim},
                     kAlone);
      const int64_t slot = batch.slots[static_cast<size_t>(r)];
      store(k, cache.keys(index), slot);
      store(v, cache.values(index), slot);
    }
  });
}

void Decoder::attend(int64_t index, KvCache& cache) {
  const AttentionArgs args{.q = qkv_.data(),
                           .q_stride = qkv_size(),
                           .k = cache.keys(index),
                           .v = cache.values(index),
                           .kv_type = cache.shape().type,
                           .y = attended_.data(),
                           .rows = attention_rows_,
                           .head_count = config_.head_count,
                           .kv_head_count = config_.kv_head_count,
                           .head_dim = config_.head_dim,
                           .page_size = cache.shape().page_size,
                           .window = config_.sliding_window};
  pool_->run([&](Worker worker) { kernels_->attention(args, worker); });
}

void Decoder::add_and_normalize(const float* delta, const std::vector<float>& norm, int64_t rows) {
  const int64_t dim = config_.hidden_size;
  pool_->run(shares_for(rows * dim), [&](Worker worker) {
    const Range share = share_of(worker, rows);
    float* hidden = hidden_.data();
    if (delta != nullptr) {
      for (int64_t i = share.begin * dim; i < share.end * dim; ++i) hidden[i] += delta[i];
    }
    kernels_->rms_norm({.x = hidden + share.begin * dim,
                        .weight = norm.data(),
                        .y = normed_.data() + share.begin * dim,
                        .rows = share.end - share.begin,
                        .dim = dim,
                        .epsilon = config_.rms_epsilon},
                       kAlone);
  });
}

}  // namespace outrider
