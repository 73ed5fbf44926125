// SPDX-License-Identifier: Apache-2.0
#include "server/telemetry/audit_log.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include "server/telemetry/log_line.h"

namespace outrider {
namespace {

constexpr auto kSyncInterval = std::chrono::seconds(1);
constexpr size_t kMaxDetail = 300;  // bytes

std::string_view outcome_of(const AuditRecord& record) {
  if (is_refusal(record.status)) return "refused";
  return record.error.empty() && record.status < 400 ? "ok" : "failed";
}

std::string line_of(const AuditRecord& record) {
  LogLine line("action", record.action);
  JsonWriter& out = line.writer();
  out.member("outcome", outcome_of(record));
  const auto add = [&out](std::string_view name, std::string_view text) {
    if (!text.empty()) out.member(name, text.substr(0, kMaxDetail));
  };
  add("subject", record.subject);
  add("error", record.error);
  add("detail", record.detail);
  if (record.status != 0) out.member("status", record.status);
  add("method", record.method);
  add("route", record.route);
  add("client", record.client.address);
  add("key", record.client.key);
  add("id", record.id);
  return line.take();
}

}  // namespace

Result<AuditLog::File> AuditLog::open_file(const std::filesystem::path& path) {
  // Without O_NONBLOCK a pipe that nobody reads would hold up the server.
  const int flags = O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK;
  const int file = ::open(path.c_str(), flags, S_IRUSR | S_IWUSR);
  if (file < 0)
    return io_error(fmt::format("--audit-log: cannot open {}: {}", path.string(), std::strerror(errno)));
  return std::make_shared<const FileDescriptor>(file);
}

Result<std::unique_ptr<AuditLog>> AuditLog::open(std::filesystem::path path) {
  OUTRIDER_TRY(File file, open_file(path));
  return std::unique_ptr<AuditLog>(new AuditLog(std::move(path), std::move(file)));
}

AuditLog::AuditLog(std::filesystem::path path, File file)
    : path_(std::move(path)), file_(std::move(file)), thread_([this] { sync(); }) {}

AuditLog::~AuditLog() {
  {
    const std::lock_guard lock(mutex_);
    stops_ = true;
    changed_.notify_one();
  }
  thread_.join();
}

// A file that takes a part of the line is cut back to whole lines.
Status AuditLog::append(std::string_view line) const {
  const ssize_t written = ::write(file_->get(), line.data(), line.size());
  if (written == static_cast<ssize_t>(line.size())) return {};
  const int code = written < 0 ? errno : ENOSPC;
  struct stat info = {};
  if (written > 0 && ::fstat(file_->get(), &info) == 0) [[maybe_unused]]
    const int cut = ::ftruncate(file_->get(), info.st_size - written);
  return io_error(fmt::format("cannot write {}: {}", path_.string(), std::strerror(code)));
}

// A line with a number of lines that are not there; the number is then told.
Status AuditLog::append_count(std::string_view action, int64_t& lines) const {
  if (lines == 0) return {};
  LogLine line("action", action);
  line.writer().member("lines", lines);
  OUTRIDER_RETURN_IF_ERROR(append(line.take()));
  lines = 0;
  return {};
}

// Counts a refusal. True: there were many in this second.
bool AuditLog::is_withheld() {
  const auto now = std::chrono::steady_clock::now();
  if (now - second_ >= std::chrono::seconds(1)) {
    second_ = now;
    refusals_ = 0;
  }
  const bool is_too_many = ++refusals_ > kMostRefusals;
  withheld_ += is_too_many ? 1 : 0;
  return is_too_many;
}

Status AuditLog::add(const AuditRecord& record) {
  const std::string line = line_of(record);
  const std::lock_guard lock(mutex_);
  if (is_refusal(record.status) && is_withheld()) return {};
  Status written = append_count("audit_lines_lost", untold_);
  if (written.ok()) written = append_count("refusals_withheld", withheld_);
  if (written.ok()) written = append(line);
  if (!written.ok()) {
    lose(written.error());
    return written;
  }
  is_unsynced_ = true;
  changed_.notify_one();
  return {};
}

// The log of the server says it once for each time without writing.
void AuditLog::lose(const Error& error) {
  ++lost_;
  if (untold_++ == 0) log_event("audit_lines_lost", error.message);
}

Status AuditLog::reopen() {
  OUTRIDER_TRY(File file, open_file(path_));
  const std::lock_guard lock(mutex_);
  ::fdatasync(file_->get());
  file_ = std::move(file);
  return {};
}

int64_t AuditLog::lost() const {
  const std::lock_guard lock(mutex_);
  return lost_;
}

// Flushes what was written, at once and then again at most once in an interval.
void AuditLog::sync() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stops_ || is_unsynced_; });
    if (std::exchange(is_unsynced_, false)) {
      const File file = file_;
      lock.unlock();
      ::fdatasync(file->get());
      lock.lock();
    }
    if (stops_) return;
    changed_.wait_for(lock, kSyncInterval, [this] { return stops_; });
  }
}

}  // namespace outrider
