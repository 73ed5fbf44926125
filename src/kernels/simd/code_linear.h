// SPDX-License-Identifier: Apache-2.0
// Products of 8-bit inputs with weights stored as codes, on panels of 16 output features: a lane of a vector
// holds four inputs of one feature.
//
// Sums within a group (or, for kChannels, over all inputs) are sums of integers, exact in any order; groups
// are added in f32, in order. Therefore the bits of an output depend only on its own row and weights, and
// agree between instruction sets.
#pragma once

#include "kernels/isa_ops.h"
#include "kernels/simd/row_pairs.h"

namespace outrider::simd {

// Few rows prefetch codes and scales whole blocks ahead into the first-level cache, near so many bytes.
inline constexpr int64_t kCodePrefetchBytes = 3072;
// The products of eight rows take about as long as reading. Only the second-level cache has room for as many
// reads under way as keep memory busy meanwhile.
inline constexpr int kRowsOfFarPrefetch = 8;
inline constexpr int64_t kFarPrefetchBytes = 12288;

template <int kRows>
void prefetch_codes(const std::byte* at) {
  if constexpr (kRows < kRowsOfFarPrefetch) {
    __builtin_prefetch(at);
  } else {
    __builtin_prefetch(at, /*rw=*/0, /*locality=*/2);
  }
}

inline constexpr int64_t kRunBytes = 80 << 10;  // see panels_of_run()

template <typename V>
typename V::Ints four_inputs(const int8_t* codes) {
  int32_t four;
  __builtin_memcpy(&four, codes, sizeof(four));
  return V::all_ints(four);
}

// The codes of four inputs of a panel are one line of the caches.
template <typename V>
inline constexpr int kVectorsOfLine = kDotFeatures / V::kLanes;

// Vectors of codes that are multiplied with the same inputs: parts of one panel, or of neighbouring panels.
struct CodeVectors {
  const std::byte* first;
  int64_t apart;  // bytes from vector to vector
  int64_t ahead;  // bytes to the codes that are prefetched meanwhile
};

// Nibbles of a group of one vector of features: four inputs, from number `input` of the group on.
template <typename V, int kGroup>
typename V::Ints four_nibbles(const std::byte* vector, int input) {
  const auto both = V::load_ints(vector + input % (kGroup / 2) * kDotFeatures);
  return input < kGroup / 2 ? V::low_nibbles(both) : V::high_nibbles(both);
}

// Integer sums of kRows rows, [kVectors][kRows], over one group of weights, at input `first` of its inputs'
// group. Without mins, the code kNibbleZero stands for zero.
template <int kGroupSize, bool kMin>
struct Nibbles {
  static constexpr bool kHasMin = kMin;
  static constexpr int kGroup = kGroupSize;
  static constexpr int kBytes = kGroup * kDotFeatures / 2;
  static constexpr bool kIsCentred = !kMin;
  static_assert(kMin || kGroup == kInputGroup);

  template <typename V>
  static typename V::Ints four(const std::byte* vector, int input, const int8_t*) {
    return four_nibbles<V, kGroup>(vector, input);
  }

  template <typename V, int kRows, int kVectors>
  static void products(CodeVectors weights, const InputGroup* x, int first, const int8_t*,
                       typename V::Ints (&sums)[kVectors][kRows]) {
    const auto start = [x](int r) { return kMin ? 0 : x[r].zero_sum; };
    for (auto& of_vector : sums) {
      for (int r = 0; r < kRows; ++r) of_vector[r] = V::begin_nibble_sums(start(r));
    }
#pragma GCC unroll 4
    for (int step = 0; step < kGroup / 8; ++step) {
      typename V::Ints low[kVectors], high[kVectors];
      for (int v = 0; v < kVectors; ++v) {
        const std::byte* at = weights.first + v * weights.apart + step * 64;
        if (v % kVectorsOfLine<V> == 0) prefetch_codes<kRows>(at + weights.ahead);
        const auto both = V::load_ints(at);
        low[v] = V::low_nibbles(both);
        high[v] = V::high_nibbles(both);
      }
      for (int r = 0; r < kRows; ++r) {
        const int8_t* codes = x[r].codes + first + 4 * step;
        const auto x_low = four_inputs<V>(codes), x_high = four_inputs<V>(codes + kGroup / 2);
        for (int v = 0; v < kVectors; ++v) {
          sums[v][r] = V::add_nibble_products(sums[v][r], low[v], x_low);
          sums[v][r] = V::add_nibble_products(sums[v][r], high[v], x_high);
        }
      }
    }
    for (auto& of_vector : sums) {
      for (int r = 0; r < kRows; ++r) of_vector[r] = V::end_nibble_sums(of_vector[r], start(r));
    }
  }
};

// Where sums of V::add_byte_products() begin, so that what it adds to the products is taken away.
template <typename V, int kGroup, int kRows, int kVectors>
void begin_byte_sums(const InputGroup* x, int first, typename V::Ints (&sums)[kVectors][kRows]) {
  for (int r = 0; r < kRows; ++r) {
    const int32_t start = kGroup == kInputGroup ? x[r].byte_zero_sum : x[r].byte_zero_sums[first / 16];
    for (auto& of_vector : sums) of_vector[r] = V::all_ints(V::kByteOffset == 0 ? 0 : start);
  }
}

// Codes of four bits, each of which stands for one of the sixteen 8-bit `numbers`.
template <int kGroupSize>
struct TableNibbles {
  static constexpr bool kHasMin = false;
  static constexpr int kGroup = kGroupSize;
  static constexpr int kBytes = kGroup * kDotFeatures / 2;
  static constexpr bool kIsCentred = false;

