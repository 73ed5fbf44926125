// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

namespace outrider {

// Milliseconds of a target pass by its rows and the context they read: measured once at a few row counts,
// corrected by every pass that runs.
class PassCosts {
 public:
  struct Point {
    int rows = 1;
    double ms = 0.0;               // without context
    double ms_per_thousand = 0.0;  // more for every thousand tokens of context
  };

  PassCosts() = default;
  // Points with rising rows, ms > 0.
  explicit PassCosts(std::vector<Point> points);

  bool empty() const { return points_.empty(); }
  const std::vector<Point>& points() const { return points_; }

  // Linear between the points and beyond the last. Preconditions: not empty, rows >= 1.
  double pass_ms(double rows, double context) const;

  // A pass took so long. It corrects the costs of such row counts quickly and, as the machine may have become
  // faster or slower, all others slowly.
  void learn(double rows, double context, double ms);

 private:
  size_t nearest(double rows) const;

  std::vector<Point> points_;
};

}  // namespace outrider
