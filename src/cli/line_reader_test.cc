// SPDX-License-Identifier: Apache-2.0
#include "cli/line_reader.h"

#include <gtest/gtest.h>

#include <deque>
#include <string>

namespace outrider {
namespace {

class GivenLines final : public LineReader {
 public:
  explicit GivenLines(std::deque<std::string> lines) : lines_(std::move(lines)) {}
  LineEnd read(std::string_view, std::string& line) override {
    if (lines_.empty()) return LineEnd::kEndOfInput;
    line = lines_.front();
    lines_.pop_front();
    return line == "^C" ? LineEnd::kInterrupted : LineEnd::kLine;
  }
  void remember(const std::string&) override {}

 private:
  std::deque<std::string> lines_;
};

std::string message(std::deque<std::string> lines, LineEnd expected = LineEnd::kLine) {
  GivenLines reader(std::move(lines));
  std::string text;
  EXPECT_EQ(read_message(reader, text), expected);
  return text;
}

TEST(ReadMessageTest, ALineIsAMessage) { EXPECT_EQ(message({"one", "two"}), "one"); }

TEST(ReadMessageTest, FencesHoldSeveralLines) {
  EXPECT_EQ(message({"\"\"\"", "one", "", "two", "\"\"\"", "three"}), "one\n\ntwo");
  EXPECT_EQ(message({"\"\"\"one", "two\"\"\""}), "one\ntwo");
  EXPECT_EQ(message({"\"\"\"one\"\"\"", "two"}), "one");
}

TEST(ReadMessageTest, InterruptsAndEndsInsideAFence) {
  message({"\"\"\"", "one", "^C"}, LineEnd::kInterrupted);
  EXPECT_EQ(message({"\"\"\"", "one"}), "one");
  message({}, LineEnd::kEndOfInput);
  message({"\"\"\""}, LineEnd::kEndOfInput);
}

}  // namespace
}  // namespace outrider
