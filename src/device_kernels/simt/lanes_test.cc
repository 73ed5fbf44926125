// SPDX-License-Identifier: Apache-2.0
// Functions of lanes against obvious ones.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "device_kernels/simt/simt.h"

namespace outrider::simt {
namespace {

// All 2^32 of them would take minutes.
std::vector<float> many_floats() {
  std::vector<float> numbers = {0.0F,
                                -0.0F,
                                0.5F,
                                1.5F,
                                2.5F,
                                -2.5F,
                                0x1p-140F,
                                0x1p31F,
                                -0x1p31F,
                                3e38F,
                                std::numeric_limits<float>::infinity(),
                                std::numeric_limits<float>::quiet_NaN()};
  std::mt19937 engine(5);
  while (numbers.size() < 4096) numbers.push_back(std::bit_cast<float>(static_cast<uint32_t>(engine())));
  return numbers;
}

// Whether the lanes have the bits of fma, also where its product alone would be rounded.
TEST(SimtLanes, ArithmeticRoundsOnce) {
  const std::vector<float> numbers = many_floats();
  for (size_t first = 0; first + 96 <= numbers.size(); first += 32) {
    Floats a, b, c;
    for (size_t l = 0; l < 32; ++l) {
      a.v[l] = numbers[first + l];
      b.v[l] = numbers[first + 32 + l];
      c.v[l] = numbers[first + 64 + l];
    }
    const Floats fused = fma_rn(a, b, c), apart = add_rn(mul_rn(a, b), c);
    for (size_t l = 0; l < 32; ++l) {
      const float one = std::fma(a.v[l], b.v[l], c.v[l]);
      EXPECT_TRUE(std::isnan(one) ? std::isnan(fused.v[l]) : one == fused.v[l]);
      const volatile float product = a.v[l] * b.v[l];
      const float two = product + c.v[l];
      EXPECT_TRUE(std::isnan(two) ? std::isnan(apart.v[l]) : two == apart.v[l]);
    }
  }
}

TEST(SimtLanes, MaximaReturnTheSecondNumberForNan) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(max_of(Floats(nan), Floats(1.0F)).v[0], 1.0F);
  EXPECT_TRUE(std::isnan(max_of(Floats(1.0F), Floats(nan)).v[0]));
  EXPECT_EQ(min_of(Floats(nan), Floats(1.0F)).v[0], 1.0F);
  EXPECT_TRUE(std::isnan(min_of(Floats(1.0F), Floats(nan)).v[0]));
}

TEST(SimtLanes, RoundingGoesToEvenNumbers) {
  for (const float number : many_floats()) {
    const int found = round_int(Floats(number)).v[31];
    const bool fits = number >= -0x1p31F && number < 0x1p31F;
    EXPECT_EQ(found, fits ? static_cast<int>(std::lrint(number)) : std::numeric_limits<int>::min()) << number;
  }
}

// The number that the bits of half precision stand for, by its definition.
float half_number(int bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  const float sign = (bits & 0x8000) != 0 ? -1.0F : 1.0F;
  if (exponent == 31 && fraction != 0) return std::numeric_limits<float>::quiet_NaN();
  if (exponent == 31) return sign * std::numeric_limits<float>::infinity();
  if (exponent == 0) return sign * std::ldexp(static_cast<float>(fraction), -24);
  return sign * std::ldexp(static_cast<float>(1024 + fraction), exponent - 25);
}

TEST(SimtLanes, AllHalfPrecisionNumbers) {
  for (int bits = 0; bits < 65536; bits += 32) {
    const Floats found = from_half(Ints(bits) + lane_id());
    for (int l = 0; l < 32; ++l) {
      const float expected = half_number(bits + l);
      EXPECT_EQ(std::isnan(found.v[l]), std::isnan(expected));
      if (std::isnan(expected)) continue;
      EXPECT_EQ(std::bit_cast<uint32_t>(found.v[l]), std::bit_cast<uint32_t>(expected));
    }
  }
}

TEST(SimtLanes, NearestHalfPrecisionNumbers) {
  for (int bits = 0; bits < 0x7C00; ++bits) {
    const float low = half_number(bits), high = bits == 0x7BFF ? 65536.0F : half_number(bits + 1);
    const float middle = low + (high - low) / 2;
    const int even = bits % 2 == 0 ? bits : bits + 1;
    EXPECT_EQ(half_bits_of(Floats(low)).v[3], bits);
    EXPECT_EQ(half_bits_of(Floats(-middle)).v[3], even | 0x8000);
    EXPECT_EQ(half_bits_of(Floats(std::nextafter(middle, 0.0F))).v[3], bits);
    EXPECT_EQ(half_bits_of(Floats(std::nextafter(middle, 1e9F))).v[3], bits + 1);
  }
  EXPECT_EQ(half_bits_of(Floats(1e30F)).v[0], 0x7C00);
  EXPECT_TRUE(std::isnan(from_half(half_bits_of(Floats(std::nanf("")))).v[0]));
}

Ints random_words(std::mt19937& engine) {
  Ints words;
  for (int& word : words.v) word = static_cast<int>(engine());
  return words;
}

int byte_at(int word, int index) { return static_cast<int8_t>(static_cast<uint32_t>(word) >> (8 * index)); }

TEST(SimtLanes, ProductsOfBytes) {
  std::mt19937 engine(3);
  for (int round = 0; round < 100; ++round) {
    const Ints a = random_words(engine), b = random_words(engine), c = random_words(engine) >> Ints(8);
    const Ints found = dp4a(a, b, c);
    for (int l = 0; l < 32; ++l) {
      int expected = c.v[l];
      for (int i = 0; i < 4; ++i) expected += byte_at(a.v[l], i) * byte_at(b.v[l], i);
      EXPECT_EQ(found.v[l], expected);
    }
  }
}

// Input i of a feature or row in the layout of mma_s8(): the register, its lane and its byte.
int tile_input(const Ints* registers, int stride, int row, int i) {
  return byte_at(registers[i / 16 * stride].v[row % 8 * 4 + i % 16 / 4], i % 4);
}

TEST(SimtLanes, ProductsOfTiles) {
  std::mt19937 engine(4);
  for (int round = 0; round < 50; ++round) {
    const Ints a[4] = {random_words(engine), random_words(engine), random_words(engine),
                       random_words(engine)};
    const Ints b[2] = {random_words(engine), random_words(engine)};
    Ints all[4] = {Ints(1), Ints(2), Ints(3), Ints(4)}, first[4] = {Ints(0), Ints(0), Ints(0), Ints(0)};
    mma_s8(all, a, b);
    const Ints front[2] = {a[0], a[1]};
    mma_s8(first, front, b[0]);
    for (int place = 0; place < 128; ++place) {
      const int feature = place / 8, row = place % 8, half = feature / 8;
      int sums[2] = {0, 0};  // of 16 inputs, and of 32
      for (int i = 0; i < 32; ++i) {
        const int product = tile_input(a + half, 2, feature, i) * tile_input(b, 1, row, i);
        sums[1] += product;
        if (i < 16) sums[0] += product;
      }
      const int r = half * 2 + row % 2, lane = feature % 8 * 4 + row / 2;
      EXPECT_EQ(all[r].v[lane], sums[1] + r + 1);
      EXPECT_EQ(first[r].v[lane], sums[0]);
    }
  }
}

TEST(SimtLanes, TablesOfBytes) {
  const int table[4] = {0x03020180, 0x07060504, 0x0B0A0908, 0x7F0E0D0C};
  for (int code = 0; code < 16; ++code) {
    const Ints found = look_up(table, Ints(code * 0x01000100 + 0x000F0002));
    EXPECT_EQ(byte_at(found.v[7], 0), byte_at(table[0], 2));
    EXPECT_EQ(byte_at(found.v[7], 1), byte_at(table[code / 4], code % 4));
    EXPECT_EQ(byte_at(found.v[7], 2), byte_at(table[3], 3));
    EXPECT_EQ(byte_at(found.v[7], 3), byte_at(table[code / 4], code % 4));
  }
}

TEST(SimtLanes, SumsHaveTheOrderOfVectors) {
  Floats x;
  for (int l = 0; l < 32; ++l) x.v[l] = std::ldexp(1.0F + static_cast<float>(l) / 64, l % 7 * 5);
  const Floats sum = sum_lanes(x, 8);
  for (int first = 0; first < 32; first += 8) {
    float quarter[4], pair[2];
    for (int i = 0; i < 4; ++i) quarter[i] = x.v[first + i] + x.v[first + i + 4];
    for (int i = 0; i < 2; ++i) pair[i] = quarter[i] + quarter[i + 2];
    for (int l = first; l < first + 8; ++l) EXPECT_EQ(sum.v[l], pair[0] + pair[1]);
  }
}

}  // namespace
}  // namespace outrider::simt
