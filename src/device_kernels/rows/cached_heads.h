// SPDX-License-Identifier: Apache-2.0
// Head vectors of the KV cache, padded with zeros to whole units of 32 numbers, as
// kernels/simd/cached_heads.h has them. A number of a head is read by its place in the cache and its place in
// the head.
#pragma once

#include "device_kernels/simt/bf16_bits.h"

namespace outrider::simt {

inline constexpr int kHeadUnit = 32;

struct CachedF32 {
  using Stored = float;
  static constexpr int kUnitNumbers = kHeadUnit;  // Stored numbers of a unit
  SIMT static Floats load(const Rows<const float>& cache, Ints head, Ints d) { return cache.load(head + d); }
  SIMT static void store(const Rows<float>& unit, Floats x) { unit.store(lane_id(), x); }
};

struct CachedBf16 {
  using Stored = uint16_t;
  static constexpr int kUnitNumbers = kHeadUnit;
  SIMT static Floats widen(Ints bits) { return from_bits(bits << Ints(16)); }
  SIMT static Floats load(const Rows<const uint16_t>& cache, Ints head, Ints d) {
    return widen(cache.load(head + d));
  }
  SIMT static void store(const Rows<uint16_t>& unit, Floats x) { unit.store(lane_id(), bf16_bits_of(x)); }
};

struct CachedF16 {
  using Stored = uint16_t;
  static constexpr int kUnitNumbers = kHeadUnit;
  SIMT static Floats widen(Ints bits) { return from_half(bits); }
  SIMT static Floats load(const Rows<const uint16_t>& cache, Ints head, Ints d) {
    return widen(cache.load(head + d));
  }
  SIMT static void store(const Rows<uint16_t>& unit, Floats x) { unit.store(lane_id(), half_bits_of(x)); }
};

// E4M3; NaN stays NaN.
struct CachedE4m3 {
  using Stored = int8_t;
  static constexpr int kUnitNumbers = kHeadUnit;
  // The bits as half precision are 2^-8 times the number. Bit 14 of a code with 16 bits is its sign, too.
  SIMT static Floats widen_byte(Ints code) {
    const Bools is_nan = (code & Ints(0x7F)) == Ints(0x7F);
    const Ints half = (code << Ints(7)) & Ints(0xBFFF);
    return mul_rn(from_half(select(is_nan, Ints(0x7FFF), half)), Floats(256.0F));
  }
  SIMT static Floats load(const Rows<const int8_t>& cache, Ints head, Ints d) {
    return widen_byte(cache.load(head + d));
  }
  // Numbers beyond 448 become 448, and NaN what is not finite; others round to nearest even.
  SIMT static void store(const Rows<int8_t>& unit, Floats x) {
    const Floats magnitude = abs_of(x),
                 bounded = select(magnitude < Floats(448.0F), magnitude, Floats(448.0F));
    const Ints bits = bits_of(bounded), odd = (bits >> Ints(20)) & Ints(1);
    const Ints normal = ((bits + odd + Ints(0x7FFFF)) >> Ints(20)) - Ints(120 << 3);
    // Multiples of 2^-9, which the sum rounds to.
    const Floats units(16384.0F);
    const Ints small = bits_of(add_rn(bounded, units)) - bits_of(units);
    const Ints number = select(bounded < Floats(1.0F / 64), small, normal);
    const Ints code = select(magnitude < Floats(__builtin_huge_valf()), number, Ints(0x7F));
    unit.store(lane_id(), code | ((bits_of(x) >> Ints(31)) << Ints(7)));
  }
};

// An f16 scale, then 32 codes, two in each number.
struct CachedQ8 {
  using Stored = uint16_t;
  static constexpr int kUnitNumbers = 17;
  SIMT static Floats load(const Rows<const uint16_t>& cache, Ints head, Ints d) {
    const Ints unit = head + (d >> Ints(5)) * Ints(kUnitNumbers), i = d & Ints(kHeadUnit - 1);
    const Ints both = cache.load(unit + Ints(1) + (i >> Ints(1)));
    const Ints code = (both << (Ints(24) - ((i & Ints(1)) << Ints(3)))) >> Ints(24);
    return mul_rn(from_half(cache.load(unit)), to_float(code));
  }
  // The scale maps the largest magnitude to 127; a number that is not finite makes it NaN.
  SIMT static void store(const Rows<uint16_t>& unit, Floats x) {
    const Floats largest = max_lanes(abs_of(x), kWarp);
    const Floats nothing = sum_lanes(mul_rn(x, Floats(0.0F)), kWarp);
    const Floats d = div_rn(largest, Floats(127.0F));
    const Bools any = d > Floats(0.0F);
    const Floats inverse = select(any, div_rn(Floats(1.0F), select(any, d, Floats(1.0F))), Floats(0.0F));
    const Ints code = round_int(mul_rn(x, inverse)) & Ints(255);
    const Ints lane = lane_id();
    const Ints pair = code | (shuffle_xor(code, 1) << Ints(8));
    unit.store_if((lane & Ints(1)) == Ints(0), (lane >> Ints(1)) + Ints(1), pair);
    unit.store_if(lane == Ints(0), lane, half_bits_of(add_rn(d, nothing)));
  }
};

// A warp stores a head of a row, in whole units.
template <typename Cached>
SIMT void store_head(const Rows<typename Cached::Stored>& to, const Rows<const float>& x, int head_dim) {
  const int units = (head_dim + kHeadUnit - 1) / kHeadUnit;
  for (int unit = 0; unit < units; ++unit) {
    const Ints i = lane_id() + Ints(unit * kHeadUnit);
    Cached::store(to.from(unit * Cached::kUnitNumbers), x.load_if(i < Ints(head_dim), i, 0.0F));
  }
}

// Heads of slots become rows of f32.
template <typename Cached>
struct ReadHeadsArgs {
  Rows<const typename Cached::Stored> cache;  // [slots, heads, head_dim in whole units]
  List<int> slots;                            // [rows]
  Rows<float> y;                              // rows y_stride apart, their heads head_stride apart
  int rows;
  int heads;
  int head_dim;
  int y_stride;
  int head_stride;
};
using ReadF32Args = ReadHeadsArgs<CachedF32>;
using ReadBf16Args = ReadHeadsArgs<CachedBf16>;
using ReadF16Args = ReadHeadsArgs<CachedF16>;
using ReadE4m3Args = ReadHeadsArgs<CachedE4m3>;
using ReadQ8Args = ReadHeadsArgs<CachedQ8>;

// A warp takes a head of a row. A row with a slot below 0 stays as it is.
template <typename Cached>
SIMT void read_heads(const Block& block, const ReadHeadsArgs<Cached>& args) {
  const int item = block.index() * block.warps() + block.warp();
  if (item >= args.rows * args.heads) return;
  block.wait_for_previous();
  const int row = item / args.heads, head = item % args.heads;
  const int units = (args.head_dim + kHeadUnit - 1) / kHeadUnit, slot = args.slots.load_one(row);
  if (slot < 0) return;
  const int64_t place = static_cast<int64_t>(slot) * args.heads + head;
  const auto from = args.cache.from(place * units * Cached::kUnitNumbers);
  const auto y = args.y.from(static_cast<int64_t>(row) * args.y_stride + head * args.head_stride);
  for (int first = 0; first < args.head_dim; first += kWarp) {
    const Ints d = lane_id() + Ints(first);
    y.store_if(d < Ints(args.head_dim), d, Cached::load(from, Ints(0), d));
  }
}

}  // namespace outrider::simt
