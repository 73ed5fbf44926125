// SPDX-License-Identifier: Apache-2.0
// Times of passes by operation, for `bench --profile`.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/packed_matrix.h"

namespace outrider {

// Work that an operation cannot do without.
struct OperationCost {
  int64_t bytes = 0;                       // of weights, cached entries, inputs and outputs
  int64_t operations = 0;                  // multiplications and additions of products and attention
  InputLayout inputs = InputLayout::kF32;  // of a product: says which numbers it multiplies
};

struct OperationTimes {
  std::string name;
  int64_t calls = 0;
  double seconds = 0;
  OperationCost cost;  // sums over the calls
};

class PassProfile {
 public:
  void add(std::string_view name, const OperationCost& cost, double seconds);
  // In the order in which they first ran.
  std::span<const OperationTimes> operations() const { return operations_; }

 private:
  std::vector<OperationTimes> operations_;
};

// Adds the time until its destruction to a profile, if there is one.
class OperationTimer {
 public:
  // `name` must outlive the timer.
  OperationTimer(PassProfile* profile, std::string_view name, const OperationCost& cost)
      : profile_(profile), name_(name), cost_(cost) {
    if (profile_ != nullptr) start_ = Clock::now();
  }
  ~OperationTimer() {
    if (profile_ != nullptr)
      profile_->add(name_, cost_, std::chrono::duration<double>(Clock::now() - start_).count());
  }
  OperationTimer(const OperationTimer&) = delete;
  OperationTimer& operator=(const OperationTimer&) = delete;

 private:
  using Clock = std::chrono::steady_clock;

  PassProfile* profile_;
  std::string_view name_;
  OperationCost cost_;
  Clock::time_point start_;
};

}  // namespace outrider
