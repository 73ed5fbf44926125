// SPDX-License-Identifier: Apache-2.0
// Operators and functions of emulated lanes, lane by lane, for numbers of several types.
#pragma once

// A member of Lanes<T>.
#define OUTRIDER_SIMT_COMPARISON(op)                                                  \
  SIMT friend Bools operator op(const Lanes& a, const Lanes& b) {                     \
    Bools r;                                                                          \
    for (int l = 0; l < kWarp; ++l) r.v[l] = -static_cast<int32_t>(a.v[l] op b.v[l]); \
    return r;                                                                         \
  }

// A function of two numbers, x and y, for lanes and for plain numbers.
#define OUTRIDER_SIMT_BINARY(T, name, expression)                  \
  SIMT T name(T x, T y) { return expression; }                     \
  SIMT Lanes<T> name(const Lanes<T>& a, const Lanes<T>& b) {       \
    Lanes<T> r;                                                    \
    for (int l = 0; l < kWarp; ++l) r.v[l] = name(a.v[l], b.v[l]); \
    return r;                                                      \
  }
