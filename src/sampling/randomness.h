// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/counter_rng.h"
#include "outrider/sampling_params.h"

namespace outrider {

// The only source of randomness in sampling, drafting and acceptance; tests replace it to enumerate the
// outcomes. Every draw is identified by its position, purpose and number, so it does not depend on which
// draws were made before.
class Randomness {
 public:
  virtual ~Randomness() = default;

  // The arg max of log p + g over the tokens of `distribution`, ties to the lower id, where the Gumbel noise
  // g is fixed per (position, token). Drafters and target share the noise of a position. Precondition: the
  // distribution is not empty.
  virtual TokenId coupled_pick(const Distribution& distribution, int64_t position) = 0;

  // The first `count` tokens in descending order of log p + g, fewer if the distribution has fewer: a draw
  // without replacement that begins with coupled_pick(distribution, position).
  virtual std::vector<TokenId> coupled_top(const Distribution& distribution, int64_t position, int count) = 0;

  // An index drawn with probability weights[i] / sum(weights); `draw` numbers the draws of one purpose at one
  // position. Precondition: at least one weight > 0.
  virtual size_t categorical(std::span<const double> weights, int64_t position, RandomPurpose purpose,
                             uint64_t draw) = 0;

  // True with probability p; never for p = 0 and always for p >= 1, see passes().
  virtual bool bernoulli(double p, int64_t position, uint64_t draw) = 0;
};

// The index i at which the running sum of `weights` exceeds u * sum(weights); its weight is never 0.
// Preconditions: 0 <= u < 1; weights >= 0, at least one > 0.
size_t inverse_cdf(std::span<const double> weights, double u);

// Whether an event of probability p happens for the uniform draw u in [0, 1).
constexpr bool passes(double p, double u) { return u < p; }

// A token in the exponential race that computes a coupled pick. The token with the smallest time is the pick.
struct Arrival {
  double time = 0.0;  // e^-(log p + g), an exponential random variable with rate p
  TokenId token = -1;

  bool operator<(const Arrival& other) const {
    return time < other.time || (time == other.time && token < other.token);
  }
};

// Counter-based randomness of one sequence.
class CounterRandomness final : public Randomness {
 public:
  CounterRandomness(uint64_t seed, uint64_t sample_index) : seed_(seed), sample_index_(sample_index) {}

  TokenId coupled_pick(const Distribution& distribution, int64_t position) override;
  // Stores the `count` tokens with the smallest times, ascending, in `arrivals`; the first one is
  // coupled_pick().
  void coupled_race(const Distribution& distribution, int64_t position, int count,
                    std::vector<Arrival>& arrivals) const;
  // The race for the softmax of logits / temperature, without computing the softmax: their noise is enough to
  // rule out most tokens. The result may differ from the other overload in ties of rounded numbers.
  // `arrivals` is empty if every logit is -infinity. Precondition: temperature > 0.
  void coupled_race(std::span<const float> logits, double temperature, int64_t position, int count,
                    std::vector<Arrival>& arrivals) const;
  std::vector<TokenId> coupled_top(const Distribution& distribution, int64_t position, int count) override;
  size_t categorical(std::span<const double> weights, int64_t position, RandomPurpose purpose,
                     uint64_t draw) override;
  bool bernoulli(double p, int64_t position, uint64_t draw) override;
  // Uniform in [0, 1): whether XTC excludes tokens at the position.
  double exclusion_draw(int64_t position) const {
    return random_uniform({seed_, sample_index_, position, RandomPurpose::kExclusion, 0});
  }

 private:
  uint64_t noise_at(int64_t position) const {
    return random_prefix({seed_, sample_index_, position, RandomPurpose::kToken, 0});
  }

  uint64_t seed_;
  uint64_t sample_index_;
};

}  // namespace outrider
