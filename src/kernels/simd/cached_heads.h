// SPDX-License-Identifier: Apache-2.0
// Head vectors of the KV cache: how each type is read in vectors, and written. They are padded with zeros to
// whole blocks of 32 numbers, so that a full vector can be read at every multiple of V::kLanes. At
// most kDirectQueries queries read a head's entries as they are; for more of them widening each entry once
// takes less time.
#pragma once

#include "kernels/isa_ops.h"

namespace outrider::simd {

template <typename V>
struct CachedF32 {
  static constexpr int kDirectQueries = 1 << 30;  // nothing is wider
  static typename V::Floats load(const uint8_t* head, int64_t d) {
    return V::load(reinterpret_cast<const float*>(head) + d);
  }
};

template <typename V>
struct CachedBf16 {
  static constexpr int kDirectQueries = 12;
  static int64_t offset(int64_t d) { return 2 * d; }  // of number d, in bytes
  static typename V::Floats load(const uint8_t* head, int64_t d) { return V::load_bf16(head + 2 * d); }
};

template <typename V>
struct CachedF16 {
  static constexpr int kDirectQueries = 4;
  static typename V::Floats load(const uint8_t* head, int64_t d) { return V::load_halves(head + 2 * d); }
};

template <typename V>
struct CachedE4m3 {
  static constexpr int kDirectQueries = 4;
  static typename V::Floats load(const uint8_t* head, int64_t d) { return V::load_e4m3(head + d); }
};

template <typename V>
struct CachedQ8 {
  static constexpr int kDirectQueries = 4;
  static constexpr int64_t kBlock = 32;
  static constexpr int64_t kBlockBytes = 34;                             // an f16 scale, then the codes
  static int64_t offset(int64_t d) { return d / kBlock * kBlockBytes; }  // of the block of number d, in bytes
  static typename V::Floats load(const uint8_t* head, int64_t d) {
    const uint8_t* block = head + offset(d);
    return V::mul(V::all_half(block), V::to_floats(V::signed_bytes(block + 2 + d % kBlock)));
  }
};

// The scale maps the largest magnitude to 127; codes round to nearest even.
template <typename V>
void store_q8_block(const typename V::Floats* x, uint8_t* out) {
  constexpr int kVectors = CachedQ8<V>::kBlock / V::kLanes;
  auto largest = V::all(0);
  auto nothing = V::all(0);  // stays zero unless a number is not finite
  for (int v = 0; v < kVectors; ++v) {
    largest = V::max(largest, V::max(x[v], V::sub(V::all(0), x[v])));
    nothing = V::multiply_add(x[v], V::all(0), nothing);
  }
  const float d = V::largest(largest) / 127;
  const float inverse = d > 0 ? 1 / d : 0;
  const uint16_t scale = f32_to_f16(d + V::sum(nothing));
  __builtin_memcpy(out, &scale, sizeof(scale));
  for (int v = 0; v < kVectors; ++v) {
    V::store_bytes(reinterpret_cast<int8_t*>(out) + 2 + v * V::kLanes,
                   V::round(V::mul(x[v], V::all(inverse))));
  }
}

template <typename V>
void store_unit(DType type, const typename V::Floats* x, uint8_t* out) {
  constexpr int kVectors = CachedQ8<V>::kBlock / V::kLanes;
  if (type == DType::kQ8_0) return store_q8_block<V>(x, out);
  for (int v = 0; v < kVectors; ++v) {
    const int64_t d = v * V::kLanes;
    if (type == DType::kF32) V::store(reinterpret_cast<float*>(out) + d, x[v]);
    if (type == DType::kBF16) V::store_bf16(out + 2 * d, x[v]);
    if (type == DType::kF16) V::store_halves(out + 2 * d, x[v]);
    if (type == DType::kE4M3) V::store_e4m3(out + d, x[v]);
  }
}

template <typename V>
void store_kv(const StoreKvArgs& args) {
  constexpr int64_t kUnit = CachedQ8<V>::kBlock;
  const int64_t unit_bytes = cached_head_bytes(args.type, kUnit);
  auto* out = reinterpret_cast<uint8_t*>(args.out);
  for (int64_t head = 0; head < args.heads; ++head) {
    const float* x = args.x + head * args.head_dim;
    for (int64_t d = 0; d < args.head_dim; d += kUnit, out += unit_bytes) {
      typename V::Floats numbers[kUnit / V::kLanes];
      for (int64_t lane = 0; lane < kUnit; lane += V::kLanes) {
        const int64_t left = args.head_dim - d - lane;
        numbers[lane / V::kLanes] =
            left > 0 ? V::load_first(x + d + lane, left < V::kLanes ? left : V::kLanes) : V::all(0);
      }
      store_unit<V>(args.type, numbers, out);
    }
  }
}

}  // namespace outrider::simd
