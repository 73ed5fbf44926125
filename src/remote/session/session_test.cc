// SPDX-License-Identifier: Apache-2.0
// Both sides of a session over a network that breaks at any moment. The output must be the target's own.
#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/counter_rng.h"
#include "remote/protocol/codec.h"
#include "remote/session/drafting_session.h"
#include "remote/session/likely_path.h"
#include "remote/session/verifying_session.h"
#include "remote/session/wire_tree.h"

namespace outrider {
namespace {

constexpr int kTokens = 4;
constexpr size_t kLength = 40;
constexpr uint32_t kStateSize = 2;

// The target's token after a text.
TokenId next_token(const std::vector<TokenId>& output) {
  uint64_t hash = 7;
  for (const TokenId token : output) hash = mix64(hash ^ static_cast<uint64_t>(token));
  return static_cast<TokenId>(hash % kTokens);
}

std::vector<TokenId> right_output() {
  std::vector<TokenId> output;
  while (output.size() < kLength) output.push_back(next_token(output));
  return output;
}

// The target's state of token `index` after a prompt of one token.
std::vector<float> state_of(const std::vector<TokenId>& output, size_t index) {
  return {static_cast<float>(index), index == 0 ? 0.0f : static_cast<float>(output[index - 1])};
}

// The server with an engine that takes some time for a tree.
class Server {
 public:
  void receive(const ClientMessage& message) {
    if (is_attached_ && message.index() < 2) return;     // it came twice
    is_attached_ = is_attached_ || message.index() < 2;  // it opens or resumes
    if (const auto* open = std::get_if<OpenMessage>(&message)) {
      if (!session_) {
        session_ = std::make_unique<VerifyingSession>(
            *open, OpenedMessage{.context = 100, .tree_nodes = 8, .state_size = kStateSize});
        output_ = open->output;
        states_ = open->state_tokens;
      } else {
        ASSERT_TRUE(session_->on_resume(static_cast<uint32_t>(open->output.size()), open->state_tokens).ok());
      }
    } else if (const auto* resume = std::get_if<ResumeMessage>(&message)) {
      if (!session_) return error_.emplace(ErrorMessage{RemoteErrorCode::kUnknownSession, "unknown"}), void();
      ASSERT_TRUE(session_->on_resume(resume->output_length, resume->state_tokens).ok());
    } else if (const auto* tree = std::get_if<TreeMessage>(&message)) {
      if (session_) {
        ASSERT_TRUE(session_->on_tree(*tree, 0).ok());
      }
    }
    take_tree();
  }

  // The engine ends its work, if it has any.
  void step() {
    if (!tree_) return;
    std::vector<TokenId> tokens;
    int node = 0;
    for (bool goes_on = true; goes_on && output_.size() < kLength;) {
      const TokenId token = next_token(output_);
      tokens.push_back(token);
      output_.push_back(token);
      goes_on = false;
      for (int child = node + 1; child < tree_->size() && !goes_on; ++child) {
        goes_on = tree_->parent(child) == node && tree_->token(child) == token;
        if (goes_on) node = child;
      }
    }
    ++passes_;
    const bool is_end = output_.size() == kLength;
    for (; states_ < output_.size(); ++states_) session_->on_states(state_of(output_, states_));
    session_->on_tokens(tokens, is_end ? std::optional(FinishReason::kLength) : std::nullopt, 0);
    tree_.reset();
    take_tree();
  }

  std::optional<ServerMessage> next_message() {
    if (error_) return ServerMessage(*std::exchange(error_, std::nullopt));
    if (!session_ || !is_attached_) return std::nullopt;
    auto message = session_->next_message();
    take_tree();
    return message;
  }

  // The connection broke, which the server may notice late: it still sends.
  void lose_client(bool is_noticed) {
    is_attached_ = false;
    error_.reset();
    while (!is_noticed && session_ && session_->next_message()) {
    }
  }

  void restart() {
    session_.reset();
    tree_.reset();
  }
  int passes() const { return passes_; }

 private:
  void take_tree() {
    if (!tree_ && session_) tree_ = session_->next_tree();
  }

