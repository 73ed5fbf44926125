// SPDX-License-Identifier: Apache-2.0
#include "loadtest/load_test_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/quote.h"

namespace outrider {
namespace {

bool is_port(std::string_view text) {
  int port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  return error == std::errc() && end == text.data() + text.size() && port > 0 && port < 65536;
}

}  // namespace

std::string ServerAddress::text() const {
  const bool is_ipv6 = host.find(':') != std::string::npos;
  return fmt::format("http://{}{}{}:{}{}", is_ipv6 ? "[" : "", host, is_ipv6 ? "]" : "", port, root);
}

Result<ServerAddress> parse_server_address(std::string_view url) {
  const auto problem = [&] {
    return usage_error(
        fmt::format("expected the address of a server, as in http://127.0.0.1:8080; found {}", quote(url)));
  };
  constexpr std::string_view kScheme = "http://";
  if (url.starts_with("https://")) {
    return usage_error(
        fmt::format("expected http://, found {}; TLS is not spoken here: measure beside the server, or "
                    "through a local TLS proxy",
                    quote(url)));
  }
  if (!url.starts_with(kScheme)) return problem();
  std::string_view rest = url.substr(kScheme.size());
  ServerAddress address;
  const size_t slash = std::min(rest.find('/'), rest.size());
  std::string_view root = rest.substr(slash);
  rest = rest.substr(0, slash);
  while (root.ends_with('/')) root.remove_suffix(1);
  if (root.ends_with("/v1")) root.remove_suffix(3);
  address.root = root;
  if (rest.starts_with('[')) {
    const size_t close = rest.find(']');
    if (close == std::string_view::npos) return problem();
    address.host = rest.substr(1, close - 1);
    rest = rest.substr(close + 1);
  } else {
    const size_t colon = std::min(rest.find(':'), rest.size());
    address.host = rest.substr(0, colon);
    rest = rest.substr(colon);
  }
  if (!rest.empty()) {
    if (rest.front() != ':' || !is_port(rest.substr(1))) return problem();
    address.port = rest.substr(1);
  }
  // Characters that a request line or a header may not contain.
  const auto is_forbidden = [](char c) { return c <= ' ' || c == 0x7f || c == '@' || c == '?' || c == '#'; };
  if (address.host.empty() || std::any_of(url.begin(), url.end(), is_forbidden)) return problem();
  return address;
}

Result<LatencyGoals> parse_latency_goals(std::string_view text) {
  LatencyGoals goals;
  const auto problem = [&] {
    return usage_error(fmt::format(
        "expected goals in milliseconds, as in ttft:200,tpot:50,e2e:2000; found {}", quote(text)));
  };
  for (std::string_view rest = text; !rest.empty();) {
    const size_t comma = std::min(rest.find(','), rest.size());
    const std::string_view part = rest.substr(0, comma);
    rest = rest.substr(std::min(comma + 1, rest.size()));
    const size_t colon = part.find(':');
    if (colon == std::string_view::npos) return problem();
    const std::string_view name = part.substr(0, colon), number = part.substr(colon + 1);
    std::optional<double>* goal = name == "ttft"   ? &goals.ttft
                                  : name == "tpot" ? &goals.tpot
                                  : name == "e2e"  ? &goals.e2e
                                                   : nullptr;
    double value = 0;
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
    const bool is_number = error == std::errc() && end == number.data() + number.size() && value > 0;
    if (goal == nullptr || goal->has_value() || !is_number) return problem();
    *goal = value;
  }
  if (!goals.any()) return problem();
  return goals;
}

std::string LoadTestLevel::name() const {
  return concurrency > 0 ? fmt::format("concurrency {}", concurrency)
                         : fmt::format("{:g} requests per second", request_rate);
}

}  // namespace outrider
