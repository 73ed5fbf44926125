// SPDX-License-Identifier: Apache-2.0
#include "platform/direct_file.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <fstream>
#include <new>
#include <random>

namespace outrider {
namespace {

namespace fs = std::filesystem;

constexpr size_t kBlock = DirectFile::kBlock;

// Memory whose address is a multiple of a block.
class Blocks {
 public:
  explicit Blocks(size_t bytes)
      : bytes_(bytes), data_(static_cast<std::byte*>(::operator new (bytes, std::align_val_t{kBlock}))) {}
  ~Blocks() { ::operator delete (data_, std::align_val_t{kBlock}); }
  Blocks(const Blocks&) = delete;
  Blocks& operator=(const Blocks&) = delete;
  std::span<std::byte> span() const { return {data_, bytes_}; }

 private:
  size_t bytes_;
  std::byte* data_;
};

class DirectFileTest : public testing::TestWithParam<DirectFile::Method> {
 protected:
  DirectFileTest() : path_(testing::TempDir() + "outrider_direct_file_test") {
    std::mt19937 random(7);
    content_.resize(5 * (size_t{1} << 20) + 3 * kBlock);
    for (std::byte& byte : content_) byte = static_cast<std::byte>(random());
    write(content_.size());
  }
  ~DirectFileTest() override { fs::remove(path_); }

  void write(size_t bytes) const {
    std::ofstream(path_, std::ios::binary)
        .write(reinterpret_cast<const char*>(content_.data()), static_cast<std::streamsize>(bytes));
  }

  // Skips the test where the system does not permit io_uring.
  std::unique_ptr<DirectFile> open() const {
    auto file = DirectFile::open(path_, GetParam());
    if (!file.ok()) return nullptr;
    return std::move(file).value();
  }

  bool holds(const Blocks& blocks, size_t offset) const {
    return std::ranges::equal(blocks.span(), std::span(content_).subspan(offset, blocks.span().size()));
  }

  fs::path path_;
  std::vector<std::byte> content_;
};

#define OPEN_OR_SKIP(file)  \
  const auto file = open(); \
  if (file == nullptr) GTEST_SKIP() << "io_uring is not permitted here"

TEST_P(DirectFileTest, ReadsSeveralPartsAtATime) {
  OPEN_OR_SKIP(file);
  const Blocks whole(content_.size());
  const Blocks part(2 * kBlock);
  file->pin(std::array{whole.span(), part.span()});
  for (int turn = 0; turn < 3; ++turn) {
    std::ranges::fill(whole.span(), std::byte{0});
    FileRead first;
    FileRead second;
    file->begin(first, 0, whole.span());
    file->begin(second, (size_t{1} << 20) - kBlock, part.span());
    EXPECT_TRUE(file->finish(second).ok());
    EXPECT_TRUE(holds(part, (size_t{1} << 20) - kBlock));
    EXPECT_TRUE(file->finish(first).ok());
    EXPECT_TRUE(holds(whole, 0));
  }
}

TEST_P(DirectFileTest, ARefusedReadLeavesOthersAlone) {
  OPEN_OR_SKIP(file);
  const Blocks beyond(4 * kBlock);
  const Blocks part(kBlock);
  FileRead bad;
  FileRead good;
  file->begin(bad, content_.size() - kBlock, beyond.span());
  file->begin(good, kBlock, part.span());
  const Status status = file->finish(bad);
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().message.find("ends too early"), std::string::npos) << status.error().message;
  EXPECT_TRUE(file->finish(good).ok());
  EXPECT_TRUE(holds(part, kBlock));
  // After that it reads again.
  file->begin(bad, 0, beyond.span());
  EXPECT_TRUE(file->finish(bad).ok());
  EXPECT_TRUE(holds(beyond, 0));
}

TEST_P(DirectFileTest, WaitsForReadsInFlightBeforeItIsDestroyed) {
  const Blocks whole(content_.size());
  FileRead read;
  {
    OPEN_OR_SKIP(file);
    file->begin(read, 0, whole.span());
  }
}

INSTANTIATE_TEST_SUITE_P(Methods, DirectFileTest,
                         testing::Values(DirectFile::Method::kUring, DirectFile::Method::kThreads),
                         [](const auto& info) {
                           return info.param == DirectFile::Method::kUring ? "Uring" : "Threads";
                         });

TEST(DirectFile, NamesAFileThatIsMissing) {
  const auto file = DirectFile::open("/nowhere/weights");
  ASSERT_FALSE(file.ok());
  EXPECT_NE(file.error().message.find("/nowhere/weights"), std::string::npos);
}

}  // namespace
}  // namespace outrider
