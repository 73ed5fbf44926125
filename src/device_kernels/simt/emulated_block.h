// SPDX-License-Identifier: Apache-2.0
// Blocks and memory of the emulation, as kernels see them. Faults are noted and the kernel goes on: what it
// reads outside a view or too early is NaN, and what it writes there is dropped.
#pragma once

#include "device_kernels/simt/emulated_wide.h"
#include "device_kernels/simt/fault.h"

namespace outrider::simt {

class EmulatedTeam;

struct Block {
  EmulatedTeam* team;
  int block_index;
  int block_count;
  int warp_index;
  int warp_count;
  int32_t* shared;  // words
  int shared_words;
  bool checks_races;

  SIMT int index() const { return block_index; }
  SIMT int count() const { return block_count; }
  SIMT int warp() const { return warp_index; }
  SIMT int warps() const { return warp_count; }
  void sync() const;
  void sync_warp() const;
  // Returns when the launches before this one have written all that they write.
  void wait_for_previous() const;
};

// The warp that runs on this thread.
struct RunningWarp {
  const Block* block = nullptr;
  bool has_waited = false;  // for previous launches
};
extern constinit thread_local RunningWarp running_warp;

void note_fault(Fault fault, const char* what);
void note_shared_access(const Block& block, int word, int lane, bool writes);
// 16 bytes for each of `lanes` lanes from `lane` on, side by side
void order_copies(const Block& block, int word, int lane, int lanes, const void* from);
void end_copy_group(const Block& block);
void wait_for_copies(const Block& block, int groups);

// The words that stand for numbers that are not there; as f32 they are NaN.
inline constexpr int32_t kPoison = -1;

enum class Kind : uint8_t { kWeights, kRows, kList };

// Small integers are loaded as int.
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

template <typename T>
SIMT T poison_number() {
  T poison;
  std::memset(&poison, 0xFF, sizeof(poison));
  return poison;
}

// Loads after a fault.
template <typename View>
SIMT_PART Lanes<typename View::Number> load_what_is_there(const View& view, const Bools& mask,
                                                          const Lanes<int>& i, typename View::Number other) {
  using Number = typename View::Number;
  Lanes<Number> r;
  for (int l = 0; l < kWarp; ++l) {
    const bool is_there = View::running_warp_may_read() && view.contains(i.v[l]);
    const Number number = is_there ? static_cast<Number>(view.data[i.v[l]]) : poison_number<Number>();
    r.v[l] = mask.v[l] != 0 ? number : other;
  }
  return r;
}

template <typename T, Kind kKind>
struct Global {
  T* data;
  int64_t count;
  using Number = typename Loaded<T>::Type;

  SIMT bool is_null() const { return data == nullptr; }
  // The view from number `first` on.
  SIMT Global from(int64_t first) const {
    if (first < 0 || first > count) {
      note_fault(Fault::kBounds, "a part of a view");
      return {data, 0};
    }
    return {data + first, count - first};
  }

