// SPDX-License-Identifier: Apache-2.0
#include "cli/reports/row_bench_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

#include "cli/reports/bench_figures.h"

namespace outrider {
namespace {

// 10^9 bytes per second
double gigabytes_per_second(double bytes, double ms) { return ms > 0 ? bytes / ms * 1e-6 : 0; }

double read_rate(const RowBench& bench) {
  return gigabytes_per_second(static_cast<double>(bench.streamed_bytes), median(bench.read_ms));
}

// "16", or "16x3" for a tree that branches
std::string label_of(const RowMeasurement& pass) {
  return pass.width == 1 ? std::to_string(pass.rows) : fmt::format("{}x{}", pass.rows, pass.width);
}

double smallest(const std::vector<double>& values) { return *std::min_element(values.begin(), values.end()); }

struct RowFigures {
  double median_ms, min_ms;
  double ratio;  // of the median to the median of the fewest rows
  double rows_per_second;
  double bytes;  // of weights
  double weights_gb_per_second;
  double share_of_read;  // fraction of the measured read bandwidth
};

RowFigures figures_of(const RowBench& bench, const RowMeasurement& pass) {
  const auto& fewest = *std::ranges::min_element(bench.passes, {}, &RowMeasurement::rows);
  const double ms = median(pass.ms);
  const double rate = gigabytes_per_second(median(pass.bytes), ms);
  return {.median_ms = ms,
          .min_ms = smallest(pass.ms),
          .ratio = ms / median(fewest.ms),
          .rows_per_second = 1000.0 * pass.rows / ms,
          .bytes = median(pass.bytes),
          .weights_gb_per_second = rate,
          .share_of_read = rate / read_rate(bench)};
}

std::optional<double> share_of_peak(const RowBench& bench, InputLayout inputs, double operations_per_second) {
  const auto peak = bench.peaks.find(inputs);
  if (peak == bench.peaks.end()) return std::nullopt;
  return operations_per_second / peak->second;
}

// One operation of a pass, means over the rounds.
struct OperationFigures {
  double calls, ms;
  double share_of_pass;
  double bytes, operations;
  // Fractions of what the machine can do:
  double share_of_read;
  std::optional<double> share_of_peak;  // nullopt: nobody knows
};

OperationFigures figures_of(const RowBench& bench, const RowMeasurement& pass,
                            const OperationTimes& operation) {
  const auto rounds = static_cast<double>(bench.read_ms.size());
  const double ms = operation.seconds * 1e3 / rounds;
  const auto bytes = static_cast<double>(operation.cost.bytes) / rounds;
  const auto operations = static_cast<double>(operation.cost.operations) / rounds;
  const double whole = std::accumulate(pass.ms.begin(), pass.ms.end(), 0.0) / rounds;
  return {.calls = static_cast<double>(operation.calls) / rounds,
          .ms = ms,
          .share_of_pass = ms / whole,
          .bytes = bytes,
          .operations = operations,
          .share_of_read = gigabytes_per_second(bytes, ms) / read_rate(bench),
          .share_of_peak = share_of_peak(bench, operation.cost.inputs, operations / (ms * 1e-3))};
}

nlohmann::ordered_json profile_json(const RowBench& bench, const RowMeasurement& pass) {
  auto json = nlohmann::ordered_json::array();
  for (const OperationTimes& operation : pass.profile.operations()) {
    const OperationFigures figures = figures_of(bench, pass, operation);
    json.push_back({{"operation", operation.name},
                    {"calls", figures.calls},
                    {"ms", figures.ms},
                    {"share_of_pass", figures.share_of_pass},
                    {"bytes", figures.bytes},
                    {"operations", figures.operations},
                    {"share_of_read", figures.share_of_read},
                    {"share_of_peak", figures.share_of_peak ? nlohmann::ordered_json(*figures.share_of_peak)
                                                            : nlohmann::ordered_json(nullptr)}});
  }
  return json;
}

std::string profile_text(const RowBench& bench, const RowMeasurement& pass) {
  std::string text = fmt::format("\n{} {}, by operation:\n{:<28} {:>6} {:>9} {:>8} {:>9} {:>8} {:>9} {:>8}\n",
                                 label_of(pass), pass.rows == 1 ? "row" : "rows", "operation", "calls", "ms",
                                 "of pass", "MB", "of read", "GFLOP", "of peak");
  for (const OperationTimes& operation : pass.profile.operations()) {
    const OperationFigures figures = figures_of(bench, pass, operation);
    text += fmt::format("{:<28} {:>6.0f} {:>9.3f} {:>7.1f}%", operation.name, figures.calls, figures.ms,
                        100 * figures.share_of_pass);
    if (figures.bytes > 0)
      text += fmt::format(" {:>9.2f} {:>7.1f}%", figures.bytes * 1e-6, 100 * figures.share_of_read);
    if (figures.operations > 0) text += fmt::format(" {:>9.3f}", figures.operations * 1e-9);
    if (figures.operations > 0 && figures.share_of_peak)
      text += fmt::format(" {:>7.1f}%", 100 * *figures.share_of_peak);
    text += '\n';
  }
  return text;
}

// The time of the last pass in which this machine did not wait for the device.
double host_ms(const RowMeasurement& pass) { return pass.ms.back() - pass.device->waited_ms; }

// Orders of this machine to the device in the last pass.
std::string device_text(const RowMeasurement& pass) {
  return fmt::format("{:>6} {:>6} {:>9} {:>12.1f} {:>12.1f} {:>9.3f}\n", label_of(pass), pass.device->lists,
                     pass.device->launches, static_cast<double>(pass.device->uploaded_bytes) * 1e-3,
                     static_cast<double>(pass.device->downloaded_bytes) * 1e-3, host_ms(pass));
}

}  // namespace

nlohmann::ordered_json row_bench_json(const RowBench& bench) {
  nlohmann::ordered_json json;
  json["bench"] = "rows";
  add_engine(json, bench.info);
  json["parameters"] = bench.info.parameters;
  json["weight_bytes"] = bench.info.weight_bytes;
  json["streamed_bytes"] = bench.streamed_bytes;
  json["context"] = bench.context;
  json["rounds"] = bench.read_ms.size();
  json["load_ms"] = bench.info.load_ms;
  json["read"] = {{"median_ms", median(bench.read_ms)},
                  {"min_ms", smallest(bench.read_ms)},
                  {"gb_per_second", read_rate(bench)},
                  {"ms", bench.read_ms}};
  json["rows"] = nlohmann::ordered_json::array();
  for (const RowMeasurement& pass : bench.passes) {
    const RowFigures figures = figures_of(bench, pass);
    json["rows"].push_back({{"rows", pass.rows},
                            {"width", pass.width},
                            {"median_ms", figures.median_ms},
                            {"min_ms", figures.min_ms},
                            {"ratio", figures.ratio},
                            {"rows_per_second", figures.rows_per_second},
                            {"weight_bytes", figures.bytes},
                            {"weights_gb_per_second", figures.weights_gb_per_second},
                            {"share_of_read", figures.share_of_read},
                            {"ms", pass.ms}});
    if (bench.has_profiles) json["rows"].back()["profile"] = profile_json(bench, pass);
    if (!pass.device) continue;
    json["rows"].back()["device"] = {{"launches", pass.device->launches},
                                     {"lists", pass.device->lists},
                                     {"bytes_to", pass.device->uploaded_bytes},
                                     {"bytes_from", pass.device->downloaded_bytes},
                                     {"host_ms", host_ms(pass)}};
  }
  return json;
}

std::string row_bench_text(const RowBench& bench) {
  std::string text = fmt::format(
      "{}: {}, {} kernels, {} threads; {} tokens in the cache, medians of {} rounds\n"
      "a row reads {:.1f} MB of weights; {} took {:.2f} ms, {:.1f} GB/s\n\n",
      bench.info.model_path, bench.info.weights, bench.info.kernels, bench.info.threads, bench.context,
      bench.read_ms.size(), static_cast<double>(bench.streamed_bytes) * 1e-6,
      bench.passes.front().device ? "a plain copy there that moves as many" : "reading as many plainly",
      median(bench.read_ms), read_rate(bench));
  text += fmt::format("{:>6} {:>10} {:>10} {:>8} {:>10} {:>9} {:>8} {:>10}\n", "rows", "ms", "least ms",
                      "ratio", "rows/s", "MB", "GB/s", "of read");
  for (const RowMeasurement& pass : bench.passes) {
    const RowFigures figures = figures_of(bench, pass);
    text +=
        fmt::format("{:>6} {:>10.3f} {:>10.3f} {:>8.2f} {:>10.1f} {:>9.1f} {:>8.2f} {:>9.1f}%\n",
                    label_of(pass), figures.median_ms, figures.min_ms, figures.ratio, figures.rows_per_second,
                    figures.bytes * 1e-6, figures.weights_gb_per_second, 100 * figures.share_of_read);
  }
  if (bench.passes.front().device) {
    text += fmt::format("\norders to the {} device in a pass{}\n{:>6} {:>6} {:>9} {:>12} {:>12} {:>9}\n",
                        bench.info.device,
                        bench.info.device == "emulated" ? "; all times are of the emulation" : "", "rows",
                        "lists", "launches", "KB to it", "KB from it", "host ms");
    for (const RowMeasurement& pass : bench.passes) text += device_text(pass);
  }
  if (!bench.has_profiles) return text;
  for (const RowMeasurement& pass : bench.passes) text += profile_text(bench, pass);
  return text;
}

}  // namespace outrider
