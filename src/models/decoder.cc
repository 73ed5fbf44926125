// SPDX-License-Identifier: Apache-2.0
#include "models/decoder.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "base/check.h"

namespace outrider {
namespace {

// For a kernel called inside one worker's share.
constexpr Worker kAlone{0, 1};

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
      weights_(std::move(weights)) {}

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
  prepare(batch);
  embed(batch);
  add_and_normalize(nullptr, weights_.layers.front().attention_norm, batch.rows());
  for (int64_t i = 0; i < config_.layer_count; ++i) run_layer(batch, i, cache);
  return compute_logits(batch);
}

void Decoder::prepare(const ForwardBatch& batch) {
  const int64_t rows = batch.rows();
  hidden_.reserve(rows, config_.hidden_size);
  normed_.reserve(rows, config_.hidden_size);
  delta_.reserve(rows, config_.hidden_size);
  rotations_.reserve(rows, config_.head_dim);
  qkv_.reserve(rows, qkv_size());
  attended_.reserve(rows, q_size());
  gate_up_.reserve(rows, 2 * config_.ffn_size);
  gated_.reserve(rows, config_.ffn_size);
  logits_.reserve(static_cast<int64_t>(batch.logits_rows.size()), config_.vocab_size);
  attention_rows_.clear();
  for (size_t r = 0; r < static_cast<size_t>(rows); ++r) {
    const auto sequence = static_cast<size_t>(batch.sequences[r]);
    attention_rows_.push_back({.pages = batch.pages.data() + batch.page_begin[sequence],
                               .prefix_len = batch.prefix_len[r],
                               .tail = batch.tails.data() + batch.tail_begin[r],
                               .tail_len = batch.tail_begin[r + 1] - batch.tail_begin[r]});
  }
}

void Decoder::embed(const ForwardBatch& batch) {
  pool_->run([&](Worker worker) {
    const Range share = share_of(worker, batch.rows());
    for (int64_t r = share.begin; r < share.end; ++r) {
      const TokenId token = batch.tokens[static_cast<size_t>(r)];
      OUTRIDER_CHECK(token >= 0 && token < config_.vocab_size);
      weights_.embedding.read(token, hidden_.data() + r * config_.hidden_size);
      fill_rotations(batch.positions[static_cast<size_t>(r)], weights_.inverse_frequency,
                     rotations_.data() + r * config_.head_dim);
    }
  });
}

void Decoder::run_layer(const ForwardBatch& batch, int64_t index, KvCache& cache) {
  const int64_t rows = batch.rows();
  const DecoderLayer& layer = weights_.layers[static_cast<size_t>(index)];
  const bool last = index + 1 == config_.layer_count;
  const auto& next_norm =
      last ? weights_.final_norm : weights_.layers[static_cast<size_t>(index) + 1].attention_norm;

  project(layer.qkv, normed_.data(), qkv_.data(), rows);
  rotate_and_store(batch, layer, index, cache);
  attend(index, cache);
  project(layer.attention_output, attended_.data(), delta_.data(), rows);
  add_and_normalize(delta_.data(), layer.mlp_norm, rows);

  project(layer.gate_up, normed_.data(), gate_up_.data(), rows);
  pool_->run([&](Worker worker) {
    kernels_->swiglu(gate_up_.data(), gated_.data(), rows, config_.ffn_size, worker);
  });
  project(layer.down, gated_.data(), delta_.data(), rows);
  add_and_normalize(delta_.data(), next_norm, rows);
}

void Decoder::project(const Projection& projection, const float* x, float* y, int64_t rows) {
  const bool several = projection.parts.size() > 1;
  if (several) parts_.reserve(rows, projection.n);
  float* part_out = several ? parts_.data() : y;
  for (const PackedMatrix& part : projection.parts) {
    packed_x_.reserve(1, (input_bytes(part.inputs, rows, part.k) + 3) / 4);
    const LinearArgs args{.weights = &part,
                          .x = x,
                          .packed_x = reinterpret_cast<std::byte*>(packed_x_.data()),
                          .y = part_out,
                          .rows = rows};
    if (part.inputs != InputForm::kF32) {
      pool_->run([&](Worker worker) { kernels_->pack_inputs(args, worker); });
    }
    pool_->run([&](Worker worker) { kernels_->linear(args, worker); });
    part_out += rows * part.n;
  }
  if (!several && projection.bias.empty()) return;
  pool_->run([&](Worker worker) {
    const Range share = share_of(worker, rows);
    for (int64_t r = share.begin; r < share.end; ++r) {
      float* row = y + r * projection.n;
      if (several) {
        const float* in = parts_.data();
        float* out = row;
        for (const PackedMatrix& part : projection.parts) {
          out = std::copy_n(in + r * part.n, part.n, out);
          in += rows * part.n;
        }
      }
      for (size_t i = 0; i < projection.bias.size(); ++i) row[i] += projection.bias[i];
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
  pool_->run([&](Worker worker) {
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

std::span<const float> Decoder::compute_logits(const ForwardBatch& batch) {
  const auto wanted = static_cast<int64_t>(batch.logits_rows.size());
  if (wanted == 0) return {};
  const int64_t dim = config_.hidden_size;
  for (int64_t i = 0; i < wanted; ++i) {  // ascending, so moving the rows down in place is safe
    const int64_t row = batch.logits_rows[static_cast<size_t>(i)];
    if (row != i) std::copy_n(normed_.data() + row * dim, dim, normed_.data() + i * dim);
  }
  project(weights_.lm_head, normed_.data(), logits_.data(), wanted);
  return {logits_.data(), static_cast<size_t>(wanted * config_.vocab_size)};
}

}  // namespace outrider
