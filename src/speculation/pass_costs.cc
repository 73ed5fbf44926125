// SPDX-License-Identifier: Apache-2.0
#include "speculation/pass_costs.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

#include "base/check.h"

namespace outrider {

PassCosts::PassCosts(std::vector<Point> points) : points_(std::move(points)) {
  OUTRIDER_CHECK(!points_.empty());
  // A noisy measurement must not say that more rows take less time.
  for (size_t i = 1; i < points_.size(); ++i) points_[i].ms = std::max(points_[i].ms, points_[i - 1].ms);
}

double PassCosts::pass_ms(double rows, double context) const {
  const auto at = [&](const Point& point) { return point.ms + point.ms_per_thousand * context / 1000.0; };
  if (points_.size() == 1) return at(points_[0]);
  size_t right = 1;
  while (right + 1 < points_.size() && rows > points_[right].rows) ++right;
  const Point& a = points_[right - 1];
  const Point& b = points_[right];
  const double share = (rows - a.rows) / static_cast<double>(b.rows - a.rows);
  return at(a) + std::max(0.0, share) * (at(b) - at(a));
}

size_t PassCosts::nearest(double rows) const {
  size_t best = 0;
  for (size_t i = 1; i < points_.size(); ++i) {
    if (std::abs(std::log(rows / points_[i].rows)) < std::abs(std::log(rows / points_[best].rows))) best = i;
  }
  return best;
}

void PassCosts::learn(double rows, double context, double ms) {
  constexpr double kQuick = 0.1;
  constexpr double kSlow = 0.01;
  constexpr double kMostSurprise = 2.0;  // a thread that lost its processor says nothing about the machine
  if (points_.empty() || !(ms > 0.0)) return;
  const double surprise = std::clamp(ms / pass_ms(rows, context), 1.0 / kMostSurprise, kMostSurprise);
  const size_t own = nearest(rows);
  for (size_t i = 0; i < points_.size(); ++i)
    points_[i].ms *= 1.0 + (i == own ? kQuick : kSlow) * (surprise - 1.0);
}

}  // namespace outrider
