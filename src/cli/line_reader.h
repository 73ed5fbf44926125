// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

namespace outrider {

enum class LineEnd : uint8_t {
  kLine,         // a whole line was read
  kInterrupted,  // Ctrl-C: the line so far is gone
  kEndOfInput    // Ctrl-D on an empty line, or the end of a file
};

// Reads lines of any length from standard input: on a terminal with editing keys, history, its search and
// pastes of several lines (libedit), elsewhere as they come.
class LineReader {
 public:
  // `history`: a file that keeps lines from run to run, readable by its owner; empty: none.
  static std::unique_ptr<LineReader> open(const std::filesystem::path& history);
  virtual ~LineReader() = default;

  // The line is without its end.
  virtual LineEnd read(std::string_view prompt, std::string& line) = 0;
  // Keeps a line for the history.
  virtual void remember(const std::string& line) = 0;
};

// Reads what a user says: one line, or several between lines of """.
LineEnd read_message(LineReader& reader, std::string& text);

}  // namespace outrider
