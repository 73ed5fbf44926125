// SPDX-License-Identifier: Apache-2.0
#include "server/telemetry/metrics_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <iterator>

namespace outrider {
namespace {

std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '\n') {
      result += "\\n";
      continue;
    }
    if (c == '\\' || c == '"') result += '\\';
    result += c;
  }
  return result;
}

std::string number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  return fmt::format("{}", value);
}

}  // namespace

void Histogram::observe(double value, int64_t times) {
  const auto bound = std::lower_bound(bounds_.begin(), bounds_.end(), value);
  counts_[static_cast<size_t>(bound - bounds_.begin())] += times;
  sum_ += value * static_cast<double>(times);
}

void MetricsText::begin(std::string_view name, std::string_view type, std::string_view help) {
  family_ = name;
  fmt::format_to(std::back_inserter(text_), "# HELP {} {}\n# TYPE {} {}\n", name, help, name, type);
}

void MetricsText::sample(std::string_view suffix, const Labels& labels, double value) {
  text_ += family_;
  text_ += suffix;
  char before = '{';
  for (const Labels* list : std::initializer_list<const Labels*>{&common_, &labels}) {
    for (const auto& [name, content] : *list) {
      fmt::format_to(std::back_inserter(text_), "{}{}=\"{}\"", before, name, escaped(content));
      before = ',';
    }
  }
  if (before == ',') text_ += '}';
  fmt::format_to(std::back_inserter(text_), " {}\n", number(value));
}

void MetricsText::begin_counter(std::string_view name, std::string_view help) {
  begin(fmt::format("{}_total", name), "counter", help);
}

void MetricsText::begin_gauge(std::string_view name, std::string_view help) { begin(name, "gauge", help); }

void MetricsText::add(const Labels& labels, double value) { sample("", labels, value); }

void MetricsText::counter(std::string_view name, std::string_view help, double value) {
  begin_counter(name, help);
  add({}, value);
}

void MetricsText::gauge(std::string_view name, std::string_view help, double value) {
  begin_gauge(name, help);
  add({}, value);
}

void MetricsText::histogram(std::string_view name, std::string_view help, const Histogram& values) {
  begin(name, "histogram", help);
  int64_t below = 0;
  for (size_t i = 0; i < values.counts().size(); ++i) {
    below += values.counts()[i];
    const bool is_last = i == values.bounds().size();
    sample("_bucket", {{"le", is_last ? "+Inf" : number(values.bounds()[i])}}, static_cast<double>(below));
  }
  sample("_sum", {}, values.sum());
  sample("_count", {}, static_cast<double>(below));
}

}  // namespace outrider
