// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "cli/commands/commands.h"
#include "cli/reports/completion_json.h"
#include "cli/terminal.h"
#include "hub/remote/quant_name.h"
#include "platform/server_processes.h"

namespace outrider {
namespace {

std::string duration_text(double seconds) {
  const auto whole = static_cast<int64_t>(seconds);
  return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
}

// The arguments of a process without keys, which --api-key may hold.
std::vector<std::string> shown_arguments(std::vector<std::string> arguments) {
  constexpr std::string_view kOption = "--api-key", kHidden = "***";
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i].starts_with(std::string(kOption) + "="))
      arguments[i].replace(kOption.size() + 1, std::string::npos, kHidden);
    if (i > 0 && arguments[i - 1] == kOption) arguments[i] = kHidden;
  }
  return arguments;
}

std::string servers_text(const std::vector<ServerProcess>& servers) {
  std::string text =
      fmt::format("{:>8}  {:<22} {:>9} {:>11}  {}\n", "process", "address", "memory", "since", "command");
  for (const ServerProcess& server : servers) {
    text += fmt::format("{:>8}  {:<22} {:>9} {:>11}  {}\n", server.pid, fmt::join(server.addresses, ","),
                        size_text(server.resident_bytes), duration_text(server.seconds),
                        fmt::join(shown_arguments(server.arguments), " "));
  }
  return text;
}

nlohmann::ordered_json servers_json(const std::vector<ServerProcess>& servers) {
  auto json = nlohmann::ordered_json::array();
  for (const ServerProcess& server : servers) {
    json.push_back({{"process", server.pid},
                    {"addresses", server.addresses},
                    {"resident_bytes", server.resident_bytes},
                    {"seconds", server.seconds},
                    {"arguments", shown_arguments(server.arguments)}});
  }
  return json;
}

}  // namespace

Status run_ps(const Settings& settings) {
  const std::vector<ServerProcess> servers = server_processes("outrider");
  if (settings.json) {
    write_output(json_line(servers_json(servers)));
  } else if (servers.empty()) {
    write_error_line("no server runs on this machine; outrider serve MODEL starts one");
  } else {
    write_output(servers_text(servers));
  }
  return {};
}

}  // namespace outrider
