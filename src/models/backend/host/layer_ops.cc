// SPDX-License-Identifier: Apache-2.0
#include "models/backend/host/layer_ops.h"

#include <algorithm>

#include "base/portable_math.h"
#include "models/backend/operation_costs.h"

namespace outrider {
namespace {

// The worker of a kernel that is called within one worker's share.
constexpr Worker kAlone{0, 1};

// The size of an element-wise stage, in numbers, from which handing half of it over (about 0.5 us) saves
// time.
constexpr int64_t kWorthSharing = 4096;

// Runs a norm over the rows of `rows`, which has x, y and their number.
void run_norm(const KernelTable& kernels, const Norm& norm, NormArgs rows, Worker worker) {
  rows.weight = norm.weight.data();
  rows.bias = norm.bias.empty() ? nullptr : norm.bias.data();
  rows.dim = std::ssize(norm.weight);
  rows.epsilon = norm.epsilon;
  (norm.kind == NormKind::kRms ? kernels.rms_norm : kernels.layer_norm)(rows, worker);
}

}  // namespace

void finish_row(const Projection& projection, const float* parts, ProductRow which, float* y) {
  // Parts of a single row stand side by side as they are.
  const bool is_split = projection.parts.size() > 1 && which.rows > 1;
  float* out = y;
  for (size_t i = 0; is_split && i < projection.parts.size(); ++i) {
    const int64_t n = projection.parts[i].n;
    out = std::copy_n(parts + which.row * n, n, out);
    parts += which.rows * n;
  }
  for (size_t i = 0; i < projection.bias.size(); ++i) y[i] += projection.bias[i];
}

void LayerOps::reserve(const Projection& projection, int64_t rows) {
  if (!projection.cut.inputs.empty()) inputs_.reserve(rows, projection.k);
  if (!projection.cut.outputs.empty()) outputs_.reserve(rows, projection.n);
  if (projection.parts.size() > 1) parts_.reserve(rows, projection.n);
  for (const PackedMatrix& part : projection.parts)
    packed_x_.reserve(1, (input_bytes(part.inputs, rows, part.k) + 3) / 4);
}

int LayerOps::shares_for(int64_t numbers) const { return numbers < kWorthSharing ? 1 : pool_->size(); }

void LayerOps::project(const Projection& projection, const float* x, float* y, int64_t rows) {
  if (rows == 0) return;
  reserve(projection, rows);
  const ProductCut& cut = projection.cut;
  if (!cut.inputs.empty()) {
    gather(x, {cut.inputs}, inputs_.data(), rows);
    x = inputs_.data();
  }
  if (cut.outputs.empty()) return project_share(projection, x, y, rows);
  project_share(projection, x, outputs_.data(), rows);
  gather(outputs_.data(), {cut.outputs, cut.only_first}, y, rows);
}

void LayerOps::gather(const float* part, const ShardExchange::Columns& columns, float* whole,
                      int64_t rows) const {
  const OperationTimer timer = time("exchanges", cost_of_numbers(rows * columns.shares.back().end));
  exchange_->gather(part, columns, whole, rows);
}

void LayerOps::project_share(const Projection& projection, const float* x, float* y, int64_t rows) {
  const bool split = projection.parts.size() > 1 && rows > 1;
  float* parts = split ? parts_.data() : y;
  float* out = parts;
  for (size_t begin = 0, end = 0; begin < projection.parts.size(); begin = end) {
    // Neighbours that read their inputs in one form share a stage.
    int64_t features = 0;
    for (; end < projection.parts.size() && projection.parts[end].inputs == projection.parts[begin].inputs;
         ++end)
      features += projection.parts[end].n;
    multiply({projection.name, std::span(projection.parts).subspan(begin, end - begin), x, out, rows});
    out += rows * features;
  }
  if (!split && projection.bias.empty()) return;
  const OperationTimer timer = time("outputs of parts", cost_of_numbers(2 * rows * projection.n));
  pool_->run(shares_for(rows * projection.n), [&](Worker worker) {
    const Range share = share_of(worker, rows);
    for (int64_t r = share.begin; r < share.end; ++r)
      finish_row(projection, parts, {r, rows}, y + r * projection.n);
  });
}

void LayerOps::pack_inputs(const LinearArgs& args) const {
  if (input_bytes(args.weights->inputs, args.rows, args.weights->k) == 0) return;
  const int64_t numbers = args.rows * args.weights->k;
  const OperationTimer timer = time("inputs of products", cost_of_numbers(numbers));
  pool_->run(shares_for(numbers), [&](Worker worker) { kernels_->pack_inputs(args, worker); });
}

void LayerOps::multiply(const Product& product) {
  const LinearArgs args{.weights = &product.parts.front(),
                        .x = product.x,
                        .packed_x = reinterpret_cast<std::byte*>(packed_x_.data()),
                        .y = product.y,
                        .rows = product.rows};
  pack_inputs(args);
  const OperationTimer timer = time(product.name, cost_of_product(product.parts, product.rows));
  pool_->run([&](Worker worker) {
    LinearArgs part_args = args;
    for (const PackedMatrix& part : product.parts) {
      part_args.weights = &part;
      kernels_->linear(part_args, worker);
      part_args.y += product.rows * part.n;
    }
  });
}

void LayerOps::normalize(const float* x, std::span<const float> weight, float* y, int64_t rows,
                         float epsilon) const {
  const auto dim = static_cast<int64_t>(weight.size());
  const OperationTimer timer = time("norms", cost_of_numbers(2 * rows * dim));
  pool_->run(shares_for(rows * dim), [&](Worker worker) {
    kernels_->rms_norm({x, weight.data(), y, rows, dim, epsilon}, worker);
  });
}

void LayerOps::normalize(const float* x, const Norm& norm, float* y, int64_t rows) const {
  const auto dim = std::ssize(norm.weight);
  const OperationTimer timer = time("norms", cost_of_numbers(2 * rows * dim));
  pool_->run(shares_for(rows * dim),
             [&](Worker worker) { run_norm(*kernels_, norm, {.x = x, .y = y, .rows = rows}, worker); });
}

void LayerOps::normalize_parts(const float* x, std::span<const Norm> parts, float* y, int64_t rows) const {
  const auto dim = std::ssize(parts.front().weight);
  const int64_t width = std::ssize(parts) * dim;
  const OperationTimer timer = time("norms", cost_of_numbers(2 * rows * width));
  pool_->run(shares_for(rows * width), [&](Worker worker) {
    const Range share = share_of(worker, rows);
    for (int64_t row = share.begin; row < share.end; ++row) {
      for (int64_t part = 0; part < std::ssize(parts); ++part) {
        const int64_t begin = row * width + part * dim;
        run_norm(*kernels_, parts[static_cast<size_t>(part)], {.x = x + begin, .y = y + begin, .rows = 1},
                 kAlone);
      }
    }
  });
}

void LayerOps::add_and_normalize(const AddAndNormalize& args) const {
  const int64_t dim = args.dim;
  const OperationTimer timer = time("sums and norms", cost_of_numbers(4 * args.rows * dim));
  pool_->run(shares_for(args.rows * dim), [&](Worker worker) {
    const Range share = share_of(worker, args.rows);
    const int64_t begin = share.begin * dim;
    if (args.delta != nullptr) {
      for (int64_t i = begin; i < share.end * dim; ++i) args.x[i] += args.delta[i];
    }
    if (args.norm->empty()) return;
    run_norm(*kernels_, *args.norm,
             {.x = args.x + begin, .y = args.y + begin, .rows = share.end - share.begin}, kAlone);
  });
}

void LayerOps::activate(const ActivationArgs& args) const {
  const OperationTimer timer =
      time("activation", cost_of_numbers((args.is_gated ? 3 : 2) * args.rows * args.dim));
  pool_->run(shares_for(args.rows * args.dim), [&](Worker worker) { kernels_->activate(args, worker); });
}

void LayerOps::add(const float* y, float* x, int64_t numbers) const {
  const OperationTimer timer = time("sums", cost_of_numbers(3 * numbers));
  pool_->run(shares_for(numbers), [&](Worker worker) {
    const Range share = share_of(worker, numbers);
    for (int64_t i = share.begin; i < share.end; ++i) x[i] += y[i];
  });
}

void LayerOps::scale(float factor, float* x, int64_t numbers) const {
  const OperationTimer timer = time("factors and limits", cost_of_numbers(2 * numbers));
  pool_->run(shares_for(numbers), [&](Worker worker) {
    const Range share = share_of(worker, numbers);
    for (int64_t i = share.begin; i < share.end; ++i) x[i] *= factor;
  });
}

void LayerOps::softcap(float* x, int64_t count, float cap) const {
  const OperationTimer timer = time("factors and limits", cost_of_numbers(2 * count));
  pool_->run(shares_for(count), [&](Worker worker) { kernels_->softcap({x, count, cap}, worker); });
}

void LayerOps::gate(const float* gates, float* x, int64_t numbers) const {
  const OperationTimer timer = time("activation", cost_of_numbers(3 * numbers));
  pool_->run(shares_for(numbers), [&](Worker worker) {
    const Range share = share_of(worker, numbers);
    for (int64_t i = share.begin; i < share.end; ++i) x[i] *= portable_sigmoid(gates[i]);
  });
}

void LayerOps::clamp(float limit, float* x, int64_t numbers) const {
  const OperationTimer timer = time("factors and limits", cost_of_numbers(2 * numbers));
  pool_->run(shares_for(numbers), [&](Worker worker) {
    const Range share = share_of(worker, numbers);
    for (int64_t i = share.begin; i < share.end; ++i) x[i] = std::clamp(x[i], -limit, limit);
  });
}

void LayerOps::rotate_and_store(const AttentionShape& shape, const RotateAndStore& args) const {
  if (shape.qkv_size() == 0) return;  // a shard without heads
  KvCache& cache = *args.cache;
  const OperationTimer timer =
      time("RoPE and cache", cost_of_numbers(2 * std::ssize(args.rows) * shape.qkv_size()));
  const int64_t kv_heads = shape.stores ? shape.kv_head_count : 0;
  const auto store = [&](const float* x, std::byte* rows, int64_t slot) {
    kernels_->store_kv({.x = x,
                        .out = rows + slot * cache.shape().row_bytes(args.layer),
                        .type = cache.shape().type,
                        .heads = kv_heads,
                        .head_dim = shape.head_dim});
  };
  const auto normalize_heads = [&](float* x, std::span<const float> norm, int64_t heads) {
    if (norm.empty()) return;
    const auto run = shape.norm_kind == NormKind::kRms ? kernels_->rms_norm : kernels_->layer_norm;
    const int64_t parts = shape.qk_norm == QkNorm::kEach ? heads : 1;  // each with its own weights
    const int64_t dim = std::ssize(norm) / parts;
    const int64_t rows = heads * shape.head_dim / dim / parts;
    for (int64_t part = 0; part < parts; ++part, x += rows * dim)
      run({x, norm.data() + part * dim, x, rows, dim, shape.epsilon}, kAlone);
  };
  pool_->run(shares_for(std::ssize(args.rows) * shape.qkv_size()), [&](Worker worker) {
    const Range share = share_of(worker, std::ssize(args.rows));
    for (int64_t i = share.begin; i < share.end; ++i) {
      const int64_t row = args.rows[static_cast<size_t>(i)];
      float* q = args.qkv + i * shape.qkv_size();
      float* k = q + shape.q_size();
      float* v = k + shape.kv_size();
      normalize_heads(q, args.q_norm, shape.head_count);
      normalize_heads(k, args.k_norm, kv_heads);
      normalize_heads(v, args.v_norm, kv_heads);
      if (args.rotations.numbers != nullptr) {
        kernels_->rope({.x = q,  // the heads of k follow the heads of q
                        .rotations = args.rotations.numbers + row * args.rotations.dim,
                        .rows = 1,
                        .heads = shape.head_count + kv_heads,
                        .head_dim = shape.head_dim,
                        .rotated = args.rotations.dim},
                       kAlone);
      }
      if (!args.query_factors.empty()) {
        const float factor = args.query_factors[static_cast<size_t>(row)];
        for (int64_t d = 0; d < shape.q_size(); ++d) q[d] *= factor;
      }
      const int64_t slot = args.slots[static_cast<size_t>(row)];
      store(k, cache.keys(args.layer), slot);
      if (!shape.values_are_keys) store(v, cache.values(args.layer), slot);
    }
  });
}

void LayerOps::attend(const AttentionShape& shape, const Attend& args) const {
  if (shape.head_count == 0) return;  // a shard without heads
  const AttentionArgs kernel_args{.q = args.qkv,
                                  .q_stride = shape.qkv_size(),
                                  .k = args.cache->keys(args.layer),
                                  .v = args.cache->values(args.layer),
                                  .kv_type = args.cache->shape().type,
                                  .y = args.y,
                                  .rows = args.rows,
                                  .head_count = shape.head_count,
                                  .kv_head_count = shape.kv_head_count,
                                  .head_dim = shape.head_dim,
                                  .page_size = args.cache->shape().page_size,
                                  .window = shape.window,
                                  .chunk = shape.chunk,
                                  .scale = shape.scale,
                                  .softcap = shape.softcap,
                                  .slopes = shape.slopes.empty() ? nullptr : shape.slopes.data(),
                                  .sinks = args.sinks.empty() ? nullptr : args.sinks.data()};
  const OperationTimer timer =
      time("attention",
           profile_ == nullptr ? OperationCost{} : cost_of_attention(shape, args.cache->shape(), args.rows));
  pool_->run([&](Worker worker) { kernels_->attention(kernel_args, worker); });
}

}  // namespace outrider
