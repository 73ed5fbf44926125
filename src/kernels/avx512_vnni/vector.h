// SPDX-License-Identifier: Apache-2.0
// Unnamed namespace on purpose, see isa_ops.h.
#pragma once

#include "kernels/avx512/vector.h"
#include "kernels/isa_ops.h"

namespace outrider {
namespace {

// AVX-512 with four products of bytes per instruction.
struct Avx512Vnni : Avx512 {
  static Ints add_nibble_products(Ints sums, Ints nibbles, Ints bytes) {
    return _mm512_dpbusd_epi32(sums, nibbles, bytes);
  }
  static Ints begin_nibble_sums(int32_t start) { return all_ints(start); }
  static Ints end_nibble_sums(Ints sums, int32_t) { return sums; }
  // The instruction needs unsigned weights.
  static constexpr int kByteOffset = kByteZero;
  static Ints byte_weights(Ints a) { return _mm512_xor_si512(a, _mm512_set1_epi8(static_cast<char>(0x80))); }
  static Ints add_byte_products(Ints sums, Ints w, Ints x) { return _mm512_dpbusd_epi32(sums, w, x); }
};

}  // namespace
}  // namespace outrider
