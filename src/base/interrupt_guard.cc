// SPDX-License-Identifier: Apache-2.0
#include "base/interrupt_guard.h"

namespace outrider {
namespace {

volatile std::sig_atomic_t came = 0;

}  // namespace

InterruptGuard::InterruptGuard(std::initializer_list<int> signals, Repeats repeats) {
  came = 0;
  struct sigaction action = {};
  action.sa_handler = [](int) { came = 1; };
  action.sa_flags = SA_RESTART | (repeats == Repeats::kEndProgram ? static_cast<int>(SA_RESETHAND) : 0);
  for (const int signal : signals) {
    struct sigaction previous = {};
    sigaction(signal, &action, &previous);
    previous_.emplace_back(signal, previous);
  }
}

InterruptGuard::~InterruptGuard() {
  for (const auto& [signal, action] : previous_) sigaction(signal, &action, nullptr);
}

bool InterruptGuard::interrupted() { return came != 0; }

}  // namespace outrider
