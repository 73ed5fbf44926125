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

std::filesystem::path user_cache_directory() {
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::filesystem::path(value == nullptr ? "" : value);
  };
  if (const auto cache = variable("XDG_CACHE_HOME"); cache.is_absolute()) return cache / "outrider";
  if (const auto home = variable("HOME"); home.is_absolute()) return home / ".cache" / "outrider";
  return {};
}

std::string notify_socket() {
  const char* value = std::getenv("NOTIFY_SOCKET");
  return value == nullptr ? "" : value;
}

bool colour_refused() {
  const char* value = std::getenv("NO_COLOR");
  return value != nullptr && *value != '\0';
}

}  // namespace outrider
