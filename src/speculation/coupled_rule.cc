// SPDX-License-Identifier: Apache-2.0
#include "speculation/node_choice.h"

namespace outrider {

NodeChoice choose_coupled(const ReachedNode& reached, Randomness& randomness) {
  const TokenId token = randomness.coupled_pick(reached.target_law, reached.position);
  for (const int child : reached.children) {
    if (reached.tree.token(child) == token) return {token, child};
  }
  return {token, kNoChild};
}

}  // namespace outrider
