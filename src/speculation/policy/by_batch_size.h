// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>

namespace outrider {

// Something learned of batches by their size, in sequences; those between two powers of two share one.
template <typename T>
class ByBatchSize {
 public:
  static constexpr size_t kClasses = 12;

  T& operator[](double size) { return known_[index(size)]; }

  // What is known of the size nearest to this one, of the smaller of two. Null: is_known(T) holds for none.
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
