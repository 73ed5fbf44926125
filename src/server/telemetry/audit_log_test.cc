// SPDX-License-Identifier: Apache-2.0
#include "server/telemetry/audit_log.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

namespace outrider {
namespace {

namespace fs = std::filesystem;
using AuditJson = nlohmann::json;

// Lets files of this process grow to so many bytes: a write beyond them takes a part, or fails.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : handler_(::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit = {.rlim_cur = bytes, .rlim_max = before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    ::signal(SIGXFSZ, handler_);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  rlimit before_ = {};
  void (*handler_)(int);
};

class AuditLogTest : public testing::Test {
 protected:
  AuditLogTest() { fs::create_directories(folder_); }
  ~AuditLogTest() override { fs::remove_all(folder_); }

  std::unique_ptr<AuditLog> open() const {
    auto log = AuditLog::open(path_);
    EXPECT_TRUE(log.ok()) << log.error().message;
    return std::move(log).value();
  }
  // Every line has to be JSON by itself.
  static std::vector<AuditJson> lines_of(const fs::path& path) {
    std::vector<AuditJson> lines;
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) lines.push_back(AuditJson::parse(line));
    return lines;
  }

  const fs::path folder_ = fs::path(testing::TempDir()) / "audit_log_test";
  const fs::path path_ = folder_ / "audit.jsonl";
};

TEST_F(AuditLogTest, ALineSaysWhoDidWhat) {
  const auto log = open();
  EXPECT_TRUE(log->add({.action = "file_delete",
                        .subject = "file-\u00fc\n",
                        .status = 200,
                        .id = "mine",
                        .method = "DELETE",
                        .route = "/v1/files/{id}",
                        .client = {.address = "10.0.0.1", .key = "team-a"}})
                  .ok());
  EXPECT_TRUE(log->add({.action = "request", .error = "invalid_api_key", .status = 401}).ok());
  EXPECT_TRUE(log->add({.action = "keys_reload", .error = "no file"}).ok());
  const std::vector<AuditJson> lines = lines_of(path_);
  ASSERT_EQ(lines.size(), 3u);
  AuditJson first = lines[0];
  EXPECT_EQ(first["time"].get<std::string>().size(), 24u);
  first.erase("time");
  EXPECT_EQ(first, AuditJson::parse(R"({"action": "file_delete", "outcome": "ok", "subject": "file-\u00fc\n",
      "status": 200, "method": "DELETE", "route": "/v1/files/{id}", "client": "10.0.0.1", "key": "team-a",
      "id": "mine"})"));
  EXPECT_EQ(lines[1]["outcome"], "refused");
  EXPECT_EQ(lines[2]["outcome"], "failed");
  EXPECT_FALSE(lines[2].contains("status"));
  EXPECT_EQ(fs::status(path_).permissions(), fs::perms::owner_read | fs::perms::owner_write);
}

TEST_F(AuditLogTest, AnExistingFileIsContinued) {
  EXPECT_TRUE(open()->add({.action = "start"}).ok());
  EXPECT_TRUE(open()->add({.action = "start"}).ok());
  EXPECT_EQ(lines_of(path_).size(), 2u);
}

TEST_F(AuditLogTest, ARenamedFileIsLeft) {
  const auto log = open();
  EXPECT_TRUE(log->add({.action = "first"}).ok());
  fs::rename(path_, folder_ / "old");
  EXPECT_TRUE(log->add({.action = "second"}).ok());
  EXPECT_TRUE(log->reopen().ok());
  EXPECT_TRUE(log->add({.action = "third"}).ok());
  EXPECT_EQ(lines_of(folder_ / "old").size(), 2u);
  ASSERT_EQ(lines_of(path_).size(), 1u);
  EXPECT_EQ(lines_of(path_)[0]["action"], "third");
  fs::rename(path_, folder_ / "old");
  fs::create_directory(path_);
  EXPECT_FALSE(log->reopen().ok());
  EXPECT_TRUE(log->add({.action = "fourth"}).ok()) << "the old file stays";
  EXPECT_EQ(lines_of(folder_ / "old").back()["action"], "fourth");
}

// The disk is full in the middle of a line.
TEST_F(AuditLogTest, LostLinesAreCounted) {
  const auto log = open();
  EXPECT_TRUE(log->add({.action = "first"}).ok());
  const auto size = fs::file_size(path_);
  {
    const FileSizeLimit limit(size + 20);
    const Status lost = log->add({.action = "second"});
    ASSERT_FALSE(lost.ok());
    EXPECT_NE(lost.error().message.find(path_.string()), std::string::npos) << lost.error().message;
    EXPECT_FALSE(log->add({.action = "third"}).ok());
    EXPECT_EQ(fs::file_size(path_), size) << "no part of a line stays";
  }
  EXPECT_EQ(log->lost(), 2);
  EXPECT_TRUE(log->add({.action = "fourth"}).ok());
  EXPECT_TRUE(log->add({.action = "fifth"}).ok());
  const std::vector<AuditJson> lines = lines_of(path_);
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_EQ(lines[1]["action"], "audit_lines_lost");
  EXPECT_EQ(lines[1]["lines"], 2);
  EXPECT_EQ(lines[2]["action"], "fourth");
}

TEST_F(AuditLogTest, ManyRefusalsAreCounted) {
  const auto log = open();
  constexpr int kMany = 200;  // within a second, or two where the machine is busy
  for (int i = 0; i < kMany; ++i) EXPECT_TRUE(log->add({.action = "request", .status = 401}).ok());
  EXPECT_TRUE(log->add({.action = "last"}).ok());
  int refusals = 0, withheld = 0;
  for (const AuditJson& line : lines_of(path_)) {
    if (line["action"] == "request") ++refusals;
    if (line["action"] == "refusals_withheld") withheld += line["lines"].get<int>();
  }
  EXPECT_GE(refusals, AuditLog::kMostRefusals);
  EXPECT_LT(refusals, kMany / 2);
  EXPECT_EQ(refusals + withheld, kMany);
  EXPECT_EQ(lines_of(path_).back()["action"], "last");
}

TEST_F(AuditLogTest, LinesOfThreadsStayApart) {
  const auto log = open();
  constexpr int kThreads = 4, kLines = 200;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      for (int k = 0; k < kLines; ++k) {
        EXPECT_TRUE(log->add({.action = "x", .subject = std::string(static_cast<size_t>(k), 'a')}).ok());
        if (i == 0 && k % 50 == 0) {
          EXPECT_TRUE(log->reopen().ok());
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(lines_of(path_).size(), size_t{kThreads} * kLines);
}

TEST_F(AuditLogTest, WhatCannotBeWrittenIsRefused) {
  for (const fs::path& path : {folder_, folder_ / "no" / "such"}) {
    const auto log = AuditLog::open(path);
    ASSERT_FALSE(log.ok());
    EXPECT_NE(log.error().message.find("--audit-log"), std::string::npos) << log.error().message;
  }
}

}  // namespace
}  // namespace outrider
