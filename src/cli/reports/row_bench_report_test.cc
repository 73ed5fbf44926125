// SPDX-License-Identifier: Apache-2.0
#include "cli/reports/row_bench_report.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace outrider {
namespace {

RowBench measured() {
  RowBench bench;
  bench.streamed_bytes = 600'000'000;
  bench.context = 512;
  bench.passes = {{8, 3, {60, 50, 90}, {900e6, 600e6, 1200e6}, {}},
                  {1, 1, {40, 45, 30}, {600e6, 600e6, 600e6}, {}}};
  bench.read_ms = {20, 30, 19};
  return bench;
}

TEST(RowBenchReport, FiguresAreOfMedians) {
  const auto json = row_bench_json(measured());
  EXPECT_EQ(json["rounds"], 3);
  EXPECT_EQ(json["read"]["gb_per_second"], 30.0);
  const auto& eight = json["rows"][0];
  EXPECT_EQ(eight["rows"], 8);
  EXPECT_EQ(eight["median_ms"], 60.0);
  EXPECT_EQ(eight["min_ms"], 50.0);
  EXPECT_EQ(eight["ratio"], 1.5);  // relative to the fewest rows, anywhere in the list
  EXPECT_DOUBLE_EQ(eight["rows_per_second"].get<double>(), 8 / 0.060);
  EXPECT_DOUBLE_EQ(eight["weights_gb_per_second"].get<double>(), 15.0);
  EXPECT_DOUBLE_EQ(eight["share_of_read"].get<double>(), 0.5);
  EXPECT_EQ(json["rows"][1]["ratio"], 1.0);
}

TEST(RowBenchReport, TextHasALinePerRowCount) {
  const std::string text = row_bench_text(measured());
  EXPECT_NE(text.find("a row reads 600.0 MB of weights; reading as many plainly took 20.00 ms, 30.0 GB/s"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("   8x3     60.000     50.000     1.50      133.3     900.0    15.00      50.0%\n"),
            std::string::npos)
      << text;
}

TEST(RowBenchReport, OperationsAreRelatedToWhatTheMachineCanDo) {
  RowBench bench = measured();
  bench.has_profiles = true;
  bench.peaks[InputLayout::kInt8Groups] = 1e12;
  for (int round = 0; round < 3; ++round) {
    const OperationCost cost{300'000'000, 2'000'000'000, InputLayout::kInt8Groups};
    for (int call = 0; call < 2; ++call) bench.passes[1].profile.add("down_proj", cost, 0.010);
  }
  const auto json = row_bench_json(bench);
  const auto& operation = json["rows"][1]["profile"][0];
  EXPECT_EQ(operation["operation"], "down_proj");
  EXPECT_EQ(operation["calls"], 2.0);
  EXPECT_DOUBLE_EQ(operation["ms"].get<double>(), 20.0);  // of a pass of 115 / 3 ms
  EXPECT_DOUBLE_EQ(operation["share_of_pass"].get<double>(), 60.0 / 115);
  EXPECT_DOUBLE_EQ(operation["share_of_read"].get<double>(), 1.0);
  EXPECT_DOUBLE_EQ(operation["share_of_peak"].get<double>(), 0.2);
  EXPECT_TRUE(json["rows"][0]["profile"].empty());
}

}  // namespace
}  // namespace outrider
