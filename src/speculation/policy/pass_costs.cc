// SPDX-License-Identifier: Apache-2.0
#include "speculation/policy/pass_costs.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <utility>

#include "base/check.h"

namespace outrider {
namespace {

// Standard deviations of logarithms of times.
constexpr double kMachine = 0.4;       // common to all points
constexpr double kSinglePoint = 0.15;  // of each point
constexpr double kPass = 0.15;         // of the time of one pass
// Points with rows that differ by a factor of e^1.4 = 4 have a correlation of 1 / e.
constexpr double kCorrelationLength = 1.4;
// Share of the prior that is mixed into the covariance after each pass.
constexpr double kForgotten = 1e-3;

double prior_covariance(double rows, double other_rows) {
  const double distance = std::abs(std::log(rows / other_rows)) / kCorrelationLength;
  return kMachine * kMachine + kSinglePoint * kSinglePoint * std::exp(-distance);
}

// Interpolation between two neighbouring points: index of the left one and weight of the right one, above 1
// after the last point.
struct Place {
  size_t left = 0;
  double share = 0.0;
};

Place place_of(const std::vector<PassCosts::Point>& points, double rows) {
  size_t right = 1;
  while (right + 1 < points.size() && rows > points[right].rows) ++right;
  const auto& a = points[right - 1];
  const auto& b = points[right];
  return {.left = right - 1, .share = std::max(0.0, (rows - a.rows) / static_cast<double>(b.rows - a.rows))};
}

// A value of the points at so many rows, as it was measured.
double measured_at(const std::vector<PassCosts::Point>& points, double rows,
                   double PassCosts::Point::*value) {
  if (points.size() == 1) return points[0].*value;
  const Place place = place_of(points, rows);
  const double left = points[place.left].*value;
  return left + std::min(1.0, place.share) * (points[place.left + 1].*value - left);
}

double ms_at(const PassCosts::Point& point, double context) {
  return point.ms + point.ms_per_thousand * context / 1000.0;
}

// Isotonic regression: replaces the values by the closest non-decreasing sequence in weighted least squares
// (pool adjacent violators). A value smaller than its predecessors and the pool before it get their weighted
// mean.
template <typename Weight, typename Value>
void make_non_decreasing(std::vector<PassCosts::Point>& points, Weight weight_of, Value value) {
  for (size_t i = 1; i < points.size(); ++i) {
    double weight = weight_of(i);
    double sum = weight * value(points[i]);
    size_t first = i;
    for (; first > 0 && value(points[first - 1]) > sum / weight; --first) {
      const double before = weight_of(first - 1);
      sum += before * value(points[first - 1]);
      weight += before;
    }
    for (size_t k = first; first < i && k <= i; ++k) value(points[k]) = sum / weight;
  }
}

}  // namespace

PassCosts::PassCosts(std::vector<Point> points)
    : measured_(std::move(points)), factors_(measured_.size(), 0.0) {
  OUTRIDER_CHECK(!measured_.empty());
  for (const Point& a : measured_) {
    for (const Point& b : measured_) prior_.push_back(prior_covariance(a.rows, b.rows));
  }
  covariance_ = prior_;
  fit();
}

void PassCosts::fit() {
  points_ = measured_;
  for (size_t i = 0; i < points_.size(); ++i) {
    points_[i].ms -= (1.0 - variety_) * points_[i].ms_per_expert * more_experts(points_[i].rows);
    points_[i].ms *= std::exp(factors_[i]);
    points_[i].ms_per_thousand *= std::exp(factors_[i]);
  }
  const auto certainty = [&](size_t i) { return 1.0 / covariance(i, i); };
  make_non_decreasing(points_, certainty, [](Point& point) -> double& { return point.ms; });
  make_non_decreasing(points_, certainty, [](Point& point) -> double& { return point.ms_per_thousand; });
}

double PassCosts::pass_ms(double rows, double context) const {
  if (points_.size() == 1) return ms_at(points_[0], context);
  const Place place = place_of(points_, rows);
  const double left = ms_at(points_[place.left], context);
  return left + place.share * (ms_at(points_[place.left + 1], context) - left);
}

double PassCosts::more_experts(double rows) const {
  return measured_at(measured_, rows, &Point::active_experts) - measured_.front().active_experts;
}

double PassCosts::expert_surprise_ms(const Pass& pass) const {
  if (pass.active_experts == 0.0) return 0.0;
  const double expected = measured_.front().active_experts + variety_ * more_experts(pass.rows);
  return (pass.active_experts - expected) * measured_at(measured_, pass.rows, &Point::ms_per_expert) * pace();
}

void PassCosts::learn_variety(const Pass& pass) {
  constexpr double kFading = 0.1;
  const double more = more_experts(pass.rows);
  if (pass.active_experts == 0.0 || more <= 0.0) return;
  const double seen = (pass.active_experts - measured_.front().active_experts) / more;
  variety_ += kFading * (std::clamp(seen, 0.0, 1.0) - variety_);
}

double PassCosts::pace() const { return factors_.empty() ? 1.0 : std::exp(factors_.front()); }

void PassCosts::learn(const Pass& pass) {
  constexpr double kMaxSurprise =
      2.0;  // a pass with a stalled thread counts as at most twice the expected time
  if (measured_.empty() || !(pass.ms > 0.0)) return;
  const double usual = pass_ms(pass.rows, pass.context);
  const double expected = std::max(usual / kMaxSurprise, usual + expert_surprise_ms(pass));
  weights_.assign(measured_.size(), 0.0);
  if (measured_.size() == 1) {
    weights_[0] = 1.0;
  } else {
    const Place place = place_of(measured_, pass.rows);
    const double share = std::min(1.0, place.share);
    const double left = (1.0 - share) * ms_at(points_[place.left], pass.context);
    const double right = share * ms_at(points_[place.left + 1], pass.context);
    weights_[place.left] = left / (left + right);
    weights_[place.left + 1] = right / (left + right);
  }
  forget_a_little();
  update(weights_, std::log(std::clamp(pass.ms / expected, 1.0 / kMaxSurprise, kMaxSurprise)));
  learn_variety(pass);
  fit();
}

void PassCosts::forget_a_little() {
  for (size_t i = 0; i < prior_.size(); ++i) covariance_[i] += kForgotten * (prior_[i] - covariance_[i]);
}

void PassCosts::update(const std::vector<double>& weights, double surprise) {
  const size_t count = measured_.size();
  deviations_.assign(count, 0.0);  // covariance of each factor with the weighted sum
  for (size_t i = 0; i < count; ++i) {
    for (size_t j = 0; j < count; ++j) deviations_[i] += covariance(i, j) * weights[j];
  }
  const double variance =
      std::inner_product(weights.begin(), weights.end(), deviations_.begin(), kPass * kPass);
  for (size_t i = 0; i < count; ++i) {
    factors_[i] += deviations_[i] / variance * surprise;
    for (size_t j = 0; j < count; ++j) covariance(i, j) -= deviations_[i] * deviations_[j] / variance;
  }
}

}  // namespace outrider
