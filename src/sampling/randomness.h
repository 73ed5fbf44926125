// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/counter_rng.h"
#include "outrider/sampling_params.h"

namespace outrider {

// The only source of chance in sampling, drafting and acceptance; tests enumerate it. Every draw names its
// place, so that a draw is the same whatever else was drawn before.
class Randomness {
 public:
  virtual ~Randomness() = default;

  // The token at `position` under `distribution` by Gumbel noise that is fixed per (position, token): the arg
  // max of log p + g, ties to the lower id. Drafters and target that ask for the same position share the
  // noise. Precondition: the distribution is not empty.
  virtual TokenId coupled_pick(const Distribution& distribution, int64_t position) = 0;

  // The first `count` tokens in falling order of log p + g, fewer when the distribution has fewer: a draw
  // from `distribution` without replacement that starts with coupled_pick(distribution, position).
  virtual std::vector<TokenId> coupled_top(const Distribution& distribution, int64_t position, int count) = 0;

  // An index drawn with probability weights[i] / sum(weights); `draw` numbers the draws of one purpose at one
  // position. Precondition: at least one weight > 0.
  virtual size_t categorical(std::span<const double> weights, int64_t position, RandomPurpose purpose,
                             uint64_t draw) = 0;

  // True with probability p, as passes() says: p = 0 never does and p >= 1 always.
  virtual bool bernoulli(double p, int64_t position, uint64_t draw) = 0;
};

// The index i at which the running sum of `weights` passes u * sum(weights); never one of weight 0.
// Preconditions: 0 <= u < 1; weights >= 0, at least one > 0.
size_t inverse_cdf(std::span<const double> weights, double u);

// Whether an event of probability p happens for the uniform draw u in [0, 1).
constexpr bool passes(double p, double u) { return u < p; }

// A token in the race of a coupled pick: the lower its time, the likelier the target chooses it, too.
struct Arrival {
  double time = 0.0;  // of exponentials with rate p: e^-(log p + g)
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
  // The first `count` tokens, ascending, into `arrivals`; the first is coupled_pick().
  void coupled_race(const Distribution& distribution, int64_t position, int count,
                    std::vector<Arrival>& arrivals) const;
  // The same under the softmax of logits / temperature, without computing it: most tokens are ruled out by
  // their noise alone. May differ from the other by a tie of rounded numbers. None when no token is left.
  // Precondition: temperature > 0.
  void coupled_race(std::span<const float> logits, double temperature, int64_t position, int count,
                    std::vector<Arrival>& arrivals) const;
  std::vector<TokenId> coupled_top(const Distribution& distribution, int64_t position, int count) override;
  size_t categorical(std::span<const double> weights, int64_t position, RandomPurpose purpose,
                     uint64_t draw) override;
  bool bernoulli(double p, int64_t position, uint64_t draw) override;

 private:
  uint64_t noise_at(int64_t position) const {
    return random_prefix({seed_, sample_index_, position, RandomPurpose::kToken, 0});
  }

  uint64_t seed_;
  uint64_t sample_index_;
};

}  // namespace outrider
