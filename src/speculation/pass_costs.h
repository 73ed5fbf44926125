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

  // A pass took so long. The machine's speed of the moment is told apart from the shape of the curve: one
  // pass corrects the first for all row counts, many correct the second for those near it.
  void learn(double rows, double context, double ms);

 private:
  double shape_ms(double rows, double context) const;
  size_t nearest(double rows) const;

  std::vector<Point> points_;
  double slowness_ = 1.0;  // of the machine now, against when the points were measured
};

}  // namespace outrider
