// SPDX-License-Identifier: Apache-2.0
#include "engine/calibration.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "open/parts.h"

namespace outrider {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class Calibration : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string name = ::testing::UnitTest::GetInstance()->current_test_info()->name();
    folder_ = fs::temp_directory_path() / ("outrider_calibration_" + name);
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    options_.model = OUTRIDER_SOURCE_DIR "/tests/data/models/llama";
    options_.cache_dir = folder_ / "costs";
    options_.threads = 1;
    options_.speculation.decoding_type = Method::kNGram;
    options_.speculation.is_auto = true;
    options_.calibrate = true;
  }
  void TearDown() override { fs::remove_all(folder_); }

  PassCosts open() const {
    auto parts = open_parts(options_);
    EXPECT_TRUE(parts.ok()) << parts.error().message;
    return (*parts)->costs;
  }

  static std::vector<int> rows(const PassCosts& costs) {
    std::vector<int> rows;
    for (const auto& point : costs.points()) rows.push_back(point.rows);
    return rows;
  }

  std::vector<fs::path> files() const {
    std::vector<fs::path> files;
    if (!fs::exists(options_.cache_dir)) return files;
    for (const auto& entry : fs::directory_iterator(options_.cache_dir)) files.push_back(entry.path());
    return files;
  }

  void write(const std::string& text) const { std::ofstream(files().at(0), std::ios::binary) << text; }

  std::string read() const {
    std::stringstream text;
    text << std::ifstream(files().at(0)).rdbuf();
    return text.str();
  }

  fs::path folder_;
  EngineOptions options_;
};

TEST_F(Calibration, TimesPassesUpToTheLargest) {
  const PassCosts costs = open();  // 8 sequences with 4 drafted tokens each
  EXPECT_THAT(rows(costs), ElementsAre(1, 2, 4, 8, 12, 16, 24, 32));
  for (const auto& point : costs.points()) {
    EXPECT_GT(point.ms, 0.0);
    EXPECT_LT(point.ms, 1000.0);
    EXPECT_GE(point.ms_per_thousand, 0.0);
  }
  options_.max_batch = 1;
  options_.speculation.max_draft_len = 1;
  options_.cache_dir.clear();
  EXPECT_THAT(rows(open()), ElementsAre(1, 2));
}

TEST_F(Calibration, EndsInTimeAndGoesOnTheNextTime) {
  options_.calibrate = false;
  options_.speculation.is_auto = false;
  auto parts = open_parts(options_);
  ASSERT_TRUE(parts.ok()) << parts.error().message;
  EXPECT_THAT(rows(calibrate(**parts, 0.0)), ElementsAre(1, 8));
  EXPECT_THAT(rows(calibrate(**parts, 0.0)), ElementsAre(1, 8));
  write("1 111 2.5 0 0\n8 222 3.5 0 0\n");
  EXPECT_THAT(rows(calibrate(**parts, 100.0)), ElementsAre(1, 8));  // a pass would take all of the time
  EXPECT_THAT(rows(calibrate(**parts, kNoLimitMs)), ElementsAre(1, 2, 4, 8, 12, 16, 24, 32));
  EXPECT_THAT(read(), AllOf(HasSubstr("1 111 2.5 0 0\n"), HasSubstr("8 222 3.5 0 0\n")));
}

TEST_F(Calibration, OnlyWhereThePolicyNeedsIt) {
  options_.calibrate = false;
  options_.speculation.is_auto = false;
  EXPECT_TRUE(open().empty());
  options_.speculation.is_auto = true;
  options_.speculation.decoding_type = Method::kNone;
  EXPECT_TRUE(open().empty());
  EXPECT_THAT(files(), IsEmpty());
}

TEST_F(Calibration, WithoutADirectoryNothingIsWritten) {
  options_.cache_dir.clear();
  const fs::path before = fs::current_path();
  fs::current_path(folder_);
  EXPECT_FALSE(open().empty());
  fs::current_path(before);
  EXPECT_TRUE(fs::is_empty(folder_));
}

TEST_F(Calibration, IsReadTheNextTime) {
  const PassCosts measured = open();
  ASSERT_EQ(files().size(), 1u);
  const PassCosts again = open();
  ASSERT_EQ(rows(again), rows(measured));
  for (size_t i = 0; i < again.points().size(); ++i) {
    EXPECT_NEAR(again.points()[i].ms / measured.points()[i].ms, 1.0, 1e-5);
    EXPECT_NEAR(again.points()[i].ms_per_thousand, measured.points()[i].ms_per_thousand,
                1e-5 * measured.points()[i].ms_per_thousand);
  }
  std::string table = "1 111 2.5 8 0\n";
  for (const int more : {2, 4, 8, 12, 16, 24, 32, 40}) table += std::to_string(more) + " 222 3.5 96 0.25\n";
  write(table);
  const PassCosts edited = open();
  EXPECT_THAT(rows(edited), ElementsAre(1, 2, 4, 8, 12, 16, 24, 32, 40));
  EXPECT_EQ(edited.points()[1].ms, 222.0);
  EXPECT_EQ(edited.points()[1].ms_per_thousand, 3.5);
  EXPECT_EQ(edited.points()[1].active_experts, 96.0);
  EXPECT_EQ(edited.points()[1].ms_per_expert, 0.25);
}