  SIMT Lanes<Number> load(const Lanes<int>& i) const { return load_if(true, i, Number{}); }
  SIMT Lanes<Number> load_if(const Bools& mask, const Lanes<int>& i, Number other) const {
    if (!is_open() || !holds(mask, i, 1)) return load_what_is_there(*this, mask, i, other);
    Lanes<Number> r;
    for (int l = 0; l < kWarp; ++l) r.v[l] = mask.v[l] != 0 ? static_cast<Number>(data[i.v[l]]) : other;
    return r;
  }
  // A number for all lanes.
  SIMT Number load_one(int64_t i) const {
    const bool is_good = is_open() && i >= 0 && i < count;
    if (is_good) return static_cast<Number>(data[i]);
    if (is_open()) note_fault(Fault::kBounds, "a number for all lanes");
    return poison_number<Number>();
  }
  // Number first + lane of the first `lanes` lanes; the others have `other`.
  SIMT Lanes<Number> load_some(int64_t first, int lanes, Number other) const {
    if (!is_open() || !holds_run(first, lanes < kWarp ? lanes : kWarp))
      return Lanes<Number>(poison_number<Number>());
    Lanes<Number> r;
    const T* from = data + first;
    if (lanes >= kWarp) {
      for (int l = 0; l < kWarp; ++l) r.v[l] = static_cast<Number>(from[l]);
    } else {
      for (int l = 0; l < kWarp; ++l) r.v[l] = l < lanes ? static_cast<Number>(from[l]) : other;
    }
    return r;
  }
  // Number `first` for the lower half of the lanes, and the next one for the upper half.
  SIMT Lanes<Number> load_halves(int64_t first) const {
    if (!is_open() || !holds_run(first, 2)) return Lanes<Number>(poison_number<Number>());
    Lanes<Number> r;
    const auto low = static_cast<Number>(data[first]), high = static_cast<Number>(data[first + 1]);
    for (int l = 0; l < kWarp / 2; ++l) r.v[l] = low;
    for (int l = kWarp / 2; l < kWarp; ++l) r.v[l] = high;
    return r;
  }
  // Numbers first + lane % 16 of each lane.
  SIMT Lanes<Number> load_twice(int64_t first) const {
    if (!is_open() || !holds_run(first, kWarp / 2)) return Lanes<Number>(poison_number<Number>());
    Lanes<Number> r;
    const T* from = data + first;
    for (int l = 0; l < kWarp / 2; ++l) r.v[l] = static_cast<Number>(from[l]);
    for (int l = 0; l < kWarp / 2; ++l) r.v[l + kWarp / 2] = r.v[l];
    return r;
  }
  // Words first + 2 * lane and the next one of each lane; first is a multiple of 2.
  SIMT void load_pairs(int64_t first, Lanes<int> (&words)[2]) const {
    static_assert(sizeof(T) == 4);
    const bool is_good = is_open() && holds_run(first, 2 * kWarp);
    for (int w = 0; w < 2; ++w) {
      for (int l = 0; l < kWarp; ++l)
        words[w].v[l] = is_good ? static_cast<int>(data[first + 2 * l + w]) : kPoison;
    }
  }
  // Words i to i + 3, or i + 1, of each lane; i is a multiple of their number.
  SIMT void load4(const Lanes<int>& i, Lanes<int> (&words)[4]) const { load_words(i, words); }
  SIMT void load2(const Lanes<int>& i, Lanes<int> (&words)[2]) const { load_words(i, words); }

  SIMT void store(const Lanes<int>& i, const Lanes<Number>& numbers) const { store_if(true, i, numbers); }
  SIMT void store_if(const Bools& mask, const Lanes<int>& i, const Lanes<Number>& numbers) const {
    static_assert(kKind == Kind::kRows);
    const bool is_good = is_open() && holds(mask, i, 1);
    for (int l = 0; l < kWarp; ++l) {
      if (mask.v[l] == 0 || (!is_good && !contains(i.v[l]))) continue;
      data[i.v[l]] = static_cast<T>(numbers.v[l]);
    }
  }

  // Memory that the host maps. A number that is published comes after everything that the warp has stored; of
  // what the host has written, observe() sees the newest.
  SIMT void publish(int64_t i, int number) const {
    static_assert(kKind == Kind::kRows && sizeof(T) == 4);
    if (is_open() && holds_run(i, 1)) __atomic_store_n(data + i, number, __ATOMIC_RELEASE);
  }
  SIMT int observe(int64_t i) const {
    static_assert(kKind == Kind::kRows && sizeof(T) == 4);
    return is_open() && holds_run(i, 1) ? __atomic_load_n(data + i, __ATOMIC_ACQUIRE) : kPoison;
  }
  // Counts the warp at counter i; returns how many came before. All that the warp has stored comes before,
  // and the warp sees what these others had stored.
  SIMT int arrive(int64_t i) const {
    static_assert(kKind == Kind::kRows && sizeof(T) == 4);
    return is_open() && holds_run(i, 1) ? __atomic_fetch_add(data + i, 1, __ATOMIC_ACQ_REL) : kPoison;
  }

