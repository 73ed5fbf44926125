// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "outrider/result.h"
#include "platform/file_descriptor.h"
#include "server/telemetry/request_log.h"

namespace outrider {

// An act of an operator, a key or the server itself. Texts may be empty.
struct AuditRecord {
  std::string action;        // "file_delete"
  std::string subject = {};  // the file, batch, model, ... that it was about
  std::string error = {};    // why it was not done; empty: it was
  std::string detail = {};   // more about it
  int status = 0;            // of the answer; 0: no request asked for it
  std::string id = {};       // of the request, as are the rest
  std::string method = {};
  std::string route = {};  // pattern of the route table
  RequestClient client = {};
};

// Whether an answer of this status refuses a key, a name or a quota.
constexpr bool is_refusal(int status) { return status == 401 || status == 403 || status == 429; }

// A file to which lines with one JSON object each are appended. A line survives the end of the process when
// add() returns, and a power cut about a second later. Lines that cannot be written, as on a full disk, are
// lost: the next one that can be follows a line with their number. Refusals beyond kMostRefusals a second are
// only counted, so that nobody fills the disk with wrong keys. Any thread may use it.
class AuditLog {
 public:
  static constexpr int kMostRefusals = 20;

  // Error: the file cannot be opened. A new one is for its owner only.
  static Result<std::unique_ptr<AuditLog>> open(std::filesystem::path path);
  ~AuditLog();
  AuditLog(const AuditLog&) = delete;
  AuditLog& operator=(const AuditLog&) = delete;

  // Error: the line is lost.
  Status add(const AuditRecord& record);
  // Opens the file by its name again, after it was renamed. Error: it cannot be opened, and the old one
  // stays.
  Status reopen();
  int64_t lost() const;  // lines since the start

 private:
  using File = std::shared_ptr<const FileDescriptor>;

  AuditLog(std::filesystem::path path, File file);

  static Result<File> open_file(const std::filesystem::path& path);
  Status append(std::string_view line) const;
  Status append_count(std::string_view action, int64_t& lines) const;
  bool is_withheld();
  void lose(const Error& error);
  void sync();

  const std::filesystem::path path_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  File file_;
  int64_t lost_ = 0, untold_ = 0;  // lines that were lost, and the last of them that no line tells of
  int64_t withheld_ = 0;           // refusals that no line tells of yet
  int refusals_ = 0;               // since second_
  std::chrono::steady_clock::time_point second_ = {};
  bool is_unsynced_ = false, stops_ = false;
  std::thread thread_;  // last, since it uses all members above
};

}  // namespace outrider
