// SPDX-License-Identifier: Apache-2.0
#include "config/foreign/peer_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "config/foreign/foreign_names.h"
#include "config/message_text.h"
#include "config/methods.h"
#include "config/option_table.h"
#include "config/option_value.h"
#include "config/speculative_key_table.h"

namespace outrider {
namespace {

constexpr std::array kPeerOptions = {
#define OUTRIDER_PEER(system, version, kind, options) PeerOptions{system, version, PeerKind::kind, options},
#include "config/foreign/peer_options.inc"
#undef OUTRIDER_PEER
};

using PeerState = std::optional<std::string>;

PeerState state_of_own_option(std::span<const Command> commands, std::string_view name) {
  for (const OptionRow& row : option_table()) {
    const bool belongs =
        std::ranges::any_of(commands, [&](Command command) { return row.belongs_to(command); });
    if (belongs && folded_name(name) == folded_name(row.name)) return fmt::format("`--{}`", row.name);
  }
  return std::nullopt;
}

PeerState state_of_own_key(std::string_view name) {
  for (const SpeculativeKey& key : speculative_key_table()) {
    if (folded_name(name) == folded_name(key.name)) return fmt::format("key `{}`", key.name);
  }
  return std::nullopt;
}

PeerState state_of_row(std::span<const ForeignName> names, const PeerOptions& list, std::string_view name,
                       bool is_key) {
  const ForeignName* row = find_foreign(names, name);
  if (row == nullptr || !belongs_to_system(*row, list.system)) return std::nullopt;
  return meaning_here(*row, is_key);
}

PeerState state_of_method(std::string_view name) {
  if (const std::string_view reason = reason_against(name); !reason.empty())
    return fmt::format("refused: {}", reason);
  const std::optional<Method> found = find_method(name);
  if (!found) return std::nullopt;
  if (!method_row(*found).is_named) return "refused: it needs a drafter from a program in C++, C or Python";
  return fmt::format("method `{}`", method_name(*found));
}

PeerState state_of_option(std::span<const Command> commands, const PeerOptions& list, std::string_view name) {
  if (PeerState own = state_of_own_option(commands, name)) return own;
  return state_of_row(foreign_options(), list, name, false);
}

}  // namespace

std::span<const PeerOptions> peer_options() { return kPeerOptions; }

std::optional<std::string> state_here(const PeerOptions& list, std::string_view name) {
  constexpr Command kServers[] = {Command::kServe};
  constexpr Command kBenches[] = {Command::kBench, Command::kBenchBatch};
  switch (list.kind) {
    case PeerKind::kOption:
      return state_of_option(kServers, list, name);
    case PeerKind::kBench:
      return state_of_option(kBenches, list, name);
    case PeerKind::kMethod:
      return state_of_method(name);
    case PeerKind::kKey:
      break;
  }
  if (PeerState own = state_of_own_key(name)) return own;
  return state_of_row(foreign_keys(), list, name, true);
}

}  // namespace outrider
