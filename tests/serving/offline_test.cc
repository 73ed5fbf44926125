// SPDX-License-Identifier: Apache-2.0
// Clients that write offline: while their server is out of reach, and where it must not see the text.
#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "remote/client/remote_decoder.h"
#include "remote/protocol/codec.h"
#include "tests/network/last_token.h"
#include "tests/network/shaped_proxy.h"
#include "tests/serving/drafting_fixture.h"

namespace outrider {
namespace {

using Choice = OfflineRules::Choice;

// The server leaves, and perhaps comes back.
struct Outage {
  Choice choice = Choice::kCorrect;
  size_t leaves_after = 10;                       // tokens of the output
  std::optional<size_t> returns_after = {};       // tokens that were written offline
  std::chrono::milliseconds pause_per_write{80};  // slows the client down, so that the server can return
};

struct Written {
  Completion completion;
  std::vector<TokenId> streamed, alone;
  RemoteCounts counts;
  std::vector<TokenRun> runs;
};

constexpr double kOfflineAfterMs = 100;

Written write_through(const Outage& outage, const Request& request, RestartedServer& server,
                      DraftingParts& parts) {
  Written written;
  RemoteDecoder decoder(&parts, server_at(server.port()));
  bool has_left = false, has_returned = false;
  decoder.set_offline(
      {.choice = outage.choice, .after_ms = kOfflineAfterMs}, [&](const LoneProgress& progress) {
        written.alone.insert(written.alone.end(), progress.tokens.begin(), progress.tokens.end());
        std::this_thread::sleep_for(outage.pause_per_write);
        if (has_returned || !outage.returns_after || written.alone.size() < *outage.returns_after) return;
        has_returned = true;
        server.start_again();
      });
  auto completion = decoder.generate(request, [&](RequestId, const Progress& progress) {
    written.streamed.insert(written.streamed.end(), progress.tokens.begin(), progress.tokens.end());
    if (has_left || written.streamed.size() < outage.leaves_after) return;
    has_left = true;
    server.stop();
  });
  EXPECT_TRUE(completion.ok()) << completion.error().message;
  if (completion.ok()) written.completion = *std::move(completion);
  written.counts = decoder.counts();
  written.runs = decoder.runs();
  if (!has_returned) server.start_again();
  return written;
}

Request long_request(uint64_t number) {
  Request request = request_of(number);
  request.max_tokens = 200;
  return request;
}

int64_t tokens_of(const std::vector<TokenRun>& runs, bool is_offline) {
  int64_t tokens = 0;
  for (const TokenRun& run : runs) tokens += run.is_offline == is_offline ? run.tokens : 0;
  return tokens;
}

TEST(Offline, ACorrectedTextIsTheServersOwn) {
  RestartedServer server(head_case("moa"));
  DraftingParts moa = server.parts_of_its_head(), draft = drafting_parts("DraftTarget");
  for (const uint64_t number : {2, 3}) {
    for (DraftingParts* parts : {&moa, &draft}) {
      SCOPED_TRACE(parts->info.drafter + " " + std::to_string(number));
      const Request request = long_request(number);
      const Written written = write_through({.returns_after = 8}, request, server, *parts);
      const Completion local = local_completion(request);
      EXPECT_EQ(written.completion.tokens, local.tokens);
      EXPECT_EQ(written.completion.text, local.text);
      EXPECT_EQ(written.streamed, local.tokens);
      EXPECT_GE(written.counts.lone, 8);
      EXPECT_EQ(written.counts.lone, std::ssize(written.alone));
      EXPECT_EQ(tokens_of(written.runs, true), 0);
      EXPECT_EQ(tokens_of(written.runs, false), std::ssize(local.tokens));
      // A draft model that is the target writes the target's likeliest text.
      if (parts == &draft && request.sampling.temperature == 0) {
        EXPECT_EQ(written.counts.lone_confirmed, written.counts.lone);
      }
    }
  }
}

TEST(Offline, AKeptTextIsGoneOnWith) {
  RestartedServer server(head_case("moa"));
  DraftingParts parts = server.parts_of_its_head();
  Request request = long_request(4);
  const Written written =
      write_through({.choice = Choice::kKeep, .returns_after = 8}, request, server, parts);
  const std::vector<TokenId>& tokens = written.completion.tokens;
  EXPECT_EQ(written.streamed, tokens);
  ASSERT_EQ(written.runs.size(), 3u);
  EXPECT_TRUE(written.runs[1].is_offline);
  EXPECT_GE(written.runs[1].tokens, 1);
  EXPECT_EQ(std::ssize(tokens), request.max_tokens);
  const auto begin = tokens.begin() + written.runs[0].tokens;
  const auto kept = std::vector<TokenId>(begin, begin + written.runs[1].tokens);
  EXPECT_TRUE(std::ranges::equal(kept, std::span(written.alone).last(kept.size())));
  // Before and after the kept tokens is the target's own text.
  const Completion before = local_completion(request);
  EXPECT_TRUE(std::equal(tokens.begin(), begin, before.tokens.begin()));
  request.output.assign(tokens.begin(), begin + written.runs[1].tokens);
  EXPECT_EQ(local_completion(request).tokens, tokens);
}

TEST(Offline, EndsAloneWhereTheServerStaysAway) {
  RestartedServer server(head_case("moa"));
  DraftingParts moa = server.parts_of_its_head(), draft = drafting_parts("DraftTarget");
  for (DraftingParts* parts : {&moa, &draft}) {
    Request request = long_request(2);
    request.max_tokens = 40;
    const Written written = write_through({.pause_per_write = {}}, request, server, *parts);
    const Completion local = local_completion(request);
    ASSERT_EQ(written.runs.size(), 2u);
    EXPECT_FALSE(written.runs[0].is_offline);
    EXPECT_TRUE(written.runs[1].is_offline);
    EXPECT_EQ(std::ssize(written.completion.tokens), 40);
    EXPECT_EQ(written.streamed, written.completion.tokens);
    EXPECT_TRUE(std::equal(local.tokens.begin(), local.tokens.begin() + written.runs[0].tokens,
                           written.completion.tokens.begin()));
    if (parts == &draft) {
      EXPECT_EQ(written.completion.tokens, local.tokens);
    }
  }
}

// The network ends with a token of the output, as in Table 4 of Mixture of Attentions (arXiv 2410.03804).
TEST(Offline, TheServersTextIsKeptUpToTheCut) {
  RestartedServer server(head_case("moa"));
  DraftingParts parts = server.parts_of_its_head();
  for (const uint32_t last : {1u, 20u}) {
    auto proxy = ShapedProxy::start({.target_port = server.port(), .watch = up_to_token(last)});
    ASSERT_TRUE(proxy.ok());
    RemoteDecoder decoder(&parts, server_at((*proxy)->port()));
    decoder.set_offline({.choice = Choice::kKeep, .after_ms = kOfflineAfterMs}, {});
    const Request request = long_request(2);
    const auto completion = decoder.generate(request, {});
    ASSERT_TRUE(completion.ok()) << completion.error().message;
    ASSERT_EQ(decoder.runs().size(), 2u);
    const int64_t server_tokens = decoder.runs()[0].tokens;
    EXPECT_GE(server_tokens, last);
    EXPECT_LT(server_tokens, last + 16);  // a verdict may bring several
    EXPECT_TRUE(decoder.runs()[1].is_offline);
    const std::vector<TokenId> local = local_completion(request).tokens;
    EXPECT_TRUE(std::equal(local.begin(), local.begin() + server_tokens, completion->tokens.begin()));
  }
}

// A step of the draft model takes a millisecond here; the rest is for a machine that is busy.
TEST(Offline, TheFirstTokenAloneComesAStepAfterTheWait) {
  RestartedServer server(head_case("moa"));
  DraftingParts parts = drafting_parts("DraftTarget");
  auto proxy = ShapedProxy::start({.target_port = server.port()});
  ASSERT_TRUE(proxy.ok());
  RemoteDecoder decoder(&parts, server_at((*proxy)->port()));
  double heard_ms = 0, silent_ms = 0;
  decoder.set_offline({.choice = Choice::kKeep, .after_ms = kOfflineAfterMs}, [&](const LoneProgress&) {
    if (silent_ms == 0) silent_ms = now_ms() - heard_ms;
  });
  const auto completion = decoder.generate(long_request(2), [&](RequestId, const Progress& progress) {
    if (silent_ms == 0) heard_ms = now_ms();
    if (progress.tokens.size() > 1 && *proxy) proxy->reset();
  });
  ASSERT_TRUE(completion.ok()) << completion.error().message;
  EXPECT_GT(silent_ms, kOfflineAfterMs - 10);
  EXPECT_LT(silent_ms, kOfflineAfterMs + 500);
}

TEST(Offline, ADrafterWithoutAnOpinionWaits) {
  RestartedServer server(head_case("moa"));
  DraftingParts parts = drafting_parts("NGram");
  RemoteDecoder decoder(&parts, server_at(server.port()), {.give_up_ms = 400});
  decoder.set_offline({.choice = Choice::kKeep, .after_ms = 50}, {});
  const auto completion =
      decoder.generate(long_request(2), [&](RequestId, const Progress&) { server.stop(); });
  ASSERT_FALSE(completion.ok());
  EXPECT_EQ(decoder.counts().lone, 0);
}

// Where it is stopped the text ends with what was shown, whether the server or the client wrote it.
TEST(Offline, ARequestIsStoppedWhereverItIs) {
  RestartedServer server(head_case("moa"));
  DraftingParts parts = drafting_parts("DraftTarget");
  RemoteDecoder decoder(&parts, server_at(server.port()));
  const Request request = long_request(2);
  const Completion local = local_completion(request);
  for (const size_t stop_after : {0, 10, 60}) {
    std::vector<TokenId> shown;
    decoder.stop_when([&] { return shown.size() >= stop_after; });
    bool is_alone = false, has_left = false;
    const auto on_lone_text = [&](const LoneProgress& progress) {
      is_alone = true;
      shown.insert(shown.end(), progress.tokens.begin(), progress.tokens.end());
    };
    decoder.set_offline({.choice = Choice::kKeep, .after_ms = kOfflineAfterMs}, on_lone_text);
    const auto completion = decoder.generate(request, [&](RequestId, const Progress& progress) {
      if (!is_alone) shown.insert(shown.end(), progress.tokens.begin(), progress.tokens.end());
      if (shown.size() >= 30 && !std::exchange(has_left, true)) server.stop();
    });
    ASSERT_TRUE(completion.ok()) << completion.error().message;
    EXPECT_EQ(completion->finish_reason, FinishReason::kCancelled);
    EXPECT_EQ(completion->tokens, shown);
    EXPECT_LT(completion->tokens.size(), stop_after + 10);
    EXPECT_TRUE(std::equal(shown.begin(), shown.end(), local.tokens.begin()));
  }
}

TEST(RemoteRequest, WhatTheProtocolDoesNotCarryIsRefused) {
  DraftingParts parts = drafting_parts("DraftTarget");
  RemoteDecoder decoder(&parts, server_at(1));
  Request slides = long_request(2), changes = long_request(2), tells = long_request(2);
  slides.slide = 0;
  changes.logits_function = [](std::span<const TokenId>, std::span<float>) { return Status(); };
  tells.logprobs = 0;
  for (const Request& request : {slides, changes, tells}) {
    const auto refused = decoder.generate(request, {});
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().kind, ErrorKind::kUsage);
    EXPECT_NE(refused.error().message.find("are not for --server"), std::string::npos)
        << refused.error().message;
  }
}

TEST(PrivateText, MayBeNone) {
  RestartedServer server(head_case("moa"));
  DraftingParts parts = server.parts_of_its_head();
  RemoteDecoder decoder(&parts, server_at(server.port()));
  const Request request = request_of(2);
  const auto completion = decoder.generate_privately(request, request.prompt.size(), {});
  ASSERT_TRUE(completion.ok()) << completion.error().message;
  EXPECT_EQ(std::ssize(completion->tokens), request.max_tokens);
}

TEST(PrivateText, IsStoppedWhereItIs) {
  DraftingParts parts = drafting_parts("DraftTarget");
  RemoteDecoder decoder(&parts, server_at(1));
  std::vector<TokenId> written;
  decoder.stop_when([&] { return written.size() >= 5; });
  const auto completion = decoder.generate_privately(long_request(2), 1, [&](const LoneProgress& progress) {
    written.insert(written.end(), progress.tokens.begin(), progress.tokens.end());
  });
  ASSERT_TRUE(completion.ok()) << completion.error().message;
  EXPECT_EQ(completion->finish_reason, FinishReason::kCancelled);
  EXPECT_EQ(completion->tokens, written);
  EXPECT_LT(written.size(), 20u);
}

// The messages of a client, as they cross the wire, without the random name of its session.
std::vector<std::string> messages_to_server(RestartedServer& server, DraftingParts& parts,
                                            const Request& request, size_t safe) {
  std::vector<std::string> messages;
  auto proxy =
      ShapedProxy::start({.target_port = server.port(), .watch = [&](bool is_there, const auto& bytes) {
                            if (!is_there) return true;
                            auto message = decode_client_message(bytes);
                            EXPECT_TRUE(message.ok());
                            if (!message.ok()) return true;
                            if (auto* open = std::get_if<OpenMessage>(&*message)) open->session = {};
                            messages.push_back(encode(*message));
                            return true;
                          }});
  EXPECT_TRUE(proxy.ok());
  RemoteDecoder decoder(&parts, server_at((*proxy)->port()));
  std::vector<TokenId> written;
  const auto completion = decoder.generate_privately(request, safe, [&](const LoneProgress& progress) {
    written.insert(written.end(), progress.tokens.begin(), progress.tokens.end());
  });
  EXPECT_TRUE(completion.ok()) << completion.error().message;
  if (completion.ok()) {
    EXPECT_EQ(completion->tokens, written);
  }
  EXPECT_EQ(std::ssize(written), request.max_tokens);
  return messages;
}

TEST(PrivateText, NeverCrossesTheWire) {
  RestartedServer server(head_case("moa"));
  DraftingParts parts = server.parts_of_its_head();
  Request request = request_of(7);
  request.sampling = {};
  request.sampling.temperature = 0.7;
  request.sampling.seed = 5;
  const std::vector<TokenId> safe = request.prompt;
  std::vector<std::string> expected;
  for (const std::vector<TokenId>& hidden :
       std::vector<std::vector<TokenId>>{{11, 12, 13}, std::vector<TokenId>(60, 77), {9}}) {
    request.prompt = safe;
    request.prompt.insert(request.prompt.end(), hidden.begin(), hidden.end());
    request.stop = {"a secret word " + std::to_string(hidden.size())};
    const std::vector<std::string> messages = messages_to_server(server, parts, request, safe.size());
    // The messages are the same for every private text, so they say nothing about it.
    if (expected.empty()) expected = messages;
    EXPECT_EQ(messages, expected);
    const auto open = decode_client_message(messages.at(0));
    EXPECT_EQ(std::get<OpenMessage>(*open).prompt, safe);
  }
  EXPECT_EQ(expected.size(), 3u);  // open, an empty tree, close
}

TEST(PrivateText, NeedsNoServerForADraftModel) {
  DraftingParts parts = drafting_parts("DraftTarget");
  RemoteDecoder decoder(&parts, server_at(1));
  Request request = request_of(2);
  const auto completion = decoder.generate_privately(request, 1, {});
  ASSERT_TRUE(completion.ok()) << completion.error().message;
  EXPECT_EQ(completion->tokens, local_completion(request).tokens);
  EXPECT_EQ(decoder.counts().bytes_sent, 0);
  DraftingParts ngram = drafting_parts("NGram");
  RemoteDecoder silent(&ngram, server_at(1));
  const auto refused = silent.generate_privately(request, 1, {});
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("write alone"), std::string::npos);
}

}  // namespace
}  // namespace outrider
