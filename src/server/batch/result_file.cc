// SPDX-License-Identifier: Apache-2.0
#include "server/batch/result_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include "platform/durable_file.h"
#include "platform/mapped_file.h"

namespace outrider {
namespace {

// Whether these bytes may be the beginning of a result line.
bool is_torn_result(std::string_view bytes) {
  const size_t count = std::min(bytes.size(), kResultBeginning.size());
  return bytes.substr(0, count) == kResultBeginning.substr(0, count);
}

// The whole lines at the beginning of a text.
struct ScannedResults {
  size_t bytes = 0;
  int64_t lines = 0;
  bool has_others = false;  // what follows them is no torn line
};
// Calls `visit` with each whole line, its end included.
ScannedResults scan_results(std::string_view text,
                            const std::function<void(std::string_view, const ResultLine&)>& visit) {
  ScannedResults scanned;
  while (scanned.bytes < text.size()) {
    const std::string_view rest = text.substr(scanned.bytes);
    const size_t end = rest.find('\n');
    const std::string_view whole = rest.substr(0, end == std::string_view::npos ? 0 : end + 1);
    const std::optional<ResultLine> line = whole.empty() ? std::nullopt : read_result_line(whole);
    if (!line) {
      scanned.has_others = !whole.empty() || !is_torn_result(rest);
      return scanned;
    }
    visit(whole, *line);
    scanned.bytes += whole.size();
    ++scanned.lines;
  }
  return scanned;
}

Result<std::optional<MappedFile>> map_if_any(const std::filesystem::path& path) {
  std::error_code error;
  const auto bytes = std::filesystem::file_size(path, error);
  if (error || bytes == 0) return std::optional<MappedFile>();
  OUTRIDER_TRY(MappedFile file, MappedFile::open(path));
  return std::optional<MappedFile>(std::move(file));
}

std::string_view text_of(const MappedFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

Error no_results(const std::filesystem::path& path, int64_t line) {
  return input_error(
      fmt::format("{}:{}: expected a file of results, whose lines begin with {}; found another",
                  path.string(), line, kResultBeginning));
}

}  // namespace

Result<ResultFile> ResultFile::open(const std::filesystem::path& path, Damage damage,
                                    const std::function<void(const ResultLine& line)>& visit) {
  FileDescriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_APPEND, 0644));
  if (file.get() < 0) return io_error(fmt::format("cannot open {}: {}", path.string(), std::strerror(errno)));
  ResultFile results(path, std::move(file));
  OUTRIDER_RETURN_IF_ERROR(results.read(damage, visit));
  return results;
}

Status ResultFile::read(Damage damage, const std::function<void(const ResultLine& line)>& visit) {
  OUTRIDER_TRY(const std::optional<MappedFile> file, map_if_any(path_));
  if (!file) return {};
  const ScannedResults scanned =
      scan_results(text_of(*file), [&](std::string_view, const ResultLine& line) { visit(line); });
  if (scanned.has_others && damage == Damage::kRefused) return no_results(path_, scanned.lines + 1);
  bytes_ = static_cast<int64_t>(scanned.bytes);
  lines_ = scanned.lines;
  if (::ftruncate(file_.get(), bytes_) != 0) return failure("shorten");
  return {};
}

Error ResultFile::failure(std::string_view action) const {
  return io_error(fmt::format("cannot {} {}: {}", action, path_.string(), std::strerror(errno)));
}

Status ResultFile::append(std::string_view line) {
  const std::string whole = std::string(line) + "\n";
  std::string_view rest = whole;
  while (!rest.empty()) {
    const ssize_t written = ::write(file_.get(), rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      const Error error = failure("write");
      return ::ftruncate(file_.get(), bytes_) == 0 ? error : failure("shorten");
    }
    rest.remove_prefix(static_cast<size_t>(written));
  }
  bytes_ += static_cast<int64_t>(whole.size());
  ++lines_;
  return {};
}

Status ResultFile::sync() {
  if (::fsync(file_.get()) != 0) return failure("flush");
  return {};
}

Status keep_good_results(const std::filesystem::path& path) {
  OUTRIDER_TRY(const std::optional<MappedFile> file, map_if_any(path));
  if (!file) return {};
  int64_t others = 0;
  const ScannedResults scanned = scan_results(
      text_of(*file), [&](std::string_view, const ResultLine& line) { others += line.status != 200; });
  if (scanned.has_others) return no_results(path, scanned.lines + 1);
  if (others == 0) return {};
  return write_durably(path, [&](const ByteSink& sink) {
    Status status;
    scan_results(text_of(*file), [&](std::string_view whole, const ResultLine& line) {
      if (status.ok() && line.status == 200) status = sink(whole);
    });
    return status;
  });
}

}  // namespace outrider
