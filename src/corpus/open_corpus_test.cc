// SPDX-License-Identifier: Apache-2.0
#include "corpus/open_corpus.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "corpus/context_search.h"

namespace outrider {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

// A token for each letter from a to z, for the line break and for the space, and one for "<end>".
std::shared_ptr<const Tokenizer> letter_tokenizer(const std::string& last = "<end>") {
  TokenizerSpec spec;
  spec.kind = TokenizerKind::kSentencePiece;
  for (char letter = 'a'; letter <= 'z'; ++letter) spec.pieces.emplace_back(1, letter);
  for (const std::string& piece : {std::string("\n"), std::string("\xE2\x96\x81"), last, std::string("?")})
    spec.pieces.push_back(piece);
  spec.attributes.assign(spec.pieces.size(), TokenAttribute::kNormal);
  spec.attributes[28] = TokenAttribute::kControl;
  spec.attributes[29] = TokenAttribute::kUnknown;
  spec.unknown = 29;
  spec.scores.assign(spec.pieces.size(), 0);
  auto tokenizer = Tokenizer::create(std::move(spec));
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.error().message;
  return *tokenizer;
}

class CorpusTest : public ::testing::Test {
 protected:
  CorpusTest() {
    std::string name = testing::TempDir() + "outrider_corpus_test_XXXXXX";
    folder_ = ::mkdtemp(name.data());
    options_ = {.texts = {}, .cache = folder_ / "cache", .threads = 2};
  }
  ~CorpusTest() override { fs::remove_all(folder_); }

  fs::path write(const std::string& name, const std::string& text) {
    fs::create_directories((folder_ / name).parent_path());
    std::ofstream(folder_ / name, std::ios::binary) << text;
    return folder_ / name;
  }

  std::shared_ptr<const Corpus> open() {
    auto corpus = open_corpus(options_, *tokenizer_);
    EXPECT_TRUE(corpus.ok()) << corpus.error().message;
    return corpus.ok() ? *corpus : nullptr;
  }

  std::string refusal() {
    const auto corpus = open_corpus(options_, *tokenizer_);
    return corpus.ok() ? "opened" : corpus.error().message;
  }

  // Times of the last write of the one index in the cache.
  fs::path index() const {
    for (const auto& entry : fs::directory_iterator(options_.cache)) {
      if (entry.path().extension() == ".corpus") return entry.path();
    }
    return {};
  }
  uint64_t inode() const {
    struct stat info = {};
    EXPECT_EQ(::stat(index().c_str(), &info), 0);
    return info.st_ino;
  }

  // How often the text occurs with something after it.
  int64_t count(const Corpus& corpus, const std::string& text) const {
    const std::vector<TokenId> tokens = tokenizer_->encode(text, {.add_special = false});
    ContextSearch search(corpus);
    const int found = search.find(tokens);
    return found < static_cast<int>(tokens.size()) ? 0 : search.range(found).size();
  }

