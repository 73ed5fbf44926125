// SPDX-License-Identifier: Apache-2.0
#include "grammar/code_points.h"

#include <algorithm>

namespace outrider {
namespace {

constexpr uint32_t kFirstSurrogate = 0xD800;
constexpr uint32_t kLastSurrogate = 0xDFFF;

int encode(uint32_t code_point, std::array<uint8_t, 4>& out) {
  const auto tail = [&](int shift) { return static_cast<uint8_t>(0x80 | ((code_point >> shift) & 0x3F)); };
  if (code_point < 0x80) {
    out[0] = static_cast<uint8_t>(code_point);
    return 1;
  }
  if (code_point < 0x800) {
    out = {static_cast<uint8_t>(0xC0 | (code_point >> 6)), tail(0)};
    return 2;
  }
  if (code_point < 0x10000) {
    out = {static_cast<uint8_t>(0xE0 | (code_point >> 12)), tail(6), tail(0)};
    return 3;
  }
  out = {static_cast<uint8_t>(0xF0 | (code_point >> 18)), tail(12), tail(6), tail(0)};
  return 4;
}

// Precondition: all of [first, last] encode to the same number of bytes.
void split(uint32_t first, uint32_t last, std::vector<Utf8Sequence>& out) {
  for (const int bits : {6, 12, 18}) {
    const uint32_t low = (1U << bits) - 1;
    if ((first & ~low) == (last & ~low) || last < 0x80) continue;
    if ((first & low) != 0) {
      split(first, first | low, out);
      split((first | low) + 1, last, out);
      return;
    }
    if ((last & low) != low) {
      split(first, (last & ~low) - 1, out);
      split(last & ~low, last, out);
      return;
    }
  }
  std::array<uint8_t, 4> low_bytes{};
  std::array<uint8_t, 4> high_bytes{};
  Utf8Sequence sequence;
  sequence.length = encode(first, low_bytes);
  encode(last, high_bytes);
  for (int i = 0; i < sequence.length; ++i) sequence.bytes[i] = {low_bytes[i], high_bytes[i]};
  out.push_back(sequence);
}

}  // namespace

CodePointSet::CodePointSet(std::initializer_list<CodePointRange> ranges) {
  for (const CodePointRange& range : ranges) add(range.first, range.last);
}

void CodePointSet::add(uint32_t first, uint32_t last) {
  if (first < kFirstSurrogate && last > kLastSurrogate) {
    add(first, kFirstSurrogate - 1);
    add(kLastSurrogate + 1, last);
    return;
  }
  if (first >= kFirstSurrogate && first <= kLastSurrogate) first = kLastSurrogate + 1;
  if (last >= kFirstSurrogate && last <= kLastSurrogate) last = kFirstSurrogate - 1;
  if (first > last) return;
  auto begin =
      std::lower_bound(ranges_.begin(), ranges_.end(), first,
                       [](const CodePointRange& range, uint32_t value) { return range.last + 1 < value; });
  auto end = begin;
  while (end != ranges_.end() && end->first <= last + 1) {
    first = std::min(first, end->first);
    last = std::max(last, end->last);
    ++end;
  }
  ranges_.insert(ranges_.erase(begin, end), {first, last});
}

void CodePointSet::add(const CodePointSet& other) {
  for (const CodePointRange& range : other.ranges_) add(range.first, range.last);
}

CodePointSet CodePointSet::negated() const {
  CodePointSet result;
  uint32_t next = 0;
  for (const CodePointRange& range : ranges_) {
    if (range.first > next) result.add(next, range.first - 1);
    next = range.last + 1;
  }
  if (next <= kLast) result.add(next, kLast);
  return result;
}

CodePointSet CodePointSet::without(const CodePointSet& other) const { return within(other.negated()); }

CodePointSet CodePointSet::within(const CodePointSet& other) const {
  CodePointSet result;
  auto theirs = other.ranges_.begin();
  for (const CodePointRange& range : ranges_) {
    while (theirs != other.ranges_.end() && theirs->last < range.first) ++theirs;
    for (auto it = theirs; it != other.ranges_.end() && it->first <= range.last; ++it) {
      result.add(std::max(range.first, it->first), std::min(range.last, it->last));
    }
  }
  return result;
}

bool CodePointSet::contains(uint32_t code_point) const {
  return std::any_of(ranges_.begin(), ranges_.end(), [&](const CodePointRange& range) {
    return range.first <= code_point && code_point <= range.last;
  });
}

std::vector<Utf8Sequence> utf8_sequences(const CodePointSet& set) {
  std::vector<Utf8Sequence> sequences;
  for (const CodePointRange& range : set.ranges()) {
    uint32_t first = range.first;
    for (const uint32_t last : {0x7FU, 0x7FFU, 0xFFFFU, 0x10FFFFU}) {
      if (first > last || first > range.last) continue;
      split(first, std::min(last, range.last), sequences);
      first = last + 1;
    }
  }
  return sequences;
}

}  // namespace outrider
