// SPDX-License-Identifier: Apache-2.0
#include "hub/transfer/partial_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "platform/durable_file.h"

namespace outrider {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPartialEnding = ".partial";

Error partial_error(std::string_view action, const fs::path& path) {
  return io_error(fmt::format("cannot {} {}: {}", action, path.string(), std::strerror(errno)));
}

fs::path partial_path(const fs::path& file, const Checksum& checksum) {
  constexpr size_t kDigits = 16;
  return fs::path(file).concat(fmt::format(".{}{}", checksum.hex.substr(0, kDigits), kPartialEnding));
}

// Parts of what the file was earlier would never be used again.
void remove_other_parts(const fs::path& file, const fs::path& kept) {
  const std::string prefix = file.filename().string() + ".";
  std::error_code code;
  for (const auto& entry : fs::directory_iterator(file.parent_path(), code)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(prefix) && name.ends_with(kPartialEnding) && entry.path() != kept)
      fs::remove(entry.path(), code);
  }
}

}  // namespace

std::optional<Checksum> checksum_of(const fs::path& path, ChecksumKind kind,
                                    const std::function<bool()>& is_interrupted) {
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat status = {};
  if (file.get() < 0 || ::fstat(file.get(), &status) != 0) return std::nullopt;
  ChecksumBuilder builder(kind, status.st_size);
  std::string chunk(size_t{1} << 20, '\0');
  ssize_t count = 0;
  while ((count = ::read(file.get(), chunk.data(), chunk.size())) > 0) {
    if (is_interrupted()) return std::nullopt;
    builder.add({chunk.data(), static_cast<size_t>(count)});
  }
  if (count < 0) return std::nullopt;
  return builder.finish();
}

Result<PartialFile> PartialFile::open(const fs::path& file, const Checksum& checksum) {
  OUTRIDER_RETURN_IF_ERROR(make_directories(file.parent_path()));
  const fs::path path = partial_path(file, checksum);
  PartialFile partial(file, path, ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  const int fd = partial.descriptor_->get();
  if (fd < 0) return partial_error("create", path);
  if (::flock(fd, LOCK_EX | LOCK_NB) != 0)
    return io_error(fmt::format("another process is fetching {}; wait for it, or end it", file.string()));
  struct stat status = {};
  if (::fstat(fd, &status) != 0) return partial_error("read", path);
  partial.bytes_ = status.st_size;
  remove_other_parts(file, path);
  return partial;
}

Status PartialFile::append(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor_->get(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return partial_error("write", path_);
    bytes.remove_prefix(static_cast<size_t>(written));
    bytes_ += written;
  }
  return {};
}

Status PartialFile::clear() {
  if (::ftruncate(descriptor_->get(), 0) != 0) return partial_error("empty", path_);
  bytes_ = 0;
  return {};
}

Status PartialFile::finish() {
  if (::fsync(descriptor_->get()) != 0) return partial_error("flush", path_);
  if (::rename(path_.c_str(), file_.c_str()) != 0) return partial_error("rename to", file_);
  return sync_directory(file_.parent_path());
}

}  // namespace outrider
