// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

namespace outrider {

// The time of a target pass in ms by its rows and the context they read: measured once at a few row counts
// and corrected by every pass that runs. Each point has a factor; a Kalman filter estimates its logarithm.
// Its prior has two parts: a large common deviation, as the whole machine may be faster or slower than at
// measurement, and a smaller deviation of single points that is correlated between neighbours. The first
// passes therefore correct all points, whatever their rows; later passes correct mainly the points near their
// own row counts.
//
// A pass of a mixture of experts takes longer the more different experts its rows activate. Points are
// measured with unlike rows. Rows of one text are more alike. The experts that a pass should activate beyond
// one row's are therefore a share of the measured ones: a fading mean over the passes so far.
class PassCosts {
 public:
  struct Point {
    int rows = 1;
    double ms = 0.0;               // time without context
    double ms_per_thousand = 0.0;  // additional time per thousand tokens of context
    double active_experts = 0.0;   // experts that the pass read in all layers; 0: the target has none
    double ms_per_expert = 0.0;    // the part of `ms` that each of them took
  };

  PassCosts() = default;
  // Preconditions: at least one point, rows ascending, ms > 0.
  explicit PassCosts(std::vector<Point> points);

  bool empty() const { return measured_.empty(); }
  // The points as corrected so far.
  const std::vector<Point>& points() const { return points_; }

  // Time of a pass; piecewise linear in the rows, extrapolated after the last point, never decreasing.
  // `context`: tokens that a row reads on average. Preconditions: !empty(), rows >= 1.
  double pass_ms(double rows, double context) const;

  // Current time of a pass over its time when the points were measured; above 1 on a machine that became
  // slower.
  double pace() const;

  struct Pass {
    double rows = 1.0;
    double context = 0.0;
    double active_experts = 0.0;  // as in Point
    double ms = 0.0;
  };
  // Corrects the costs by a pass that ran.
  void learn(const Pass& pass);

 private:
  double& covariance(size_t i, size_t j) { return covariance_[i * measured_.size() + j]; }
  void forget_a_little();
  // Kalman update of the factors: their weighted sum was observed to be larger by `surprise`.
  void update(const std::vector<double>& weights, double surprise);
  // Computes points_ from measured_, factors_ and variety_.
  void fit();
  // Experts that a pass over so many rows activates beyond the experts of one row, where rows are unlike.
  double more_experts(double rows) const;
  // The time by which the experts of a pass differ from the expected ones.
  double expert_surprise_ms(const Pass& pass) const;
  void learn_variety(const Pass& pass);

  std::vector<Point> measured_;
  std::vector<Point> points_;
  double variety_ = 1.0;  // experts that rows activate beyond one row's, over the number for unlike rows
  std::vector<double> factors_;  // by point: logarithm of the factor
  std::vector<double> prior_,
      covariance_;  // [point][point]: covariance of the factors before any pass, and now
  std::vector<double> weights_, deviations_;  // scratch of learn()
};

}  // namespace outrider
