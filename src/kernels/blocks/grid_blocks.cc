// SPDX-License-Identifier: Apache-2.0
// Blocks of 256 numbers with codes that are entries of grids.
#include <bit>
#include <cstring>

#include "kernels/blocks/block_codes.h"
#include "kernels/blocks/iq_grids.h"
#include "tensor/dtype.h"

namespace outrider {
namespace {

int scale_nibble(const uint8_t* bytes, int i) { return bytes[i / 2] >> (i % 2 * 4) & 15; }

uint32_t word_at(const void* words, int i) {
  uint32_t word;
  std::memcpy(&word, static_cast<const uint8_t*>(words) + i * 4, sizeof(word));
  return word;
}

// Seven signs and the one that makes their number even.
uint32_t eight_signs(uint32_t seven) {
  return seven | (static_cast<uint32_t>(std::popcount(seven)) & 1U) << 7;
}

// Eight codes of kGrid1: `eighth` is 1 if an eighth is subtracted.
void put_grid1(uint16_t entry, int eighth, int8_t* codes) {
  for (int i = 0; i < 8; ++i) codes[i] = static_cast<int8_t>((entry >> (2 * i) & 3) | eighth << 2);
}

// Eight codes of kGrid2.
void put_grid2(uint16_t entry, uint32_t signs, int8_t* codes) {
  for (int i = 0; i < 8; ++i) {
    codes[i] = static_cast<int8_t>((entry >> (2 * i) & 3) | static_cast<int>(signs >> i & 1) << 2);
  }
}

// Eight codes of kGrid3 or kOdd: two entries of four.
void put_grid3(uint16_t first, uint16_t second, uint32_t signs, int8_t* codes) {
  for (int i = 0; i < 8; ++i) {
    const int magnitude = (i < 4 ? first : second) >> (i % 4 * 4) & 7;
    codes[i] = static_cast<int8_t>(magnitude | static_cast<int>(signs >> i & 1) << 3);
  }
}

}  // namespace

void read_block(const BlockIQ1_S& block, const BlockCodes& out) {
  const float d = f16_to_f32(block.d) / 8;
  for (int group = 0; group < 8; ++group) {
    const int high = block.qh[group];
    out.scales[group] = d * static_cast<float>(2 * (high >> 12 & 7) + 1);
    for (int i = 0; i < 4; ++i) {
      const int index = block.qs[group * 4 + i] | (high >> (3 * i) & 7) << 8;
      put_grid1(kIq1Grid[index], high >> 15, out.codes + group * 32 + i * 8);
    }
  }
}

void read_block(const BlockIQ1_M& block, const BlockCodes& out) {
  int half = 0;
  for (int i = 0; i < 4; ++i) half |= block.scales[i] >> 12 << (4 * i);
  const float d = f16_to_f32(static_cast<uint16_t>(half)) / 8;
  for (int group = 0; group < 16; ++group) {
    const int scale = block.scales[group / 4] >> (group % 4 * 3) & 7;
    out.scales[group] = d * static_cast<float>(2 * scale + 1);
  }
  for (int i = 0; i < 32; ++i) {
    const int high = scale_nibble(block.qh, i);
    put_grid1(kIq1Grid[block.qs[i] | (high & 7) << 8], high >> 3, out.codes + i * 8);
  }
}

void read_block(const BlockIQ2_XXS& block, const BlockCodes& out) {
  const float d = f16_to_f32(block.d) / 4;
  for (int group = 0; group < 8; ++group) {
    const uint32_t indices = word_at(block.qs, 2 * group);
    const uint32_t signs = word_at(block.qs, 2 * group + 1);
    out.scales[group] = d * (static_cast<float>(signs >> 28) + 0.5F);
    for (int i = 0; i < 4; ++i) {
      put_grid2(kIq2XxsGrid[indices >> (8 * i) & 255], eight_signs(signs >> (7 * i) & 127),
                out.codes + group * 32 + i * 8);
    }
  }
}

void read_block(const BlockIQ2_XS& block, const BlockCodes& out) {
  const float d = f16_to_f32(block.d) / 4;
  for (int group = 0; group < 16; ++group)
    out.scales[group] = d * (static_cast<float>(scale_nibble(block.scales, group)) + 0.5F);
  for (int i = 0; i < 32; ++i) {
    const uint32_t word = block.qs[i];
    put_grid2(kIq2XsGrid[word & 511], eight_signs(word >> 9), out.codes + i * 8);
  }
}

void read_block(const BlockIQ2_S& block, const BlockCodes& out) {
  const float d = f16_to_f32(block.d) / 4;
  for (int group = 0; group < 16; ++group)
    out.scales[group] = d * (static_cast<float>(scale_nibble(block.scales, group)) + 0.5F);
  for (int i = 0; i < 32; ++i) {
    const int index = block.qs[i] | (block.qh[i / 4] >> (i % 4 * 2) & 3) << 8;
    put_grid2(kIq2SGrid[index], block.signs[i], out.codes + i * 8);
  }
}

void read_block(const BlockIQ3_XXS& block, const BlockCodes& out) {
  const float d = f16_to_f32(block.d) / 2;
  for (int group = 0; group < 8; ++group) {
    const uint32_t signs = word_at(block.signs, group);
    out.scales[group] = d * (static_cast<float>(signs >> 28) + 0.5F);
    for (int i = 0; i < 4; ++i) {
      const uint8_t* indices = block.qs + group * 8 + i * 2;
      put_grid3(kIq3XxsGrid[indices[0]], kIq3XxsGrid[indices[1]], eight_signs(signs >> (7 * i) & 127),
                out.codes + group * 32 + i * 8);
    }
  }
}

void read_block(const BlockIQ3_S& block, const BlockCodes& out) {
  const float d = f16_to_f32(block.d);
  for (int group = 0; group < 8; ++group)
    out.scales[group] = d * static_cast<float>(2 * scale_nibble(block.scales, group) + 1);
  const auto index = [&](int i) { return block.qs[i] | (block.qh[i / 8] >> (i % 8) & 1) << 8; };
  for (int i = 0; i < 32; ++i) {
    put_grid3(kIq3SGrid[index(2 * i)], kIq3SGrid[index(2 * i + 1)], block.signs[i], out.codes + i * 8);
  }
}

}  // namespace outrider
