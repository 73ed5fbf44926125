// SPDX-License-Identifier: Apache-2.0
#include "kv/disk/page_run.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <random>
#include <utility>

#include "platform/durable_file.h"

namespace outrider {
namespace {

constexpr std::array<char, 8> kMagic = {'O', 'R', 'P', 'A', 'G', 'E', 'S', '2'};
constexpr int64_t kAlignment = 64;  // of the first part

// A file begins with it. The identity, the tokens and the checksums follow, zeros up to kAlignment, then the
// parts. Numbers are stored as this machine has them: another order of bytes is another checksum.
struct Head {
  std::array<char, 8> magic = kMagic;
  uint64_t checksum = 0;  // of all up to the parts, itself as 0
  uint64_t is_state = 0;
  RunId id, before;
  uint64_t scope = 0;
  uint64_t identity_bytes = 0;
  uint64_t tokens = 0;
  uint64_t parts = 0;
  uint64_t part_bytes = 0;
};
static_assert(sizeof(Head) == 96 && std::is_trivially_copyable_v<Head>);

uint64_t checksum_of(std::span<const std::byte> bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

// Bytes up to the parts; -1: no file is that large.
int64_t begin_of_parts(const Head& head) {
  constexpr uint64_t kMost = uint64_t{1} << 31;
  if (head.identity_bytes > kMost || head.tokens > kMost || head.parts > kMost) return -1;
  const uint64_t bytes =
      sizeof(Head) + head.identity_bytes + head.tokens * sizeof(TokenId) + head.parts * sizeof(uint64_t);
  return static_cast<int64_t>(bytes + kAlignment - 1) / kAlignment * kAlignment;
}

std::span<const std::byte> part_of(const RunParts& parts, uint64_t index) {
  const auto size = static_cast<size_t>(parts.part_bytes);
  return std::span(parts.bytes).subspan(index * size, size);
}

template <typename T>
void append(std::string& out, const T* values, size_t count) {
  out.append(reinterpret_cast<const char*>(values), count * sizeof(T));
}

// All of the file up to its parts.
std::string text_of(const Head& head, std::string_view identity, const PageRun& run,
                    std::span<const uint64_t> checksums) {
  std::string text;
  append(text, &head, 1);
  text += identity;
  append(text, run.tokens.data(), run.tokens.size());
  append(text, checksums.data(), checksums.size());
  text.resize(static_cast<size_t>(begin_of_parts(head)));
  const uint64_t checksum = checksum_of(std::as_bytes(std::span(text)));
  std::memcpy(text.data() + offsetof(Head, checksum), &checksum, sizeof(checksum));
  return text;
}

Error damaged_error(const std::filesystem::path& path) {
  return input_error(path.string() + ": expected saved pages of this model, found other bytes");
}

bool read_at(int fd, int64_t offset, std::span<std::byte> to) {
  while (!to.empty()) {
    const ssize_t bytes = ::pread(fd, to.data(), to.size(), offset);
    if (bytes == 0 || (bytes < 0 && errno != EINTR)) return false;
    const auto read = static_cast<size_t>(std::max<ssize_t>(bytes, 0));
    to = to.subspan(read);
    offset += static_cast<int64_t>(read);
  }
  return true;
}

// The beginning of a file.
struct Beginning {
  Head head;
  PageRun run;
  std::vector<uint64_t> checksums;
};

// `text`: the file up to its parts, of a file of `size` bytes.
Result<Beginning> parse(const std::filesystem::path& path, std::span<std::byte> text, int64_t size,
                        std::string_view identity) {
  const Error damaged = damaged_error(path);
  Beginning found;
  Head& head = found.head;
  std::memcpy(&head, text.data(), sizeof(Head));
  const auto rest = static_cast<uint64_t>(size - std::ssize(text));
  const bool is_sized = head.part_bytes == 0
                            ? rest == 0 && head.parts <= head.tokens
                            : rest % head.part_bytes == 0 && rest / head.part_bytes == head.parts;
  if (!is_sized || head.identity_bytes != identity.size()) return damaged;
  std::memset(text.data() + offsetof(Head, checksum), 0, sizeof(head.checksum));
  if (checksum_of(text) != head.checksum) return damaged;
  const std::byte* at = text.data() + sizeof(Head);
  if (std::memcmp(at, identity.data(), identity.size()) != 0) return damaged;
  at += identity.size();
  found.run = {.id = head.id,
               .before = head.before,
               .scope = head.scope,
               .tokens = std::vector<TokenId>(head.tokens),
               .is_state = head.is_state != 0};
  std::memcpy(found.run.tokens.data(), at, head.tokens * sizeof(TokenId));
  at += head.tokens * sizeof(TokenId);
  found.checksums.resize(head.parts);
  std::memcpy(found.checksums.data(), at, head.parts * sizeof(uint64_t));
  return found;
}

Result<FileDescriptor> open_file(const std::filesystem::path& path) {
  FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) return io_error("cannot read " + path.string() + ": " + std::strerror(errno));
  return file;
}

Result<Beginning> read_beginning(const FileDescriptor& file, const std::filesystem::path& path,
                                 std::string_view identity) {
  struct stat info = {};
  if (::fstat(file.get(), &info) != 0)
    return io_error("cannot read " + path.string() + ": " + std::strerror(errno));
  std::vector<std::byte> text(sizeof(Head));
  if (!read_at(file.get(), 0, text)) return damaged_error(path);
  Head head;
  std::memcpy(&head, text.data(), sizeof(Head));
  const int64_t begin = begin_of_parts(head);
  if (head.magic != kMagic || begin < 0 || begin > info.st_size) return damaged_error(path);
  text.resize(static_cast<size_t>(begin));
  if (!read_at(file.get(), 0, text)) return damaged_error(path);
  return parse(path, text, info.st_size, identity);
}

}  // namespace

RunId random_run_id() {
  std::random_device device;
  const auto number = [&] { return uint64_t{device()} << 32 | device(); };
  return {number(), number()};
}

Status write_run(const std::filesystem::path& path, std::string_view identity, const PageRun& run,
                 const RunParts& parts) {
  const size_t count = parts.part_bytes == 0 ? 0 : parts.bytes.size() / static_cast<size_t>(parts.part_bytes);
  std::vector<uint64_t> checksums;
  for (size_t i = 0; i < count; ++i) checksums.push_back(checksum_of(part_of(parts, i)));
  const Head head{.is_state = run.is_state ? uint64_t{1} : 0,
                  .id = run.id,
                  .before = run.before,
                  .scope = run.scope,
                  .identity_bytes = identity.size(),
                  .tokens = run.tokens.size(),
                  .parts = count,
                  .part_bytes = static_cast<uint64_t>(parts.part_bytes)};
  return write_unflushed(path, [&](const ByteSink& sink) -> Status {
    OUTRIDER_RETURN_IF_ERROR(sink(text_of(head, identity, run, checksums)));
    return sink({reinterpret_cast<const char*>(parts.bytes.data()), parts.bytes.size()});
  });
}

Result<RunFile> RunFile::open(const std::filesystem::path& path, std::string_view identity) {
  OUTRIDER_TRY(FileDescriptor descriptor, open_file(path));
  OUTRIDER_TRY(Beginning found, read_beginning(descriptor, path, identity));
  RunFile file(std::move(descriptor));
  file.begin_ = begin_of_parts(found.head);
  file.part_bytes_ = static_cast<int64_t>(found.head.part_bytes);
  file.run_ = std::move(found.run);
  file.checksums_ = std::move(found.checksums);
  return file;
}

bool RunFile::read(int64_t index, std::span<std::byte> to) const {
  return read_at(file_.get(), begin_ + index * part_bytes_, to) &&
         checksum_of(to) == checksums_[static_cast<size_t>(index)];
}

Result<PageRun> read_run(const std::filesystem::path& path, std::string_view identity) {
  OUTRIDER_TRY(const FileDescriptor file, open_file(path));
  static_cast<void>(::posix_fadvise(file.get(), 0, 0, POSIX_FADV_RANDOM));
  OUTRIDER_TRY(Beginning found, read_beginning(file, path, identity));
  return std::move(found.run);
}

}  // namespace outrider
