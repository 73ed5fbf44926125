// SPDX-License-Identifier: Apache-2.0
#include "platform/mapped_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <string_view>
#include <utility>

namespace outrider {
namespace {

using ::testing::HasSubstr;

class MappedFileTest : public testing::Test {
 protected:
  MappedFileTest() : path_(testing::TempDir() + "outrider_mapped_file_test") {}
  ~MappedFileTest() override { std::filesystem::remove(path_); }

  void write(std::string_view contents) { std::ofstream(path_, std::ios::binary) << contents; }

  std::filesystem::path path_;
};

std::string_view as_text(const MappedFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

TEST_F(MappedFileTest, ShowsTheWholeFile) {
  write("twelve bytes");
  const auto file = MappedFile::open(path_);
  ASSERT_TRUE(file.ok()) << file.error().message;
  EXPECT_EQ(as_text(*file), "twelve bytes");
}

TEST_F(MappedFileTest, DroppedPagesLeaveMemoryAndComeBack) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  std::string contents(10 * page, 'a');
  for (size_t i = 0; i < contents.size(); ++i) contents[i] = static_cast<char>('a' + i % 23);
  write(contents);
  const auto file = MappedFile::open(path_);
  ASSERT_TRUE(file.ok()) << file.error().message;
  EXPECT_EQ(as_text(*file), contents);
  const auto resident_pages = [&] {  // of this process: the file's pages stay in the page cache
    std::ifstream maps("/proc/self/smaps");
    int64_t kilobytes = -1;
    for (std::string line; std::getline(maps, line);) {
      if (line.find(path_.filename().string()) != std::string::npos) kilobytes = 0;
      if (kilobytes == 0 && line.starts_with("Rss:"))
        return int64_t{std::stol(line.substr(4))} * 1024 / static_cast<int64_t>(page);
    }
    return int64_t{-1};
  };
  EXPECT_EQ(resident_pages(), 10);
  // Pages that the range covers in part stay.
  drop_mapped_pages(file->bytes().subspan(page / 2, 8 * page));
  EXPECT_EQ(resident_pages(), 3);
  EXPECT_EQ(as_text(*file), contents);
}

TEST_F(MappedFileTest, MovingKeepsTheAddress) {
  write("contents");
  auto opened = MappedFile::open(path_);
  ASSERT_TRUE(opened.ok());
  const std::byte* address = opened->bytes().data();
  const MappedFile moved = std::move(opened).value();
  EXPECT_EQ(moved.bytes().data(), address);
  EXPECT_EQ(as_text(moved), "contents");
}

TEST_F(MappedFileTest, RefusesWhatIsNoFileWithContents) {
  EXPECT_THAT(MappedFile::open(path_).error().message, HasSubstr("cannot open"));
  EXPECT_EQ(MappedFile::open(path_).error().kind, ErrorKind::kIo);
  EXPECT_THAT(MappedFile::open(testing::TempDir()).error().message, HasSubstr("not a regular file"));
  EXPECT_THAT(MappedFile::open("/dev/null").error().message, HasSubstr("not a regular file"));
  write("");
  EXPECT_THAT(MappedFile::open(path_).error().message, HasSubstr("is empty"));
}

TEST_F(MappedFileTest, DoesNotWaitForAPipe) {
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  EXPECT_THAT(MappedFile::open(path_).error().message, HasSubstr("not a regular file"));
}

TEST_F(MappedFileTest, ZerosTakeThePlaceOfWhatAFileNoLongerHas) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  write(std::string(4 * page, 'a'));
  const auto file = MappedFile::open(path_), other = MappedFile::open(path_);
  ASSERT_TRUE(file.ok() && other.ok());
  EXPECT_TRUE(file->check().ok());
  std::filesystem::resize_file(path_, page);
  EXPECT_EQ(as_text(*file), std::string(page, 'a') + std::string(3 * page, '\0'));
  EXPECT_THAT(file->check().error().message, HasSubstr("was changed while it was in use"));
  // Even where the size has come back.
  std::filesystem::resize_file(path_, 4 * page);
  EXPECT_THAT(file->check().error().message, HasSubstr(path_.string()));
}

TEST_F(MappedFileTest, NoticesOtherContents) {
  write("contents");
  const auto file = MappedFile::open(path_);
  ASSERT_TRUE(file.ok());
  std::filesystem::rename(path_, path_.string() + ".moved");
  EXPECT_TRUE(file->check().ok());
  std::filesystem::rename(path_.string() + ".moved", path_);
  usleep(20'000);  // the clock that stamps files moves on
  { std::fstream(path_, std::ios::in | std::ios::out) << "contemns"; }
  EXPECT_FALSE(file->check().ok());
}

// A program that uses the library keeps its own handler.
TEST_F(MappedFileTest, OtherFaultsReachTheHandlerOfBefore) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // the handler is not there yet
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  EXPECT_EXIT(
      {
        write(std::string(page, 'a'));
        signal(SIGBUS, [](int) { _exit(7); });
        const auto guarded = MappedFile::open(path_);
        const int file = ::open(path_.c_str(), O_RDONLY);
        const auto* bytes =
            static_cast<const volatile char*>(mmap(nullptr, 2 * page, PROT_READ, MAP_SHARED, file, 0));
        _exit(bytes[page]);
      },
      testing::ExitedWithCode(7), "");
}

}  // namespace
}  // namespace outrider
