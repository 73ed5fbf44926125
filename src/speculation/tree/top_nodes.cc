// SPDX-License-Identifier: Apache-2.0
#include "speculation/tree/top_nodes.h"

#include <algorithm>
#include <cstddef>
#include <numeric>

namespace outrider {

const std::vector<int>& TopNodes::order(const TokenTree& tree) {
  products_.assign(1, 1.0);
  for (int node = 1; node < tree.size(); ++node) {
    products_.push_back(products_[static_cast<size_t>(tree.parent(node))] * tree.probability(node));
  }
  order_.resize(static_cast<size_t>(tree.drafted()));
  std::iota(order_.begin(), order_.end(), 1);
  std::sort(order_.begin(), order_.end(), [&](int a, int b) {
    const double p_a = path_probability(a);
    const double p_b = path_probability(b);
    return p_a != p_b ? p_a > p_b : a < b;
  });
  return order_;
}

void TopNodes::keep_first(TokenTree& tree, int count) {
  kept_.assign(static_cast<size_t>(tree.size()), 0);
  const auto first = order_.begin();
  std::for_each(first, first + std::min<std::ptrdiff_t>(count, std::ssize(order_)),
                [&](int node) { kept_[static_cast<size_t>(node)] = 1; });
  tree.keep(kept_);
}

}  // namespace outrider