  // As arrive(), at counter i of each lane of the mask. Other lanes have any number.
  SIMT Lanes<int> arrive_if(const Bools& mask, const Lanes<int>& i) const {
    static_assert(kKind == Kind::kRows && sizeof(T) == 4);
    Lanes<int> before(kPoison);
    if (!is_open() || !holds(mask, i, 1)) return before;
    for (int l = 0; l < kWarp; ++l) {
      if (mask.v[l] != 0) before.v[l] = __atomic_fetch_add(data + i.v[l], 1, __ATOMIC_ACQ_REL);
    }
    return before;
  }

  template <int kWords>
  SIMT void load_words(const Lanes<int>& i, Lanes<int> (&words)[kWords]) const {
    static_assert(sizeof(T) == 4);
    const bool is_good = is_open() && holds(true, i, kWords);
    for (int l = 0; l < kWarp; ++l) {
      for (int w = 0; w < kWords; ++w) words[w].v[l] = is_good ? static_cast<int>(data[i.v[l] + w]) : kPoison;
    }
  }
  SIMT bool contains(int64_t i) const { return i >= 0 && i < count; }
  SIMT static bool running_warp_may_read() { return kKind == Kind::kWeights || running_warp.has_waited; }
  // Notes a fault where the numbers may not be used yet.
  SIMT static bool is_open() {
    if (running_warp_may_read()) return true;
    note_fault(Fault::kEarlyAccess, "a view before wait_for_previous()");
    return false;
  }
  // Notes a fault where the numbers from `first` on leave the view; fewer than one are none.
  SIMT bool holds_run(int64_t first, int numbers) const {
    if (numbers <= 0 || (first >= 0 && first + numbers <= count)) return true;
    note_fault(Fault::kBounds, "numbers side by side");
    return false;
  }
  // Notes a fault where a lane of the mask leaves the view with `width` numbers.
  SIMT bool holds(const Bools& mask, const Lanes<int>& i, int width) const {
    int32_t outside = 0;
    const int64_t end = count - width + 1;
    const auto limit = static_cast<uint32_t>(end < 0 ? 0 : end > INT32_MAX ? INT32_MAX : end);
    for (int l = 0; l < kWarp; ++l)
      outside |= mask.v[l] & -static_cast<int32_t>(static_cast<uint32_t>(i.v[l]) >= limit);
    if (outside != 0) note_fault(Fault::kBounds, "numbers of lanes");
    return outside == 0;
  }
};

// Words of shared memory from `byte` on.
template <typename T>
struct Shared {
  static_assert(sizeof(T) == 4);
  const Block& block;
  int first;
  int count;

