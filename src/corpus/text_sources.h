// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "outrider/result.h"
#include "platform/file_descriptor.h"

namespace outrider {

struct TextSource {
  std::filesystem::path path;
  int64_t bytes = 0;
  int64_t modified = 0, changed = 0;  // ns since 1970, as in FileStamp
  bool is_named = true;               // false: found in a folder, where other files than texts may lie
};

struct TextSources {
  std::vector<TextSource> files;  // in the order of the names; files of a folder by path
  int64_t bytes = 0;

  int64_t last_change() const;
  // Differs where a file was added, removed, renamed or written.
  uint64_t stamp() const;
};

// The files that are named and all files in the named folders, without those whose name begins with a point.
// Errors: no such file or folder; no file with a byte.
Result<TextSources> find_texts(std::span<const std::filesystem::path> named);

// A part of a file that ends behind a line where there is one.
struct TextPiece {
  const TextSource* source = nullptr;
  std::string text;
  bool begins_document = false;
  int64_t first_line = 1;  // number of its first line; of JSON lines only
};

// Whether each line of the file is a document.
bool has_json_lines(const TextSource& source);

// Reads all files, one after the other, in pieces.
class TextReader {
 public:
  static constexpr size_t kMaxLine = size_t{1} << 28;  // bytes of a line of JSON

  // `sources` outlive the reader.
  TextReader(const TextSources& sources, size_t piece_bytes) : sources_(sources), piece_bytes_(piece_bytes) {}

  // nullopt: all was read. Files of folders with a zero byte near their beginning are no texts and are left
  // out. Errors: a file that cannot be read, or has changed since it was found; a named one that is no text;
  // a line of JSON that is too long.
  Result<std::optional<TextPiece>> next();

  int64_t read_bytes() const { return read_bytes_; }
  int64_t left_out() const { return left_out_; }  // files

 private:
  Status open_next();
  Status fill(size_t bytes);  // `text_` has so many bytes then, or all that are left of the file
  Result<size_t> piece_end();
  Status close_file();

  const TextSources& sources_;
  size_t piece_bytes_;
  size_t index_ = 0;  // of the next file
  const TextSource* source_ = nullptr;
  FileDescriptor file_{-1};
  std::string text_;  // of the file, not yet handed on
  bool at_end_ = false;
  bool begins_ = false;
  int64_t line_ = 1;
  int64_t read_bytes_ = 0, left_out_ = 0;
};

}  // namespace outrider
