// SPDX-License-Identifier: Apache-2.0
#include "sampling/logit_scan.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>

namespace outrider {
namespace {

constexpr float kNothing = -std::numeric_limits<float>::infinity();
constexpr size_t kBlock = 64;

// A vector of four numbers, which fits the registers of every x86-64 processor.
typedef float Four __attribute__((vector_size(16)));
typedef float TwoFloats __attribute__((vector_size(8)));
typedef double Two __attribute__((vector_size(16)));
typedef int64_t TwoBits __attribute__((vector_size(16)));

// The largest logit of a block.
float largest_of_block(const float* logits) {
  Four largest[4];
  for (Four& part : largest) part = Four{kNothing, kNothing, kNothing, kNothing};
  for (size_t i = 0; i < kBlock; i += 16) {
    for (size_t part = 0; part < 4; ++part) {
      Four x;
      std::memcpy(&x, logits + i + part * 4, sizeof(x));
      largest[part] = x > largest[part] ? x : largest[part];  // false for NaN
    }
  }
  float result = kNothing;
  for (const Four& part : largest) {
    for (int lane = 0; lane < 4; ++lane) result = std::max(result, part[lane]);
  }
  return result;
}

float largest_of(std::span<const float> logits) {
  if (logits.size() == kBlock) return largest_of_block(logits.data());
  float largest = kNothing;
  for (const float logit : logits) largest = logit > largest ? logit : largest;
  return largest;
}

// Calls visit(token, logit) for every token of the blocks with a largest logit that passes.
template <typename Passes, typename Visit>
void scan(std::span<const float> logits, Passes&& passes, Visit&& visit) {
  for (size_t begin = 0; begin < logits.size(); begin += kBlock) {
    const auto block = logits.subspan(begin, std::min(kBlock, logits.size() - begin));
    if (!passes(largest_of(block))) continue;
    for (size_t i = 0; i < block.size(); ++i) visit(static_cast<TokenId>(begin + i), block[i]);
  }
}

// 2^x for -1000 <= x <= 0, within 4e-10 of it: Taylor's series of e^y up to y^8 around the nearest whole x.
Two exp2_roughly(Two x) {
  constexpr double kRound = 0x1.8p52;  // added, it leaves the nearest whole number in the lowest bits
  const Two shifted = x + kRound;
  const Two y = (x - (shifted - kRound)) * 0.69314718055994531;
  Two sum = y * (1.0 / 40320) + 1.0 / 5040;
  for (const double factor : {1.0 / 720, 1.0 / 120, 1.0 / 24, 1.0 / 6, 0.5, 1.0, 1.0}) sum = sum * y + factor;
  return (Two)((TwoBits)sum + ((TwoBits)shifted << 52));
}

// exp((logit - largest) / temperature) of two logits.
Two terms(const float* two, double largest, double temperature) {
  constexpr double kMin = -1000;  // also the value for NaN
  TwoFloats logit;
  std::memcpy(&logit, two, sizeof(logit));
  const Two x = (__builtin_convertvector(logit, Two) - largest) * (1.4426950408889634 / temperature);
  return exp2_roughly(x > kMin ? x : Two{kMin, kMin});
}

}  // namespace

LargestLogit largest_logit(std::span<const float> logits) {
  LargestLogit best{-1, kNothing};
  scan(
      logits, [&](float largest) { return largest > best.value; },
      [&](TokenId token, float logit) {
        if (logit > best.value) best = {token, logit};
      });
  return best;
}

void tokens_from(std::span<const float> logits, float min, std::vector<TokenId>& found) {
  found.clear();
  scan(
      logits, [&](float largest) { return largest >= min; },
      [&](TokenId token, float logit) {
        if (logit >= min) found.push_back(token);
      });
}

// Collects the tokens above a bound and raises the bound to the k-th largest logit whenever 2 k tokens are
// collected. A later token equal to the bound has a higher id than the k tokens collected, so it loses the
// tie.
void top_tokens(std::span<const float> logits, size_t k, std::vector<TokenId>& found) {
  const auto at = [&](TokenId token) { return logits[static_cast<size_t>(token)]; };
  const auto better = [&](TokenId a, TokenId b) { return at(a) != at(b) ? at(a) > at(b) : a < b; };
  found.clear();
  float bound = kNothing;
  const auto cut = [&] {
    if (found.size() <= k) return;
    const auto last = found.begin() + static_cast<ptrdiff_t>(k) - 1;
    std::nth_element(found.begin(), last, found.end(), better);
    bound = at(*last);
    found.resize(k);
  };
  const size_t full = std::max(2 * k, kBlock);
  scan(
      logits, [&](float largest) { return largest > bound; },
      [&](TokenId token, float logit) {
        if (!(logit > bound)) return;
        found.push_back(token);
        if (found.size() >= full) cut();
      });
  cut();
}

// Every kSumPart tokens are added up in kSumChains chains, which are then added to one another, the nearest
// last; parts are added in order. This is also a device's order (device_kernels/choice/first_tokens.h).
double exp_sum(std::span<const float> logits, double largest, double temperature) {
  constexpr size_t kSumPart = 1024, kSumChains = 32;
  double total = 0;
  for (size_t begin = 0; begin < logits.size(); begin += kSumPart) {
    const auto part = logits.subspan(begin, std::min(kSumPart, logits.size() - begin));
    Two chains[kSumChains / 2] = {};
    size_t i = 0;
    for (; i + kSumChains <= part.size(); i += kSumChains) {
      for (size_t two = 0; two < kSumChains / 2; ++two)
        chains[two] += terms(part.data() + i + 2 * two, largest, temperature);
    }
    for (size_t chain = 0; i < part.size(); ++i, ++chain) {
      const float pair[2] = {part[i], kNothing};
      chains[chain / 2][chain % 2] += terms(pair, largest, temperature)[0];
    }
    for (size_t apart = kSumChains / 4; apart > 0; apart /= 2)
      for (size_t two = 0; two < apart; ++two) chains[two] += chains[two + apart];
    total += chains[0][0] + chains[0][1];
  }
  return total;
}

}  // namespace outrider
