// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>

namespace outrider {

// One value per class of batch sizes, in sequences; the sizes from a power of two to the next share a class.
template <typename T>
class ByBatchSize {
 public:
  static constexpr size_t kClasses = 12;

  T& operator[](double size) { return known_[index(size)]; }

  // The value of the class nearest to `size` for which is_known(value) holds; the smaller class wins a tie.
  // Null if there is none.
  template <typename IsKnown>
  const T* nearest(double size, IsKnown&& is_known) const {
    const size_t own = index(size);
    for (size_t distance = 0; distance < kClasses; ++distance) {
      if (distance <= own && is_known(known_[own - distance])) return &known_[own - distance];
      if (own + distance < kClasses && is_known(known_[own + distance])) return &known_[own + distance];
    }
    return nullptr;
  }

 private:
  static size_t index(double size) {
    const auto power = static_cast<size_t>(std::bit_width(static_cast<unsigned>(std::max(1.0, size)))) - 1;
    return std::min(power, kClasses - 1);
  }

  std::array<T, kClasses> known_{};
};

}  // namespace outrider
