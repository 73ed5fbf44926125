// SPDX-License-Identifier: Apache-2.0
#include "kernels/avx2/vector.h"
#include "kernels/isa_ops.h"
#include "kernels/simd/linear.h"
#include "kernels/simd/peaks.h"

namespace outrider {
namespace {

// AVX2 with four products of bytes per instruction.
struct Avx2Vnni : Avx2 {
  static Ints add_nibble_products(Ints sums, Ints nibbles, Ints bytes) {
    return _mm256_dpbusd_avx_epi32(sums, nibbles, bytes);
  }
  static Ints begin_nibble_sums(int32_t start) { return all_ints(start); }
  static Ints end_nibble_sums(Ints sums, int32_t) { return sums; }
  // The instruction needs unsigned weights.
  static constexpr int kByteOffset = kByteZero;
  static Ints byte_weights(Ints a) { return _mm256_xor_si256(a, _mm256_set1_epi8(static_cast<char>(0x80))); }
  static Ints add_byte_products(Ints sums, Ints w, Ints x) { return _mm256_dpbusd_avx_epi32(sums, w, x); }
};

}  // namespace

// All bits equal avx2's: sums of integers are exact in any order.
IsaOps avx2_vnni_ops() {
  IsaOps ops = avx2_ops();
  ops.linear = {simd::linear<Avx2Vnni>};
  ops.multiply_add = simd::multiply_add<Avx2Vnni>;
  return ops;
}

}  // namespace outrider
