// SPDX-License-Identifier: Apache-2.0
#include "corpus/scratch_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>

namespace outrider {
namespace {

Error scratch_error(const char* action, const std::filesystem::path& folder) {
  return io_error(std::string("corpus: cannot ") + action + " a file in " + folder.string() + ": " +
                  std::strerror(errno));
}

}  // namespace

Result<ScratchFile> ScratchFile::create(const std::filesystem::path& folder) {
  std::string name = (folder / "scratch.XXXXXX").string();
  FileDescriptor file(::mkostemp(name.data(), O_CLOEXEC));
  if (file.get() < 0) return scratch_error("create", folder);
  ::unlink(name.c_str());
  return ScratchFile(std::move(file), folder);
}

ScratchFile::~ScratchFile() {
  if (!mapped_.empty()) ::munmap(const_cast<std::byte*>(mapped_.data()), mapped_.size());
}

ScratchFile::ScratchFile(ScratchFile&& other) noexcept
    : file_(std::move(other.file_)),
      folder_(std::move(other.folder_)),
      size_(other.size_),
      mapped_(std::exchange(other.mapped_, {})) {}

Status ScratchFile::append(std::string_view bytes) {
  size_ += bytes.size();
  while (!bytes.empty()) {
    const ssize_t written = ::write(file_.get(), bytes.data(), bytes.size());
    if (written < 0 && errno != EINTR) return scratch_error("write", folder_);
    if (written > 0) bytes.remove_prefix(static_cast<size_t>(written));
  }
  return {};
}

Result<std::span<const std::byte>> ScratchFile::map() {
  if (mapped_.empty() && size_ > 0) {
    void* address = ::mmap(nullptr, size_, PROT_READ, MAP_SHARED, file_.get(), 0);
    if (address == MAP_FAILED) return scratch_error("map", folder_);
    mapped_ = {static_cast<const std::byte*>(address), size_};
  }
  return mapped_;
}

}  // namespace outrider
