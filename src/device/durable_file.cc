// SPDX-License-Identifier: Apache-2.0
#include "device/durable_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "device/file_descriptor.h"

namespace outrider {
namespace {

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
  temporary += ".tmp";
  return temporary;
}

Status write_and_sync(const std::filesystem::path& path,
                      const std::function<Status(const ByteSink&)>& produce) {
  const FileDescriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (file.get() < 0) return system_error("create", path);
  OUTRIDER_RETURN_IF_ERROR(
      produce([&](std::string_view bytes) { return write_all(file.get(), bytes, path); }));
  if (::fsync(file.get()) != 0) return system_error("flush", path);
  return {};
}

}  // namespace

Status write_durably(const std::filesystem::path& path,
                     const std::function<Status(const ByteSink&)>& produce) {
  const std::filesystem::path temporary = beside(path);
  if (Status status = write_and_sync(temporary, produce); !status.ok()) {
    ::unlink(temporary.c_str());
    return status;
  }
  if (::rename(temporary.c_str(), path.c_str()) != 0) return system_error("rename to", path);
  return sync_directory(path.parent_path());
}

Status write_durably(const std::filesystem::path& path, std::string_view bytes) {
  return write_durably(path, [&](const ByteSink& sink) { return sink(bytes); });
}

Status check_writable(const std::filesystem::path& path) {
  const std::filesystem::path temporary = beside(path);
  OUTRIDER_RETURN_IF_ERROR(write_and_sync(temporary, [](const ByteSink&) { return Status(); }));
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
