// SPDX-License-Identifier: Apache-2.0
#include "corpus/text_sources.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/utf8.h"

namespace outrider {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

constexpr size_t kPieceBytes = size_t{1} << 20;

class TextReaderTest : public ::testing::Test {
 protected:
  TextReaderTest() {
    std::string name = testing::TempDir() + "outrider_text_reader_XXXXXX";
    folder_ = ::mkdtemp(name.data());
  }
  ~TextReaderTest() override { fs::remove_all(folder_); }

  TextSources sources(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name, std::ios::binary) << text;
    const std::vector<fs::path> named = {folder_ / name};
    auto found = find_texts(named);
    EXPECT_TRUE(found.ok()) << found.error().message;
    return *found;
  }

  static std::vector<TextPiece> pieces(const TextSources& sources) {
    TextReader reader(sources, kPieceBytes);
    std::vector<TextPiece> all;
    for (;;) {
      auto piece = reader.next();
      EXPECT_TRUE(piece.ok()) << piece.error().message;
      if (!piece.ok() || !*piece) return all;
      all.push_back(std::move(**piece));
    }
  }

  fs::path folder_;
};

TEST_F(TextReaderTest, PiecesAreTheWholeText) {
  std::string text;
  for (int i = 0; i < 400'000; ++i) text += i % 7 == 0 ? "\n" : "über ";
  for (const size_t bytes : {size_t{1}, kPieceBytes - 1, kPieceBytes, kPieceBytes + 1, text.size()}) {
    const TextSources found = sources("a.txt", text.substr(0, bytes));
    std::string joined;
    for (const TextPiece& piece : pieces(found)) {
      EXPECT_EQ(piece.begins_document, joined.empty());
      EXPECT_TRUE(joined.empty() || joined.ends_with('\n'));
      joined += piece.text;
    }
    EXPECT_EQ(joined, text.substr(0, bytes));
  }
}

TEST_F(TextReaderTest, TextWithoutLinesIsCutBetweenCharacters) {
  std::string text = "a";
  for (int i = 0; i < 1'000'000; ++i) text += "ü";
  const TextSources found = sources("a.txt", text);
  std::string joined;
  for (const TextPiece& piece : pieces(found)) {
    EXPECT_EQ(utf8::valid_prefix(piece.text), piece.text.size());
    joined += piece.text;
  }
  EXPECT_EQ(joined, text);
}

TEST_F(TextReaderTest, LinesOfJsonStayWhole) {
  const std::string line = "\"" + std::string(3 * kPieceBytes, 'a') + "\"";
  const TextSources found = sources("a.jsonl", "\"b\"\n" + line + "\n\"c\"\n\"d\"");
  int64_t lines = 1;
  for (const TextPiece& piece : pieces(found)) {
    EXPECT_EQ(piece.first_line, lines);
    EXPECT_TRUE(piece.text.ends_with("\"\n") || piece.text.ends_with("\"d\""));
    lines += std::count(piece.text.begin(), piece.text.end(), '\n');
  }
  EXPECT_EQ(lines, 4);
}

TEST_F(TextReaderTest, AFileThatChangesWhileItIsReadIsAnError) {
  const TextSources found = sources("a.txt", std::string(2 * kPieceBytes, 'a'));
  TextReader reader(found, kPieceBytes);
  ASSERT_TRUE(reader.next().ok());
  std::ofstream(folder_ / "a.txt", std::ios::app) << "b";
  Status last;
  for (int i = 0; i < 5 && last.ok(); ++i) {
    const auto piece = reader.next();
    if (!piece.ok()) last = piece.error();
  }
  EXPECT_THAT(last.error().message, HasSubstr("was changed while it was read"));
}

TEST_F(TextReaderTest, StampsTellOneStateFromAnother) {
  const uint64_t first = sources("a.txt", "abc").stamp();
  EXPECT_EQ(find_texts(std::vector<fs::path>{folder_ / "a.txt"})->stamp(), first);
  EXPECT_NE(sources("b.txt", "abc").stamp(), first);
  EXPECT_NE(sources("a.txt", "abcd").stamp(), first);
}

}  // namespace
}  // namespace outrider
