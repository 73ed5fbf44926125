// SPDX-License-Identifier: Apache-2.0
// Counter-based randomness: every draw is a pure function of its key, so that nothing has to be restored when
// drafted tokens are rejected. The mixer is the finalizer of SplitMix64 (Steele, Lea, Flood 2014).
#pragma once

#include <cmath>
#include <cstdint>

#include "base/portable_math.h"

namespace outrider {

enum class RandomPurpose : uint64_t { kToken = 1, kAccept = 2, kResidual = 3, kDraft = 4, kExclusion = 5 };

// Names one draw. `position` is the absolute position of the token drawn (prompt included).
struct RandomKey {
  uint64_t seed = 0;
  uint64_t sample_index = 0;  // index of the sequence within its request
  int64_t position = 0;
  RandomPurpose purpose = RandomPurpose::kToken;
  uint64_t index = 0;  // token id, or number of the draw among the draws of one purpose at one position
};

inline uint64_t mix64(uint64_t x) {
  x += 0x9E3779B97F4A7C15ull;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
  return x ^ (x >> 31);
}

// The part of a key that the draws of one purpose at one position share.
inline uint64_t random_prefix(const RandomKey& key) {
  uint64_t h = mix64(key.seed);
  h = mix64(h ^ key.sample_index);
  h = mix64(h ^ static_cast<uint64_t>(key.position));
  return mix64(h ^ static_cast<uint64_t>(key.purpose));
}

inline uint64_t random_bits(const RandomKey& key) { return mix64(random_prefix(key) ^ key.index); }

// Uniform in [0, 1), 53 bits.
inline double random_uniform(const RandomKey& key) {
  return static_cast<double>(random_bits(key) >> 11) * 0x1.0p-53;
}

// Exponential with rate 1, always finite and > 0: the uniform is taken from the open interval (0, 1).
inline double exponential_of(uint64_t bits) {
  return -portable_log_of_normal((static_cast<double>(bits >> 12) + 0.5) * 0x1.0p-52);
}
inline double random_exponential(const RandomKey& key) { return exponential_of(random_bits(key)); }

// Standard Gumbel noise, always finite.
inline double random_gumbel(const RandomKey& key) { return -portable_log(random_exponential(key)); }

}  // namespace outrider
