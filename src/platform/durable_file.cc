// SPDX-License-Identifier: Apache-2.0
#include "platform/durable_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "platform/file_descriptor.h"

namespace outrider {
namespace {

constexpr std::string_view kUnfinished = ".tmp";

Error system_error(const char* action, const std::filesystem::path& path) {
  return io_error(std::string("cannot ") + action + " " + path.string() + ": " + std::strerror(errno));
}

Status write_all(int fd, std::string_view bytes, const std::filesystem::path& path) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      return system_error("write", path);
    }
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return {};
}

std::filesystem::path beside(const std::filesystem::path& path) {
  std::filesystem::path temporary = path;
  temporary += kUnfinished;
  return temporary;
}

// Returns false if another process writes the file or has just renamed it.
bool take(int fd, const std::filesystem::path& path) {
  struct stat held = {};
  struct stat named = {};
  return ::flock(fd, LOCK_EX | LOCK_NB) == 0 && ::fstat(fd, &held) == 0 &&
         ::stat(path.c_str(), &named) == 0 && held.st_ino == named.st_ino && held.st_dev == named.st_dev;
}

// Fills the file of `fd`, which no other process writes, and gives it its name.
Status write_and_rename(int fd, const std::filesystem::path& temporary, const std::filesystem::path& path,
                        const std::function<Status(const ByteSink&)>& produce, bool flushes) {
  if (::ftruncate(fd, 0) != 0) return system_error("empty", temporary);
  OUTRIDER_RETURN_IF_ERROR(produce([&](std::string_view bytes) { return write_all(fd, bytes, temporary); }));
  if (flushes && ::fsync(fd) != 0) return system_error("flush", temporary);
  if (::rename(temporary.c_str(), path.c_str()) != 0) return system_error("rename to", path);
  return {};
}

Status write_file(const std::filesystem::path& path, const std::function<Status(const ByteSink&)>& produce,
                  bool flushes) {
  const std::filesystem::path temporary = beside(path);
  const FileDescriptor file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
  if (file.get() < 0) return system_error("create", temporary);
  if (!take(file.get(), temporary)) return io_error("another process is writing " + path.string());
  if (Status status = write_and_rename(file.get(), temporary, path, produce, flushes); !status.ok()) {
    ::unlink(temporary.c_str());
    return status;
  }
  return flushes ? sync_directory(path.parent_path()) : Status();
}

}  // namespace

Status write_durably(const std::filesystem::path& path,
                     const std::function<Status(const ByteSink&)>& produce) {
  return write_file(path, produce, true);
}

Status write_unflushed(const std::filesystem::path& path,
                       const std::function<Status(const ByteSink&)>& produce) {
  return write_file(path, produce, false);
}

void remove_unfinished(const std::filesystem::path& directory) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(directory, error)) {
    if (entry.path().extension() != kUnfinished) continue;
    const FileDescriptor file(::open(entry.path().c_str(), O_WRONLY | O_CLOEXEC));
    if (file.get() >= 0 && take(file.get(), entry.path())) ::unlink(entry.path().c_str());
  }
}

Status write_durably(const std::filesystem::path& path, std::string_view bytes) {
  return write_durably(path, [&](const ByteSink& sink) { return sink(bytes); });
}

Status check_writable(const std::filesystem::path& path) {
  const std::filesystem::path temporary = beside(path);
  const FileDescriptor file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
  if (file.get() < 0) return system_error("create", temporary);
  ::unlink(temporary.c_str());
  return {};
}

Status sync_directory(const std::filesystem::path& directory) {
  const std::filesystem::path name = directory.empty() ? "." : directory;
  const FileDescriptor folder(::open(name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.get() < 0 || ::fsync(folder.get()) != 0) return system_error("flush", name);
  return {};
}

Status make_directories(const std::filesystem::path& directory) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) return io_error("cannot create " + directory.string() + ": " + error.message());
  return {};
}

}  // namespace outrider
