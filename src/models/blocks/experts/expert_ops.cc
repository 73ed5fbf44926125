// SPDX-License-Identifier: Apache-2.0
#include "models/blocks/experts/expert_ops.h"

#include <algorithm>

namespace outrider {
namespace {

constexpr int64_t kLine = 64;  // bytes that packed inputs are aligned to

int64_t packed_bytes(const PackedMatrix& matrix, int64_t rows) {
  return (input_bytes(matrix.inputs, rows, matrix.k) + kLine - 1) / kLine * kLine;
}

// A bound of the packed inputs of `places` places, however they are divided among experts: layouts round rows
// up to whole tiles, for each expert.
int64_t max_packed_bytes(const Projection& projection, int64_t places, int64_t experts) {
  constexpr int64_t kTileRows = 16;
  int64_t bytes = 0;
  for (const PackedMatrix& part : projection.parts)
    bytes += packed_bytes(part, places) + std::min(places, experts) * packed_bytes(part, kTileRows);
  return bytes;
}

}  // namespace

void ExpertOps::reserve(const ExpertWeights& layer, int64_t rows) {
  const int64_t places = rows * traits_.used;
  groups_.reserve(places, traits_.count);
  choices_.reserve(static_cast<size_t>(places));
  outputs_.reserve(rows, traits_.count);
  inputs_.reserve(places, hidden_size_);
  results_.reserve(places, hidden_size_);
  gated_.reserve(places, traits_.ffn_size);
  if (!layer.cut().inputs.empty()) whole_.reserve(places, traits_.ffn_size);
  if (!layer.cut().outputs.empty()) sums_.reserve(rows, hidden_size_);
  ops_.reserve(layer.router, rows);
  ops_.reserve(layer.dense_gate, rows);
  size_t products = 0;
  for (const MlpWeights& expert : layer.experts) {
    gate_up_.reserve(places, expert.gate_up.n);
    for (const Projection* projection : {&expert.gate_up, &expert.down}) {
      products = std::max(products, layer.experts.size() * projection->parts.size());
      if (projection->parts.size() > 1) parts_.reserve(places, projection->n);
      packed_x_.reserve(1, (max_packed_bytes(*projection, places, traits_.count) + 3) / 4);
    }
  }
  products_.reserve(products);
  chosen_.reserve(layer.experts.size());
  loaded_.reserve(layer.experts.size());
}

void ExpertOps::run(const ExpertWeights& layer, const Inputs& inputs, float* y, int64_t rows,
                    const Source& source) {
  route(layer, inputs.router, rows);
  gather(inputs.x, rows);
  source.stream == nullptr ? compute(layer, groups_.groups()) : compute_read(layer, source);
  const ProductCut& cut = layer.cut();
  if (cut.outputs.empty()) return combine(layer, y, rows);
  combine(layer, sums_.data(), rows);
  ops_.gather(sums_.data(), {cut.outputs}, y, rows);
}

void ExpertOps::compute(const ExpertWeights& layer, Groups groups) {
  multiply(layer, &MlpWeights::gate_up, groups, {inputs_.data(), gate_up_.data()});
  activate(layer, groups);
  const float* gated = gated_.data();
  if (const ProductCut& cut = layer.cut(); !cut.inputs.empty()) {
    ops_.gather(gated, {cut.inputs}, whole_.data(), std::ssize(choices_));  // the groups are all
    gated = whole_.data();
  }
  multiply(layer, &MlpWeights::down, groups, {gated, results_.data()});
}

void ExpertOps::compute_read(const ExpertWeights& layer, const Source& source) {
  const auto groups = groups_.groups();
  chosen_.clear();
  for (const ExpertGroups::Group& group : groups) chosen_.push_back(group.expert);
  source.stream->begin(source.layer, chosen_);
  for (auto ready = source.stream->next(); !ready.empty(); ready = source.stream->next()) {
    loaded_.clear();
    for (const int32_t number : ready) loaded_.push_back(groups[static_cast<size_t>(number)]);
    compute(layer, loaded_);
  }
}

void ExpertOps::activate(const ExpertWeights& layer, Groups groups) {
  const int64_t width = layer.experts.front().gate_up.n;
  const int64_t dim = width / (mlp_.is_gated ? 2 : 1);
  for (auto group = groups.begin(); group != groups.end();) {
    const int64_t begin = group->begin;
    int64_t end = begin;  // of places that follow one another
    for (; group != groups.end() && group->begin == end; ++group) end += group->rows;
    ops_.activate({.x = gate_up_.data() + begin * width,
                   .y = gated_.data() + begin * dim,
                   .rows = end - begin,
                   .dim = dim,
                   .activation = mlp_.activation,
                   .is_gated = mlp_.is_gated});
  }
}

void ExpertOps::route(const ExpertWeights& layer, const float* x, int64_t rows) {
  ops_.project(layer.router, x, outputs_.data(), rows);
  const OperationTimer timer = ops_.time("choice of experts");
  choices_.resize(static_cast<size_t>(rows * traits_.used));
  ops_.pool().run(ops_.shares_for(rows * traits_.count), [&](Worker worker) {
    const Range share = share_of(worker, rows);
    for (int64_t r = share.begin; r < share.end; ++r)
      choose_experts({traits_, outputs_.data() + r * traits_.count, layer.choice_bias},
                     choices_.data() + r * traits_.used);
  });
  for (ExpertChoice& choice : choices_) {
    if (!layer.scales.empty()) choice.weight *= layer.scales[static_cast<size_t>(choice.expert)];
  }
  groups_.sort(choices_, traits_.used, traits_.count);
}

void ExpertOps::gather(const float* x, int64_t rows) {
  const int64_t dim = hidden_size_;
  const int64_t used = traits_.used;
  const OperationTimer timer = ops_.time("inputs of experts");
  ops_.pool().run(ops_.shares_for(rows * used * dim), [&](Worker worker) {
    const Range share = share_of(worker, rows * used);
    for (int64_t i = share.begin; i < share.end; ++i) {
      float* input = inputs_.data() + groups_.place_of_choice()[static_cast<size_t>(i)] * dim;
      std::copy_n(x + i / used * dim, dim, input);
      if (!traits_.weighs_inputs) continue;
      const float weight = choices_[static_cast<size_t>(i)].weight;
      for (int64_t d = 0; d < dim; ++d) input[d] *= weight;
    }
  });
}

void ExpertOps::multiply(const ExpertWeights& layer, Projection MlpWeights::*matrices, Groups groups,
                         PlaceRows rows) {
  list_products(layer, matrices, groups, rows);
  const KernelTable& kernels = ops_.kernels();
  int64_t packed = 0;  // numbers
  for (const Product& product : products_) {
    if (product.packs) packed += product.args.rows * product.args.weights->k;
  }
  if (packed > 0) {
    const OperationTimer timer = ops_.time("inputs of products");
    ops_.pool().run(ops_.shares_for(packed), [&](Worker worker) {
      for (const Product& product : products_) {
        if (product.packs) kernels.pack_inputs(product.args, worker);
      }
    });
  }
  const OperationTimer timer = ops_.time("products of experts", cost_of_products());
  // A worker multiplies the same part of every expert, as it does in other products.
  ops_.pool().run([&](Worker worker) {
    for (const Product& product : products_) kernels.linear(product.args, worker);
  });
  finish_rows(layer, matrices, groups, rows.y);
}

OperationCost ExpertOps::cost_of_products() const {
  OperationCost cost;
  for (const Product& product : products_) {
    const LinearArgs& args = product.args;
    cost.inputs = args.weights->inputs;
    cost.bytes += args.weights->bytes();
    cost.operations += 2 * args.rows * args.weights->n * args.weights->k;
  }
  return cost;
}

void ExpertOps::list_products(const ExpertWeights& layer, Projection MlpWeights::*matrices, Groups groups,
                              PlaceRows rows) {
  auto* packed_x = reinterpret_cast<std::byte*>(packed_x_.data());
  products_.clear();
  for (const ExpertGroups::Group& group : groups) {
    const Projection& projection = layer.experts[static_cast<size_t>(group.expert)].*matrices;
    const bool split = projection.parts.size() > 1 && group.rows > 1;
    float* out = (split ? parts_.data() : rows.y) + group.begin * projection.n;
    const PackedMatrix* before = nullptr;
    for (const PackedMatrix& part : projection.parts) {
      const bool shares = before != nullptr && before->inputs == part.inputs;
      Product product{.args = {.weights = &part,
                               .x = rows.x + group.begin * projection.k,
                               .packed_x = shares ? products_.back().args.packed_x : packed_x,
                               .y = out,
                               .rows = group.rows},
                      .packs = !shares && packed_bytes(part, group.rows) > 0};
      products_.push_back(product);
      if (!shares) packed_x += packed_bytes(part, group.rows);
      out += group.rows * part.n;
      before = &part;
    }
  }
}

void ExpertOps::finish_rows(const ExpertWeights& layer, Projection MlpWeights::*matrices, Groups groups,
                            float* y) {
  const bool are_finished = std::ranges::all_of(groups, [&](const ExpertGroups::Group& group) {
    const Projection& projection = layer.experts[static_cast<size_t>(group.expert)].*matrices;
    return projection.parts.size() == 1 && projection.bias.empty();
  });
  if (are_finished) return;
  ops_.pool().run([&](Worker worker) {
    const Range share = share_of(worker, std::ssize(groups));
    for (int64_t g = share.begin; g < share.end; ++g) {
      const ExpertGroups::Group& group = groups[static_cast<size_t>(g)];
      const Projection& projection = layer.experts[static_cast<size_t>(group.expert)].*matrices;
      const int64_t begin = group.begin * projection.n;
      const float* parts = projection.parts.size() > 1 ? parts_.data() + begin : nullptr;
      for (int64_t r = 0; r < group.rows; ++r)
        finish_row(projection, parts, {r, group.rows}, y + begin + r * projection.n);
    }
  });
}

void ExpertOps::combine(const ExpertWeights& layer, float* y, int64_t rows) {
  const int64_t dim = layer.experts.front().down.n;
  const int64_t used = traits_.used;
  const OperationTimer timer = ops_.time("sums of experts");
  ops_.pool().run(ops_.shares_for(rows * used * dim), [&](Worker worker) {
    const Range share = share_of(worker, rows);
    for (int64_t i = share.begin * used; i < share.end * used; ++i) {
      const float* result = results_.data() + groups_.place_of_choice()[static_cast<size_t>(i)] * dim;
      const float weight = traits_.weighs_inputs ? 1 : choices_[static_cast<size_t>(i)].weight;
      float* sum = y + i / used * dim;
      if (i % used == 0) {
        for (int64_t d = 0; d < dim; ++d) sum[d] = weight * result[d];
      } else {
        for (int64_t d = 0; d < dim; ++d) sum[d] += weight * result[d];
      }
    }
  });
}

}  // namespace outrider
