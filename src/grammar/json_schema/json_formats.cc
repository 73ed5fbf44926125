// SPDX-License-Identifier: Apache-2.0
#include "grammar/json_schema/json_formats.h"

#include <array>
#include <utility>

namespace outrider {
namespace {

// Valid dates from year 1 on.
std::string date_pattern() {
  const std::string year = "(?:[1-9][0-9]{3}|0[1-9][0-9]{2}|00[1-9][0-9]|000[1-9])";
  const std::string leap_year =
      "(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:0[48]|[2468][048]|[13579][26])00)";
  return "(?:" + year +
         "-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|" +
         "02-(?:0[1-9]|1[0-9]|2[0-8]))|" + leap_year + "-02-29)";
}

const char* const kTime =
    "(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\\.[0-9]{1,6})?(?:Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])";
const char* const kByte = "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])";
const char* const kLabel = "[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?";

std::string ipv4_pattern() { return std::string(kByte) + "(?:\\." + kByte + "){3}"; }

// Eight groups, or fewer groups around one "::".
std::string ipv6_pattern() {
  const std::string group = "[0-9a-fA-F]{1,4}";
  std::string pattern = "(?:" + group + ":){7}" + group;
  for (int before = 0; before <= 7; ++before) {
    const int after = 7 - before;
    const std::string head =
        before == 0 ? ""
                    : group + (before > 1 ? "(?::" + group + "){" + std::to_string(before - 1) + "}" : "");
    std::string tail;
    if (after > 0)
      tail =
          "(?:" + group + (after > 1 ? "(?::" + group + "){0," + std::to_string(after - 1) + "}" : "") + ")?";
    pattern += "|" + head + "::" + tail;
  }
  return "(?:" + pattern + ")";
}

std::string duration_pattern() {
  const std::string time = "T(?:[0-9]+H(?:[0-9]+M(?:[0-9]+S)?)?|[0-9]+M(?:[0-9]+S)?|[0-9]+S)";
  const std::string month = "[0-9]+M(?:[0-9]+D)?";
  return "P(?:(?:[0-9]+Y(?:" + month + ")?|" + month + "|[0-9]+D)(?:" + time + ")?|" + time + "|[0-9]+W)";
}

using Maker = std::string (*)();
constexpr std::array<std::pair<std::string_view, Maker>, 10> kFormats = {{
    {"date", date_pattern},
    {"date-time", [] { return date_pattern() + "T" + kTime; }},
    {"time", [] { return std::string(kTime); }},
    {"duration", duration_pattern},
    {"uuid", [] { return std::string("[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"); }},
    {"email",
     [] {
       return std::string("[a-zA-Z0-9_+-]{1,32}(?:\\.[a-zA-Z0-9_+-]{1,32}){0,3}@") + kLabel + "(?:\\." +
              kLabel + "){1,4}";
     }},
    {"hostname", [] { return std::string(kLabel) + "(?:\\." + kLabel + "){0,3}"; }},
    {"ipv4", ipv4_pattern},
    {"ipv6", ipv6_pattern},
    {"uri", [] { return std::string("[a-z][a-z0-9+.-]{0,15}://[a-zA-Z0-9._~:/?#@!$&'()*+,;=%-]{1,2048}"); }},
}};

}  // namespace

std::optional<std::string> json_format_pattern(std::string_view format) {
  for (const auto& [name, pattern] : kFormats) {
    if (name == format) return pattern();
  }
  return std::nullopt;
}

}  // namespace outrider
