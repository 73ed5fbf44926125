// SPDX-License-Identifier: Apache-2.0
// Messages survive the way over the wire, and no bytes do harm. fuzz/fuzz_drafting.cc tries more of them.
#include "remote/protocol/codec.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "remote/protocol/state_rows.h"

namespace outrider {
namespace {

class RandomMessages {
 public:
  explicit RandomMessages(uint32_t seed) : random_(seed) {}

  ClientMessage client() {
    switch (random_() % 4) {
      case 0:
        return open();
      case 1:
        return ResumeMessage{
            .session = id(), .connection = length(), .output_length = length(), .state_tokens = length()};
      case 2:
        return TreeMessage{.number = length(), .base = length(), .tree = tree()};
      default:
        return CloseMessage();
    }
  }

  ServerMessage server() {
    switch (random_() % 4) {
      case 0:
        return OpenedMessage{.context = length(),
                             .tree_nodes = length(),
                             .state_size = length(),
                             .stop_tokens = tokens(),
                             .missed = tokens()};
      case 3:
        return StatesMessage{.first = length(), .rows = std::string(random_() % 20, '\xfe')};
      case 1:
        return VerdictMessage{.first = length(),
                              .tokens = tokens(),
                              .is_last = random_() % 2 == 0,
                              .finish_reason = static_cast<FinishReason>(random_() % 3),
                              .server_us = length()};
      default:
        return ErrorMessage{.code = static_cast<RemoteErrorCode>(random_() % 6),
                            .text = "what \xff\x01 it is"};
    }
  }

 private:
  OpenMessage open() {
    OpenMessage message{
        .session = id(), .connection = length(), .sampling = sampling(), .sample_index = random_()};
    for (uint8_t& byte : message.vocabulary) byte = static_cast<uint8_t>(random_());
    message.max_tokens = static_cast<int64_t>(length());
    message.ignore_eos = random_() % 2 == 0;
    message.stop_tokens = tokens();
    message.prompt = tokens();
    message.output = tokens();
    message.states = static_cast<StateType>(random_() % 4);
    message.head = "5f";
    message.state_tokens = length();
    return message;
  }

  SamplingParams sampling() {
    SamplingParams params;
    params.logit_bias = {{3, -INFINITY}, {9, 0.5f}};
    params.temperature = static_cast<double>(random_()) / 7e9;
    params.top_k = static_cast<int32_t>(random_() % 1000);
    params.top_p = 1.0 / 3.0;
    params.top_n_sigma = -1.0 + static_cast<double>(random_() % 3);
    params.xtc_probability = 0.5;
    params.dry.last_n = static_cast<int32_t>(random_() % 3) - 1;
    params.seed = static_cast<uint64_t>(random_()) << 31;
    return params;
  }

  WireTree tree() {
    WireTree tree;
    const unsigned nodes = random_() % 20;
    for (unsigned i = 0; i < nodes; ++i) {
      tree.tokens.push_back(static_cast<TokenId>(100 + i));
      tree.parents.push_back(static_cast<int32_t>(random_() % (i + 1)));
    }
    return tree;
  }

  SessionId id() {
    SessionId id;
    for (uint8_t& byte : id) byte = static_cast<uint8_t>(random_());
    return id;
  }
  // Lengths of all sizes.
  uint32_t length() { return random_() >> random_() % 32; }
  std::vector<TokenId> tokens() {
    std::vector<TokenId> tokens(random_() % 10);
    for (TokenId& token : tokens) token = static_cast<TokenId>(length() >> 1);
    return tokens;
  }

