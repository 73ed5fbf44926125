// SPDX-License-Identifier: Apache-2.0
// Clients that send what no honest client sends, or nothing, or too much: each gets one error, memory is
// bounded, and other clients are served as before.
#include <gtest/gtest.h>

#include <chrono>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "remote/client/server_link.h"
#include "remote/protocol/codec.h"
#include "tests/serving/drafting_fixture.h"

namespace outrider {
namespace {

constexpr const char* kDraftingKey = "a-key-of-a-client-that-drafts";

// A client that speaks WebSocket, but not the protocol.
std::string answer_to(int port, const std::vector<std::string>& messages) {
  auto link = ServerLink::connect(server_at(port), 5000);
  EXPECT_TRUE(link.ok()) << link.error().message;
  for (const std::string& message : messages) EXPECT_TRUE((*link)->send(message).ok());
  const auto answer = (*link)->receive(5000);
  if (!answer.ok() || !*answer) return "none";
  const auto decoded = decode_server_message(**answer);
  EXPECT_TRUE(decoded.ok());
  const auto* error = std::get_if<ErrorMessage>(&*decoded);
  return error == nullptr ? "no error" : error->text;
}

TEST(DraftingLimits, HostileClientsGetOneErrorAndHarmNobody) {
  TestServer server(verify_for_clients);
  ASSERT_TRUE(server.wait_until_ready());
  const DraftingParts parts = drafting_parts("None");
  const OpenMessage open{.vocabulary = parts.vocabulary, .max_tokens = 5, .prompt = {1}};
  const std::string opened = encode(ClientMessage(open));
  const auto tree = [](const TreeMessage& message) { return encode(ClientMessage(message)); };
  TreeMessage large;
  for (int32_t node = 0; node <= static_cast<int32_t>(kMaxWireTree); ++node) {
    large.tree.tokens.push_back(1);
    large.tree.parents.push_back(node);
  }
  struct Attack {
    std::vector<std::string> messages;
    std::string answer;
  };
  const Attack attacks[] = {
      {{"\x77nonsense"}, "expected a message"},
      {{tree({})}, "expected a session"},
      {{encode(ClientMessage(ResumeMessage{}))}, "does not know"},
      {{encode(ClientMessage(OpenMessage{.vocabulary = parts.vocabulary}))}, "the prompt is empty"},
      {{tree(large)}, "expected a message"},
      {{opened, opened}, "no error"},  // it came twice
      {{std::string(kMaxClientMessage + 1, 'x')}, "none"},
  };
  for (const Attack& attack : attacks) {
    const std::string answer = answer_to(server.port(), attack.messages);
    EXPECT_NE(answer.find(attack.answer), std::string::npos) << answer;
  }
  DraftingParts honest = drafting_parts("NGram");
  RemoteDecoder decoder(&honest, server_at(server.port()));
  expect_same_as_local(decoder, request_of(3));
}

// Nothing that a session opens with is believed.
TEST(DraftingLimits, SessionsThatCannotBeAreRefused) {
  TestServer server(verify_for_clients);
  ASSERT_TRUE(server.wait_until_ready());
  const DraftingParts parts = drafting_parts("None");
  const OpenMessage open{.vocabulary = parts.vocabulary, .max_tokens = 5, .prompt = {1}};
  const auto expect_error = [&](const char* what, const auto& change) {
    OpenMessage hostile = open;
    change(hostile);
    const std::string answer = answer_to(server.port(), {encode(ClientMessage(hostile))});
    EXPECT_TRUE(answer != "no error" && answer != "none") << what << ": " << answer;
  };
  const double nan = std::numeric_limits<double>::quiet_NaN();
  expect_error("a prompt outside the vocabulary", [](OpenMessage& open) { open.prompt = {1 << 30}; });
  expect_error("an output outside the vocabulary", [](OpenMessage& open) { open.output = {1 << 30}; });
  expect_error("a prompt beyond the context", [](OpenMessage& open) { open.prompt.assign(100'000, 1); });
  expect_error("no number as temperature", [nan](OpenMessage& open) { open.sampling.temperature = nan; });
  expect_error("another vocabulary", [](OpenMessage& open) { open.vocabulary[5] ^= 1; });
  expect_error("states of a drafter that has none",
               [](OpenMessage& open) { open.states = StateType::kBF16; });
  expect_error("states of another head", [](OpenMessage& open) {
    open.states = StateType::kBF16;
    open.head = "another";
  });
  EXPECT_TRUE(server.wait_until_free());
  EXPECT_EQ(server.metric("outrider:drafting_sessions"), 0);
}

TEST(DraftingLimits, TreesThatCannotBeChangeNothing) {
  TestServer server(verify_for_clients);
  ASSERT_TRUE(server.wait_until_ready());
  const DraftingParts parts = drafting_parts("None");
  const OpenMessage open{.vocabulary = parts.vocabulary, .max_tokens = 3, .ignore_eos = true, .prompt = {1}};
  auto link = ServerLink::connect(server_at(server.port()), 5000);
  ASSERT_TRUE(link.ok());
  ASSERT_TRUE((*link)->send(encode(ClientMessage(open))).ok());
  // Tokens outside the vocabulary, and more nodes than the server verifies.
  TreeMessage message{.tree = {.tokens = {1 << 30, 2147483647}, .parents = {0, 0}}};
  for (int32_t node = 2; node < 1000; ++node) {
    message.tree.tokens.push_back(5);
    message.tree.parents.push_back(node);
  }
  std::vector<TokenId> tokens;
  while (tokens.size() < 3) {
    message.base = static_cast<uint32_t>(tokens.size());
    ASSERT_TRUE((*link)->send(encode(ClientMessage(message))).ok());
    ++message.number;
    for (bool has_verdict = false; !has_verdict;) {
      const auto bytes = (*link)->receive(5000);
      ASSERT_TRUE(bytes.ok() && *bytes);
      const auto answer = decode_server_message(**bytes);
      ASSERT_TRUE(answer.ok());
      const auto* verdict = std::get_if<VerdictMessage>(&*answer);
      has_verdict = verdict != nullptr;
      if (has_verdict) tokens.insert(tokens.end(), verdict->tokens.begin(), verdict->tokens.end());
    }
  }
  Request request{.prompt = {1}, .max_tokens = 3, .ignore_eos = true};
  EXPECT_EQ(tokens, local_completion(request).tokens);
}

// A client may say that it has the states of more tokens than there are.
TEST(DraftingLimits, StatesThatCannotBeKnownAreNotSent) {
  RestartedServer server(head_case("moa"));
  DraftingParts parts = server.parts_of_its_head();
  const OpenMessage open{.vocabulary = parts.vocabulary,
                         .max_tokens = 3,
                         .ignore_eos = true,
                         .prompt = {1, 2, 3},
                         .states = StateType::kQ8,
                         .head = parts.drafter->traits().states.head,
                         .state_tokens = 0xffffffff};
  const std::vector<std::string> messages = {encode(ClientMessage(open)),
                                             encode(ClientMessage(TreeMessage{}))};
  EXPECT_EQ(answer_to(server.port(), messages), "no error");
  RemoteDecoder decoder(&parts, server_at(server.port()));
  expect_same_as_local(decoder, request_of(3));
}

TEST(DraftingLimits, TreesThatNeverEndEndTheSession) {
  TestServer server(verify_for_clients);
  ASSERT_TRUE(server.wait_until_ready());
  const DraftingParts parts = drafting_parts("None");
  const OpenMessage open{.vocabulary = parts.vocabulary, .max_tokens = 200, .prompt = {1}};
  auto link = ServerLink::connect(server_at(server.port()), 5000);
  ASSERT_TRUE(link.ok());
  ASSERT_TRUE((*link)->send(encode(ClientMessage(open))).ok());
  // All after the first token: one is verified, and the others wait until they are known to be void.
  for (uint32_t number = 0; number < 2000; ++number) {
    const TreeMessage message{.number = number, .tree = {.tokens = {1}, .parents = {0}}};
    if (!(*link)->send(encode(ClientMessage(message))).ok()) break;
  }
  const TreeMessage ahead{.number = 3000, .base = 150};
  (void)(*link)->send(encode(ClientMessage(ahead)));
  while ((*link)->receive(5000).ok()) {
  }
  EXPECT_TRUE(server.wait_until_free());
  EXPECT_EQ(server.metric("outrider:drafting_sessions"), 0);
}

TEST(DraftingLimits, ASessionWithoutItsClientEnds) {
  TestServer server([](ServerParts& changed) {
    verify_for_clients(changed);
    changed.limits.session_time = std::chrono::milliseconds(50);
  });
  ASSERT_TRUE(server.wait_until_ready());
  const DraftingParts parts = drafting_parts("None");
  const OpenMessage open{.vocabulary = parts.vocabulary, .max_tokens = 5, .prompt = {1}};
  EXPECT_EQ(answer_to(server.port(), {encode(ClientMessage(open))}), "no error");
  EXPECT_TRUE(server.wait_until_free());
  EXPECT_EQ(server.metric("outrider:drafting_sessions"), 0);
}

TEST(DraftingLimits, SessionsAreLimited) {
  TestServer server([](ServerParts& changed) {
    verify_for_clients(changed);
    changed.options.max_drafting_sessions = 1;
  });
  ASSERT_TRUE(server.wait_until_ready());
  DraftingParts parts = drafting_parts("None");
  auto first = ServerLink::connect(server_at(server.port()), 5000);
  ASSERT_TRUE(first.ok());
  const OpenMessage open{.vocabulary = parts.vocabulary, .max_tokens = 5, .prompt = {1}};
  ASSERT_TRUE((*first)->send(encode(ClientMessage(open))).ok());
  ASSERT_TRUE((*first)->receive(5000).ok());
  RemoteDecoder second(&parts, server_at(server.port()), {.give_up_ms = 100});
  EXPECT_NE(refusal_of(second, request_of(1)).find("fewer than 1 clients"), std::string::npos)
      << refusal_of(second, request_of(1));
  ASSERT_TRUE((*first)->send(encode(ClientMessage(CloseMessage()))).ok());
  (*first)->close(1000);
  expect_same_as_local(second, request_of(1));
}

TEST(DraftingLimits, AKeyHasAQuota) {
  TestServer server([](ServerParts& changed) {
    verify_for_clients(changed);
    changed.options.api_keys = {kDraftingKey, "another-key-of-other-clients"};
    changed.options.max_drafting_sessions_per_key = 1;
  });
  ASSERT_TRUE(server.wait_until_ready());
  DraftingParts parts = drafting_parts("None");
  DraftingServer address = server_at(server.port());
  address.api_key = kDraftingKey;
  auto first = ServerLink::connect(address, 5000);
  ASSERT_TRUE(first.ok());
  const OpenMessage open{.vocabulary = parts.vocabulary, .max_tokens = 5, .prompt = {1}};
  ASSERT_TRUE((*first)->send(encode(ClientMessage(open))).ok());
  ASSERT_TRUE((*first)->receive(5000).ok());
  RemoteDecoder second(&parts, address, {.give_up_ms = 100});
  EXPECT_NE(refusal_of(second, request_of(1)).find("with one key"), std::string::npos)
      << refusal_of(second, request_of(1));
  address.api_key = "another-key-of-other-clients";
  RemoteDecoder other(&parts, address);
  expect_same_as_local(other, request_of(1));
}

TEST(DraftingLimits, ConnectionsThatSayNothingEnd) {
  TestServer server([](ServerParts& changed) {
    verify_for_clients(changed);
    changed.limits.open_time = changed.limits.drafting_gap = std::chrono::milliseconds(300);
  });
  ASSERT_TRUE(server.wait_until_ready());
  const DraftingParts parts = drafting_parts("None");
  const OpenMessage open{.vocabulary = parts.vocabulary, .max_tokens = 5, .prompt = {1}};
  for (const bool opens : {false, true}) {
    auto link = ServerLink::connect(server_at(server.port()), 5000);
    ASSERT_TRUE(link.ok());
    EXPECT_EQ(server.metric("outrider:drafting_connections"), 1);
    if (opens) {
      ASSERT_TRUE((*link)->send(encode(ClientMessage(open))).ok());
      ASSERT_TRUE((*link)->receive(5000).ok());
    }
    EXPECT_FALSE((*link)->receive(5000).ok());
    EXPECT_EQ(server.metric("outrider:drafting_connections"), 0);
  }
  EXPECT_EQ(server.metric("outrider:drafting_connects_total"), 2);
}

// Bytes that come one by one are no message, so they do not keep a connection alive.
TEST(DraftingLimits, MessagesThatNeverEndEndTheConnection) {
  TestServer server([](ServerParts& changed) {
    verify_for_clients(changed);
    changed.limits.open_time = std::chrono::milliseconds(500);
  });
  ASSERT_TRUE(server.wait_until_ready());
  TestClient slow(server.port());
  slow.send(
      "GET /v1/drafting HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
      "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"
      "Sec-WebSocket-Protocol: outrider.drafting.1\r\n\r\n");
  const auto upgraded = slow.receive_until("\r\n\r\n", std::chrono::seconds(5));
  ASSERT_TRUE(upgraded && upgraded->starts_with("HTTP/1.1 101")) << upgraded.value_or("nothing");
  slow.send(std::string("\x82\xfe\x40\x00mask", 8));  // the head of a masked message of 16 KiB
  for (int byte = 0; byte < 20; ++byte) {
    slow.send("x");
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  EXPECT_TRUE(slow.is_closed(std::chrono::seconds(5)));
  EXPECT_EQ(server.metric("outrider:drafting_connections"), 0);
  DraftingParts parts = drafting_parts("NGram");
  RemoteDecoder decoder(&parts, server_at(server.port()));
  expect_same_as_local(decoder, request_of(2));
}

}  // namespace
}  // namespace outrider