  fs::path folder_;
  CorpusOptions options_;
  std::shared_ptr<const Tokenizer> tokenizer_ = letter_tokenizer();
};

TEST_F(CorpusTest, HasTheTextsOfFilesAndFolders) {
  options_.texts = {write("a.txt", "abcabd"), folder_ / "texts"};
  write("texts/b.txt", "abe");
  write("texts/deep/c.md", "abf");
  write("texts/.hidden/d.txt", "abg");
  write("texts/picture.png", std::string("ab\0h", 4));
  write("texts/empty.txt", "");
  const auto corpus = open();
  ASSERT_NE(corpus, nullptr);
  EXPECT_EQ(count(*corpus, "ab"), 4);
  EXPECT_EQ(count(*corpus, "c"), 1);
  EXPECT_EQ(count(*corpus, "da"), 0);  // another document
  EXPECT_EQ(corpus->facts().files, 3);
  EXPECT_EQ(corpus->facts().documents, 3);
  EXPECT_EQ(corpus->facts().tokens, 12);
  EXPECT_EQ(corpus->facts().text_bytes, 12);
}

TEST_F(CorpusTest, LinesOfJsonAreDocuments) {
  options_.texts = {
      write("chats.jsonl",
            "\"abc\"\n\n{\"text\": \"abd\", \"id\": 1}\r\n"
            "{\"messages\": [{\"role\": \"user\", \"content\": \"abe\"}, {\"role\": \"assistant\", "
            "\"content\": null}, {\"content\": \"ab<end>f\"}]}")};
  const auto corpus = open();
  ASSERT_NE(corpus, nullptr);
  EXPECT_EQ(corpus->facts().documents, 4);
  EXPECT_EQ(count(*corpus, "ab"), 4);
  EXPECT_EQ(count(*corpus, "ab<end>"), 1);  // the control token
  EXPECT_EQ(corpus->facts().tokens, 13);
  options_.texts = {write("bad.jsonl", "\"abc\"\n{\"txt\": 1}\n")};
  EXPECT_THAT(refusal(), HasSubstr("bad.jsonl:2: expected a text"));
  options_.texts = {write("worse.jsonl", "\"abc\"\n\n\n{\"text\"\n")};
  EXPECT_THAT(refusal(), HasSubstr("worse.jsonl:4: "));
  // One index and three locks.
  EXPECT_EQ(std::distance(fs::directory_iterator(options_.cache), fs::directory_iterator()), 4);
}

TEST_F(CorpusTest, LongTextsAreCutBehindLines) {
  std::string text;
  for (int i = 0; text.size() < (size_t{3} << 20); ++i) {
    for (int n = i; n > 0; n /= 26) text += static_cast<char>('a' + n % 26);
    text += '\n';
  }
  options_.texts = {write("lines.txt", text)};
  const auto corpus = open();
  ASSERT_NE(corpus, nullptr);
  EXPECT_EQ(corpus->facts().tokens, static_cast<int64_t>(text.size()));
  EXPECT_EQ(corpus->facts().documents, 1);
  for (int64_t i = 0; i < static_cast<int64_t>(text.size()); i += 1000)
    ASSERT_EQ(corpus->text()[kTextPadding + 1 + i],
              text[static_cast<size_t>(i)] == '\n' ? 26 : text[static_cast<size_t>(i)] - 'a');
}

TEST_F(CorpusTest, IsBuiltOnceAndAgainWhenATextChanges) {
  options_.texts = {write("a.txt", "abcabd")};
  const auto first = open();
  const uint64_t built = inode();
  EXPECT_EQ(count(*open(), "ab"), 2);
  EXPECT_EQ(inode(), built);
  write("a.txt", "abcabdabe");
  EXPECT_EQ(count(*open(), "ab"), 3);
  EXPECT_NE(inode(), built);
  EXPECT_EQ(count(*first, "ab"), 2);  // who has the old one keeps it
  write("a.txt", "xbcxbdxbe");        // of the same length
  EXPECT_EQ(count(*open(), "xb"), 3);
}

TEST_F(CorpusTest, FilesThatComeAndGoChangeAFolder) {
  options_.texts = {folder_ / "texts"};
  write("texts/a.txt", "abc");
  write("texts/b.txt", "abd");
  EXPECT_EQ(count(*open(), "ab"), 2);
  write("texts/c.txt", "abe");
  EXPECT_EQ(count(*open(), "ab"), 3);
  fs::remove(folder_ / "texts/a.txt");
  EXPECT_EQ(count(*open(), "ab"), 2);
  fs::rename(folder_ / "texts/b.txt", folder_ / "texts/.b.txt");
  EXPECT_EQ(count(*open(), "ab"), 1);
  fs::remove(folder_ / "texts/c.txt");
  EXPECT_THAT(refusal(), HasSubstr("found no file that has any"));
}

TEST_F(CorpusTest, OtherTokenizersHaveOtherIndexes) {
  options_.texts = {write("a.txt", "abcabd")};
  EXPECT_EQ(count(*open(), "ab"), 2);
  tokenizer_ = letter_tokenizer("<stop>");
  EXPECT_EQ(count(*open(), "ab"), 2);
  int indexes = 0;
  for (const auto& entry : fs::directory_iterator(options_.cache))
    indexes += entry.path().extension() == ".corpus";
  EXPECT_EQ(indexes, 2);
}

TEST_F(CorpusTest, ADamagedIndexIsBuiltAgain) {
  options_.texts = {write("a.txt", std::string(20'000, 'a') + "bc")};
  ASSERT_NE(open(), nullptr);
  const fs::path path = index();
  const auto size = fs::file_size(path);
  const std::vector<std::pair<size_t, std::string>> damages = {
      {0, "?"}, {20, "?"}, {50, "?"}, {90, std::string(30, '\xFF')}, {size - 3000, std::string(2000, '\0')}};
  for (const auto& [offset, bytes] : damages) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(offset));
    file << bytes;
    file.close();
    const uint64_t damaged = inode();
    const auto corpus = open();
    ASSERT_NE(corpus, nullptr);
    EXPECT_NE(inode(), damaged) << offset;
    EXPECT_EQ(count(*corpus, "aab"), 1);
  }
  for (const uintmax_t bytes : {uintmax_t{0}, uintmax_t{10}, uintmax_t{4096}, size - 1, size + 1}) {
    fs::resize_file(path, bytes);
    const auto corpus = open();
    ASSERT_NE(corpus, nullptr);
    EXPECT_EQ(fs::file_size(path), size);
    EXPECT_EQ(count(*corpus, "aab"), 1);
  }
}

// Bytes that no check at the start sees lead to other places and never outside of the text.
TEST_F(CorpusTest, DamageInTheMiddleStaysWithinTheText) {
  options_.texts = {write("a.txt", std::string(30'000, 'a') + "bc" + std::string(30'000, 'a'))};
  const auto corpus = open();
  ASSERT_NE(corpus, nullptr);
  const int file = ::open(index().c_str(), O_RDWR);
  const auto size = static_cast<off_t>(fs::file_size(index()));
  const std::string noise(64, '\xFF');
  for (off_t at = size / 3; at + 64 < size; at += 5000) ASSERT_EQ(::pwrite(file, noise.data(), 64, at), 64);
  ::close(file);
  ContextSearch search(*corpus);
  for (int length = 1; length < 40; ++length) {
    const std::vector<TokenId> context(static_cast<size_t>(length), 0);
    for (int found = search.find(context); found > 0; --found) {
      const PlaceRange range = search.range(found);
      EXPECT_GE(range.begin, 0);
      EXPECT_LE(range.end, static_cast<int64_t>(corpus->places().size()));
    }
  }
}

TEST_F(CorpusTest, WrongTextsAreNamed) {
  options_.texts = {folder_ / "missing.txt"};
  EXPECT_THAT(refusal(), HasSubstr("cannot find " + (folder_ / "missing.txt").string()));
  options_.texts = {write("zero.bin", std::string("ab\0c", 4))};
  EXPECT_THAT(refusal(), HasSubstr("zero.bin is no text"));
  options_.texts = {write("empty.txt", "")};
  EXPECT_THAT(refusal(), HasSubstr("found no file that has any"));
  options_.texts = {"/dev/null"};
  EXPECT_THAT(refusal(), HasSubstr("neither a file nor a folder"));
  options_.texts = {write("a.txt", "abc")};
  options_.cache.clear();
  EXPECT_THAT(refusal(), HasSubstr("expects a folder for its index"));
  options_.cache = folder_ / "a.txt";
  EXPECT_THAT(refusal(), HasSubstr("a.txt"));
}

TEST_F(CorpusTest, ProcessesThatStartTogetherShareOneIndex) {
  options_.texts = {write("a.txt", std::string(300'000, 'a') + "bc")};
  std::vector<pid_t> children;
  for (int i = 0; i < 4; ++i) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      options_.threads = 1;
      const auto corpus = open_corpus(options_, *tokenizer_);
      ::_exit(corpus.ok() && count(**corpus, "aab") == 1 ? 0 : 1);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  const uint64_t built = inode();
  EXPECT_NE(open(), nullptr);
  EXPECT_EQ(inode(), built);
}

TEST_F(CorpusTest, ThreadsThatStartTogetherShareOneIndex) {
  options_.texts = {write("a.txt", std::string(100'000, 'a') + "bc")};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      const auto corpus = open_corpus(options_, *tokenizer_);
      EXPECT_TRUE(corpus.ok() && count(**corpus, "aab") == 1);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace outrider
