// SPDX-License-Identifier: Apache-2.0
// The options of other systems that have to do with speculation, as tools/list_peer_options.py finds them in
// the packages of present versions. docs/reference/coming_from.md says of each what it is here.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace outrider {

// kOption: of the server; kKey: of its speculative configuration; kMethod: a value that names the method;
// kBench: of the benchmark.
enum class PeerKind { kOption, kKey, kMethod, kBench };

struct PeerOptions {
  std::string_view system;
  std::string_view version;
  PeerKind kind = PeerKind::kOption;
  std::string_view options;  // separated by spaces, and the names of one option by '|'
};

std::span<const PeerOptions> peer_options();

// Says for a table of Markdown what one name of the list is here; nullopt: no table has it.
std::optional<std::string> state_here(const PeerOptions& list, std::string_view name);

}  // namespace outrider
