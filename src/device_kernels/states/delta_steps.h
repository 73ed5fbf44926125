// SPDX-License-Identifier: Apache-2.0
// Steps of gated delta nets in the order of kernels/simd/delta_net.h.
#pragma once

#include "device_kernels/rows/portable_functions.h"
#include "device_kernels/rows/row_part.h"
#include "device_kernels/states/state_nodes.h"

namespace outrider::simt {

struct DeltaRatesArgs {
  NodeUpdates updates;       // rates from number `first` on, then times
  Weights<float> time_bias;  // [heads]
  Weights<float> decay;      // [heads], negative
  Rows<float> rates;         // [nodes, 2, heads]: rates and decays of steps
  int nodes;
  int heads;
  int first;
};

// A warp takes 32 value heads of a node.
SIMT void delta_rates(const Block& block, const DeltaRatesArgs& args) {
  const auto [node, head, in] = row_part_of(block, args.nodes, args.heads);
  if (node < 0) return;
  block.wait_for_previous();
  if (args.updates.nodes.is_none(node)) return;
  const auto update = args.updates.of(node).from(args.first);
  const Floats rate = update.load_if(in, head, 0.0F),
               time = update.load_if(in, head + Ints(args.heads), 0.0F);
  const Floats steps = softplus_of(add_rn(time, args.time_bias.load_if(in, head, 0.0F)));
  const Floats decay = portable_exp_of(mul_rn(args.decay.load_if(in, head, 0.0F), steps));
  const auto rates = args.rates.from(static_cast<int64_t>(node) * 2 * args.heads);
  rates.store_if(in, head, portable_sigmoid_of(rate));
  rates.store_if(in, head + Ints(args.heads), decay);
}

struct DeltaStepsArgs {
  StateNodes nodes;
  StateSequences sequences;
  List<int> order;              // [nodes]: the order of each sequence's nodes
  Rows<const float> convolved;  // [nodes, 2 key_heads * key_dim + value_heads * value_dim]
  Rows<const float> rates;      // of delta_rates()
  Rows<float> states;           // state_stride apart, a matrix for each value head
  Rows<float> slots;            // [slots, value_heads, key_dim * value_dim]
  Rows<float> y;                // [rows, value_heads * value_dim]
  int sequence_count;
  int key_heads;
  int value_heads;
  int key_dim;
  int value_dim;
  int state_stride;
  int interleaves_keys;  // value head i reads key head i % key_heads, else neighbours share one
};

inline constexpr int kDeltaTileColumns = 64;  // of DeltaArgs

// A column of a lane in a matrix of DeltaArgs.
struct DeltaColumn {
  Ints first, stride;
  Bools in;

  SIMT DeltaColumn(const DeltaStepsArgs& args, Ints column) {
    const Ints tile = column & Ints(-kDeltaTileColumns);
    const Ints left = Ints(args.value_dim) - tile;
    first = tile * Ints(args.key_dim) + column - tile;
    stride = select(left < Ints(kDeltaTileColumns), left, Ints(kDeltaTileColumns));
    in = column < Ints(args.value_dim);
  }
};

SIMT_PART Rows<float> delta_matrix(const DeltaStepsArgs& args, int state, int slot, int head) {
  const int64_t size = static_cast<int64_t>(args.key_dim) * args.value_dim;
  if (slot < 0) return args.states.from(static_cast<int64_t>(state) * args.state_stride + head * size);
  return args.slots.from((static_cast<int64_t>(slot) * args.value_heads + head) * size);
}

// new_state = decay * state + k' (rate * (v - decay * state' k)), and y = new_state' q.
SIMT_PART void delta_step(const DeltaStepsArgs& args, int node, int head, Ints column) {
  const DeltaColumn place(args, column);
  const int64_t keys = static_cast<int64_t>(args.key_heads) * args.key_dim;
  const int per_key = args.value_heads / args.key_heads;
  const int64_t key_head = args.interleaves_keys != 0 ? head % args.key_heads : head / per_key;
  const int64_t values = static_cast<int64_t>(args.value_heads) * args.value_dim;
  const auto convolved = args.convolved.from(node * (2 * keys + values));
  const auto q = convolved.from(key_head * args.key_dim), k = convolved.from(keys + key_head * args.key_dim);
  const auto rates = args.rates.from(static_cast<int64_t>(node) * 2 * args.value_heads);
  const float rate = rates.load_one(head), decay = rates.load_one(args.value_heads + head);
  const int state = args.nodes.state(node);
  const Rows<float> from = delta_matrix(args, state, args.nodes.from(node), head);
  const Rows<float> to = delta_matrix(args, state, args.nodes.to(node), head);
  Floats known(0.0F), sum(0.0F);
  for (int i = 0; i < args.key_dim; ++i) {
    const Floats stored = from.load_if(place.in, place.first + Ints(i) * place.stride, 0.0F);
    known = fma_rn(stored, Floats(k.load_one(i)), known);
  }
  const Floats value =
      convolved.from(2 * keys + static_cast<int64_t>(head) * args.value_dim).load_if(place.in, column, 0.0F);
  const Floats change = mul_rn(Floats(rate), fma_rn(negated(Floats(decay)), known, value));
  for (int i = 0; i < args.key_dim; ++i) {
    const Ints at = place.first + Ints(i) * place.stride;
    const Floats kept = mul_rn(Floats(decay), from.load_if(place.in, at, 0.0F));
    const Floats moved = fma_rn(Floats(k.load_one(i)), change, kept);
    to.store_if(place.in, at, moved);
    sum = fma_rn(moved, Floats(q.load_one(i)), sum);
  }
  const int row = args.nodes.row(node);
  if (row < 0) return;
  args.y.from(row * values + static_cast<int64_t>(head) * args.value_dim).store_if(place.in, column, sum);
}

// A warp takes 32 columns of a value head of a sequence through all its nodes.
SIMT void delta_steps(const Block& block, const DeltaStepsArgs& args) {
  const RowPart part = row_part_of(block, args.sequence_count * args.value_heads, args.value_dim);
  if (part.row < 0) return;
  block.wait_for_previous();
  const int sequence = part.row / args.value_heads, head = part.row % args.value_heads;
  const int first = args.sequences.first(sequence), nodes = args.sequences.nodes(sequence);
  for (int i = first; i < first + nodes; ++i) delta_step(args, args.order.load_one(i), head, part.i);
}

}  // namespace outrider::simt
