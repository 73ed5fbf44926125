// SPDX-License-Identifier: Apache-2.0
#include "platform/server_processes.h"

#include <arpa/inet.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <sstream>
#include <system_error>

#include "platform/process_start.h"

namespace outrider {
namespace {

namespace fs = std::filesystem;

using AddressesByInode = std::map<std::string, std::string>;

std::string text_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// The kernel prints each word of an address as a number of this machine's byte order.
std::string address_of(std::string_view hex) {
  const size_t colon = hex.find(':');
  std::array<uint32_t, 4> words = {};
  const size_t count = std::min<size_t>(colon / 8, words.size());
  for (size_t i = 0; i < count; ++i)
    std::from_chars(hex.data() + 8 * i, hex.data() + 8 * i + 8, words[i], 16);
  uint32_t port = 0;
  std::from_chars(hex.data() + colon + 1, hex.data() + hex.size(), port, 16);
  std::array<char, INET6_ADDRSTRLEN> text = {};
  inet_ntop(count == 1 ? AF_INET : AF_INET6, words.data(), text.data(), text.size());
  const std::string host = text.data();
  return (count == 1 ? host : "[" + host + "]") + ":" + std::to_string(port);
}

// Lines of /proc/PID/net/tcp are "sl local remote state queues timer retransmits uid timeout inode ...".
void add_tcp(const fs::path& table, AddressesByInode& addresses) {
  std::istringstream lines(text_of(table));
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    const std::vector<std::string> fields(std::istream_iterator<std::string>(words), {});
    if (fields.size() > 9 && fields[3] == "0A" && fields[1].find(':') != std::string::npos)
      addresses[fields[9]] = address_of(fields[1]);
  }
}

// Lines of /proc/PID/net/unix are "number references protocol flags type state inode path".
void add_unix(const fs::path& table, AddressesByInode& addresses) {
  std::istringstream lines(text_of(table));
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    const std::vector<std::string> fields(std::istream_iterator<std::string>(words), {});
    if (fields.size() > 7 && fields[3] == "00010000") addresses[fields[6]] = "unix:" + fields[7];
  }
}

std::vector<std::string> listening_addresses(const fs::path& process) {
  AddressesByInode all;
  add_tcp(process / "net/tcp", all);
  add_tcp(process / "net/tcp6", all);
  add_unix(process / "net/unix", all);
  std::vector<std::string> addresses;
  std::error_code code;
  for (const auto& entry : fs::directory_iterator(process / "fd", code)) {
    const std::string target = fs::read_symlink(entry.path(), code).string();
    constexpr std::string_view kSocket = "socket:[";
    if (!target.starts_with(kSocket)) continue;
    const auto found = all.find(target.substr(kSocket.size(), target.size() - kSocket.size() - 1));
    if (found != all.end()) addresses.push_back(found->second);
  }
  std::ranges::sort(addresses);
  addresses.erase(std::unique(addresses.begin(), addresses.end()), addresses.end());
  return addresses;
}

std::vector<std::string> arguments_of(const fs::path& process) {
  std::istringstream text(text_of(process / "cmdline"));
  std::vector<std::string> arguments;
  for (std::string argument; std::getline(text, argument, '\0');) arguments.push_back(argument);
  return arguments;
}

// The number at `index` of words that blanks separate; 0: there is none.
double number_at(const std::string& text, size_t index) {
  std::istringstream words(text);
  std::string word;
  for (size_t i = 0; i <= index; ++i) {
    if (!(words >> word)) return 0;
  }
  return std::strtod(word.c_str(), nullptr);
}

double seconds_since_start(const fs::path& process, double uptime) {
  const std::optional<double> start = process_start(process);
  return start ? std::max(0.0, uptime - *start) : 0;
}

bool runs_program(const fs::path& process, std::string_view program) {
  std::error_code code;
  const std::string file = fs::read_symlink(process / "exe", code).filename().string();
  return !code && file.substr(0, file.find(" (deleted)")) == program;
}

std::optional<pid_t> process_id(const fs::path& folder) {
  const std::string name = folder.filename().string();
  pid_t pid = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), pid);
  return error == std::errc() && end == name.data() + name.size() ? std::optional(pid) : std::nullopt;
}

}  // namespace

std::vector<ServerProcess> server_processes(std::string_view program, const fs::path& proc) {
  const double uptime = number_at(text_of(proc / "uptime"), 0);
  std::vector<ServerProcess> servers;
  std::error_code code;
  for (const auto& entry : fs::directory_iterator(proc, code)) {
    const fs::path& process = entry.path();
    const auto pid = process_id(process);
    if (!pid || !runs_program(process, program)) continue;
    ServerProcess server{.pid = *pid,
                         .arguments = arguments_of(process),
                         .addresses = listening_addresses(process),
                         .resident_bytes = static_cast<int64_t>(number_at(text_of(process / "statm"), 1)) *
                                           sysconf(_SC_PAGESIZE),
                         .seconds = seconds_since_start(process, uptime)};
    if (!server.addresses.empty()) servers.push_back(std::move(server));
  }
  std::ranges::sort(servers, {}, &ServerProcess::pid);
  return servers;
}

}  // namespace outrider
