// SPDX-License-Identifier: Apache-2.0
#include "platform/process_start.h"

#include <unistd.h>

#include <fstream>
#include <sstream>
#include <string>

namespace outrider {

std::optional<double> process_start(const std::filesystem::path& process) {
  std::ifstream file(process / "stat", std::ios::binary);
  std::string text;
  std::getline(file, text, '\0');
  // The name of the program, which may hold anything, ends at the last parenthesis. The start is the 20th
  // word after it, in ticks.
  const size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) return std::nullopt;
  std::istringstream words(text.substr(name_end + 1));
  std::string word;
  for (int i = 1; i < 20; ++i) words >> word;
  double ticks = 0;
  if (!(words >> ticks)) return std::nullopt;
  return ticks / static_cast<double>(sysconf(_SC_CLK_TCK));
}

}  // namespace outrider
