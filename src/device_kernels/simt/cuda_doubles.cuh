// SPDX-License-Identifier: Apache-2.0
// Lanes of f64 on a device, see emulated_doubles.h.
#pragma once

#include "device_kernels/simt/cuda.cuh"

namespace outrider::simt {

SIMT double add_rn(double a, double b) { return __dadd_rn(a, b); }
SIMT double sub_rn(double a, double b) { return __dsub_rn(a, b); }
SIMT double mul_rn(double a, double b) { return __dmul_rn(a, b); }
SIMT double div_rn(double a, double b) { return __ddiv_rn(a, b); }
SIMT double to_double(float a) { return static_cast<double>(a); }
SIMT double to_double(int a) { return __int2double_rn(a); }
SIMT double to_double(uint64_t a) { return __ull2double_rn(a); }
SIMT float to_float(double a) { return __double2float_rn(a); }
SIMT int low_word(double a) { return __double2loint(a); }
SIMT int high_word(double a) { return __double2hiint(a); }
SIMT double from_words(int low, int high) { return __hiloint2double(high, low); }
SIMT double from_bits(uint64_t a) { return __longlong_as_double(static_cast<long long>(a)); }
SIMT uint64_t bits_of(double a) { return static_cast<uint64_t>(__double_as_longlong(a)); }

}  // namespace outrider::simt
