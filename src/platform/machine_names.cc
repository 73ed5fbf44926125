// SPDX-License-Identifier: Apache-2.0
#include "platform/machine_names.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <memory>

namespace outrider {
namespace {

void add_host_name(std::vector<std::string>& names) {
  std::array<char, 256> bytes = {};
  if (gethostname(bytes.data(), bytes.size() - 1) != 0) return;
  std::string name = bytes.data();
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::tolower(c); });
  if (name.empty()) return;
  const std::string first = name.substr(0, name.find('.'));
  names.insert(names.end(), {name, first, first + ".local"});
}

void add_addresses(std::vector<std::string>& names) {
  ifaddrs* found = nullptr;
  if (getifaddrs(&found) != 0) return;
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> list(found, freeifaddrs);
  for (const ifaddrs* entry = found; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr) continue;
    const int family = entry->ifa_addr->sa_family;
    std::array<char, INET6_ADDRSTRLEN> text = {};
    const void* bytes = nullptr;
    if (family == AF_INET) bytes = &reinterpret_cast<const sockaddr_in*>(entry->ifa_addr)->sin_addr;
    if (family == AF_INET6) bytes = &reinterpret_cast<const sockaddr_in6*>(entry->ifa_addr)->sin6_addr;
    if (bytes != nullptr && inet_ntop(family, bytes, text.data(), text.size()) != nullptr)
      names.emplace_back(text.data());
  }
}

}  // namespace

std::vector<std::string> machine_names() {
  std::vector<std::string> names;
  add_host_name(names);
  add_addresses(names);
  return names;
}

}  // namespace outrider
