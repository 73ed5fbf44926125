// SPDX-License-Identifier: Apache-2.0
#include "kv/state_storage.h"

#include <algorithm>
#include <limits>

namespace outrider {

void HostStates::add() {
  slots_.push_back(
      {.states = std::vector<float>(static_cast<size_t>(shape_.layer_count * shape_.size)), .updates = {}});
}

void HostStates::clear(int32_t id) { std::ranges::fill(slot(id).states, 0.0F); }

void HostStates::add_updates(int32_t id, int64_t kept, int64_t count) {
  slot(id).updates.resize(static_cast<size_t>((kept + count) * numbers_of_update()),
                          std::numeric_limits<float>::quiet_NaN());
}

void HostStates::copy_update(int32_t id, int64_t from, int64_t to) {
  std::copy_n(update(id, from, 0), numbers_of_update(), update(id, to, 0));
}

void HostStates::copy(int32_t from, int64_t updates, int32_t to) {
  slot(to).states = slot(from).states;
  std::copy_n(slot(from).updates.begin(), updates * numbers_of_update(), slot(to).updates.begin());
}

void HostStates::poison_updates(int32_t id, int64_t first, int64_t count) {
  std::fill_n(update(id, first, 0), count * numbers_of_update(), std::numeric_limits<float>::quiet_NaN());
}

void HostStates::save(int32_t id, int64_t updates, float* to) {
  to = std::ranges::copy(slot(id).states, to).out;
  std::copy_n(slot(id).updates.begin(), updates * numbers_of_update(), to);
}

void HostStates::load(int32_t id, int64_t updates, const float* from) {
  std::copy_n(from, slot(id).states.size(), slot(id).states.begin());
  std::copy_n(from + slot(id).states.size(), updates * numbers_of_update(), slot(id).updates.begin());
}

}  // namespace outrider
