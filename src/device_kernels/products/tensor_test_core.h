// SPDX-License-Identifier: Apache-2.0
// A tensor core in f64, for tests.
#pragma once

#include <algorithm>
#include <cmath>

#include "device_kernels/products/tensor_products.h"

namespace outrider {

// A tensor core adds 16 products to a sum. It cuts each to a multiple of 2^(largest exponent - 25), and cuts
// the sum to f32. A product has the exponents of its factors, so it may be twice as large. All of it is exact
// in f64.
struct ReferenceCore {
  int least;  // exponent of the type

  int exponent(double x) const { return x == 0 ? -1000 : std::max(std::ilogb(x), least); }
  float add(const float* a, const float* b, float sum) const {
    int top = sum == 0 ? -1000 : std::max(std::ilogb(sum), -126);
    for (int i = 0; i < simt::kTileInputs; ++i) {
      if (a[i] != 0 && b[i] != 0) top = std::max(top, exponent(a[i]) + exponent(b[i]));
    }
    if (top == -1000) return 0;
    const auto cut = [top](double x) { return std::trunc(std::ldexp(x, 25 - top)); };
    double all = cut(sum);
    for (int i = 0; i < simt::kTileInputs; ++i)
      all += cut(static_cast<double>(a[i]) * static_cast<double>(b[i]));
    const double exact = std::ldexp(all, top - 25);
    const auto nearest = static_cast<float>(exact);
    return std::abs(static_cast<double>(nearest)) > std::abs(exact) ? std::nextafter(nearest, 0.0F) : nearest;
  }
};

}  // namespace outrider