  std::unique_ptr<VerifyingSession> session_;
  std::vector<TokenId> output_;
  size_t states_ = 0;  // tokens with states at the session, the prompt's one included
  std::optional<TokenTree> tree_;
  std::optional<ErrorMessage> error_;
  int passes_ = 0;
  bool is_attached_ = false;
};

// A tree of random nodes, most of them on the right path.
TokenTree random_draft(const std::vector<TokenId>& output, std::mt19937& random) {
  TokenTree tree(output.empty() ? 0 : output.back());
  std::vector<TokenId> path = output;
  int node = 0;
  for (unsigned left = random() % 6; left > 0; --left) {
    const bool is_right = random() % 4 != 0;
    const TokenId token = is_right ? next_token(path) : static_cast<TokenId>(random() % kTokens);
    if (!is_right) {
      tree.add(static_cast<int>(random() % static_cast<unsigned>(tree.size())), token);
      continue;
    }
    node = tree.add(node, token);
    path.push_back(token);
  }
  return tree;
}

class Conversation {
 public:
  explicit Conversation(uint32_t seed)
      : random_(seed),
        client_(OpenMessage{.max_tokens = kLength, .prompt = {0}, .states = StateType::kBF16},
                {.vocab_size = kTokens, .state_size = kStateSize}) {}

  // break_rate: one step in so many breaks the connection, 0: none.
  void run(unsigned break_rate, bool restarts) {
    connect();
    for (int step = 0; !client_.finish(); ++step) {
      ASSERT_LT(step, 20000) << "no end in sight";
      if (break_rate > 0 && random_() % break_rate == 0) {
        if (restarts && random_() % 4 == 0) server_.restart();
        disconnect();
        connect();
      }
      ASSERT_NO_FATAL_FAILURE(act());
      ASSERT_TRUE(std::equal(client_.output().begin(), client_.output().end(), right_output().begin()));
    }
    EXPECT_EQ(client_.output(), right_output());
    EXPECT_EQ(*client_.finish(), FinishReason::kLength);
    take_states();
    EXPECT_EQ(states_.size(), kLength);  // of all tokens but the last
    for (size_t i = 0; i < states_.size(); ++i) EXPECT_EQ(states_[i], state_of(right_output(), i));
  }

  int passes() const { return server_.passes(); }

 private:
  void connect() { to_server_.push_back(encode(client_.greeting())); }

  void take_states() {
    const std::span<const float> states = client_.states();
    for (size_t i = 0; i < states.size(); i += kStateSize)
      states_.push_back({states.begin() + static_cast<std::ptrdiff_t>(i),
                         states.begin() + static_cast<std::ptrdiff_t>(i + kStateSize)});
    client_.drop_states(std::ssize(states) / kStateSize);
  }

  // Messages on their way are lost, or arrive before the server notices.
  void disconnect() {
    while (!to_server_.empty() && random_() % 2 == 0) deliver_to_server();
    to_server_.clear();
    to_client_.clear();
    server_.lose_client(random_() % 2 == 0);
    client_.on_disconnect();
  }

  bool comes_twice() { return random_() % 6 == 0; }

  void deliver_to_server() {
    const auto message = decode_client_message(to_server_.front());
    to_server_.pop_front();
    ASSERT_TRUE(message.ok());
    server_.receive(*message);
    if (comes_twice()) server_.receive(*message);
  }

  void deliver_to_client() {
    const auto message = decode_server_message(to_client_.front());
    to_client_.pop_front();
    ASSERT_TRUE(message.ok());
    const auto answer = client_.on_message(*message);
    ASSERT_TRUE(answer.ok()) << answer.error().message;
    if (*answer) {
      ASSERT_EQ((*answer)->verdict.path.size(), (*answer)->verdict.tokens.size());
    }
    if (comes_twice()) {
      const auto again = client_.on_message(*message);
      ASSERT_TRUE(again.ok()) << again.error().message;
      ASSERT_FALSE(*again);
    }
    if (random_() % 3 == 0) take_states();
    if (!client_.is_open()) {  // the server does not know the session
      disconnect();
      connect();
    }
  }

