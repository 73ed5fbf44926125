// SPDX-License-Identifier: Apache-2.0
// The dialect on a device: a lane is a thread. See simt.h.
#pragma once

#include <cstdint>

#define SIMT __device__ __forceinline__
#define SIMT_PART SIMT
// The loop that follows is written out, so that arrays in it are registers.
#define SIMT_UNROLL _Pragma("unroll")

namespace outrider::simt {

constexpr int kWarp = 32;
constexpr unsigned kAllLanes = 0xFFFFFFFFU;

template <typename T>
using Lanes = T;
using Bools = bool;

SIMT int lane_id() { return static_cast<int>(threadIdx.x & 31); }

SIMT float fma_rn(float a, float b, float c) { return __fmaf_rn(a, b, c); }
SIMT float mul_rn(float a, float b) { return __fmul_rn(a, b); }
SIMT float add_rn(float a, float b) { return __fadd_rn(a, b); }
SIMT float sub_rn(float a, float b) { return __fsub_rn(a, b); }
SIMT float div_rn(float a, float b) { return __fdiv_rn(a, b); }
SIMT float sqrt_rn(float a) { return __fsqrt_rn(a); }
SIMT float abs_of(float a) { return fabsf(a); }
SIMT float max_of(float a, float b) { return a > b ? a : b; }
SIMT float min_of(float a, float b) { return a < b ? a : b; }
SIMT float to_float(int a) { return __int2float_rn(a); }
SIMT int round_int(float a) { return __float2int_rn(a); }
SIMT float from_bits(int a) { return __int_as_float(a); }
SIMT int bits_of(float a) { return __float_as_int(a); }
SIMT float from_half(int bits) {
  float number;
  asm("{.reg .b16 half; cvt.u16.u32 half, %1; cvt.f32.f16 %0, half;}" : "=f"(number) : "r"(bits));
  return number;
}

SIMT int half_bits_of(float a) {
  int bits;
  asm("{.reg .b16 half; cvt.rn.f16.f32 half, %1; cvt.u32.u16 %0, half;}" : "=r"(bits) : "f"(a));
  return bits;
}

template <typename T>
SIMT T select(bool mask, T a, T b) {
  return mask ? a : b;
}
template <typename T>
SIMT T shuffle_xor(T x, int mask) {
  return __shfl_xor_sync(kAllLanes, x, mask);
}
template <typename T>
SIMT T shuffle(T x, int from) {
  return __shfl_sync(kAllLanes, x, from);
}

// Replaces each byte of `codes`, a number from 0 to 15, by the byte of the table with this number.
SIMT int look_up(const int (&table)[4], int codes) {
  const int pairs = codes | codes >> 4;
  const int places = __byte_perm(pairs, 0, 0x4420) & 0x7777;
  const int low = __byte_perm(table[0], table[1], places), high = __byte_perm(table[2], table[3], places);
  const int is_high = (codes >> 3 & 0x01010101) * 255;
  return (low & ~is_high) | (high & is_high);
}

SIMT int dp4a(int a, int b, int c) { return __dp4a(a, b, c); }
SIMT void mma_s8(int (&c)[4], const int (&a)[4], const int (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
SIMT void mma_s8(int (&c)[4], const int (&a)[2], const int& b) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
               : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
               : "r"(a[0]), "r"(a[1]), "r"(b));
}

SIMT uint64_t to_long(int a) { return static_cast<uint64_t>(static_cast<int64_t>(a)); }
SIMT int low_word(uint64_t a) { return static_cast<int>(static_cast<uint32_t>(a)); }

SIMT bool any_lane(bool mask) { return __any_sync(kAllLanes, mask) != 0; }
SIMT int count_lanes(bool mask) { return __popc(__ballot_sync(kAllLanes, mask)); }
SIMT int count_before(bool mask) { return __popc(__ballot_sync(kAllLanes, mask) & ((1U << lane_id()) - 1)); }

struct Block {
  char* shared;

  SIMT int index() const { return static_cast<int>(blockIdx.x); }
  SIMT int count() const { return static_cast<int>(gridDim.x); }
  SIMT int warp() const { return static_cast<int>(threadIdx.x >> 5); }
  SIMT int warps() const { return static_cast<int>(blockDim.x >> 5); }
  SIMT void sync() const { __syncthreads(); }
  SIMT void sync_warp() const { __syncwarp(); }
  SIMT void wait_for_previous() const {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
  }
};

enum class Kind : uint8_t { kWeights, kRows, kList };

template <typename T>
struct Loaded {
  using Type = int;
};
template <>
struct Loaded<float> {
  using Type = float;
};
template <>
struct Loaded<double> {
  using Type = double;
};
template <>
struct Loaded<uint64_t> {
  using Type = uint64_t;
};
template <typename T>
struct Loaded<const T> : Loaded<T> {};

template <typename T, Kind kKind>
struct Global {
  T* data;
  int64_t count;  // of numbers, which the emulation checks
  using Number = typename Loaded<T>::Type;

