// SPDX-License-Identifier: Apache-2.0
#include "cli/reports/batch_bench_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/reports/bench_figures.h"

namespace outrider {
namespace {

// Ratios are taken per round, because a temporary slowdown affects both runs of a round.
double median_speedup(const BatchMeasurement& measurement) {
  std::vector<double> ratios;
  for (size_t i = 0; i < measurement.plain_rates.size(); ++i)
    ratios.push_back(measurement.speculative_rates[i] / measurement.plain_rates[i]);
  return median(ratios);
}

// Means over the steps of the speculative runs.
struct DeviceFigures {
  double lists, launches, kilobytes_to, kilobytes_from;
  double step_ms, host_ms;  // without the time in which this machine waited for the device
};

DeviceFigures device_figures(const BatchMeasurement& measurement) {
  const DeviceOrders& orders = *measurement.device;
  const double steps = std::max(1.0, static_cast<double>(measurement.steps));
  return {.lists = static_cast<double>(orders.lists) / steps,
          .launches = static_cast<double>(orders.launches) / steps,
          .kilobytes_to = static_cast<double>(orders.bytes_to) * 1e-3 / steps,
          .kilobytes_from = static_cast<double>(orders.bytes_from) * 1e-3 / steps,
          .step_ms = measurement.ms / steps,
          .host_ms = (measurement.ms - orders.waited_ms) / steps};
}

std::string device_text(const BatchBench& bench) {
  std::string text = fmt::format(
      "\na step with drafts and the {} device{}\n{:>8} {:>8} {:>9} {:>12} {:>12} {:>9} {:>9}\n",
      bench.info.device, bench.info.device == "emulated" ? "; all times are of the emulation" : "", "at once",
      "lists", "launches", "KB to it", "KB from it", "ms", "host ms");
  for (const BatchMeasurement& m : bench.measurements) {
    const DeviceFigures figures = device_figures(m);
    text += fmt::format("{:>8} {:>8.2f} {:>9.2f} {:>12.2f} {:>12.2f} {:>9.3f} {:>9.3f}\n", m.concurrency,
                        figures.lists, figures.launches, figures.kilobytes_to, figures.kilobytes_from,
                        figures.step_ms, figures.host_ms);
  }
  return text;
}

}  // namespace

nlohmann::ordered_json batch_bench_json(const BatchBench& bench) {
  nlohmann::ordered_json json;
  json["bench"] = "batch";
  json["model"] = bench.info.model_path;
  json["drafter"] = bench.info.drafter;
  json["policy"] = bench.speculation.is_auto ? "auto" : "fixed";
  json["device"] = bench.info.device;
  json["kernels"] = bench.info.kernels;
  json["threads"] = bench.info.threads;
  json["max_tokens"] = bench.max_tokens;
  json["batches"] = nlohmann::ordered_json::array();
  for (const BatchMeasurement& m : bench.measurements) {
    json["batches"].push_back({{"concurrency", m.concurrency},
                               {"plain_tokens_per_second", median(m.plain_rates)},
                               {"speculative_tokens_per_second", median(m.speculative_rates)},
                               {"speedup", median_speedup(m)},
                               {"acceptance_length", m.stats.acceptance_length()},
                               {"drafted", m.stats.drafted},
                               {"accepted", m.stats.accepted},
                               {"draft_share", m.draft_share},
                               {"plain_rates", m.plain_rates},
                               {"speculative_rates", m.speculative_rates}});
    if (bench.compared) json["batches"].back()["identical"] = m.identical;
    if (m.foreseen > 0) json["batches"].back()["foreseen_drafts"] = m.foreseen;
    if (!m.device) continue;
    const DeviceFigures figures = device_figures(m);
    json["batches"].back()["device"] = {{"lists", figures.lists},
                                        {"launches", figures.launches},
                                        {"kilobytes_to", figures.kilobytes_to},
                                        {"kilobytes_from", figures.kilobytes_from},
                                        {"step_ms", figures.step_ms},
                                        {"host_ms", figures.host_ms}};
  }
  return json;
}

std::string batch_bench_text(const BatchBench& bench) {
  const size_t rounds = bench.measurements.empty() ? 0 : bench.measurements.front().plain_rates.size();
  std::string text =
      fmt::format("{}: {}, policy {}, {} kernels, {} threads; {} tokens each, {} rounds\n\n",
                  bench.info.model_path, bench.info.drafter, bench.speculation.is_auto ? "auto" : "fixed",
                  bench.info.kernels, bench.info.threads, bench.max_tokens, rounds);
  text += fmt::format("{:>8} {:>12} {:>12} {:>8} {:>8} {:>10} {:>8}\n", "at once", "plain tok/s",
                      "spec. tok/s", "speedup", "tok/pass", "drafted", "drafting");
  for (const BatchMeasurement& m : bench.measurements) {
    text += fmt::format("{:>8} {:>12.1f} {:>12.1f} {:>8.3f} {:>8.2f} {:>10} {:>7.1f}%\n", m.concurrency,
                        median(m.plain_rates), median(m.speculative_rates), median_speedup(m),
                        m.stats.acceptance_length(), m.stats.drafted, 100 * m.draft_share);
  }
  for (const BatchMeasurement& m : bench.measurements) {
    if (m.foreseen > 0) {
      text += fmt::format("{} at once: {} drafts of {} steps were ready before they were asked for\n",
                          m.concurrency, m.foreseen, m.steps);
    }
  }
  if (!bench.measurements.empty() && bench.measurements.front().device) text += device_text(bench);
  return text;
}

}  // namespace outrider
