// SPDX-License-Identifier: Apache-2.0
#include "kernels/weight_codes.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/check.h"
#include "kernels/blocks/block_codes.h"

namespace outrider {
namespace {

template <typename Block>
Block block_at(const std::byte* row, int64_t index) {
  Block block;
  std::memcpy(&block, row + index * static_cast<int64_t>(sizeof(Block)), sizeof(Block));
  return block;
}

// A type and the layout of its block.
template <DType kType, typename Block>
struct BlockType {
  template <typename Visit>
  static bool visit(DType dtype, Visit& visit) {
    if (dtype != kType) return false;
    visit(Block{});
    return true;
  }
};

// Calls `visit` with an empty block of the type; false if no type of the list is meant.
template <typename... Types>
struct BlockTypes {
  template <typename Visit>
  static bool visit(DType dtype, Visit&& visit) {
    return (Types::visit(dtype, visit) || ...);
  }
};

using AllBlockTypes =
    BlockTypes<BlockType<DType::kQ8_0, BlockQ8_0>, BlockType<DType::kQ4_0, BlockQ4_0>,
               BlockType<DType::kQ4_1, BlockQ4_1>, BlockType<DType::kQ5_0, BlockQ5_0>,
               BlockType<DType::kQ5_1, BlockQ5_1>, BlockType<DType::kQ2_K, BlockQ2_K>,
               BlockType<DType::kQ3_K, BlockQ3_K>, BlockType<DType::kQ4_K, BlockQ4_K>,
               BlockType<DType::kQ5_K, BlockQ5_K>, BlockType<DType::kQ6_K, BlockQ6_K>,
               BlockType<DType::kIQ4_NL, BlockIQ4_NL>, BlockType<DType::kIQ4_XS, BlockIQ4_XS>,
               BlockType<DType::kMXFP4, BlockMXFP4>, BlockType<DType::kNVFP4, BlockNVFP4>,
               BlockType<DType::kNVFP4F, BlockNVFP4F>, BlockType<DType::kTQ1_0, BlockTQ1_0>,
               BlockType<DType::kTQ2_0, BlockTQ2_0>, BlockType<DType::kIQ1_S, BlockIQ1_S>,
               BlockType<DType::kIQ1_M, BlockIQ1_M>, BlockType<DType::kIQ2_XXS, BlockIQ2_XXS>,
               BlockType<DType::kIQ2_XS, BlockIQ2_XS>, BlockType<DType::kIQ2_S, BlockIQ2_S>,
               BlockType<DType::kIQ3_XXS, BlockIQ3_XXS>, BlockType<DType::kIQ3_S, BlockIQ3_S>>;

template <typename Visit>
void visit_block_type(DType dtype, Visit&& visit) {
  const bool found = AllBlockTypes::visit(dtype, visit);
  OUTRIDER_CHECK(found);
}

float magnitude(uint16_t half) { return std::fabs(f16_to_f32(half)); }

// The largest half-precision scale of a block; of blocks without one, the largest scale of a group.
template <typename Block>
float largest_of(const Block& block) {
  if constexpr (requires { block.dmin; }) {
    return std::max(magnitude(block.d), magnitude(block.dmin));
  } else if constexpr (requires { block.d; }) {
    return magnitude(block.d);
  } else {
    WeightCodes codes{};
    read_block(block, {codes.codes, codes.scales, codes.mins});
    float largest = 0;
    for (const float scale : codes.scales) largest = std::max(largest, std::fabs(scale));
    return largest;
  }
}

}  // namespace

CodeType code_type(DType dtype) {
  switch (dtype) {
    case DType::kQ4_0:
    case DType::kTQ1_0:
    case DType::kTQ2_0:
      return {.bits = 4};
    case DType::kQ4_1:
      return {.bits = 4, .has_min = true};
    case DType::kQ5_1:
      return {.has_min = true};
    case DType::kQ2_K:
      return {.bits = 4, .group = 16, .has_min = true, .products = 15};
    case DType::kQ3_K:
      return {.bits = 4, .group = 16, .products = 32};
    case DType::kQ4_K:
      return {.bits = 4, .has_min = true, .products = 63};
    case DType::kQ5_K:
      return {.has_min = true, .products = 63};
    case DType::kQ6_K:
      return {.group = 16, .products = 128};
    case DType::kIQ4_NL:
      return {.bits = 4, .values = NibbleValues::kIq4};
    case DType::kIQ4_XS:
      return {.bits = 4, .values = NibbleValues::kIq4, .products = 32};
    case DType::kMXFP4:
      return {.bits = 4, .values = NibbleValues::kFp4, .products = 1};
    case DType::kNVFP4:
      return {.bits = 4, .group = 16, .values = NibbleValues::kFp4};
    case DType::kNVFP4F:
      return {.bits = 4, .group = 16, .values = NibbleValues::kFp4, .products = 1};
    case DType::kIQ1_S:
      return {.bits = 4, .values = NibbleValues::kGrid1, .products = 15.0F / 8};
    case DType::kIQ1_M:
      return {.bits = 4, .group = 16, .values = NibbleValues::kGrid1, .products = 1};
    case DType::kIQ2_XXS:
      return {.bits = 4, .values = NibbleValues::kGrid2, .products = 15.5F / 4};
    case DType::kIQ2_XS:
    case DType::kIQ2_S:
      return {.bits = 4, .group = 16, .values = NibbleValues::kGrid2, .products = 15.5F / 4};
    case DType::kIQ3_XXS:
      return {.bits = 4, .values = NibbleValues::kGrid3, .products = 15.5F / 2};
    case DType::kIQ3_S:
      return {.bits = 4, .values = NibbleValues::kOdd, .products = 31};
    default:  // Q8_0 and Q5_0
      return {};
  }
}

void read_codes(DType dtype, const std::byte* row, int64_t begin, int64_t elements, WeightCodes& out) {
  const int64_t count = std::min<int64_t>(kCodesPerStretch, elements - begin);
  if (count < kCodesPerStretch) out = {};
  const int group = code_type(dtype).group;
  const int64_t block = block_elements(dtype);
  visit_block_type(dtype, [&]<typename Block>(const Block&) {
    for (int64_t i = 0; i < count; i += block) {
      read_block(block_at<Block>(row, (begin + i) / block),
                 {out.codes + i, out.scales + i / group, out.mins + i / group});
    }
  });
}

float scale_unit(DType dtype, const std::byte* row, int64_t elements) {
  const float products = code_type(dtype).products;
  if (products == 0) return 1;
  // Divided by the factor, scales of groups are E4M3, which half precision has.
  if (dtype == DType::kNVFP4F) {
    const float factor = block_at<BlockNVFP4F>(row, 0).factor;
    return factor > 0 && std::isfinite(factor) ? factor : 1;
  }
  float largest = 0;
  visit_block_type(dtype, [&]<typename Block>(const Block&) {
    for (int64_t i = 0; i < elements / block_elements(dtype); ++i)
      largest = std::max(largest, products * largest_of(block_at<Block>(row, i)));
  });
  // Corrupt scales stay as they are: infinities and NaN show in the output as with any other type.
  if (!(largest > 0) || !std::isfinite(largest)) return 1;
  constexpr int kLargestExponent = 15;
  return std::ldexp(1.0F, std::ilogb(largest) - kLargestExponent + 1);
}

}  // namespace outrider
