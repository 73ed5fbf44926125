// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace outrider {

struct CodePointRange {
  uint32_t first = 0;
  uint32_t last = 0;  // included
};

// A set of Unicode scalar values; surrogates are never in it.
class CodePointSet {
 public:
  static constexpr uint32_t kLast = 0x10FFFF;

  CodePointSet() = default;
  CodePointSet(std::initializer_list<CodePointRange> ranges);

  void add(uint32_t first, uint32_t last);
  void add(const CodePointSet& other);
  CodePointSet negated() const;
  CodePointSet without(const CodePointSet& other) const;
  CodePointSet within(const CodePointSet& other) const;

  bool is_empty() const { return ranges_.empty(); }
  bool contains(uint32_t code_point) const;
  // Ascending, without overlaps; adjacent ranges are merged unless only surrogates lie between them.
  const std::vector<CodePointRange>& ranges() const { return ranges_; }

 private:
  std::vector<CodePointRange> ranges_;
};

// A set of UTF-8 encodings: any byte of the first range, then any byte of the second range, and so on.
struct Utf8Sequence {
  struct Bytes {
    uint8_t first = 0;
    uint8_t last = 0;
    friend bool operator==(const Bytes&, const Bytes&) = default;
    friend auto operator<=>(const Bytes&, const Bytes&) = default;
  };
  int length = 0;
  std::array<Bytes, 4> bytes;
};

// Sequences that together encode every member of the set once.
std::vector<Utf8Sequence> utf8_sequences(const CodePointSet& set);

}  // namespace outrider
