// SPDX-License-Identifier: Apache-2.0
#include "config/environment.h"

#include <unistd.h>

#include <cstdlib>
#include <string_view>

namespace outrider {

std::map<std::string, std::string> read_environment() {
  std::map<std::string, std::string> variables;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const size_t equals = text.find('=');
    if (equals == std::string_view::npos || !text.starts_with("OUTRIDER_")) continue;
    variables.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return variables;
}

bool colour_refused() {
  const char* value = std::getenv("NO_COLOR");
  return value != nullptr && *value != '\0';
}

}  // namespace outrider
