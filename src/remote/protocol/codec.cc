// SPDX-License-Identifier: Apache-2.0
#include "remote/protocol/codec.h"

#include <concepts>
#include <type_traits>
#include <utility>

#include "remote/protocol/wire.h"

namespace outrider {
namespace {

// M is T, constant when it is written.
template <typename M, typename T>
concept Of = std::same_as<std::remove_const_t<M>, T>;

// Calls `transfer` for every element of a list, which a reader resizes first.
template <typename Wire, typename List, typename Transfer>
void transfer_list(Wire& wire, List& list, Transfer&& transfer) {
  const size_t size = wire.list(list.size());
  if constexpr (Wire::kReads) list.resize(size);
  for (size_t i = 0; i < size; ++i) transfer(list[i], i);
}

template <typename Wire, typename List>
void transfer_numbers(Wire& wire, List& list) {
  transfer_list(wire, list, [&](auto& element, size_t) { wire.number(element); });
}

template <typename Wire, typename Enum>
void transfer_choice(Wire& wire, Enum& value, std::remove_const_t<Enum> last) {
  auto number = static_cast<uint8_t>(value);
  wire.number(number);
  if constexpr (Wire::kReads) {
    if (number > static_cast<uint8_t>(last)) wire.fail();
    value = static_cast<Enum>(wire.is_ok() ? number : 0);
  }
}

template <typename Wire, typename Flag>
void transfer_flag(Wire& wire, Flag& value) {
  auto number = static_cast<uint8_t>(value);
  wire.number(number);
  if constexpr (Wire::kReads) {
    if (number > 1) wire.fail();
    value = wire.is_ok() && number == 1;
  }
}

template <typename Wire, Of<SamplingParams> Sampling>
void transfer_sampling(Wire& wire, Sampling& sampling) {
  transfer_list(wire, sampling.logit_bias, [&](auto& bias, size_t) {
    wire.number(bias.first);
    wire.real(bias.second);
  });
  wire.real(sampling.repetition_penalty);
  wire.real(sampling.presence_penalty);
  wire.real(sampling.frequency_penalty);
  wire.real(sampling.temperature);
  wire.number(sampling.top_k);
  wire.real(sampling.top_p);
  wire.real(sampling.min_p);
  wire.real(sampling.top_n_sigma);
  wire.real(sampling.typical_p);
  wire.real(sampling.xtc_probability);
  wire.real(sampling.xtc_threshold);
  wire.real(sampling.dry.multiplier);
  wire.real(sampling.dry.base);
  wire.number(sampling.dry.allowed_length);
  int32_t window = sampling.dry.last_n + 1;  // no number of a message is negative
  wire.number(window);
  if constexpr (Wire::kReads) sampling.dry.last_n = window - 1;
  wire.number(sampling.seed);
}

bool has_twins(const WireTree& tree, size_t node) {
  for (size_t other = 0; other < node; ++other) {
    if (tree.parents[other] == tree.parents[node] && tree.tokens[other] == tree.tokens[node]) return true;
  }
  return false;
}

// A parent is stored as its distance to the node before, which is 0 all along a chain.
template <typename Wire, Of<WireTree> Tree>
void transfer_tree(Wire& wire, Tree& tree) {
  transfer_numbers(wire, tree.tokens);
  if constexpr (Wire::kReads) {
    if (tree.tokens.size() > kMaxWireTree) wire.fail();
    tree.parents.resize(wire.is_ok() ? tree.tokens.size() : 0);
  }
  for (size_t i = 0; i < tree.parents.size(); ++i) {
    auto distance = static_cast<int32_t>(i) - tree.parents[i];
    wire.number(distance);
    if constexpr (Wire::kReads) {
      tree.parents[i] = static_cast<int32_t>(i) - distance;
      if (tree.parents[i] < 0 || has_twins(tree, i)) wire.fail();
    }
  }
}

template <typename Wire, Of<OpenMessage> Message>
void transfer_fields(Wire& wire, Message& message) {
  wire.bytes(message.session);
  wire.number(message.connection);
  wire.bytes(message.vocabulary);
  transfer_sampling(wire, message.sampling);
  wire.number(message.sample_index);
  wire.number(message.max_tokens);
  transfer_flag(wire, message.ignore_eos);
  transfer_numbers(wire, message.stop_tokens);
  transfer_numbers(wire, message.prompt);
  transfer_numbers(wire, message.output);
  transfer_choice(wire, message.states, StateType::kQ8);
  wire.text(message.head);
  wire.number(message.state_tokens);
}

template <typename Wire, Of<ResumeMessage> Message>
void transfer_fields(Wire& wire, Message& message) {
  wire.bytes(message.session);
  wire.number(message.connection);
  wire.number(message.output_length);
  wire.number(message.state_tokens);
}

template <typename Wire, Of<TreeMessage> Message>
void transfer_fields(Wire& wire, Message& message) {
  wire.number(message.number);
  wire.number(message.base);
  transfer_tree(wire, message.tree);
}

template <typename Wire, Of<CloseMessage> Message>
void transfer_fields(Wire& /*wire*/, Message& /*message*/) {}

template <typename Wire, Of<OpenedMessage> Message>
void transfer_fields(Wire& wire, Message& message) {
  wire.number(message.context);
  wire.number(message.tree_nodes);
  wire.number(message.state_size);
  transfer_numbers(wire, message.stop_tokens);
  transfer_numbers(wire, message.missed);
}

template <typename Wire, Of<VerdictMessage> Message>
void transfer_fields(Wire& wire, Message& message) {
  wire.number(message.first);
  transfer_numbers(wire, message.tokens);
  transfer_flag(wire, message.is_last);
  transfer_choice(wire, message.finish_reason, FinishReason::kCancelled);
  wire.number(message.server_us);
}

template <typename Wire, Of<ErrorMessage> Message>
void transfer_fields(Wire& wire, Message& message) {
  transfer_choice(wire, message.code, RemoteErrorCode::kEnded);
  wire.text(message.text);
}

template <typename Wire, Of<StatesMessage> Message>
void transfer_fields(Wire& wire, Message& message) {
  wire.number(message.first);
  wire.text(message.rows);
}

// The kind of a message is its index in the variant.
template <typename Variant>
std::string encode_any(const Variant& message) {
  WireWriter wire;
  wire.number(message.index());
  std::visit([&](const auto& fields) { transfer_fields(wire, fields); }, message);
  return wire.take();
}

template <size_t kIndex = 0, typename Variant>
void decode_fields(WireReader& wire, size_t kind, Variant& message) {
  if constexpr (kIndex == std::variant_size_v<Variant>) {
    wire.fail();
  } else if (kind == kIndex) {
    transfer_fields(wire, message.template emplace<kIndex>());
  } else {
    decode_fields<kIndex + 1>(wire, kind, message);
  }
}

template <typename Variant>
Result<Variant> decode_any(std::string_view bytes) {
  WireReader wire(bytes);
  size_t kind = 0;
  wire.number(kind);
  Variant message;
  decode_fields(wire, kind, message);
  if (wire.is_ok() && wire.is_at_end()) return message;
  return input_error("expected a message of " + std::string(kDraftingProtocol) + ", found " +
                     std::to_string(bytes.size()) + " bytes of kind " + std::to_string(kind) +
                     " that are none");
}

}  // namespace

std::string encode(const ClientMessage& message) { return encode_any(message); }
std::string encode(const ServerMessage& message) { return encode_any(message); }

Result<ClientMessage> decode_client_message(std::string_view bytes) {
  return decode_any<ClientMessage>(bytes);
}

Result<ServerMessage> decode_server_message(std::string_view bytes) {
  return decode_any<ServerMessage>(bytes);
}

}  // namespace outrider