  SIMT bool is_null() const { return data == nullptr; }
  SIMT Global from(int64_t first) const { return {data + first, count - first}; }
  SIMT Number load(int i) const { return static_cast<Number>(data[i]); }
  SIMT Number load_if(bool mask, int i, Number other) const { return mask ? load(i) : other; }
  SIMT Number load_one(int64_t i) const { return static_cast<Number>(data[i]); }
  SIMT Number load_some(int64_t first, int lanes, Number other) const {
    return lane_id() < lanes ? static_cast<Number>(data[first + lane_id()]) : other;
  }
  SIMT Number load_halves(int64_t first) const { return static_cast<Number>(data[first + (lane_id() >> 4)]); }
  SIMT Number load_twice(int64_t first) const { return static_cast<Number>(data[first + (lane_id() & 15)]); }
  SIMT void load_pairs(int64_t first, int (&words)[2]) const {
    const int2 both = reinterpret_cast<const int2*>(data + first)[lane_id()];
    words[0] = both.x;
    words[1] = both.y;
  }
  SIMT void load4(int i, int (&words)[4]) const {
    const int4 all = *reinterpret_cast<const int4*>(data + i);
    words[0] = all.x;
    words[1] = all.y;
    words[2] = all.z;
    words[3] = all.w;
  }
  SIMT void load2(int i, int (&words)[2]) const {
    const int2 both = *reinterpret_cast<const int2*>(data + i);
    words[0] = both.x;
    words[1] = both.y;
  }
  SIMT void store(int i, Number number) const { data[i] = static_cast<T>(number); }
  SIMT void store_if(bool mask, int i, Number number) const {
    if (mask) store(i, number);
  }
  SIMT void publish(int64_t i, int number) const {
    __threadfence_system();
    __syncwarp();
    if (lane_id() == 0) *static_cast<volatile T*>(data + i) = number;
  }
  SIMT int observe(int64_t i) const {
    return shuffle(static_cast<int>(*static_cast<const volatile T*>(data + i)), 0);
  }
  SIMT int arrive(int64_t i) const {
    __threadfence();
    __syncwarp();
    int before = 0;
    if (lane_id() == 0) before = atomicAdd(data + i, 1);
    before = shuffle(before, 0);
    __threadfence();
    return before;
  }
  SIMT int arrive_if(bool mask, int i) const {
    __threadfence();
    __syncwarp();
    const int before = mask ? atomicAdd(data + i, 1) : -1;
    __syncwarp();
    __threadfence();
    return before;
  }
};

template <typename T>
struct Shared {
  T* data;

  SIMT Shared(const Block& block, int byte, int) : data(reinterpret_cast<T*>(block.shared + byte)) {}
  SIMT T get(int i) const { return data[i]; }
  SIMT T get_one(int i) const { return data[i]; }
  SIMT T get_from(int i) const { return data[i + lane_id()]; }
  SIMT void get4(int i, T (&words)[4]) const {
    const int4 all = *reinterpret_cast<const int4*>(data + i);
    words[0] = reinterpret_cast<const T&>(all.x);
    words[1] = reinterpret_cast<const T&>(all.y);
    words[2] = reinterpret_cast<const T&>(all.z);
    words[3] = reinterpret_cast<const T&>(all.w);
  }
  SIMT void put(int i, T number) const { data[i] = number; }
  SIMT void put_from(int i, T number) const { data[i + lane_id()] = number; }
};

template <typename T, Kind kKind>
SIMT void copy_async(bool mask, const Shared<int>& to, int i, const Global<T, kKind>& view, int from) {
  if (!mask) return;
  const auto address = static_cast<unsigned>(__cvta_generic_to_shared(to.data + i));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(address), "l"(view.data + from) : "memory");
}
SIMT void group_copies(const Block&) { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int kGroups>
SIMT void wait_copies(const Block&) {
  asm volatile("cp.async.wait_group %0;" ::"n"(kGroups) : "memory");
}

}  // namespace outrider::simt