  std::mt19937 random_;
};

// Encoding is the same for equal messages only, so that comparing bytes compares all fields.
template <typename Message, typename Decode>
void expect_round_trip(const Message& message, Decode&& decode) {
  const std::string bytes = encode(message);
  const auto back = decode(bytes);
  ASSERT_TRUE(back.ok()) << back.error().message;
  ASSERT_EQ(back->index(), message.index());
  ASSERT_EQ(encode(*back), bytes);
  for (size_t size = 0; size < bytes.size(); ++size)
    ASSERT_FALSE(decode(std::string_view(bytes).substr(0, size)).ok()) << "a part of it is a message";
  ASSERT_FALSE(decode(bytes + '\0').ok()) << "more than it is a message";
}

TEST(DraftingCodec, MessagesComeBack) {
  RandomMessages random(1);
  for (int i = 0; i < 3000; ++i) {
    ASSERT_NO_FATAL_FAILURE(expect_round_trip(random.client(), decode_client_message));
    ASSERT_NO_FATAL_FAILURE(expect_round_trip(random.server(), decode_server_message));
  }
}

TEST(DraftingCodec, FieldsComeBack) {
  const OpenMessage open{.session = {1, 2},
                         .sampling = {.logit_bias = {}, .temperature = 0.7, .top_k = 5, .seed = 1ull << 60},
                         .max_tokens = 77,
                         .stop_tokens = {4},
                         .prompt = {1, 2, 150000},
                         .output = {9}};
  const auto back = decode_client_message(encode(ClientMessage(open)));
  ASSERT_TRUE(back.ok());
  const auto& got = std::get<OpenMessage>(*back);
  EXPECT_EQ(got.session, open.session);
  EXPECT_EQ(got.sampling.temperature, 0.7);
  EXPECT_EQ(got.sampling.top_k, 5);
  EXPECT_EQ(got.sampling.seed, 1ull << 60);
  EXPECT_EQ(got.max_tokens, 77);
  EXPECT_EQ(got.prompt, open.prompt);
  EXPECT_EQ(got.output, open.output);
  const TreeMessage tree{.base = 300, .tree = {.tokens = {5, 6, 5}, .parents = {0, 0, 1}}};
  const auto tree_back = decode_client_message(encode(ClientMessage(tree)));
  ASSERT_TRUE(tree_back.ok());
  EXPECT_EQ(std::get<TreeMessage>(*tree_back).base, 300u);
  EXPECT_EQ(std::get<TreeMessage>(*tree_back).tree, tree.tree);
}

TEST(DraftingCodec, TreesThatAreNoneAreRefused) {
  const auto refused = [](const WireTree& tree) {
    return !decode_client_message(encode(ClientMessage(TreeMessage{.tree = tree}))).ok();
  };
  EXPECT_FALSE(refused({.tokens = {5, 6}, .parents = {0, 1}}));
  EXPECT_TRUE(refused({.tokens = {5, 5}, .parents = {0, 0}}));   // twins
  EXPECT_TRUE(refused({.tokens = {5, 6}, .parents = {0, 2}}));   // its own parent
  EXPECT_TRUE(refused({.tokens = {5, 6}, .parents = {0, -1}}));  // above the root
  WireTree large;
  for (size_t i = 0; i <= kMaxWireTree; ++i) {
    large.tokens.push_back(static_cast<TokenId>(i));
    large.parents.push_back(0);
  }
  EXPECT_TRUE(refused(large));
}

TEST(DraftingCodec, AnyBytesAreAMessageOrAnError) {
  std::mt19937 random(2);
  RandomMessages messages(3);
  for (int i = 0; i < 20000; ++i) {
    std::string bytes = random() % 2 == 0 ? encode(messages.client()) : encode(messages.server());
    for (unsigned change = 1 + random() % 4; change > 0 && !bytes.empty(); --change)
      bytes[random() % bytes.size()] = static_cast<char>(random());
    if (const auto client = decode_client_message(bytes); client.ok()) {
      EXPECT_EQ(encode(*decode_client_message(encode(*client))), encode(*client));
    }
    if (const auto server = decode_server_message(bytes); server.ok()) {
      EXPECT_EQ(encode(*decode_server_message(encode(*server))), encode(*server));
    }
  }
}

TEST(DraftingCodec, AListLongerThanItsMessageCostsNoMemory) {
  std::string bytes = encode(ServerMessage(OpenedMessage{}));
  bytes.resize(bytes.size() - 1);
  bytes += "\xff\xff\xff\xff\x0f";  // 4 billion missed tokens
  EXPECT_FALSE(decode_server_message(bytes).ok());
}

TEST(StateRows, ComeBackRounded) {
  std::mt19937 random(3);
  for (const int64_t size : {2, 32, 41}) {
    std::vector<float> rows;
    for (int64_t i = 0; i < 3 * size; ++i) rows.push_back(static_cast<float>(random() % 2001) / 1000.0f - 1);
    for (const auto& [type, error] : {std::pair{StateType::kBF16, 4e-3f}, std::pair{StateType::kF16, 5e-4f},
                                      std::pair{StateType::kQ8, 5e-3f}}) {
      std::string bytes;
      append_state_rows(type, rows, size, bytes);
      EXPECT_EQ(std::ssize(bytes), 3 * state_row_bytes(type, size));
      std::vector<float> back;
      ASSERT_TRUE(read_state_rows(type, bytes, size, back).ok());
      ASSERT_EQ(back.size(), rows.size());
      for (size_t i = 0; i < rows.size(); ++i) EXPECT_NEAR(back[i], rows[i], error);
    }
  }
}

}  // namespace
}  // namespace outrider