  template <typename V>
  static typename V::Ints four(const std::byte* vector, int input, const int8_t* numbers) {
    return V::look_up(V::sixteen_bytes(numbers), four_nibbles<V, kGroup>(vector, input));
  }

  template <typename V, int kRows, int kVectors>
  static void products(CodeVectors weights, const InputGroup* x, int first, const int8_t* numbers,
                       typename V::Ints (&sums)[kVectors][kRows]) {
    const auto table = V::byte_weights(V::sixteen_bytes(numbers));
    begin_byte_sums<V, kGroup>(x, first, sums);
#pragma GCC unroll 4
    for (int step = 0; step < kGroup / 8; ++step) {
      typename V::Ints low[kVectors], high[kVectors];
      for (int v = 0; v < kVectors; ++v) {
        const std::byte* at = weights.first + v * weights.apart + step * 64;
        if (v % kVectorsOfLine<V> == 0) prefetch_codes<kRows>(at + weights.ahead);
        const auto both = V::load_ints(at);
        low[v] = V::look_up(table, V::low_nibbles(both));
        high[v] = V::look_up(table, V::high_nibbles(both));
      }
      for (int r = 0; r < kRows; ++r) {
        const int8_t* codes = x[r].codes + first + 4 * step;
        const auto x_low = four_inputs<V>(codes), x_high = four_inputs<V>(codes + kGroup / 2);
        for (int v = 0; v < kVectors; ++v) {
          sums[v][r] = V::add_byte_products(sums[v][r], low[v], x_low);
          sums[v][r] = V::add_byte_products(sums[v][r], high[v], x_high);
        }
      }
    }
  }
};

template <int kGroupSize, bool kMin>
struct Bytes {
  static constexpr bool kHasMin = kMin;
  static constexpr int kGroup = kGroupSize;
  static constexpr int kBytes = kGroup * kDotFeatures;
  static constexpr bool kIsCentred = false;

  template <typename V>
  static typename V::Ints four(const std::byte* vector, int input, const int8_t*) {
    return V::load_ints(vector + input * kDotFeatures);
  }