  [[gnu::always_inline]] Shared(const Block& in, int byte, int numbers)
      : block(in), first(byte / 4), count(numbers) {
    if (first + count > block.shared_words) {
      note_fault(Fault::kBounds, "shared memory");
      count = 0;
    }
  }
  SIMT Lanes<T> get(const Lanes<int>& i) const {
    Lanes<T> r;
    const bool is_good = may_use(i, 1, false);
    for (int l = 0; l < kWarp; ++l) {
      const int32_t word = is_good ? block.shared[first + i.v[l]] : kPoison;
      std::memcpy(&r.v[l], &word, sizeof(word));
    }
    return r;
  }
  // A number for all lanes.
  SIMT T get_one(int i) const { return get(Lanes<int>(i)).v[0]; }
  // Words i to i + 3 of each lane; i is a multiple of 4.
  SIMT void get4(const Lanes<int>& i, Lanes<T> (&words)[4]) const {
    const bool is_good = may_use(i, 4, false);
    for (int l = 0; l < kWarp; ++l) {
      for (int w = 0; w < 4; ++w) {
        const int32_t word = is_good ? block.shared[first + i.v[l] + w] : kPoison;
        std::memcpy(&words[w].v[l], &word, sizeof(word));
      }
    }
  }
  // Number first + lane of each lane.
  SIMT Lanes<T> get_from(int i) const {
    if (block.checks_races || !holds_run(i)) return get(lane_id() + Lanes<int>(i));
    Lanes<T> r;
    std::memcpy(r.v, &block.shared[first + i], sizeof(r.v));
    return r;
  }
  SIMT void put_from(int i, const Lanes<T>& numbers) const {
    if (block.checks_races || !holds_run(i)) return put(lane_id() + Lanes<int>(i), numbers);
    std::memcpy(&block.shared[first + i], numbers.v, sizeof(numbers.v));
  }
  SIMT void put(const Lanes<int>& i, const Lanes<T>& numbers) const {
    if (!may_use(i, 1, true)) return;
    for (int l = 0; l < kWarp; ++l) std::memcpy(&block.shared[first + i.v[l]], &numbers.v[l], sizeof(T));
  }

  SIMT bool holds_run(int i) const { return i >= 0 && i + kWarp <= count; }
  // Notes a fault where a lane leaves the view with `width` words.
  SIMT bool holds(const Lanes<int>& i, int width) const {
    int32_t outside = 0;
    const auto limit = static_cast<uint32_t>(count < width ? 0 : count - width + 1);
    for (int l = 0; l < kWarp; ++l) outside |= -static_cast<int32_t>(static_cast<uint32_t>(i.v[l]) >= limit);
    if (outside != 0) note_fault(Fault::kBounds, "shared memory");
    return outside == 0;
  }
  SIMT bool may_use(const Lanes<int>& i, int width, bool writes) const {
    if (!holds(i, width)) return false;
    if (!block.checks_races) return true;
    for (int l = 0; l < kWarp; ++l) {
      for (int w = 0; w < width; ++w) note_shared_access(block, first + i.v[l] + w, l, writes);
    }
    return true;
  }
};

// Whether 16 bytes of every lane follow the 16 bytes of the lane before it, in both places.
SIMT bool are_side_by_side(const Bools& mask, const Lanes<int>& i, const Lanes<int>& from) {
  bool elsewhere = false;
  for (int l = 0; l < kWarp; ++l)
    elsewhere |= mask.v[l] == 0 || i.v[l] != i.v[0] + 4 * l || from.v[l] != from.v[0] + 4 * l;
  return !elsewhere;
}

// Orders the copy of 16 bytes for each lane of the mask: words `i` to `i + 3` of shared memory come from the
// view's numbers at `from`. Both are multiples of 4.
template <typename T, Kind kKind>
SIMT void copy_async(const Bools& mask, const Shared<int>& to, const Lanes<int>& i,
                     const Global<T, kKind>& view, const Lanes<int>& from) {
  static_assert(sizeof(T) == 4);
  if (!view.is_open() || !view.holds(mask, from, 4) || !to.holds(select(mask, i, Lanes<int>(0)), 4)) return;
  if (are_side_by_side(mask, i, from))
    return order_copies(to.block, to.first + i.v[0], 0, kWarp, view.data + from.v[0]);
  for (int l = 0; l < kWarp; ++l) {
    if (mask.v[l] != 0) order_copies(to.block, to.first + i.v[l], l, 1, view.data + from.v[l]);
  }
}
// The copies ordered since the last group are one more group.
SIMT void group_copies(const Block& block) { end_copy_group(block); }
// Returns when all but the newest kGroups groups of this warp have arrived.
template <int kGroups>
SIMT void wait_copies(const Block& block) {
  wait_for_copies(block, kGroups);
}

}  // namespace outrider::simt
