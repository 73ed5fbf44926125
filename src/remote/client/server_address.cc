// SPDX-License-Identifier: Apache-2.0
#include "remote/client/server_address.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "base/quote.h"
#include "remote/protocol/messages.h"

namespace outrider {
namespace {

Error address_error(std::string_view url) {
  return usage_error("expected a server as in ws://127.0.0.1:8000 or wss://example.org, found " + quote(url));
}

}  // namespace

Result<DraftingServer> DraftingServer::parse(std::string_view url) {
  DraftingServer server;
  server.is_secure = url.starts_with("wss://");
  if (!server.is_secure && !url.starts_with("ws://")) return address_error(url);
  std::string_view rest = url.substr(url.find("//") + 2);
  if (rest.ends_with('/')) rest.remove_suffix(1);
  const size_t bracket = rest.find(']');  // of an IPv6 address
  const size_t colon = rest.find(':', bracket == std::string_view::npos ? 0 : bracket);
  server.host = rest.substr(0, colon);
  server.port = colon == std::string_view::npos ? (server.is_secure ? "443" : "80") : rest.substr(colon + 1);
  if (server.host.starts_with('[') && server.host.ends_with(']'))
    server.host = server.host.substr(1, server.host.size() - 2);
  const bool has_number = !server.port.empty() && server.port.size() <= 5 &&
                          std::ranges::all_of(server.port, [](unsigned char c) { return std::isdigit(c); });
  const bool is_name = !server.host.empty() && server.host.find_first_of("/@?#[] ") == std::string::npos;
  if (!has_number || !is_name) return address_error(url);
  return server;
}

std::string DraftingServer::url() const {
  const bool is_v6 = host.find(':') != std::string::npos;
  return (is_secure ? "wss://" : "ws://") + (is_v6 ? "[" + host + "]" : host) + ":" + port;
}

std::string DraftingServer::target() const {
  std::string target(kDraftingPath);
  if (!model.empty()) target += "?model=";
  for (const char c : model) {
    const bool is_plain =
        std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_' || c == '.';
    target += is_plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return target;
}

}  // namespace outrider