  template <typename V, int kRows, int kVectors>
  static void products(CodeVectors weights, const InputGroup* x, int first, const int8_t*,
                       typename V::Ints (&sums)[kVectors][kRows]) {
    begin_byte_sums<V, kGroup>(x, first, sums);
#pragma GCC unroll 8
    for (int step = 0; step < kGroup / 4; ++step) {
      typename V::Ints w[kVectors];
      for (int v = 0; v < kVectors; ++v) {
        const std::byte* at = weights.first + v * weights.apart + step * 64;
        if (v % kVectorsOfLine<V> == 0) prefetch_codes<kRows>(at + weights.ahead);
        w[v] = V::byte_weights(V::load_ints(at));
      }
      for (int r = 0; r < kRows; ++r) {
        const auto four = four_inputs<V>(x[r].codes + first + 4 * step);
        for (int v = 0; v < kVectors; ++v) sums[v][r] = V::add_byte_products(sums[v][r], w[v], four);
      }
    }
  }
};

// The sums of Codes::products(), row pair by row pair.
template <typename V, typename Codes, int kRows, int kVectors>
void pair_products(CodeVectors weights, const InputGroup* x, int first, const int8_t* numbers,
                   typename V::Ints (&sums)[kVectors][kRows]) {
  PairSums<V, kRows, kVectors> pairs;
  pairs.clear();
  for (int input = 0; input < Codes::kGroup; input += 8) {
    typename V::Eight w[kVectors];
    for (int v = 0; v < kVectors; ++v) {
      const std::byte* vector = weights.first + v * weights.apart;
      w[v] = V::eight(Codes::template four<V>(vector, input, numbers),
                      Codes::template four<V>(vector, input + 4, numbers));
    }
    pairs.add(w, x->codes + first + input, sizeof(InputGroup));
  }
  for (int r = 0; r < kRows; ++r) {
    for (auto& of_vector : sums) of_vector[r] = V::all_ints(Codes::kIsCentred ? x[r].zero_sum : 0);
  }
  pairs.add_to(sums);
}

// The sum of a group's inputs, which its min is multiplied with.
template <typename V, int kGroup>
float scaled_sum(const InputGroup& x, int first) {
  return kGroup == kInputGroup ? x.scaled_sum : x.scale * static_cast<float>(x.sums[first / 16]);
}

// Neighbouring panels; their features are divided into vectors.
struct CodePanels {
  const LinearShare& share;
  const std::byte* stored;         // the first one
  int64_t feature;                 // its first one
  const std::byte* end = nullptr;  // of the panels that may be prefetched
  int64_t next = 0;                // bytes to the next run of panels; 0: this run is the last
  bool is_first = true;            // no earlier rows have prefetched the panels
};

// Inputs of some rows of one tile.
struct CodeInputs {
  const InputGroup* first;  // of the first row, in group 0
  int64_t apart;            // from group to group
  int64_t row;              // number of the first row
};

// Vectors of features from number `first` on.
template <typename V>
struct PanelVectors {
  static constexpr int kOfPanel = kDotFeatures / V::kLanes;
  const CodePanels& panels;
  int first;

  // Offset in bytes of a vector with features of `bytes` each.
  int64_t offset(int vector, int64_t bytes) const {
    const int at = first + vector;
    return at / kOfPanel * panels.share.panel_bytes + at % kOfPanel * V::kLanes * bytes;
  }
  CodeVectors codes(const std::byte* of_group, int64_t ahead) const {
    return {of_group + offset(0, 4), offset(1, 4) - offset(0, 4), ahead};
  }
  const uint8_t* scales(const std::byte* of_group, int vector) const {
    return reinterpret_cast<const uint8_t*>(of_group) + offset(vector, 2);
  }
  float unit(int vector) const {
    float unit;
    __builtin_memcpy(&unit, panels.stored + offset(vector, 0), sizeof(unit));
    return unit;
  }
  void store(int64_t row, int vector, typename V::Floats y) const {
    const LinearShare& share = panels.share;
    const int64_t feature = panels.feature + (first + vector) * V::kLanes;
    const int64_t left = share.n - feature;
    if (left > 0) V::store_first(share.y + row * share.n + feature, y, left < V::kLanes ? left : V::kLanes);
  }
};

// Prefetches of eight or more rows beside the weights that they read. The first group of rows reads a run of
// panels from memory, unless the rows before have prefetched it. The other groups find it in the second-level
// cache, and each prefetches some panels of the next run; fewer rows that are left over are no group.
template <typename V, int kVectors>
struct FarPrefetch {
  static constexpr int64_t kPanels = kVectors / PanelVectors<V>::kOfPanel;

  FarPrefetch(const PanelVectors<V>& vectors, int64_t row) : end(vectors.panels.end) {
    const CodePanels& panels = vectors.panels;
    const int64_t groups = panels.share.rows / V::kDotRows, group = row / V::kDotRows;
    if (group > 0 && group < groups) {
      distance = vectors.first / kVectors % (groups - 1) == group - 1 ? panels.next : 0;
    } else if (group == 0 && panels.is_first) {
      distance = kFarPrefetchBytes;
      panel_end = panels.stored + panels.share.panel_bytes;
      beyond = (kPanels - 1) * panels.share.panel_bytes;
    }
  }

  // Bytes from `at`, in the first of the vectors, to what is prefetched with it; 0: nothing. Where panels
  // that are read side by side end, it lies in the panels that follow all of them.
  int64_t ahead_of(const std::byte* at) const {
    const int64_t ahead = at + distance < panel_end ? distance : distance + beyond;
    return at + ahead < end ? ahead : 0;
  }

