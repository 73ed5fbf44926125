// SPDX-License-Identifier: Apache-2.0
#include "server/batch/result_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <vector>

namespace outrider {
namespace {

namespace fs = std::filesystem;

class ResultFileTest : public testing::Test {
 protected:
  ResultFileTest() {
    std::string name = (fs::temp_directory_path() / "outrider_results_XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) std::abort();
    folder_ = name;
    path_ = folder_ / "out.jsonl";
  }
  ~ResultFileTest() override { fs::remove_all(folder_); }

  void write(const std::string& text) const { std::ofstream(path_, std::ios::binary) << text; }
  std::string text() const {
    std::ifstream file(path_, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  }
  // The ids of the lines that are there; nullopt: it was refused.
  std::optional<std::vector<std::string>> ids(
      ResultFile::Damage damage = ResultFile::Damage::kRefused) const {
    std::vector<std::string> ids;
    const auto file =
        ResultFile::open(path_, damage, [&](const ResultLine& line) { ids.push_back(line.custom_id); });
    return file.ok() ? std::optional(ids) : std::nullopt;
  }
  static std::string line(const std::string& id, int status = 200) {
    return answer_line("0", id, {.status = status, .body = "{}"});
  }

  fs::path folder_, path_;
};

TEST_F(ResultFileTest, GrowsByLines) {
  auto file = ResultFile::open(path_, ResultFile::Damage::kRefused, [](const ResultLine&) { FAIL(); });
  ASSERT_TRUE(file.ok()) << file.error().message;
  ASSERT_TRUE(file->append(line("a")).ok());
  ASSERT_TRUE(file->append(line("b", 400)).ok());
  ASSERT_TRUE(file->sync().ok());
  EXPECT_EQ(file->lines(), 2);
  EXPECT_EQ(text(), line("a") + "\n" + line("b", 400) + "\n");
  EXPECT_EQ(*ids(), (std::vector<std::string>{"a", "b"}));
}

TEST_F(ResultFileTest, CutsOffATornLineWhereverItWasTorn) {
  const std::string whole = line("a") + "\n", torn = line("b") + "\n";
  for (size_t size = 0; size < torn.size(); ++size) {
    write(whole + torn.substr(0, size));
    ASSERT_EQ(*ids(), std::vector<std::string>{"a"}) << size;
    ASSERT_EQ(text(), whole) << size;
  }
}

TEST_F(ResultFileTest, LeavesOtherFilesAsTheyAre) {
  for (const std::string other : {"notes\n", "notes",
                                  R"({"custom_id": "a", "method": "POST"})"
                                  "\n"}) {
    write(line("a") + "\n" + other);
    EXPECT_FALSE(ids()) << other;
    EXPECT_EQ(text(), line("a") + "\n" + other);
    EXPECT_FALSE(keep_good_results(path_).ok());
    EXPECT_EQ(text(), line("a") + "\n" + other);
  }
  write(line("a") + "\n" + std::string(100, '\0') + "\n" + line("b") + "\n");  // after a power cut
  EXPECT_EQ(*ids(ResultFile::Damage::kCut), std::vector<std::string>{"a"});
  EXPECT_EQ(text(), line("a") + "\n");
}

TEST_F(ResultFileTest, KeepsGoodResults) {
  EXPECT_TRUE(keep_good_results(path_).ok());
  EXPECT_FALSE(fs::exists(path_));
  write(line("a") + "\n" + line("b", 400) + "\n" + problem_line("1", {.code = "c", .message = "m"}) + "\n" +
        line("d") + "\n" + line("e").substr(0, 30));
  EXPECT_TRUE(keep_good_results(path_).ok());
  EXPECT_EQ(text(), line("a") + "\n" + line("d") + "\n");
}

TEST_F(ResultFileTest, AFullDiskTakesNoPartOfALine) {
  auto file = ResultFile::open("/dev/full", ResultFile::Damage::kRefused, [](const ResultLine&) {});
  if (!file.ok()) GTEST_SKIP() << file.error().message;
  EXPECT_FALSE(file->append(line("a")).ok());
  EXPECT_EQ(file->lines(), 0);
}

}  // namespace
}  // namespace outrider
