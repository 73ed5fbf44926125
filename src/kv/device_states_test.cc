// SPDX-License-Identifier: Apache-2.0
#include "kv/device_states.h"

#include <gtest/gtest.h>

#include <bit>
#include <random>
#include <vector>

#include "device/emulated_device.h"

namespace outrider {
namespace {

constexpr StateShape kStatesOfTest{.layer_count = 3, .size = 5, .update_size = 2, .sequence_count = 2};

// The states of this machine and of a device, which get the same calls.
class BothStates {
 public:
  explicit BothStates(Device& device) : host_(kStatesOfTest), device_(device, kStatesOfTest) {}

  template <typename Call>
  void call(Call&& call) {
    call(static_cast<StateStorage&>(host_));
    call(static_cast<StateStorage&>(device_));
  }
  void add() {
    call([](StateStorage& states) { states.add(); });
    room_.push_back(0);
  }
  void add_updates(int32_t id, int64_t count) {
    call([&](StateStorage& states) { states.add_updates(id, room_[static_cast<size_t>(id)], count); });
    room_[static_cast<size_t>(id)] += count;
  }
  int64_t room(int32_t id) const { return room_[static_cast<size_t>(id)]; }
  int32_t count() const { return static_cast<int32_t>(room_.size()); }
  int64_t numbers(int64_t updates) const {
    return kStatesOfTest.layer_count * (kStatesOfTest.size + updates * kStatesOfTest.update_size);
  }

  // All numbers of all states, as bits: NaN is what tells a missing update.
  void expect_equal() {
    for (int32_t id = 0; id < count(); ++id) {
      std::vector<float> here(static_cast<size_t>(numbers(room(id)))), there = here;
      host_.save(id, room(id), here.data());
      device_.save(id, room(id), there.data());
      for (size_t i = 0; i < here.size(); ++i) {
        if (here[i] != here[i]) {
          EXPECT_NE(there[i], there[i]) << "state " << id << ", number " << i;
        } else {
          EXPECT_EQ(here[i], there[i]) << "state " << id << ", number " << i;
        }
      }
    }
  }

 private:
  HostStates host_;
  DeviceStates device_;
  std::vector<int64_t> room_;
};

// Any sequence of calls; later states and updates find the earlier ones in place.
TEST(DeviceStates, DoWhatHostStatesDo) {
  EmulatedDevice device({});
  {
    std::mt19937 engine(3);
    const auto draw = [&](int64_t below) {
      return static_cast<int64_t>(engine() % static_cast<uint32_t>(below));
    };
    BothStates states(device);
    states.add();
    for (int step = 0; step < 400 && !testing::Test::HasFailure(); ++step) {
      const auto id = static_cast<int32_t>(draw(states.count())),
                 other = static_cast<int32_t>(draw(states.count()));
      const int64_t room = states.room(id);
      switch (draw(8)) {
        case 0:
          if (states.count() < 9) states.add();
          break;
        case 1:
          if (room < 40) states.add_updates(id, 1 + draw(3));
          break;
        case 2:
          if (room > 1)
            states.call(
                [from = draw(room), to = draw(room), id](auto& one) { one.copy_update(id, from, to); });
          break;
        case 3:
          if (other != id)
            states.call(
                [&, some = std::min(room, states.room(other))](auto& one) { one.copy(id, some, other); });
          break;
        case 4:
          if (room > 0)
            states.call([&, first = draw(room)](auto& one) { one.poison_updates(id, first, room - first); });
          break;
        case 5:
          if (draw(4) == 0) states.call([&](auto& one) { one.clear(id); });
          break;
        default: {
          std::vector<float> numbers(static_cast<size_t>(states.numbers(room)));
          for (float& number : numbers) number = static_cast<float>(draw(1000));
          states.call([&](auto& one) { one.load(id, room, numbers.data()); });
        }
      }
      states.expect_equal();
    }
  }
  EXPECT_EQ(device.allocated_bytes(), 0);
}

}  // namespace
}  // namespace outrider
