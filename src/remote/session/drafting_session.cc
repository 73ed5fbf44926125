// SPDX-License-Identifier: Apache-2.0
#include "remote/session/drafting_session.h"

#include <algorithm>
#include <utility>

#include "base/quote.h"
#include "remote/protocol/state_rows.h"
#include "remote/session/wire_tree.h"

namespace outrider {
namespace {

Error contradiction(const std::string& what) {
  return input_error("the server contradicts itself: " + what +
                     "; is something between that changes messages?");
}

// A server's text for one line of a terminal, in the pieces that printable() leaves whole.
std::string shown(std::string_view text) {
  constexpr size_t kPiece = 80, kMost = 400;  // bytes
  std::string line;
  for (text = text.substr(0, kMost); !text.empty(); text.remove_prefix(std::min(kPiece, text.size())))
    line += printable(text.substr(0, kPiece));
  return line;
}

int child_of(const TokenTree& tree, int parent, TokenId token) {
  for (int node = parent + 1; node < tree.size(); ++node) {
    if (tree.parent(node) == parent && tree.token(node) == token) return node;
  }
  return -1;
}

// The verdict by which `tree` became `tokens`; nullopt: a token before the last one is not in the tree.
std::optional<Verdict> verdict_of(const TokenTree& tree, std::span<const TokenId> tokens) {
  Verdict verdict;
  verdict.path = {0};
  verdict.tokens.assign(tokens.begin(), tokens.end());
  for (size_t i = 0; i + 1 < tokens.size(); ++i) {
    const int child = child_of(tree, verdict.path.back(), tokens[i]);
    if (child < 0) return std::nullopt;
    verdict.path.push_back(child);
    verdict.origins.push_back(TokenOrigin::kAccepted);
  }
  const int end = verdict.path.back();
  verdict.fates.assign(static_cast<size_t>(tree.size()), NodeFate::kUnreached);
  for (const int node : verdict.path) verdict.fates[static_cast<size_t>(node)] = NodeFate::kAccepted;
  bool has_children = false;
  for (int node = 1; node < tree.size(); ++node) {
    NodeFate& fate = verdict.fates[static_cast<size_t>(node)];
    const bool is_beside_path = fate == NodeFate::kUnreached &&
                                verdict.fates[static_cast<size_t>(tree.parent(node))] == NodeFate::kAccepted;
    if (is_beside_path) fate = NodeFate::kRejected;
    has_children = has_children || tree.parent(node) == end;
  }
  verdict.origins.push_back(has_children          ? TokenOrigin::kRecovered
                            : tree.drafted() == 0 ? TokenOrigin::kPlain
                                                  : TokenOrigin::kBonus);
  return verdict;
}

}  // namespace

ClientMessage DraftingSession::greeting() {
  ++open_.connection;
  if (!is_known_) return open_;
  return ResumeMessage{.session = open_.session,
                       .connection = open_.connection,
                       .output_length = static_cast<uint32_t>(output().size()),
                       .state_tokens = open_.state_tokens};
}

void DraftingSession::on_disconnect() {
  is_open_ = is_forgotten_ = false;
  sent_.clear();
}

TreeMessage DraftingSession::send(const TokenTree& tree) {
  return sent_.emplace_back(TreeMessage{
      .number = trees_++, .base = static_cast<uint32_t>(output().size()), .tree = wire_tree_of(tree)});
}

TokenTree DraftingSession::first_awaited() const {
  const TreeMessage& sent = sent_.front();
  const TokenId pending = output().empty() ? open_.prompt.back() : output().back();
  return tree_below(sent.tree, node_at(sent.tree, std::span(output()).subspan(sent.base)), pending);
}

Result<std::optional<DraftingSession::Answer>> DraftingSession::on_message(const ServerMessage& message) {
  if (is_forgotten_) return std::optional<Answer>();
  return std::visit([this](const auto& fields) { return take(fields); }, message);
}

Result<std::optional<DraftingSession::Answer>> DraftingSession::take(const OpenedMessage& message) {
  if (is_open_) return std::optional<Answer>();
  if (message.state_size != bounds_.state_size) {
    return input_error("expected states of " + std::to_string(bounds_.state_size) +
                       " numbers for each token, found a server that has " +
                       std::to_string(message.state_size) +
                       "; start both sides with the same speculative_model");
  }
  OUTRIDER_RETURN_IF_ERROR(check(message.missed));
  limits_ = message;
  is_known_ = is_open_ = true;
  append(message.missed);
  return std::optional<Answer>();
}

Result<std::optional<DraftingSession::Answer>> DraftingSession::take(const VerdictMessage& message) {
  if (is_open_ && has(message)) return std::optional<Answer>();
  if (!is_open_ || message.first != output().size()) {
    return contradiction("expected output token " + std::to_string(output().size()) + ", found " +
                         std::to_string(message.first));
  }
  OUTRIDER_RETURN_IF_ERROR(check(message.tokens));
  if (message.is_last) finish_ = message.finish_reason;
  if (message.tokens.empty()) return std::optional<Answer>();
  if (sent_.empty()) return contradiction("it verified a tree that was not sent");
  TokenTree tree = first_awaited();
  sent_.pop_front();
  std::optional<Verdict> verdict = verdict_of(tree, message.tokens);
  if (!verdict) return contradiction("it accepted a token that was not drafted");
  append(message.tokens);
  return std::optional(
      Answer{.tree = std::move(tree), .verdict = *std::move(verdict), .server_ms = message.server_us / 1e3});
}

Result<std::optional<DraftingSession::Answer>> DraftingSession::take(const ErrorMessage& message) {
  const bool is_lost = message.code == RemoteErrorCode::kUnknownSession && is_known_;
  if (is_lost || message.code == RemoteErrorCode::kBusy || message.code == RemoteErrorCode::kEnded) {
    is_known_ = is_open_ = false;
    is_forgotten_ = true;
    sent_.clear();
    refusal_ = shown(message.text);
    return std::optional<Answer>();
  }
  return input_error("the server ended the session: " + shown(message.text));
}

Result<std::optional<DraftingSession::Answer>> DraftingSession::take(const StatesMessage& message) {
  if (limits_.state_size == 0 || open_.states == StateType::kNone)
    return contradiction("it sent states unasked");
  const int64_t rows = std::ssize(message.rows) / state_row_bytes(open_.states, limits_.state_size);
  if (message.first + rows <= int64_t{open_.state_tokens}) return std::optional<Answer>();
  if (message.first != open_.state_tokens) {
    return contradiction("expected the states of token " + std::to_string(open_.state_tokens) +
                         ", found those of " + std::to_string(message.first));
  }
  OUTRIDER_RETURN_IF_ERROR(read_state_rows(open_.states, message.rows, limits_.state_size, states_));
  open_.state_tokens =
      static_cast<uint32_t>(first_state_ + std::ssize(states_) / static_cast<int64_t>(limits_.state_size));
  if (open_.state_tokens > max_states())
    return contradiction("it sent states of more tokens than it can have");
  return std::optional<Answer>();
}

void DraftingSession::drop_states(int64_t tokens) {
  states_.erase(states_.begin(), states_.begin() + tokens * static_cast<int64_t>(limits_.state_size));
  first_state_ += tokens;
}

void DraftingSession::restart(const SessionId& id, std::vector<TokenId> output, size_t same) {
  const auto known = static_cast<uint32_t>(open_.prompt.size() + same);
  open_.state_tokens = std::min(open_.state_tokens, known);
  states_.resize(static_cast<size_t>(open_.state_tokens - first_state_) * limits_.state_size);
  open_.session = id;
  open_.output = std::move(output);
  is_known_ = false;
  finish_.reset();
  on_disconnect();
}

Status DraftingSession::check(std::span<const TokenId> tokens) const {
  const auto wrong = std::ranges::find_if(tokens, [&](TokenId token) { return token >= bounds_.vocab_size; });
  if (wrong == tokens.end()) return {};
  return input_error("expected tokens below " + std::to_string(bounds_.vocab_size) +
                     " from the server, found " + std::to_string(*wrong));
}

// The server may be ahead of the client by the tokens of the trees on their way, of which there are two.
int64_t DraftingSession::max_states() const {
  const size_t ahead = 2 * (kMaxWireTree + 1);
  return static_cast<int64_t>(
      std::min<size_t>(limits_.context, open_.prompt.size() + output().size() + ahead));
}

// The verdict came before: the output has its tokens.
bool DraftingSession::has(const VerdictMessage& message) const {
  const size_t end = size_t{message.first} + message.tokens.size();
  return !message.tokens.empty() && end <= output().size() &&
         std::equal(message.tokens.begin(), message.tokens.end(), output().begin() + message.first);
}

// Grows the output, and forgets the trees that it has left.
void DraftingSession::append(std::span<const TokenId> tokens) {
  open_.output.insert(open_.output.end(), tokens.begin(), tokens.end());
  std::erase_if(sent_, [this](const TreeMessage& sent) {
    return node_at(sent.tree, std::span(output()).subspan(sent.base)) < 0;
  });
}

}  // namespace outrider
