// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace outrider {

// The program in a terminal of 80 columns and 24 lines, with `home` as its home. variables: "NAME=value".
class PseudoTerminal {
 public:
  PseudoTerminal(const std::vector<std::string>& arguments, const std::string& home,
                 const std::vector<std::string>& variables = {});
  ~PseudoTerminal();
  PseudoTerminal(const PseudoTerminal&) = delete;
  PseudoTerminal& operator=(const PseudoTerminal&) = delete;

  void type(const std::string& keys);
  // Reads until `expected` comes, for at most 30 seconds; the rest waits for the next call.
  std::string read_until(const std::string& expected);
  bool saw(const std::string& expected) { return read_until(expected).ends_with(expected); }
  // The exit code; -1: a signal, or half a minute passed.
  int wait();

 private:
  pid_t pid_ = -1;
  int terminal_ = -1;
  std::string pending_;
};

}  // namespace outrider