  void act() {
    switch (random_() % 4) {
      case 0:
        if (!to_server_.empty()) deliver_to_server();
        break;
      case 1:
        if (!to_client_.empty()) deliver_to_client();
        break;
      case 2:
        server_.step();
        break;
      default:
        if (client_.is_open() && client_.awaited() < 2 && !client_.finish())
          to_server_.push_back(encode(client_.send(random_draft(client_.output(), random_))));
    }
    while (auto message = server_.next_message()) to_client_.push_back(encode(*message));
  }

  std::mt19937 random_;
  Server server_;
  DraftingSession client_;
  std::vector<std::vector<float>> states_;  // that the client has taken
  std::deque<std::string> to_server_, to_client_;
};

TEST(Sessions, GiveTheTargetsOutput) {
  for (uint32_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Conversation conversation(seed);
    conversation.run(0, false);
    if (testing::Test::HasFatalFailure()) return;
    EXPECT_LT(conversation.passes(), static_cast<int>(kLength));
  }
}

TEST(Sessions, GiveTheTargetsOutputOverConnectionsThatBreakAndServersThatRestart) {
  for (uint32_t seed = 0; seed < 2000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Conversation conversation(seed);
    conversation.run(5 + seed % 40, seed % 2 == 0);
    if (testing::Test::HasFatalFailure()) return;
  }
}

TEST(WireTrees, KeepTheNodesOfATree) {
  std::mt19937 random(1);
  for (int run = 0; run < 200; ++run) {
    const TokenTree tree = random_draft({1, 2}, random);
    const TokenTree back = tree_below(wire_tree_of(tree), 0, tree.token(0));
    EXPECT_TRUE(std::ranges::equal(back.tokens(), tree.tokens()));
    EXPECT_TRUE(std::ranges::equal(back.parents(), tree.parents()));
  }
}

TEST(WireTrees, ATreeMayStandBehindThePathThatIsBelievedIn) {
  TokenTree tree(1);
  const int likely = tree.add(0, 5);
  tree.add(0, 6);
  tree.add(likely, 7);
  tree.add(likely, 8);
  const std::vector<TokenId> path = likeliest_path(tree);
  EXPECT_EQ(path, (std::vector<TokenId>{5, 7}));
  TokenTree next(7);
  next.add(next.add(0, 9), 3);
  next.add(0, 4);
  const WireTree both = wire_tree_of(tree_after(1, path, next));
  EXPECT_EQ(both.tokens, (std::vector<TokenId>{5, 7, 9, 3, 4}));
  EXPECT_EQ(both.parents, (std::vector<int32_t>{0, 1, 2, 3, 2}));
}

TEST(WireTrees, APathLeadsToTheNodesBelowIt) {
  //  0 -> 1 (a), 1 -> 2 (b), 0 -> 3 (c), 2 -> 4 (d)
  const WireTree tree{.tokens = {10, 11, 12, 13}, .parents = {0, 1, 0, 2}};
  EXPECT_EQ(node_at(tree, {}), 0);
  const std::vector<TokenId> ab = {10, 11}, abc = {10, 12};
  EXPECT_EQ(node_at(tree, ab), 2);
  EXPECT_EQ(node_at(tree, abc), -1);
  const TokenTree below = tree_below(tree, 2, 11);
  ASSERT_EQ(below.size(), 2);
  EXPECT_EQ(below.token(0), 11);
  EXPECT_EQ(below.token(1), 13);
}

TEST(VerifyingSession, RefusesTreesAndClientsAheadOfItsOutput) {
  VerifyingSession session({.prompt = {1}, .output = {5}}, {});
  EXPECT_FALSE(session.on_tree({.number = 0, .base = 2}, 0).ok());
  EXPECT_FALSE(session.on_resume(2, 0).ok());
  const auto count = static_cast<uint32_t>(VerifyingSession::kMaxWaiting);
  for (uint32_t i = 0; i < 2 * count; ++i)
    EXPECT_TRUE(session.on_tree({.number = i / 2, .base = 1}, 0).ok());  // each comes twice
  EXPECT_FALSE(session.on_tree({.number = count, .base = 1}, 0).ok());
}

// A slow network makes the server wait before it can send, which is no time of the server's.
TEST(VerifyingSession, TellsItsOwnTimeAlone) {
  VerifyingSession session({.prompt = {1}}, {});
  ASSERT_TRUE(std::holds_alternative<OpenedMessage>(*session.next_message()));
  ASSERT_TRUE(session.on_tree({.base = 0}, 100).ok());
  ASSERT_TRUE(session.next_tree().has_value());
  const std::vector<TokenId> token = {9};
  session.on_tokens(token, std::nullopt, 107);
  EXPECT_EQ(std::get<VerdictMessage>(*session.next_message()).server_us, 7000);
}

TEST(VerifyingSession, KeepsStatesUntilTheClientConfirmsThem) {
  VerifyingSession session({.prompt = {1, 2, 3}, .states = StateType::kF16}, {.state_size = 2});
  const auto next = [&] { return session.next_message(); };
  const auto first_sent = [](const std::optional<ServerMessage>& message) {
    const auto* states = std::get_if<StatesMessage>(&*message);
    return states == nullptr ? -1 : static_cast<int>(states->first);
  };
  ASSERT_TRUE(std::holds_alternative<OpenedMessage>(*next()));
  const std::vector<float> prompt = {1, 2, 3, 4, 5, 6};
  session.on_states(prompt);
  const std::vector<TokenId> token = {9};
  session.on_tokens(token, std::nullopt, 0);
  EXPECT_EQ(first_sent(next()), 0);
  ASSERT_TRUE(std::holds_alternative<VerdictMessage>(*next()));
  // The connection broke before the client had all states: they come again, before everything else.
  ASSERT_TRUE(session.on_resume(0, 1).ok());
  EXPECT_EQ(first_sent(next()), 1);
  ASSERT_TRUE(std::holds_alternative<OpenedMessage>(*next()));
  // A tree after the first token confirms the states before it.
  ASSERT_TRUE(session.on_tree({.base = 1}, 0).ok());
  EXPECT_FALSE(session.on_resume(1, 2).ok());
  EXPECT_TRUE(session.on_resume(1, 3).ok());
  EXPECT_FALSE(session.on_resume(1, 4).ok());
}

constexpr DraftingSession::Bounds kNoStates = {.vocab_size = 10, .state_size = 0};

TEST(DraftingSession, RefusesStatesThatCannotBe) {
  const auto opened = [](StateType type) {
    DraftingSession session({.prompt = {1}, .states = type}, {.vocab_size = 10, .state_size = 1});
    EXPECT_TRUE(session.on_message(OpenedMessage{.context = 4, .state_size = 1}).ok());
    return session;
  };
  const std::string two("\0\0\0\0", 4), no_number("\xff\x7f", 2);
  EXPECT_TRUE(opened(StateType::kBF16).on_message(StatesMessage{.rows = two}).ok());
  EXPECT_FALSE(opened(StateType::kNone).on_message(StatesMessage{.rows = two}).ok());
  EXPECT_FALSE(opened(StateType::kBF16).on_message(StatesMessage{.first = 1, .rows = two}).ok());
  EXPECT_FALSE(opened(StateType::kBF16).on_message(StatesMessage{.rows = "abc"}).ok());
  EXPECT_FALSE(opened(StateType::kBF16).on_message(StatesMessage{.rows = no_number}).ok());
  EXPECT_FALSE(opened(StateType::kBF16).on_message(StatesMessage{.rows = std::string(10, 0)}).ok());
}

// The drafter reads as many numbers as it expects, so the server does not choose how many there are.
TEST(DraftingSession, RefusesStatesOfAnotherSize) {
  for (const uint32_t size : {0u, 1u, 3u, 0xffffffffu}) {
    DraftingSession session({.prompt = {1}, .states = StateType::kBF16}, {.vocab_size = 10, .state_size = 2});
    const auto answer = session.on_message(OpenedMessage{.context = 9, .state_size = size});
    ASSERT_FALSE(answer.ok()) << size;
    EXPECT_NE(answer.error().message.find("expected states of 2 numbers"), std::string::npos);
  }
}

// A context that the server calls endless does not let it fill the client's memory.
TEST(DraftingSession, RefusesStatesFarAheadOfTheOutput) {
  DraftingSession session({.prompt = {1}, .states = StateType::kBF16}, {.vocab_size = 10, .state_size = 1});
  ASSERT_TRUE(session.on_message(OpenedMessage{.context = 0xffffffff, .state_size = 1}).ok());
  const StatesMessage first{.rows = std::string(2000, 0)};
  EXPECT_TRUE(session.on_message(first).ok());
  EXPECT_TRUE(session.on_message(StatesMessage{.first = 1000, .rows = first.rows}).ok());
  EXPECT_FALSE(session.on_message(StatesMessage{.first = 2000, .rows = first.rows}).ok());
}

TEST(DraftingSession, RefusesTokensOutsideTheVocabulary) {
  DraftingSession missed({.prompt = {1}}, kNoStates);
  EXPECT_FALSE(missed.on_message(OpenedMessage{.missed = {3, 10}}).ok());
  DraftingSession verdict({.prompt = {1}}, kNoStates);
  ASSERT_TRUE(verdict.on_message(OpenedMessage{.missed = {3, 9}}).ok());
  verdict.send(TokenTree(9));
  EXPECT_FALSE(verdict.on_message(VerdictMessage{.first = 2, .tokens = {2147483647}}).ok());
  EXPECT_EQ(verdict.output(), (std::vector<TokenId>{3, 9}));
}

TEST(DraftingSession, ShowsNothingOfTheServersTextThatATerminalWouldObey) {
  DraftingSession session({.prompt = {1}}, kNoStates);
  const auto answer = session.on_message(ErrorMessage{RemoteErrorCode::kRefused, "no\x1b[2J"});
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.error().message.find('\x1b'), std::string::npos);
}

TEST(DraftingSession, OpensAgainWithItsOutputWhereTheServerForgotIt) {
  DraftingSession session({.prompt = {1}}, kNoStates);
  ASSERT_TRUE(session.on_message(OpenedMessage{}).ok());
  session.send(TokenTree(1));
  ASSERT_TRUE(session.on_message(VerdictMessage{.first = 0, .tokens = {3}}).ok());
  session.on_disconnect();
  EXPECT_TRUE(std::holds_alternative<ResumeMessage>(session.greeting()));
  ASSERT_TRUE(session.on_message(ErrorMessage{RemoteErrorCode::kUnknownSession, "unknown"}).ok());
  EXPECT_FALSE(session.is_open());
  EXPECT_EQ(session.refusal(), "unknown");
  const ClientMessage greeting = session.greeting();
  ASSERT_TRUE(std::holds_alternative<OpenMessage>(greeting));
  EXPECT_EQ(std::get<OpenMessage>(greeting).output, std::vector<TokenId>{3});
  session.on_disconnect();
  EXPECT_FALSE(session.on_message(ErrorMessage{RemoteErrorCode::kRefused, "no"}).ok());
}

TEST(DraftingSession, RefusesAServerThatContradictsItself) {
  const auto open_session = [] {
    DraftingSession session({.prompt = {1}}, kNoStates);
    EXPECT_TRUE(session.on_message(OpenedMessage{}).ok());
    return session;
  };
  EXPECT_FALSE(
      open_session().on_message(VerdictMessage{.first = 0, .tokens = {3}}).ok());  // no tree was sent
  DraftingSession gap = open_session();
  gap.send(TokenTree(1));
  EXPECT_FALSE(gap.on_message(VerdictMessage{.first = 1, .tokens = {3}}).ok());
  DraftingSession invented = open_session();
  invented.send(TokenTree(1));
  EXPECT_FALSE(invented.on_message(VerdictMessage{.first = 0, .tokens = {3, 4}}).ok());
  DraftingSession unopened({.prompt = {1}}, kNoStates);
  EXPECT_FALSE(unopened.on_message(VerdictMessage{}).ok());
}

}  // namespace
}  // namespace outrider