  const std::byte* end;
  const std::byte* panel_end = nullptr;
  int64_t distance = 0;
  int64_t beyond = 0;
};

// Prefetches so many bytes that lie `ahead` of `at`, in all panels of the vectors.
template <int kRows, int64_t kBytes, int kVectors, typename V>
void prefetch_panels(const PanelVectors<V>& vectors, const std::byte* at, int64_t ahead) {
  for (int v = 0; v < kVectors; v += PanelVectors<V>::kOfPanel) {
    for (int64_t line = 0; line < kBytes; line += 64)
      prefetch_codes<kRows>(at + vectors.offset(v, 0) + ahead + line);
  }
}

// Prefetches headers of panels, which lie as far ahead as codes do: `near` bytes for few rows.
template <int kRows, typename V, int kVectors>
void prefetch_headers(const PanelVectors<V>& vectors, const FarPrefetch<V, kVectors>& far, int64_t near) {
  const std::byte* header = vectors.panels.stored;
  const int64_t ahead = kRows < kRowsOfFarPrefetch ? near : far.ahead_of(header);
  prefetch_panels<kRows, kPanelHeader, kVectors>(vectors, header, ahead);
}

// Adds the integer sums of all groups, times the scales of both sides, to the outputs' sums, and subtracts
// the mins.
template <typename V, typename Codes, int kRows, int kVectors>
void code_rows(const PanelVectors<V>& vectors, const CodeInputs& inputs) {
  constexpr int64_t kGroups = kCodeBlock / Codes::kGroup;
  constexpr int64_t kScaleBytes = (Codes::kHasMin ? 2 : 1) * kGroups * kDotFeatures * 2;
  constexpr int64_t kBlockBytes = kScaleBytes + kGroups * Codes::kBytes;
  constexpr int64_t kBlocksAhead = (kCodePrefetchBytes + kBlockBytes / 2) / kBlockBytes;
  const LinearShare& share = vectors.panels.share;
  typename V::Floats y[kVectors][kRows];
  for (auto& of_vector : y) {
    for (auto& sum : of_vector) sum = V::all(0);
  }
  const FarPrefetch<V, kVectors> far(vectors, inputs.row);
  prefetch_headers<kRows>(vectors, far, kBlocksAhead * kBlockBytes);
  const std::byte* block = vectors.panels.stored + kPanelHeader;
  for (int64_t begin = 0; begin < share.k; begin += kCodeBlock) {
    const int64_t left = share.k - begin;
    const int64_t groups = left < kCodeBlock ? left / Codes::kGroup : kGroups;
    int64_t ahead = kBlocksAhead * kBlockBytes;
    if constexpr (kRows >= kRowsOfFarPrefetch) ahead = far.ahead_of(block);
    prefetch_panels<kRows, kScaleBytes, kVectors>(vectors, block, ahead);
    for (int64_t g = 0; g < groups; ++g) {
      const int64_t first = begin + g * Codes::kGroup;
      const InputGroup* x = inputs.first + first / kInputGroup * inputs.apart;
      typename V::Ints sums[kVectors][kRows];
      const auto within = static_cast<int>(first % kInputGroup);
      const std::byte* of_group = block + kScaleBytes + g * Codes::kBytes;
      if constexpr (kRows >= kRowsOfFarPrefetch) ahead = far.ahead_of(of_group);
      const CodeVectors codes = vectors.codes(of_group, ahead);
      if constexpr (kInPairs<V, kRows>) {
        pair_products<V, Codes>(codes, x, within, share.code_numbers, sums);
      } else {
        Codes::template products<V, kRows, kVectors>(codes, x, within, share.code_numbers, sums);
      }
      for (int v = 0; v < kVectors; ++v) {
        const uint8_t* scales = vectors.scales(block + g * kDotFeatures * 2, v);
        const auto scale = V::mul(V::load_halves(scales), V::all(vectors.unit(v)));
        for (int r = 0; r < kRows; ++r)
          y[v][r] = V::multiply_add(V::to_floats(sums[v][r]), V::mul(scale, V::all(x[r].scale)), y[v][r]);
        if constexpr (Codes::kHasMin) {
          const auto min = V::mul(V::load_halves(scales + kScaleBytes / 2), V::all(-vectors.unit(v)));
          for (int r = 0; r < kRows; ++r)
            y[v][r] = V::multiply_add(min, V::all(scaled_sum<V, Codes::kGroup>(x[r], within)), y[v][r]);
        }
      }
    }
    block += kBlockBytes;
  }
  for (int v = 0; v < kVectors; ++v) {
    for (int r = 0; r < kRows; ++r) vectors.store(inputs.row + r, v, y[v][r]);
  }
}

// Codes of 8 bits with one scale per feature and row.
struct Channels {};

// The inputs of row `row`: its tile, and its codes of step 0.
struct ChannelRow {
  const InputRowsHead* head;
  const int8_t* codes;
  int64_t place;  // in the tile
};

template <typename V>
ChannelRow channel_row(const LinearShare& share, int64_t row) {
  const int64_t steps = (share.k + kChannelDepth - 1) / kChannelDepth;
  const int64_t tile_bytes = static_cast<int64_t>(sizeof(InputRowsHead)) + steps * kInputRows * kChannelDepth;
  const std::byte* tile = share.packed_x + row / kInputRows * tile_bytes;
  const int64_t place = row % kInputRows;
  const auto* codes = reinterpret_cast<const int8_t*>(tile + sizeof(InputRowsHead));
  return {reinterpret_cast<const InputRowsHead*>(tile), codes + place * kChannelDepth, place};
}

// Adds the products of one step of kChannelDepth inputs to the sums.
template <typename V, int kRows, int kVectors>
void add_channel_step(const CodeVectors& step, const int8_t* codes,
                      typename V::Ints (&sums)[kVectors][kRows]) {
#pragma GCC unroll 16
  for (int input = 0; input < kChannelDepth; input += 4) {
    typename V::Ints w[kVectors];
    for (int v = 0; v < kVectors; ++v) {
      const std::byte* at = step.first + input * kDotFeatures + v * step.apart;
      if (v % kVectorsOfLine<V> == 0) prefetch_codes<kRows>(at + step.ahead);
      w[v] = V::byte_weights(V::load_ints(at));
    }
    for (int r = 0; r < kRows; ++r) {
      const auto four = four_inputs<V>(codes + r * kChannelDepth + input);
      for (int v = 0; v < kVectors; ++v) sums[v][r] = V::add_byte_products(sums[v][r], w[v], four);
    }
  }
}

// As add_channel_step(), row pair by row pair.
template <typename V, int kRows, int kVectors>
void add_channel_pairs(const CodeVectors& step, const int8_t* codes,
                       typename V::Ints (&sums)[kVectors][kRows]) {
  PairSums<V, kRows, kVectors> pairs;
  pairs.clear();
  for (int input = 0; input < kChannelDepth; input += 8) {
    typename V::Eight w[kVectors];
    for (int v = 0; v < kVectors; ++v) {
      const std::byte* at = step.first + input * kDotFeatures + v * step.apart;
      w[v] = V::eight(V::load_ints(at), V::load_ints(at + 4 * kDotFeatures));
    }
    pairs.add(w, codes + input, kChannelDepth);
  }
  pairs.add_to(sums);
}

// Adds the integer sums of all inputs, and scales them.
template <typename V, int kRows, int kVectors>
void channel_rows(const PanelVectors<V>& vectors, int64_t row) {
  const LinearShare& share = vectors.panels.share;
  const ChannelRow first = channel_row<V>(share, row);  // the others follow it in its tile
  typename V::Ints sums[kVectors][kRows];
  for (auto& of_vector : sums) {
    for (auto& sum : of_vector) sum = V::all_ints(0);
  }
  const FarPrefetch<V, kVectors> far(vectors, row);
  CodeVectors step = vectors.codes(vectors.panels.stored + kPanelHeader, kPrefetchBytes);
  prefetch_headers<kRows>(vectors, far, kPrefetchBytes);
  const int8_t* codes = first.codes;
  for (int64_t i = 0; i < share.k; i += kChannelDepth) {
    if constexpr (kRows >= kRowsOfFarPrefetch) step.ahead = far.ahead_of(step.first);
    if constexpr (kInPairs<V, kRows>) {
      add_channel_pairs<V>(step, codes, sums);
    } else {
      add_channel_step<V>(step, codes, sums);
    }
    step.first += kChannelDepth * kDotFeatures;
    codes += kInputRows * kChannelDepth;
  }
  for (int v = 0; v < kVectors; ++v) {
    const auto scale = V::load(reinterpret_cast<const float*>(vectors.panels.stored + vectors.offset(v, 4)));
    for (int r = 0; r < kRows; ++r) {
      const int64_t place = first.place + r;
      const auto sum = V::sub(sums[v][r], V::all_ints(V::kByteOffset * first.head->sums[place]));
      vectors.store(row + r, v, V::mul(V::to_floats(sum), V::mul(scale, V::all(first.head->scales[place]))));
    }
  }
}

template <typename V, typename Codes, int kRows, int kVectors>
void code_vectors(const CodePanels& panels, int vectors, const CodeInputs& inputs) {
  for (int v = 0; v < vectors; v += kVectors) {
    if constexpr (__is_same(Codes, Channels)) {
      channel_rows<V, kRows, kVectors>({panels, v}, inputs.row);
    } else {
      code_rows<V, Codes, kRows, kVectors>({panels, v}, inputs);
    }
  }
}

// At most kRows rows. They take a panel at once, so that each of its lines is read once.
template <typename V, typename Codes, int kRows>
void few_code_rows(const CodePanels& panels, int vectors, const CodeInputs& inputs, int64_t rows) {
  if (rows == kRows) return code_vectors<V, Codes, kRows, PanelVectors<V>::kOfPanel>(panels, vectors, inputs);
  if constexpr (kRows > 1) few_code_rows<V, Codes, kRows - 1>(panels, vectors, inputs, rows);
}

// Inputs that have been loaded serve kDotVectors vectors, because a processor loads hardly more numbers than
// it multiplies.
template <typename V, typename Codes>
void code_tile(const CodePanels& panels, int vectors, CodeInputs inputs, int64_t rows) {
  constexpr int kRows = V::kDotRows;
  for (; rows >= kRows; rows -= kRows, inputs.first += kRows, inputs.row += kRows) {
    if (vectors % V::kDotVectors == 0) {
      code_vectors<V, Codes, kRows, V::kDotVectors>(panels, vectors, inputs);
    } else {
      code_vectors<V, Codes, kRows, 1>(panels, vectors, inputs);
    }
  }
  if (rows > 0) few_code_rows<V, Codes, kRows>(panels, vectors, inputs, rows);
}

// Rows of a product tile by tile; the first one may begin within its tile.
template <typename V, typename Codes>
void code_panels(const CodePanels& panels, int vectors, Range rows) {
  const LinearShare& share = panels.share;
  const auto* inputs = reinterpret_cast<const InputGroup*>(share.packed_x);
  while (rows.begin < rows.end) {
    const int64_t tile = rows.begin / kInputRows * kInputRows;
    const int64_t width = share.rows - tile < kInputRows ? share.rows - tile : kInputRows;
    const int64_t end = tile + width < rows.end ? tile + width : rows.end;
    const InputGroup* first = inputs + tile * (share.k / kInputGroup) + (rows.begin - tile);
    code_tile<V, Codes>(panels, vectors, {first, width, rows.begin}, end - rows.begin);
    rows.begin = end;
  }
}

// The number of panels, of `left`, that all rows pass before the next ones. These are whole groups of
// vectors, as many as stay in the second-level cache while a group of rows stays in the first one.
template <typename V>
int64_t panels_of_run(const LinearShare& share, int64_t left) {
  constexpr int64_t kPanels = V::kDotVectors * V::kLanes / kDotFeatures;
  if (share.rows < V::kDotRows || left < kPanels) return 1;
  const int64_t kept = kRunBytes / share.panel_bytes;
  const int64_t fitting = kept < left ? kept : left;
  return fitting < kPanels ? kPanels : fitting / kPanels * kPanels;
}

template <typename V, typename Codes>
void code_linear(const LinearShare& share) {
  constexpr int kOfPanel = kDotFeatures / V::kLanes;
  const auto panel = [&](int64_t feature) {
    return share.weights + feature / kDotFeatures * share.panel_bytes;
  };
  const std::byte* end = panel(share.features.end + kDotFeatures - 1);
  for (int64_t feature = share.features.begin; feature < share.features.end;) {
    const int64_t left = (share.features.end - feature + kDotFeatures - 1) / kDotFeatures;
    const int64_t count = panels_of_run<V>(share, left);
    const CodePanels panels{.share = share,
                            .stored = panel(feature),
                            .feature = feature,
                            .end = end,
                            .next = count < left ? count * share.panel_bytes : 0,
                            .is_first = feature == share.features.begin || share.rows < 2 * V::kDotRows};
    code_panels<V, Codes>(panels, static_cast<int>(count) * kOfPanel, {0, share.rows});
    feature += count * kDotFeatures;
  }
}

}  // namespace outrider::simd
