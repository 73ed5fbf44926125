// SPDX-License-Identifier: Apache-2.0
#include "models/blocks/recurrent_block.h"

namespace outrider {
namespace {

struct Recurrence final : BlockStep {
  Recurrence(const RecurrentBlock& block, BlockPass& pass, int64_t layer, const Projection& input,
             int64_t output_size)
      : block(block),
        input(input),
        plan(pass.states()),
        store(pass.cache().states()),
        storage(&pass.cache().storage().states()),
        layer(layer),
        projected(pass.scratch(0)),
        y(pass.scratch(1)),
        rows(pass.rows()),
        output_size(output_size) {}

  std::string_view name() const override { return block.step_name(); }
  StepNames names() override {
    return {.weights = &input,
            .rows = {{&projected, rows * input.n, RowUse::kChange}, {&y, rows * output_size, RowUse::kWrite}},
            .states = &storage};
  }
  void run(Host& host) override {
    const LayerStates states(store, host.states(*storage), layer);
    host.own(block).recur(host, plan, {host.at(projected), host.at(y), rows}, states);
  }
  void run(DeviceOps& device) override {
    const auto& numbers = dynamic_cast<const DeviceStates&>(*storage);
    const DeviceStatePlace place{store, numbers, layer};
    const DeviceLayerStates states =
        device.records() ? recorded_layer_states(device, place)
                         : device.shared<DeviceStateLists>(device.launcher()).list(plan, place);
    block.recur(device, states, {projected, y, rows, input.n});
  }

  const RecurrentBlock& block;
  const Projection& input;
  const StatePlan& plan;
  const StateStore& store;  // what the states hold before the pass
  StateStorage* storage;    // their numbers
  int64_t layer;            // of the store
  FloatAddress projected, y;
  int64_t rows;
  int64_t output_size;  // numbers of a row of y
};

}  // namespace

std::vector<int64_t> RecurrentBlock::scratch() const {
  return {projections().input.n, projections().output.k};
}

void RecurrentBlock::run(BlockPass& pass, const BlockRows& rows) const {
  LayerBackend& backend = pass.backend();
  const auto [input, output] = projections();
  const FloatAddress y = pass.scratch(1);
  pass.project(input, rows.input, pass.scratch(0));
  Recurrence recurrence(*this, pass, rows.cache_layer, input, output.k);
  backend.run(recurrence);
  if (pass.plans_states()) pass.states().note_applied(rows.cache_layer, pass.cache().states());
  pass.keep_wanted({{y, output.k}});
  if (pass.rows() > 0) pass.project(output, y, rows.output);
}

}  // namespace outrider
