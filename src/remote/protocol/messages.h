// SPDX-License-Identifier: Apache-2.0
// The messages between a client that drafts and a server that verifies (docs/reference/drafting_protocol.md).
// Tokens of the output have their index in it, so a message that comes twice, or late, changes nothing.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "outrider/engine.h"
#include "outrider/sampling_params.h"
#include "outrider/token.h"

namespace outrider {

// The WebSocket subprotocol; another number is another protocol.
inline constexpr std::string_view kDraftingProtocol = "outrider.drafting.1";
inline constexpr std::string_view kDraftingPath = "/v1/drafting";

// Bounds of what a decoder accepts.
inline constexpr size_t kMaxClientMessage = 1 << 20;  // bytes
inline constexpr size_t kMaxServerMessage = 1 << 20;  // bytes
inline constexpr size_t kMaxWireTree = 1024;          // nodes below the root

// A random number by which a client names its session; who knows it may go on with the session.
using SessionId = std::array<uint8_t, 16>;
// SHA-256 over the tokens of a vocabulary.
using VocabularyFingerprint = std::array<uint8_t, 32>;

// Drafted nodes below a root that both sides know. Node 0 is the root; node i > 0 holds tokens[i - 1] and
// follows node parents[i - 1] < i. Siblings hold different tokens.
struct WireTree {
  std::vector<TokenId> tokens;
  std::vector<int32_t> parents;

  bool operator==(const WireTree&) const = default;
};

// The numbers of states that cross the network.
enum class StateType : uint8_t {
  kNone,  // the client's drafter reads no states
  kBF16,
  kF16,
  kQ8,  // 8 bits, with a scale for 32 numbers
};

// From the client. Connections of a session and trees have numbers that rise, so that what comes twice, or
// late over a connection that broke, is known as such.

// Starts a session.
struct OpenMessage {
  SessionId session = {};
  uint32_t connection = 0;  // number of the client's connection
  VocabularyFingerprint vocabulary = {};
  SamplingParams sampling = {};
  uint64_t sample_index = 0;
  int64_t max_tokens = 0;
  bool ignore_eos = false;
  std::vector<TokenId> stop_tokens = {};
  std::vector<TokenId> prompt = {};
  std::vector<TokenId> output = {};  // of a server that has forgotten the session, by a restart perhaps
  StateType states = StateType::kNone;
  std::string head = {};      // fingerprint of the client's draft head (StateTraits), if it wants states
  uint32_t state_tokens = 0;  // tokens, from the prompt's first on, with states at the client
};

// Goes on with a session over a new connection. Trees sent before are void.
struct ResumeMessage {
  SessionId session = {};
  uint32_t connection = 0;     // as in OpenMessage
  uint32_t output_length = 0;  // tokens that the client has
  uint32_t state_tokens = 0;   // as in OpenMessage
};

// The tree to be verified next. Its root is the token before output token `base`.
struct TreeMessage {
  uint32_t number = 0;  // of the tree in the session
  uint32_t base = 0;
  WireTree tree = {};
};

// The client needs no more tokens.
struct CloseMessage {};

using ClientMessage = std::variant<OpenMessage, ResumeMessage, TreeMessage, CloseMessage>;

// From the server:

// Answers OpenMessage and ResumeMessage. Every verdict after it is about a tree that comes after it.
struct OpenedMessage {
  uint32_t context = 0;                   // tokens of the longest sequence
  uint32_t tree_nodes = 0;                // nodes of the largest tree that is verified
  uint32_t state_size = 0;                // numbers of the states of a token; 0: the client wants none
  std::vector<TokenId> stop_tokens = {};  // of the model
  std::vector<TokenId> missed = {};       // output tokens after the tokens that the client has
};

// The tokens that a tree became: its accepted nodes and the target's own token. It has none if the output had
// ended before.
struct VerdictMessage {
  uint32_t first = 0;  // index of the first of them in the output
  std::vector<TokenId> tokens = {};
  bool is_last = false;
  FinishReason finish_reason = FinishReason::kStop;  // valid in the last one
  uint32_t server_us = 0;  // from the tree's arrival to its outcome; the rest is the network's
};

enum class RemoteErrorCode : uint8_t {
  kMalformed,       // a message that cannot be, or does not fit the session
  kVocabulary,      // another tokenizer
  kUnknownSession,  // to ResumeMessage: open it again
  kRefused,         // the request does not fit the server's model or limits
  kBusy,            // no place; try again later
  kEnded,           // the server is shutting down, or has waited too long
};

// Ends the session.
struct ErrorMessage {
  RemoteErrorCode code = RemoteErrorCode::kMalformed;
  std::string text = {};  // one line
};

// States of tokens that the client has, or that the next verdict or OpenedMessage brings.
struct StatesMessage {
  uint32_t first = 0;     // index of the first of these tokens, from the beginning of the prompt
  std::string rows = {};  // in the type that OpenMessage asks for (state_rows.h)
};

using ServerMessage = std::variant<OpenedMessage, VerdictMessage, ErrorMessage, StatesMessage>;

}  // namespace outrider
