// SPDX-License-Identifier: Apache-2.0
// The outcomes that hostile files may have, for tests only.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "outrider/result.h"

namespace outrider {

// Expects a message of one line that does not copy the file's contents at length.
inline void expect_one_line(const Error& error) {
  EXPECT_FALSE(error.message.empty());
  EXPECT_EQ(error.message.find('\n'), std::string::npos) << error.message;
  EXPECT_LT(error.message.size(), 600u) << error.message;
  EXPECT_NE(error.kind, ErrorKind::kUsage) << error.message;
}

template <typename T>
void expect_refused(const Result<T>& result, std::string_view part_of_message) {
  ASSERT_FALSE(result.ok()) << "accepted, but expected an error about: " << part_of_message;
  expect_one_line(result.error());
  EXPECT_THAT(result.error().message, testing::HasSubstr(std::string(part_of_message)));
}

template <typename T>
void expect_refused_or_valid(const Result<T>& result) {
  if (!result.ok()) expect_one_line(result.error());
}

// A temporary folder that is removed at the end.
class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::string pattern = testing::TempDir() + "outrider_formats_XXXXXX";
    path_ = mkdtemp(pattern.data());
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  ~TemporaryDirectory() { std::filesystem::remove_all(path_); }

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path write(std::string_view name, std::string_view contents) const {
    const auto path = path_ / name;
    std::filesystem::remove(path);  // truncating a file in place waits for the disk on some file systems
    std::ofstream(path, std::ios::binary | std::ios::trunc) << contents;
    return path;
  }

 private:
  std::filesystem::path path_;
};

}  // namespace outrider
