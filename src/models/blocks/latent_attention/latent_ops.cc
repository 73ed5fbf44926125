// SPDX-License-Identifier: Apache-2.0
#include "models/blocks/latent_attention/latent_ops.h"

#include <algorithm>
#include <string>
#include <utility>

namespace outrider {
namespace {

constexpr Worker kByItself{0, 1};

// Neighbouring pairs become two halves, which is the order that RoPE turns.
void split_pairs(const float* pairs, int64_t dim, float* halves) {
  for (int64_t i = 0; i < dim / 2; ++i) {
    halves[i] = pairs[2 * i];
    halves[dim / 2 + i] = pairs[2 * i + 1];
  }
}

}  // namespace

void LatentWeights::list(WeightList& list) const {
  for (const Projection* projection : {&query_down, &queries, &entry, &output})
    list.projections.push_back(projection);
  for (const auto* heads : {&keys, &values}) {
    std::vector<const Projection*> stack;
    for (const Projection& head : *heads) stack.push_back(&head);
    list.projections.insert(list.projections.end(), stack.begin(), stack.end());
    if (!stack.empty()) list.stacks.push_back(std::move(stack));
  }
  for (const auto* numbers : {&query_norm, &entry_norm}) list.numbers.push_back(numbers);
}

Status load_latent_attention(WeightLoader& loader, const ModelConfig& config, const LayerPlace& place,
                             LatentWeights& weights) {
  const LatentTraits& traits = config.of_kinds.of<LatentTraits>();
  const int64_t hidden = config.hidden_size;
  const std::string name = place.prefix + "self_attn.";
  const bool has_vector = traits.query_rank != 0;
  if (has_vector) {
    OUTRIDER_RETURN_IF_ERROR(
        loader.plan({{name + "q_a_proj", traits.query_rank}}, hidden, /*bias=*/false, weights.query_down));
    OUTRIDER_RETURN_IF_ERROR(
        loader.read_vector(name + "q_a_layernorm.weight", traits.query_rank, weights.query_norm));
  }
  OUTRIDER_RETURN_IF_ERROR(
      loader.plan({{name + (has_vector ? "q_b_proj" : "q_proj"), config.head_count * traits.query_dim()}},
                  has_vector ? traits.query_rank : hidden, /*bias=*/false, weights.queries));
  OUTRIDER_RETURN_IF_ERROR(loader.plan({{name + "kv_a_proj_with_mqa", traits.entry_size()}}, hidden,
                                       /*bias=*/false, weights.entry));
  OUTRIDER_RETURN_IF_ERROR(
      loader.read_vector(name + "kv_a_layernorm.weight", traits.rank, weights.entry_norm));
  weights.keys.resize(static_cast<size_t>(config.head_count));
  weights.values.resize(weights.keys.size());
  for (size_t i = 0; i < weights.keys.size(); ++i) {
    const std::string head = "." + std::to_string(i);
    OUTRIDER_RETURN_IF_ERROR(loader.plan({{name + "k_b_proj" + head, traits.rank}}, traits.plain_dim,
                                         /*bias=*/false, weights.keys[i]));
    OUTRIDER_RETURN_IF_ERROR(loader.plan({{name + "v_b_proj" + head, traits.value_dim}}, traits.rank,
                                         /*bias=*/false, weights.values[i]));
  }
  return loader.plan({{name + "o_proj", hidden}}, config.head_count * traits.value_dim, /*bias=*/false,
                     weights.output);
}

LatentOps::LatentOps(const LatentTraits& traits, int64_t heads, LayerOps& ops)
    : traits_(traits), heads_(heads), ops_(ops) {
  scratch_.resize(static_cast<size_t>(ops.pool().size()));
}

void LatentOps::reserve(const LatentWeights& weights, int64_t rows) {
  query_vector_.reserve(rows, traits_.query_rank);
  queries_.reserve(rows, weights.queries.n);
  entries_.reserve(rows, weights.entry.n);
  for (const Projection* projection : {&weights.query_down, &weights.queries, &weights.entry})
    ops_.reserve(*projection, rows);
  for (HeadScratch& scratch : scratch_) {
    scratch.x.reserve(rows, std::max(traits_.plain_dim, traits_.rank));
    scratch.y.reserve(rows, std::max(traits_.value_dim, traits_.rank));
    for (const auto* heads : {&weights.keys, &weights.values}) {
      if (heads->empty()) continue;
      const Projection& head = heads->front();
      const int64_t bytes = input_bytes(head.parts.front().inputs, rows, head.k);
      scratch.packed_x.reserve((bytes + 3) / 4, 1);
    }
  }
}

OperationCost LatentOps::cost_of(const std::vector<Projection>& heads, int64_t rows) {
  OperationCost cost{.inputs = heads.front().parts.front().inputs};
  for (const Projection& head : heads) {
    cost.bytes += head.bytes() + rows * (head.n + head.k) * static_cast<int64_t>(sizeof(float));
    cost.operations += 2 * rows * head.n * head.k;
  }
  return cost;
}

// scratch.y = scratch.x times the matrix of one head
void LatentOps::multiply(const Projection& of_head, HeadScratch& scratch, int64_t rows) const {
  const LinearArgs args{.weights = &of_head.parts.front(),
                        .x = scratch.x.data(),
                        .packed_x = reinterpret_cast<std::byte*>(scratch.packed_x.data()),
                        .y = scratch.y.data(),
                        .rows = rows};
  if (input_bytes(args.weights->inputs, rows, of_head.k) > 0) ops_.kernels().pack_inputs(args, kByItself);
  ops_.kernels().linear(args, kByItself);
}

void LatentOps::make_queries(const LatentWeights& weights, const float* input, float* qkv, int64_t rows) {
  const float* vector = input;
  ops_.project(weights.entry, input, entries_.data(), rows);
  if (weights.query_down.n != 0) {
    ops_.project(weights.query_down, input, query_vector_.data(), rows);
    ops_.normalize(query_vector_.data(), weights.query_norm, query_vector_.data(), rows, kLatentEpsilon);
    vector = query_vector_.data();
  }
  ops_.project(weights.queries, vector, queries_.data(), rows);
  make_entries(weights, qkv, rows);
  const int64_t query_dim = traits_.query_dim();
  const int64_t entry_size = traits_.entry_size();
  const OperationTimer timer = ops_.time("keys of latent attention", cost_of(weights.keys, rows));
  ops_.pool().run([&](Worker worker) {
    HeadScratch& scratch = scratch_[static_cast<size_t>(worker.index)];
    const Range share = share_of(worker, heads_);
    for (int64_t head = share.begin; head < share.end; ++head) {
      for (int64_t row = 0; row < rows; ++row)
        std::copy_n(queries_.data() + (row * heads_ + head) * query_dim, traits_.plain_dim,
                    scratch.x.data() + row * traits_.plain_dim);
      multiply(weights.keys[static_cast<size_t>(head)], scratch, rows);
      for (int64_t row = 0; row < rows; ++row) {
        const float* query = queries_.data() + (row * heads_ + head) * query_dim;
        float* out = qkv + (row * (heads_ + 1) + head) * entry_size;
        split_pairs(query + traits_.plain_dim, traits_.rope_dim, out);
        std::copy_n(scratch.y.data() + row * traits_.rank, traits_.rank, out + traits_.rope_dim);
      }
    }
  });
}

void LatentOps::make_entries(const LatentWeights& weights, float* qkv, int64_t rows) const {
  const int64_t entry_size = traits_.entry_size();
  for (int64_t row = 0; row < rows; ++row) {
    const float* entry = entries_.data() + row * entry_size;
    float* out = qkv + (row * (heads_ + 1) + heads_) * entry_size;
    split_pairs(entry + traits_.rank, traits_.rope_dim, out);
    ops_.kernels().rms_norm(
        {entry, weights.entry_norm.data(), out + traits_.rope_dim, 1, traits_.rank, kLatentEpsilon},
        kByItself);
  }
}

void LatentOps::read_values(const LatentWeights& weights, const float* attended, float* y, int64_t rows) {
  const OperationTimer timer = ops_.time("values of latent attention", cost_of(weights.values, rows));
  ops_.pool().run([&](Worker worker) {
    HeadScratch& scratch = scratch_[static_cast<size_t>(worker.index)];
    const Range share = share_of(worker, heads_);
    for (int64_t head = share.begin; head < share.end; ++head) {
      for (int64_t row = 0; row < rows; ++row)
        std::copy_n(attended + (row * heads_ + head) * traits_.entry_size() + traits_.rope_dim, traits_.rank,
                    scratch.x.data() + row * traits_.rank);
      multiply(weights.values[static_cast<size_t>(head)], scratch, rows);
      for (int64_t row = 0; row < rows; ++row)
        std::copy_n(scratch.y.data() + row * traits_.value_dim, traits_.value_dim,
                    y + (row * heads_ + head) * traits_.value_dim);
    }
  });
}

}  // namespace outrider
