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
      weights_(std::move(weights)),
      whole_{.count = config_.layer_count, .skip_attention = {}, .skip_mlp = {}} {
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

SubsetOutput Decoder::forward_subset(const ForwardBatch& batch, KvCache& cache, const LayerSubset& layers) {
  OUTRIDER_CHECK(layers.count >= 1 && layers.count <= config_.layer_count);
  OUTRIDER_CHECK(batch.logits_rows.size() == batch.tokens.size() && batch.resumed_rows.empty());
  return run(batch, cache, layers);
}

SubsetOutput Decoder::run(const ForwardBatch& batch, KvCache& cache, const LayerSubset& layers) {
  if (batch.rows() == 0) return {};
  OUTRIDER_CHECK(cache.shape().layer_count == config_.layer_count &&
                 cache.shape().kv_head_count == config_.kv_head_count &&
                 cache.shape().head_dim == config_.head_dim);
  const bool is_resumed = !batch.resumed_rows.empty();
  OUTRIDER_CHECK(!is_resumed || (batch.resume_layer >= 1 && batch.resume_layer < layers.count));
  const auto wanted = static_cast<int64_t>(batch.logits_rows.size());
  grow(batch.rows(), wanted);
  list_rows(batch, !is_resumed);
  embed(batch);
  for (int64_t i = 0; i < layers.count; ++i) {
    if (is_resumed && i == batch.resume_layer) resume(batch);
    if (layers.runs_attention(i)) run_attention(batch, i, i + 1 == layers.count, cache);
    if (layers.runs_mlp(i)) run_mlp(weights_.layers[static_cast<size_t>(i)]);
  }
  if (wanted == 0) return {};
  add_and_normalize(weights_.final_norm);
  project(weights_.lm_head, normed_.data(), logits_.data(), wanted);
  return {.logits = {logits_.data(), static_cast<size_t>(wanted * config_.vocab_size)},
          .states = {hidden_.data(), static_cast<size_t>(wanted * config_.hidden_size)}};
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
  rows_.reserve(static_cast<size_t>(rows));
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

void Decoder::list_rows(const ForwardBatch& batch, bool with_resumed) {
  rows_.clear();
  attention_rows_.clear();
  auto resumed = batch.resumed_rows.begin();
  for (int32_t row = 0; row < batch.rows(); ++row) {
    if (!with_resumed && resumed != batch.resumed_rows.end() && *resumed == row) {
      ++resumed;
      continue;
    }
    const auto r = static_cast<size_t>(row);
    const auto sequence = static_cast<size_t>(batch.sequences[r]);
    rows_.push_back(row);
    attention_rows_.push_back({.pages = batch.pages.data() + batch.page_begin[sequence],
                               .prefix_len = batch.prefix_len[r],
                               .tail = batch.tails.data() + batch.tail_begin[r],
                               .tail_len = batch.tail_begin[r + 1] - batch.tail_begin[r]});
  }
}

void Decoder::embed(const ForwardBatch& batch) {
  is_delta_pending_ = false;
  pool_->run(shares_for(batch.rows() * config_.hidden_size), [&](Worker worker) {
    const Range share = share_of(worker, batch.rows());
    for (int64_t r = share.begin; r < share.end; ++r) {
      fill_rotations(batch.positions[static_cast<size_t>(r)], weights_.inverse_frequency,
                     rotations_.data() + r * config_.head_dim);
    }
    const Range computed = share_of(worker, row_count());
    for (int64_t i = computed.begin; i < computed.end; ++i) {
      const TokenId token = batch.tokens[static_cast<size_t>(rows_[static_cast<size_t>(i)])];
      OUTRIDER_CHECK(token >= 0 && token < config_.vocab_size);
      unpack_row(weights_.embedding(), token, hidden_.data() + i * config_.hidden_size);
    }
  });
}

void Decoder::resume(const ForwardBatch& batch) {
  const int64_t dim = config_.hidden_size;
  auto resumed = static_cast<int64_t>(batch.resumed_rows.size());
  OUTRIDER_CHECK(static_cast<int64_t>(batch.resumed_states.size()) == resumed * dim);
  int64_t computed = row_count();
  // From the end, so that moving rows up in place is safe.
  for (int64_t row = batch.rows() - 1; row >= 0; --row) {
    float* hidden = hidden_.data() + row * dim;
    if (resumed > 0 && batch.resumed_rows[static_cast<size_t>(resumed - 1)] == row) {
      std::copy_n(batch.resumed_states.data() + --resumed * dim, dim, hidden);
      continue;
    }
    const float* from = hidden_.data() + --computed * dim;
    const float* delta = delta_.data() + computed * dim;
    for (int64_t i = 0; i < dim; ++i) hidden[i] = from[i] + delta[i];
  }
  OUTRIDER_CHECK(resumed == 0 && computed == 0);
  is_delta_pending_ = false;
  list_rows(batch, true);
}

void Decoder::run_attention(const ForwardBatch& batch, int64_t index, bool is_last, KvCache& cache) {
  if (row_count() == 0) return;
  const DecoderLayer& layer = weights_.layers[static_cast<size_t>(index)];
  add_and_normalize(layer.attention_norm);
  project(layer.qkv, normed_.data(), qkv_.data(), row_count());
  rotate_and_store(batch, layer, index, cache);
  if (is_last) keep_wanted_rows(batch);
  if (row_count() == 0) return;
  attend(index, cache);
  project(layer.attention_output, attended_.data(), delta_.data(), row_count());
  is_delta_pending_ = true;
}

void Decoder::run_mlp(const DecoderLayer& layer) {
  const int64_t rows = row_count();
  if (rows == 0) return;
  add_and_normalize(layer.mlp_norm);
  project(layer.gate_up, normed_.data(), gate_up_.data(), rows);
  pool_->run(shares_for(rows * config_.ffn_size), [&](Worker worker) {
    kernels_->swiglu(gate_up_.data(), gated_.data(), rows, config_.ffn_size, worker);
  });
  project(layer.down, gated_.data(), delta_.data(), rows);
  is_delta_pending_ = true;
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
    const Range share = share_of(worker, row_count());
    for (int64_t i = share.begin; i < share.end; ++i) {
      const int64_t row = rows_[static_cast<size_t>(i)];
      float* q = qkv_.data() + i * qkv_size();
      float* k = q + q_size();
      const float* v = k + kv_size();
      normalize_heads(q, layer.q_norm, config_.head_count);
      normalize_heads(k, layer.k_norm, config_.kv_head_count);
      kernels_->rope({.x = q,  // the heads of k follow those of q
                      .rotations = rotations_.data() + row * dim,
                      .rows = 1,
                      .heads = config_.head_count + config_.kv_head_count,
                      .head_dim = dim},
                     kAlone);
      const int64_t slot = batch.slots[static_cast<size_t>(row)];
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

void Decoder::add_and_normalize(const std::vector<float>& norm) {
  const int64_t dim = config_.hidden_size;
  pool_->run(shares_for(row_count() * dim), [&](Worker worker) {
    const Range share = share_of(worker, row_count());
    float* hidden = hidden_.data();
    if (is_delta_pending_) {
      for (int64_t i = share.begin * dim; i < share.end * dim; ++i) hidden[i] += delta_.data()[i];
    }
    kernels_->rms_norm({.x = hidden + share.begin * dim,
                        .weight = norm.data(),
                        .y = normed_.data() + share.begin * dim,
                        .rows = share.end - share.begin,
                        .dim = dim,
                        .epsilon = config_.rms_epsilon},
                       kAlone);
  });
  is_delta_pending_ = false;
}

}  // namespace outrider
