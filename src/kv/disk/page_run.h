// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "outrider/result.h"
#include "outrider/token.h"
#include "platform/file_descriptor.h"

namespace outrider {

// Names a file of pages: 128 random bits, so that no name comes twice.
struct RunId {
  uint64_t high = 0, low = 0;
  auto operator<=>(const RunId&) const = default;
};
constexpr RunId kNoRun;
RunId random_run_id();

// Following pages of one text, or the state at its end, as a file holds them. Texts are told apart by their
// tokens: those before the run are the ones of the run `before` and of all before that.
struct PageRun {
  RunId id;
  RunId before = {};  // kNoRun: the text begins here
  uint64_t scope = 0;
  std::vector<TokenId> tokens;  // of whole pages
  bool is_state = false;        // it holds the state after these tokens, and no pages
};

// The bytes of a run: parts of equal size, each with its own checksum. A page is a part, and so is a state.
struct RunParts {
  std::vector<std::byte> bytes;
  int64_t part_bytes = 0;
};

// Writes a file of the run. `identity` is everything that the bytes depend on besides the tokens. Errors: the
// file system's.
Status write_run(const std::filesystem::path& path, std::string_view identity, const PageRun& run,
                 const RunParts& parts);

// An opened file. Errors of open(): the file system's; kInput: not whole, or of another identity.
class RunFile {
 public:
  static Result<RunFile> open(const std::filesystem::path& path, std::string_view identity);

  const PageRun& run() const { return run_; }
  int64_t part_count() const { return static_cast<int64_t>(checksums_.size()); }
  int64_t part_bytes() const { return part_bytes_; }
  // Copies a part, [part_bytes()]. False: it is not as it was written.
  [[nodiscard]] bool read(int64_t index, std::span<std::byte> to) const;

 private:
  explicit RunFile(FileDescriptor file) : file_(std::move(file)) {}

  FileDescriptor file_;
  PageRun run_;
  std::vector<uint64_t> checksums_;
  int64_t begin_ = 0;  // of the first part
  int64_t part_bytes_ = 0;
};

// The run of a file, without its parts. Errors: as of RunFile::open().
Result<PageRun> read_run(const std::filesystem::path& path, std::string_view identity);

}  // namespace outrider
