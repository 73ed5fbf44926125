// SPDX-License-Identifier: Apache-2.0
// Writer of Prometheus' text format, version 0.0.4.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace outrider {

// Counts of observed values per bucket. `bounds` rise and must outlive the histogram.
class Histogram {
 public:
  explicit Histogram(std::span<const double> bounds) : bounds_(bounds), counts_(bounds.size() + 1) {}

  void observe(double value, int64_t times = 1);

  std::span<const double> bounds() const { return bounds_; }
  std::span<const int64_t> counts() const {
    return counts_;
  }  // per bucket, not cumulative; the last: above all bounds
  double sum() const { return sum_; }

 private:
  std::span<const double> bounds_;
  std::vector<int64_t> counts_;
  double sum_ = 0;
};

class MetricsText {
 public:
  using Labels = std::vector<std::pair<std::string_view, std::string>>;

  // Every sample gets the labels `common`.
  explicit MetricsText(Labels common) : common_(std::move(common)) {}

  // These write a family with one sample. begin_*() write a family without samples, which add() then adds.
  void counter(std::string_view name, std::string_view help, double value);  // _total is added to the name
  void gauge(std::string_view name, std::string_view help, double value);
  void histogram(std::string_view name, std::string_view help, const Histogram& values);
  void begin_counter(std::string_view name, std::string_view help);
  void begin_gauge(std::string_view name, std::string_view help);
  void add(const Labels& labels, double value);

  const std::string& text() const { return text_; }

 private:
  void begin(std::string_view name, std::string_view type, std::string_view help);
  void sample(std::string_view suffix, const Labels& labels, double value);

  Labels common_;
  std::string family_;
  std::string text_;
};

}  // namespace outrider
