// SPDX-License-Identifier: Apache-2.0
#include "speculation/acceptance/coupled_agreement.h"

#include <algorithm>
#include <vector>

#include "base/portable_math.h"
#include "sampling/distribution.h"

namespace outrider {

namespace {

// Tokens less likely than this are left out: less than 1e-4 of the mass for vocabularies up to 1e5 tokens.
constexpr double kNegligible = 1e-9;

// probability^(1 / temperature), 0 for a negligible probability.
double heated(double probability, double temperature) {
  return probability < kNegligible ? 0.0 : portable_exp(portable_log(probability) / temperature);
}

}  // namespace

double coupled_agreement(const Distribution& p, const Distribution& q, double temperature) {
  struct Pair {
    double p, q;
  };
  std::vector<Pair> both;
  both.reserve(p.tokens.size());
  double p_outside = 0.0, q_sum = 0.0;
  for (const double probability : q.probabilities) q_sum += heated(probability, temperature);
  for (size_t i = 0; i < p.tokens.size(); ++i) {
    const double own = heated(probability(q, p.tokens[i]), temperature) / q_sum;
    if (own > 0.0 && p.probabilities[i] >= kNegligible) {
      both.push_back({p.probabilities[i], own});
    } else {
      p_outside += p.probabilities[i];
    }
  }
  // p_j / p_i is the larger of the two ratios where q_j / p_j <= q_i / p_i. With the tokens sorted by q / p,
  // the sum over j is therefore a prefix sum of p and a suffix sum of q. Tokens that only one distribution
  // holds are at the ends.
  std::ranges::sort(both, [](const Pair& a, const Pair& b) { return a.q * b.p < b.q * a.p; });
  double p_before = p_outside, q_after = 1.0, agreement = 0.0;
  for (const Pair& token : both) {
    p_before += token.p;
    q_after -= token.q;
    agreement += 1.0 / (p_before / token.p + std::max(0.0, q_after) / token.q);
  }
  return agreement;
}

}  // namespace outrider
