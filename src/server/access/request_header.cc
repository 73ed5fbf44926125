// SPDX-License-Identifier: Apache-2.0
#include "server/access/request_header.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <cstdint>

namespace outrider {
namespace {

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool is_alphanumeric(char c) { return (c >= '0' && c <= '9') || (lower(c) >= 'a' && lower(c) <= 'z'); }

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (lower(c) >= 'a' && lower(c) <= 'f') return lower(c) - 'a' + 10;
  return -1;
}

bool is_address(const std::string& name) {
  std::array<unsigned char, sizeof(in6_addr)> bytes;
  return inet_pton(AF_INET, name.c_str(), bytes.data()) == 1 ||
         inet_pton(AF_INET6, name.c_str(), bytes.data()) == 1;
}

bool is_port(std::string_view text) {
  return text.size() <= 5 &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// The rest of `text` after `scheme` (in any case) and a space, without outer spaces; nullopt: another scheme.
std::optional<std::string_view> after_scheme(std::string_view text, std::string_view scheme) {
  if (text.size() <= scheme.size() || lowered(text.substr(0, scheme.size())) != scheme) return std::nullopt;
  if (text[scheme.size()] != ' ') return std::nullopt;
  text.remove_prefix(scheme.size());
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

int base64_digit(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  return c == '+' ? 62 : c == '/' ? 63 : -1;
}

// Empty: malformed.
std::string base64_decoded(std::string_view text) {
  while (!text.empty() && text.back() == '=') text.remove_suffix(1);
  std::string bytes;
  uint32_t bits = 0;
  int count = 0;
  for (const char c : text) {
    const int digit = base64_digit(c);
    if (digit < 0) return {};
    bits = (bits << 6) | static_cast<uint32_t>(digit);
    count += 6;
    if (count < 8) continue;
    count -= 8;
    bytes += static_cast<char>((bits >> count) & 0xff);
  }
  return bytes;
}

}  // namespace

std::string lowered(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(), lower);
  return result;
}

std::optional<std::string> percent_decoded(std::string_view text) {
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == '%') {
      if (i + 2 >= text.size()) return std::nullopt;
      const int high = hex_digit(text[i + 1]), low = hex_digit(text[i + 2]);
      if (high < 0 || low < 0) return std::nullopt;
      c = static_cast<char>(high * 16 + low);
      i += 2;
    }
    decoded += c;
  }
  return decoded;
}

std::optional<std::string> request_path(std::string_view target) {
  target = target.substr(0, target.find('?'));
  if (!target.starts_with('/')) return std::nullopt;
  std::optional<std::string> path = percent_decoded(target);
  const auto is_refused = [](unsigned char c) { return c < 0x20 || c == 0x7f || c == '#'; };
  if (path && std::any_of(path->begin(), path->end(), is_refused)) return std::nullopt;
  return path;
}

std::string query_value(std::string_view target, std::string_view name) {
  const size_t mark = target.find('?');
  std::string_view query = mark == std::string_view::npos ? "" : target.substr(mark + 1);
  while (!query.empty()) {
    const std::string_view pair = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(pair.size() + 1, query.size()));
    const size_t equals = pair.find('=');
    if (equals != std::string_view::npos && pair.substr(0, equals) == name)
      return percent_decoded(pair.substr(equals + 1)).value_or("");
  }
  return {};
}

std::string client_address(std::string_view forwarded_for) {
  constexpr size_t kLongest = 45;  // of IPv6
  const std::string_view first = forwarded_for.substr(0, forwarded_for.find(','));
  const auto may_be_address = [](unsigned char c) { return std::isxdigit(c) != 0 || c == '.' || c == ':'; };
  const bool is_address = first.size() <= kLongest && std::all_of(first.begin(), first.end(), may_be_address);
  return is_address ? std::string(first) : std::string();
}

std::optional<std::string> host_name(std::string_view host) {
  std::string_view name = host;
  if (host.starts_with('[')) {
    const size_t end = host.find(']');
    if (end == std::string_view::npos) return std::nullopt;
    name = host.substr(1, end - 1);
    const std::string_view rest = host.substr(end + 1);
    if (!rest.empty() && (rest.front() != ':' || !is_port(rest.substr(1)))) return std::nullopt;
  } else if (const size_t colon = host.find(':'); colon != std::string_view::npos) {
    name = host.substr(0, colon);
    if (!is_port(host.substr(colon + 1))) return std::nullopt;
  }
  const auto is_name_part = [](char c) {
    return is_alphanumeric(c) || c == '.' || c == '-' || c == '_' || c == ':';
  };
  if (name.empty() || name.size() > 255 || !std::all_of(name.begin(), name.end(), is_name_part))
    return std::nullopt;
  return lowered(name);
}

std::string socket_path(std::string_view host) {
  constexpr std::string_view kPrefix = "unix:";
  if (host.starts_with(kPrefix)) return std::string(host.substr(kPrefix.size()));
  const bool is_path = host.find('/') != std::string_view::npos || host.ends_with(".sock");
  return is_path ? std::string(host) : "";
}

AllowedHosts::AllowedHosts(std::string_view bound, const std::vector<std::string>& allowed,
                           const std::vector<std::string>& machine)
    : names_{"localhost", "127.0.0.1", "::1", std::string(bound)},
      any_address_(bound == "0.0.0.0" || bound == "::"),
      any_name_(!socket_path(bound).empty()) {
  for (const std::string& name : allowed) names_.push_back(lowered(name));
  names_.insert(names_.end(), machine.begin(), machine.end());
}

bool AllowedHosts::allow(std::string_view host_header) const {
  const std::optional<std::string> name = host_name(host_header);
  if (!name) return false;
  return any_name_ || std::find(names_.begin(), names_.end(), *name) != names_.end() ||
         (any_address_ && is_address(*name));
}

bool is_json_type(std::string_view content_type) {
  std::string_view type = content_type.substr(0, content_type.find(';'));
  while (!type.empty() && type.back() == ' ') type.remove_suffix(1);
  return lowered(type) == "application/json";
}

bool is_request_id(std::string_view id) {
  return !id.empty() && id.size() <= 128 && std::all_of(id.begin(), id.end(), [](char c) {
    return is_alphanumeric(c) || c == '.' || c == '_' || c == '-';
  });
}

std::string credential(std::string_view authorization) {
  if (const auto key = after_scheme(authorization, "bearer")) return std::string(*key);
  if (const auto encoded = after_scheme(authorization, "basic")) {
    const std::string pair = base64_decoded(*encoded);
    const size_t colon = pair.find(':');
    return colon == std::string::npos ? std::string() : pair.substr(colon + 1);
  }
  return {};
}

}  // namespace outrider
