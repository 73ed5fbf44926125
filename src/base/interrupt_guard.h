// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <csignal>
#include <cstdint>
#include <initializer_list>
#include <utility>
#include <vector>

namespace outrider {

// While a guard lives, its signals set interrupted() instead of ending the program.
class InterruptGuard {
 public:
  enum class Repeats : uint8_t { kIgnored, kEndProgram };

  // `repeats`: the effect of a signal that arrives a second time.
  explicit InterruptGuard(std::initializer_list<int> signals, Repeats repeats = Repeats::kIgnored);
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  static bool interrupted();  // since the latest guard was made

 private:
  std::vector<std::pair<int, struct sigaction>> previous_;
};

}  // namespace outrider
