// SPDX-License-Identifier: Apache-2.0
#include "corpus/text_sources.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "base/counter_rng.h"
#include "base/utf8.h"

namespace outrider {
namespace {

namespace fs = std::filesystem;

Error file_error(const char* action, const fs::path& path) {
  return io_error(std::string("corpus: cannot ") + action + " " + path.string() + ": " +
                  std::strerror(errno));
}

int64_t nanoseconds_of(const timespec& time) { return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec; }

Status add_file(const fs::path& path, bool is_named, TextSources& sources) {
  struct stat info = {};
  if (::stat(path.c_str(), &info) != 0) return file_error("find", path);
  if (!S_ISREG(info.st_mode)) {
    if (!is_named) return {};
    return input_error("corpus: " + path.string() + " is neither a file nor a folder");
  }
  if (info.st_size == 0) return {};
  sources.files.push_back({.path = fs::absolute(path).lexically_normal(),
                           .bytes = info.st_size,
                           .modified = nanoseconds_of(info.st_mtim),
                           .changed = nanoseconds_of(info.st_ctim),
                           .is_named = is_named});
  sources.bytes += info.st_size;
  return {};
}

bool is_hidden(const fs::path& path) { return path.filename().string().starts_with('.'); }

Status add_folder(const fs::path& folder, TextSources& sources) {
  std::vector<fs::path> paths;
  std::error_code error;
  fs::recursive_directory_iterator entry(folder, error);
  for (; !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
    std::error_code ignored;
    if (is_hidden(entry->path())) {
      entry.disable_recursion_pending();
    } else if (entry->is_regular_file(ignored)) {
      paths.push_back(entry->path());
    }
  }
  if (error) return io_error("corpus: cannot list " + folder.string() + ": " + error.message());
  std::ranges::sort(paths);
  for (const fs::path& path : paths) OUTRIDER_RETURN_IF_ERROR(add_file(path, false, sources));
  return {};
}

uint64_t mixed(uint64_t hash, std::string_view text) {
  for (const char byte : text) hash = mix64(hash ^ static_cast<unsigned char>(byte));
  return mix64(hash ^ text.size());
}

bool is_binary(std::string_view text) {
  constexpr size_t kLooked = 8192;
  return text.substr(0, kLooked).find('\0') != std::string_view::npos;
}

// The end of the last whole character.
size_t whole_characters(std::string_view text) {
  for (size_t back = 1; back <= 3 && back < text.size(); ++back) {
    if (utf8::is_unfinished(text.substr(text.size() - back))) return text.size() - back;
  }
  return text.size();
}

}  // namespace

int64_t TextSources::last_change() const {
  int64_t last = 0;
  for (const TextSource& file : files) last = std::max(last, file.changed);
  return last;
}

uint64_t TextSources::stamp() const {
  uint64_t hash = files.size();
  for (const TextSource& file : files) {
    hash = mixed(hash, file.path.string());
    for (const int64_t number : {file.bytes, file.modified, file.changed})
      hash = mix64(hash ^ static_cast<uint64_t>(number));
  }
  return hash;
}

Result<TextSources> find_texts(std::span<const fs::path> named) {
  TextSources sources;
  for (const fs::path& path : named) {
    std::error_code ignored;
    OUTRIDER_RETURN_IF_ERROR(fs::is_directory(path, ignored) ? add_folder(path, sources)
                                                             : add_file(path, true, sources));
  }
  if (sources.files.empty()) return input_error("corpus: expected texts, found no file that has any");
  return sources;
}

bool has_json_lines(const TextSource& source) { return source.path.extension() == ".jsonl"; }

Status TextReader::open_next() {
  source_ = &sources_.files[index_++];
  file_ = FileDescriptor(::open(source_->path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file_.get() < 0) return file_error("open", source_->path);
  text_.clear();
  at_end_ = false;
  begins_ = true;
  line_ = 1;
  return {};
}

Status TextReader::fill(size_t bytes) {
  while (text_.size() < bytes && !at_end_) {
    const size_t old = text_.size();
    text_.resize(bytes);
    const ssize_t got = ::read(file_.get(), text_.data() + old, bytes - old);
    text_.resize(old + static_cast<size_t>(std::max<ssize_t>(got, 0)));
    if (got < 0 && errno != EINTR) return file_error("read", source_->path);
    at_end_ = got == 0;
    read_bytes_ += std::max<ssize_t>(got, 0);
  }
  return {};
}

Result<size_t> TextReader::piece_end() {
  if (at_end_) return text_.size();
  const size_t line = text_.rfind('\n');
  if (line != std::string::npos) return line + 1;
  if (!has_json_lines(*source_)) return whole_characters(text_);
  while (!at_end_ && text_.size() < kMaxLine) {
    const size_t old = text_.size();
    OUTRIDER_RETURN_IF_ERROR(fill(2 * old));
    const size_t found = text_.find('\n', old);
    if (found != std::string::npos) return found + 1;
  }
  if (at_end_) return text_.size();
  return input_error("corpus: " + source_->path.string() + ":" + std::to_string(line_) +
                     ": expected a line of at most " + std::to_string(kMaxLine) + " bytes");
}

Status TextReader::close_file() {
  struct stat info = {};
  if (::fstat(file_.get(), &info) != 0) return file_error("inspect", source_->path);
  file_ = FileDescriptor(-1);
  if (info.st_size != source_->bytes || nanoseconds_of(info.st_mtim) != source_->modified)
    return io_error("corpus: " + source_->path.string() + " was changed while it was read");
  return {};
}

Result<std::optional<TextPiece>> TextReader::next() {
  for (;;) {
    if (file_.get() < 0) {
      if (index_ == sources_.files.size()) return std::optional<TextPiece>();
      OUTRIDER_RETURN_IF_ERROR(open_next());
    }
    OUTRIDER_RETURN_IF_ERROR(fill(piece_bytes_));
    if (begins_ && is_binary(text_)) {
      if (source_->is_named) return input_error("corpus: " + source_->path.string() + " is no text");
      ++left_out_;
      file_ = FileDescriptor(-1);
      continue;
    }
    OUTRIDER_TRY(const size_t end, piece_end());
    TextPiece piece{.source = source_,
                    .text = text_.substr(0, end),
                    .begins_document = std::exchange(begins_, false),
                    .first_line = line_};
    text_.erase(0, end);
    if (has_json_lines(*source_)) line_ += std::ranges::count(piece.text, '\n');
    if (at_end_ && text_.empty()) OUTRIDER_RETURN_IF_ERROR(close_file());
    if (!piece.text.empty()) return std::optional<TextPiece>(std::move(piece));
  }
}

}  // namespace outrider
