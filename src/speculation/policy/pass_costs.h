// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

namespace outrider {

// Milliseconds of a target pass by its rows and the context they read: measured once at a few row counts,
// corrected by every pass that runs.
// Each point has a factor, whose logarithm is estimated by a Kalman filter. Beforehand it may be that the
// machine is faster or slower than when it was measured, for all points alike, and, less, that single points
// were measured badly, neighbours alike. So the first passes, whatever their rows, correct all costs; what
// passes of some row count take is then known, and what others show is theirs.
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

  bool empty() const { return measured_.empty(); }
  // As corrected so far.
  const std::vector<Point>& points() const { return points_; }

  // Linear between the points and beyond the last; more rows never cost less. Preconditions: not empty, rows
  // >= 1.
  double pass_ms(double rows, double context) const;

  // How much slower the machine is than when the points were measured.
  double pace() const;

  // A pass took so long.
  void learn(double rows, double context, double ms);

 private:
  double& covariance(size_t i, size_t j) { return covariance_[i * measured_.size() + j]; }
  void forget_a_little();
  // Corrects the factors: their sum, weighted so, should be greater by `surprise`.
  void update(const std::vector<double>& weights, double surprise);
  // Makes points_ of what was measured and the factors.
  void fit();

  std::vector<Point> measured_;
  std::vector<Point> points_;
  std::vector<double> factors_;               // logarithms, by point
  std::vector<double> prior_, covariance_;    // of the factors, [point][point]; before any pass, and now
  std::vector<double> weights_, deviations_;  // scratch of learn()
};

}  // namespace outrider
