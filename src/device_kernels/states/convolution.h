// SPDX-License-Identifier: Apache-2.0
// Convolutions over the last entries of a sequence, number by number. A state begins with the inputs of its
// last entries, the oldest first.
#pragma once

#include "device_kernels/rows/row_part.h"
#include "device_kernels/states/state_nodes.h"

namespace outrider::simt {

struct ConvolveArgs {
  NodeUpdates inputs;
  Rows<const float> states;  // state_stride apart, [taps - 1, dim] first
  Weights<float> taps;       // [taps, dim], the oldest entry's first
  Weights<float> bias;       // [dim], or null
  Rows<float> y;             // [nodes, dim], or for gated sums [rows, dim]
  int nodes;
  int dim;
  int tap_count;
  int state_stride;
};

// The input of the entry `back` entries before a node.
SIMT_PART Floats input_before(const ConvolveArgs& args, int node, int back, Ints i, Bools in) {
  const int state = args.inputs.nodes.state(node);
  for (; back > 0; --back) {
    const int parent = args.inputs.nodes.parent(node);
    if (parent == kNoNode) break;
    node = parent;
  }
  if (back == 0) return args.inputs.of(node).load_if(in, i, 0.0F);
  const auto stored = args.states.from(static_cast<int64_t>(state) * args.state_stride);
  return stored.from((args.tap_count - 1 - back) * static_cast<int64_t>(args.dim)).load_if(in, i, 0.0F);
}

// The sum of every node.
struct PlainSums {
  SIMT static void store(const ConvolveArgs& args, int node, Ints i, Bools in, Floats sum) {
    args.y.from(static_cast<int64_t>(node) * args.dim).store_if(in, i, sum);
  }
  SIMT static bool skips(const ConvolveArgs& args, int node) { return args.inputs.nodes.is_none(node); }
};

// The sum of every node with a row, times the row's gates, which follow its update.
struct GatedSums {
  SIMT static void store(const ConvolveArgs& args, int node, Ints i, Bools in, Floats sum) {
    const int64_t row = args.inputs.nodes.row(node);
    const Floats gates = args.inputs.of(node).load_if(in, i + Ints(args.dim), 0.0F);
    Floats bias(0.0F);
    if (!args.bias.is_null()) bias = args.bias.load_if(in, i, 0.0F);
    args.y.from(row * args.dim).store_if(in, i, mul_rn(gates, add_rn(sum, bias)));
  }
  SIMT static bool skips(const ConvolveArgs& args, int node) { return args.inputs.nodes.row(node) < 0; }
};

// A warp takes 32 numbers of a node.
template <typename Sums>
SIMT void convolve(const Block& block, const ConvolveArgs& args) {
  const auto [node, i, in] = row_part_of(block, args.nodes, args.dim);
  if (node < 0) return;
  block.wait_for_previous();
  if (Sums::skips(args, node)) return;
  Floats sum(0.0F);
  for (int tap = 0; tap < args.tap_count; ++tap) {
    const Floats taps = args.taps.from(static_cast<int64_t>(tap) * args.dim).load_if(in, i, 0.0F);
    sum = add_rn(sum, mul_rn(taps, input_before(args, node, args.tap_count - 1 - tap, i, in)));
  }
  Sums::store(args, node, i, in, sum);
}

struct PushInputsArgs {
  NodeUpdates inputs;
  StateSequences sequences;
  Rows<float> states;  // as of ConvolveArgs
  int sequence_count;
  int dim;
  int kept;  // inputs of a state
  int state_stride;
};

// The inputs of a state move on by the nodes that are applied. A warp takes 32 numbers of a sequence.
SIMT void push_inputs(const Block& block, const PushInputsArgs& args) {
  const auto [sequence, i, in] = row_part_of(block, args.sequence_count, args.dim);
  if (sequence < 0) return;
  block.wait_for_previous();
  const int applied = args.sequences.applied(sequence);
  if (applied == 0) return;
  const auto state =
      args.states.from(static_cast<int64_t>(args.sequences.state(sequence)) * args.state_stride);
  for (int place = 0; place < args.kept; ++place) {
    const int entry = place + applied - args.kept;  // among the applied ones; below 0 it is in the state
    Floats input(0.0F);
    if (entry >= 0) {
      input = args.inputs.of(args.sequences.first(sequence) + entry).load_if(in, i, 0.0F);
    } else {
      input = state.from((place + applied) * static_cast<int64_t>(args.dim)).load_if(in, i, 0.0F);
    }
    state.from(place * static_cast<int64_t>(args.dim)).store_if(in, i, input);
  }
}

}  // namespace outrider::simt
