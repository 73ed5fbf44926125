// SPDX-License-Identifier: Apache-2.0
// Entries and states in two memories, against the same in this machine's.
#include "models/backend/split/split_storage.h"

#include <gtest/gtest.h>

#include <bit>
#include <random>
#include <vector>

#include "device/emulated_device.h"

namespace outrider {
namespace {

constexpr int64_t kSlots = 8;

KvShape split_shape(bool is_uneven, bool values_are_keys) {
  KvShape shape{.layer_count = 4,
                .kv_head_count = 2,
                .head_dim = 32,
                .type = DType::kBF16,
                .page_size = 4,
                .page_count = kSlots / 4,
                .values_are_keys = values_are_keys};
  shape.states = {.layer_count = 3, .size = 5, .update_size = 2, .sequence_count = 2};
  if (is_uneven) shape.layers = {{2, 32}, {1, 64}, {3, 32}, {2, 32}};
  return shape;
}

// All bytes of the entries as they are stored.
std::vector<std::byte> entries_of(const KvStorage& storage, const KvShape& shape) {
  std::vector<std::byte> bytes(static_cast<size_t>(kSlots * shape.bytes_before(shape.layer_count)));
  storage.save(0, kSlots, bytes.data());
  return bytes;
}

// All numbers of all heads of a row, as bits.
std::vector<uint32_t> row_of(const KvStorage& storage, const KvShape& shape, const KvRow& row) {
  const KvHeads heads = shape.heads(row.layer);
  std::vector<float> numbers(static_cast<size_t>(heads.count * heads.dim));
  storage.read(row, numbers.data(), heads.dim);
  std::vector<uint32_t> bits;
  for (const float number : numbers) bits.push_back(number != number ? 0 : std::bit_cast<uint32_t>(number));
  return bits;
}

void expect_entries(const KvShape& shape, int64_t host_layers) {
  EmulatedDevice device({});
  HostPages whole(shape);
  SplitPages split(device, shape, {.entries = host_layers});
  std::mt19937 random(1);
  std::vector<std::byte> bytes = entries_of(whole, shape);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random() & 0x3F);  // no NaN
  for (KvStorage* storage : {static_cast<KvStorage*>(&whole), static_cast<KvStorage*>(&split)}) {
    storage->load(0, kSlots, bytes.data());
    storage->move({.from = 5, .to = 1, .count = 2});
    storage->clear(7, 1);
  }
  EXPECT_EQ(entries_of(split, shape), entries_of(whole, shape));
  whole.poison(3, 2);
  split.poison(3, 2);
  for (int64_t layer = 0; layer < shape.layer_count; ++layer) {
    EXPECT_EQ(split.is_on_host(layer), layer < host_layers);
    for (int64_t slot = 0; slot < kSlots; ++slot) {
      const KvRow row{layer, slot % 2 == 0 ? KvPart::kKeys : KvPart::kValues, slot};
      EXPECT_EQ(row_of(split, shape, row), row_of(whole, shape, row)) << layer << ", " << slot;
    }
  }
}

TEST(SplitPages, DoWhatHostPagesDo) {
  for (const bool is_uneven : {false, true}) {
    for (const bool values_are_keys : {false, true}) {
      for (int64_t layers = 0; layers <= 4; ++layers)
        expect_entries(split_shape(is_uneven, values_are_keys), layers);
    }
  }
}

// The numbers of a state with its updates.
std::vector<float> numbers_of(StateStorage& states, const StateShape& shape, int32_t id, int64_t updates) {
  std::vector<float> numbers(
      static_cast<size_t>(shape.layer_count * (shape.size + updates * shape.update_size)));
  states.save(id, updates, numbers.data());
  return numbers;
}

TEST(SplitStates, DoWhatHostStatesDo) {
  const KvShape shape = split_shape(false, false);
  for (int64_t layers = 0; layers <= 3; ++layers) {
    EmulatedDevice device({});
    HostStates whole(shape.states);
    SplitPages pages(device, shape, {.entries = 2, .states = layers});
    // The device has no room for layers of this machine.
    auto& there = dynamic_cast<DevicePages&>(pages.device().storage()).states();
    EXPECT_EQ(there.shape().bytes_per_sequence(), (3 - layers) * 5 * 4);
    EXPECT_EQ(there.state_numbers(), 2 * (3 - layers) * 5);
    for (StateStorage* states :
         {static_cast<StateStorage*>(&whole), static_cast<StateStorage*>(&pages.states())}) {
      for (int32_t id = 0; id < 3; ++id) {
        states->add();
        states->add_updates(id, 0, 4);
        std::vector<float> numbers(static_cast<size_t>(3 * (5 + 4 * 2)));
        for (size_t i = 0; i < numbers.size(); ++i)
          numbers[i] = static_cast<float>(100 * id) + static_cast<float>(i);
        states->load(id, 4, numbers.data());
      }
      states->copy_update(0, 3, 1);
      states->copy(0, 3, 1);
      states->clear(2);
    }
    for (int32_t id = 0; id < 3; ++id)
      EXPECT_EQ(numbers_of(pages.states(), shape.states, id, 4), numbers_of(whole, shape.states, id, 4))
          << id;
    pages.states().poison_updates(1, 2, 1);
    const std::vector<float> poisoned = numbers_of(pages.states(), shape.states, 1, 4);
    for (size_t i = 0; i < poisoned.size(); ++i)
      EXPECT_EQ(poisoned[i] != poisoned[i], i >= 15 + 2 * 6 && i < 15 + 3 * 6) << i;
  }
}

}  // namespace
}  // namespace outrider
