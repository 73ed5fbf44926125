// SPDX-License-Identifier: Apache-2.0
#include "models/blocks/device_state_lists.h"

#include <utility>

namespace outrider {
namespace {

static_assert(StateNode::kCommitted == simt::kNoNode);

// The lists while they are made.
struct NodeLists : StateLists {
  int count() const { return static_cast<int>(nodes.size()) / simt::StateNodes::kNumbers; }

  // Returns the number of committed entries that the state lacks.
  int add_committed(const StateSequence& sequence, const DeviceStatePlace& place) {
    const int first = count(), first_kept = sequence.length - sequence.kept_updates;
    for (int entry = place.store.entries(sequence.id, place.layer); entry < sequence.length; ++entry) {
      const int node = count();
      const auto update = static_cast<int>(place.numbers.update_row(sequence.id, entry - first_kept));
      order.push_back(node);
      nodes.insert(nodes.end(), {node == first ? simt::kNoNode : node - 1, StateNode::kOtherPass, update,
                                 sequence.id, StateNode::kStored, StateNode::kStored});
    }
    return count() - first;
  }

  void add_nodes(const StateSequence& sequence, const DeviceStatePlace& place, int committed) {
    const int first = count(), before = committed == 0 ? simt::kNoNode : first - 1;
    const auto slot = [this](int32_t of) { return of == StateNode::kStored ? of : slots + of; };
    for (const StateNode& node : sequence.nodes) {
      int update = StateNode::kNotKept;
      if (node.update != StateNode::kNotKept)
        update = static_cast<int>(place.numbers.update_row(sequence.id, node.update));
      if (node.row != StateNode::kOtherPass && update != StateNode::kNotKept) {
        kept_rows.push_back(node.row);
        kept_updates.push_back(update);
      }
      nodes.insert(nodes.end(), {node.parent == StateNode::kCommitted ? before : first + node.parent,
                                 node.row, update, sequence.id, slot(node.from), slot(node.to)});
    }
    for (const int32_t node : sequence.order) order.push_back(first + node);
    slots += sequence.slot_count;
  }

  void add(const StateSequence& sequence, const DeviceStatePlace& place) {
    const int first = count(), committed = add_committed(sequence, place);
    add_nodes(sequence, place, committed);
    const int applied = committed + (sequence.is_chain ? static_cast<int>(sequence.nodes.size()) - 1 : 0);
    sequences.insert(sequences.end(), {first, count() - first, applied, sequence.id});
    applies = applies || applied > 0;
  }
};

// The numbers of a layer from the first state, or update, on.
simt::Rows<float> of_layer(DeviceAddress begin, int64_t count, int64_t first) {
  if (count == 0) return {nullptr, 0};
  return {reinterpret_cast<float*>(begin) + first, count - first};
}

DeviceLayerStates numbers_of_layer(const DeviceStatePlace& place) {
  const DeviceStates& numbers = place.numbers;
  const StateShape& shape = numbers.shape();
  const int64_t layer = place.layer - shape.first_layer;
  return {.states = of_layer(numbers.states(), numbers.state_numbers(), layer * shape.size),
          .updates = of_layer(numbers.updates(), numbers.update_numbers(), layer * shape.update_size),
          .state_stride = static_cast<int>(shape.layer_count * shape.size),
          .update_stride = static_cast<int>(shape.layer_count * shape.update_size)};
}

}  // namespace

simt::NodeUpdates DeviceLayerStates::inputs(const DeviceStateRows& rows) const {
  return {.nodes = nodes,
          .rows = rows_at<const float>(rows.projected, rows.count * rows.width),
          .updates = {updates.data, updates.count},
          .rows_stride = static_cast<int>(rows.width),
          .updates_stride = update_stride};
}

StateLists list_states(const StatePlan& plan, const DeviceStatePlace& place) {
  NodeLists lists;
  for (const StateSequence& sequence : plan.sequences()) lists.add(sequence, place);
  return lists;
}

DeviceLayerStates DeviceStateLists::list(const StatePlan& plan, const DeviceStatePlace& place) {
  StateLists lists = list_states(plan, place);
  DeviceLayerStates states = numbers_of_layer(place);
  states.node_count = static_cast<int>(std::ssize(lists.order));
  states.sequence_count = static_cast<int>(std::ssize(plan.sequences()));
  states.slot_count = lists.slots;
  states.applies = lists.applies;
  states.nodes = {nodes_.view(std::move(lists.nodes))};
  states.sequences = {sequences_.view(std::move(lists.sequences))};
  states.order = order_.view(std::move(lists.order));
  states.kept_rows = rows_of_list(kept_rows_.view(std::move(lists.kept_rows)));
  states.kept_updates = rows_of_list(kept_updates_.view(std::move(lists.kept_updates)));
  return states;
}

DeviceLayerStates recorded_layer_states(const DeviceOps& device, const DeviceStatePlace& place) {
  const RecordedStates& recorded = device.recorded_states();
  DeviceLayerStates states = numbers_of_layer(place);
  states.node_count = static_cast<int>(recorded.order.count);
  states.sequence_count = static_cast<int>(recorded.sequences.numbers.count / simt::StateSequences::kNumbers);
  states.slot_count = recorded.slots;
  states.applies = true;
  states.nodes = recorded.nodes;
  states.sequences = recorded.sequences;
  states.order = recorded.order;
  states.kept_rows = recorded.kept_rows;
  states.kept_updates = recorded.kept_updates;
  return states;
}

void keep_updates(DeviceOps& device, const DeviceLayerStates& states, const DeviceStateRows& rows,
                  int64_t size) {
  const int64_t kept = states.kept_rows.count;
  device.launch_rows(KernelName::kCopyListedRows,
                     simt::ListedCopyArgs{.x = rows_at<const float>(rows.projected, rows.count * rows.width),
                                          .y = states.updates,
                                          .from = states.kept_rows,
                                          .to = states.kept_updates,
                                          .factors = {},
                                          .rows = static_cast<int>(kept),
                                          .dim = static_cast<int>(size),
                                          .x_stride = static_cast<int>(rows.width),
                                          .y_stride = states.update_stride},
                     kept, size);
}

void push_inputs(DeviceOps& device, const DeviceLayerStates& states, const DeviceStateRows& rows,
                 int64_t kept, int64_t dim) {
  if (!states.applies) return;
  device.launch_rows(KernelName::kPushInputs,
                     simt::PushInputsArgs{.inputs = states.inputs(rows),
                                          .sequences = states.sequences,
                                          .states = states.states,
                                          .sequence_count = states.sequence_count,
                                          .dim = static_cast<int>(dim),
                                          .kept = static_cast<int>(kept),
                                          .state_stride = states.state_stride},
                     states.sequence_count, dim);
}

}  // namespace outrider