TEST_F(Calibration, IsKeptByWhatItDependsOn) {
  open();
  options_.speculation.max_draft_len = 3;
  open();
  EXPECT_EQ(files().size(), 1u);
  options_.threads = 2;
  open();
  EXPECT_EQ(files().size(), 2u);
  options_.weights = WeightPrecision::kQ8;
  open();
  EXPECT_EQ(files().size(), 3u);
  options_.kv_cache_type = KvCacheType::kF32;
  open();
  EXPECT_EQ(files().size(), 4u);
  options_.context = 64;  // too short to tell what a longer one costs
  open();
  EXPECT_EQ(files().size(), 5u);
}

TEST_F(Calibration, OfSmallPassesIsNotTakenForLargeOnes) {
  options_.context = 110;
  options_.max_batch = 1;
  options_.speculation.max_draft_len = 1;
  EXPECT_THAT(rows(open()), ElementsAre(1, 2));
  write("1 5 0 0 0\n2 5 0 0 0\n");
  EXPECT_EQ(open().points()[0].ms, 5.0);
  options_.context = 140;  // timed with the same context
  options_.speculation.max_draft_len = 19;
  EXPECT_THAT(rows(open()), ElementsAre(1, 2, 4, 8, 12, 16));
  EXPECT_EQ(files().size(), 1u);
}

TEST_F(Calibration, FilesThatAreNotOneAreReplaced) {
  open();
  std::string many;
  for (int i = 1; i < 10000; ++i) many += std::to_string(i) + " 1 1 0 0\n";
  const std::vector<std::string> contents = {
      "",
      "\n",
      "hello\n",
      std::string(100, '\0'),
      "1 1 1 0 0\n32 1",                      // cut off
      "1 1 1 0 0\n32 1 1 0 0",                // perhaps cut off
      "1 1 1 0 0\n16 1 1 0 0\n",              // its end is gone
      "1 1 1 0 0\n32 1 1 1 0 0\n",            // too much on a line
      "1 1 0 0\n1 32 1 1 0 0\n",              // another form
      "2 1 1 0 0\n32 1 1 0 0\n",              // does not begin with one row
      "1 1 1 0 0\n32 1 1 0 0\n24 1 1 0 0\n",  // not in order
      "1 1 1 0 0\n32 1 1 0 0\n32 1 1 0 0\n",  //
      "-1 1 1 0 0\n32 1 1 0 0\n",             //
      "1 0 1 0 0\n32 1 1 0 0\n",              //
      "1 -1 1 0 0\n32 1 1 0 0\n",             //
      "1 1 -1 0 0\n32 1 1 0 0\n",             //
      "1 nan 1 0 0\n32 1 1 0 0\n",            //
      "1 1 nan 0 0\n32 1 1 0 0\n",            //
      "1 inf 1 0 0\n32 1 1 0 0\n",            //
      "1 1e300 1 0 0\n32 1 1 0 0\n",          //
      "1 1 1e9999 0 0\n32 1 1 0 0\n",         //
      "1 1 1 0 0\n99999999999999 1 1 0 0\n",  //
      "1 1 1 8 0\n32 1 1 -8 0\n",             // experts
      "1 1 1 8 0\n32 1 1 nan 0\n",            //
      "1 1 1 8 0\n32 1 1 8 -1\n",             //
      "1 1 1 8 0\n32 1 1 8 1\n",              // take longer than the pass
      many,
  };
  for (const std::string& text : contents) {
    write(text);
    const PassCosts costs = open();
    EXPECT_THAT(rows(costs), ElementsAre(1, 2, 4, 8, 12, 16, 24, 32)) << text.substr(0, 40);
    std::stringstream written;
    written << std::ifstream(files().at(0)).rdbuf();
    EXPECT_EQ(std::ranges::count(written.str(), '\n'), 8) << text.substr(0, 40);
  }
}

TEST_F(Calibration, ADirectoryThatCannotBeWrittenIsNoError) {
  std::ofstream(folder_ / "file") << "x";
  options_.cache_dir = folder_ / "file" / "costs";
  EXPECT_FALSE(open().empty());
  options_.cache_dir = folder_ / "costs";
  open();
  const fs::path file = files().at(0);
  fs::remove(file);
  fs::create_directories(file / "in its place");
  EXPECT_FALSE(open().empty());
}

}  // namespace
}  // namespace outrider
