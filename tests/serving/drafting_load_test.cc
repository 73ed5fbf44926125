// SPDX-License-Identifier: Apache-2.0
// The cost of many clients that draft, for a small server, and the worth of their text without it.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <fstream>
#include <iostream>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "config/environment.h"
#include "remote/client/remote_decoder.h"
#include "tests/network/known_networks.h"
#include "tests/serving/drafting_fixture.h"

namespace outrider {
namespace {

using Clock = std::chrono::steady_clock;

int from_environment(const std::string& name, int otherwise) {
  const auto variables = read_environment();
  const auto found = variables.find(name);
  return found == variables.end() ? otherwise : std::stoi(found->second);
}

double resident_mib() {
  int64_t pages = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> pages >> resident;
  return static_cast<double>(resident * sysconf(_SC_PAGESIZE)) / (1 << 20);
}

constexpr uint64_t kRequests = 16;

// Decodes one request after the other until `end`, and returns the number of tokens.
int64_t decode_until(Clock::time_point end, uint64_t client, int port) {
  DraftingParts parts = drafting_parts(client % 2 == 0 ? "NGram" : "Suffix");
  RemoteDecoder decoder(&parts, server_at(port));
  int64_t tokens = 0;
  for (uint64_t number = client; Clock::now() < end; ++number) {
    const Request request = request_of(number % kRequests);
    const auto completion = decoder.generate(request, {});
    EXPECT_TRUE(completion.ok()) << completion.error().message;
    if (!completion.ok()) break;
    tokens += std::ssize(completion->tokens);
    static const std::vector<Completion> expected = [] {
      std::vector<Completion> all;
      for (uint64_t i = 0; i < kRequests; ++i) all.push_back(local_completion(request_of(i)));
      return all;
    }();
    EXPECT_EQ(completion->tokens, expected[number % kRequests].tokens);
  }
  return tokens;
}

TEST(DraftingLoad, ManyClientsOverASlowNetworkAreServedAlikeAndLeaveNothingBehind) {
  const int clients = from_environment("OUTRIDER_DRAFTING_CLIENTS", 200);
  const int seconds = from_environment("OUTRIDER_DRAFTING_SECONDS", 120);
  TestServer server(verify_for_clients);
  ASSERT_TRUE(server.wait_until_ready());
  auto proxy = ShapedProxy::start({.target_port = server.port(), .shape = *find_network("4g")});
  ASSERT_TRUE(proxy.ok());
  std::vector<double> memory;
  std::vector<int64_t> tokens(static_cast<size_t>(clients));
  const auto run = [&](int length) {
    std::vector<std::thread> threads;
    const Clock::time_point end = Clock::now() + std::chrono::seconds(length);
    for (size_t client = 0; client < tokens.size(); ++client)
      threads.emplace_back([&, client] { tokens[client] = decode_until(end, client, (*proxy)->port()); });
    for (std::thread& thread : threads) thread.join();
    EXPECT_TRUE(server.wait_until_free());
    memory.push_back(resident_mib());
  };
  run(10);
  run(seconds);
  run(10);
  std::ranges::sort(tokens);
  EXPECT_EQ(server.metric("outrider:drafting_sessions"), 0);
  EXPECT_EQ(server.metric("outrider:drafting_connections"), 0);
  EXPECT_GT(tokens.front(), 0);
  std::cout << clients << " clients, resident " << memory[0] << " MiB after 10 s, " << memory[1]
            << " MiB after " << seconds << " s more, " << memory[2] << " MiB after 10 s more\n"
            << "tokens of a client in the last 10 s: least " << tokens.front() << ", median "
            << tokens[tokens.size() / 2] << ", most " << tokens.back() << "\n";
  EXPECT_LT(memory[2], 1.1 * memory[0] + 50);
}

std::filesystem::path shipped(const std::string& name) {
  return std::filesystem::path(OUTRIDER_SOURCE_DIR) / "models" / name;
}

EngineOptions shipped_engine(Method method, const std::string& files) {
  EngineOptions options = verifying_engine();
  options.model = shipped("outrider-small");
  options.speculation.decoding_type = method;
  options.speculation.speculative_model = shipped(files);
  options.speculation.max_draft_len = 4;
  return options;
}

constexpr int64_t kBeforeCut = 50, kAfterCut = 32;
constexpr size_t kAll = 1000;  // more tokens than a text has

// The target's texts: prompts of 12 tokens, drawn, and what follows greedily.
std::vector<std::vector<TokenId>> target_texts(size_t count) {
  EngineOptions options = tiny_engine();
  options.model = shipped("outrider-small");
  auto engine = Engine::open(options);
  EXPECT_TRUE(engine.ok()) << engine.error().message;
  std::vector<std::vector<TokenId>> texts;
  for (uint64_t seed = 0; seed < count; ++seed) {
    Request request{.prompt = (*engine)->tokenize("Once upon a time"), .max_tokens = 12, .ignore_eos = true};
    request.sampling.temperature = 1;
    request.sampling.seed = seed;
    const auto prompt = (*engine)->generate(request);
    request.prompt.insert(request.prompt.end(), prompt->tokens.begin(), prompt->tokens.end());
    request.sampling = {};
    request.max_tokens = kBeforeCut + kAfterCut;
    const auto text = (*engine)->generate(request);
    texts.push_back(request.prompt);
    texts.back().insert(texts.back().end(), text->tokens.begin(), text->tokens.end());
  }
  return texts;
}

struct Agreement {
  double tokens = 0;  // mean number of tokens after the cut until the first that differs
  double share = 0;   // of tokens that agree, position by position
};

// Writes on offline after texts; the server sees the first `seen` tokens and the client has their
// states.
Agreement agreement_alone(const std::vector<std::vector<TokenId>>& texts, Method method,
                          const std::string& files, size_t seen) {
  TestServer server([&](ServerParts& parts) {
    verify_for_clients(parts);
    parts.open = [&] { return Engine::open(shipped_engine(method, files)); };
  });
  EXPECT_TRUE(server.wait_until_ready());
  auto parts = open_drafting(shipped_engine(method, files));
  EXPECT_TRUE(parts.ok()) << parts.error().message;
  RemoteDecoder decoder(&*parts, server_at(server.port()));
  Agreement agreement;
  for (const std::vector<TokenId>& text : texts) {
    Request request{.max_tokens = kAfterCut, .ignore_eos = true};
    request.prompt.assign(text.begin(), text.end() - kAfterCut);
    const auto written = decoder.generate_privately(request, std::min(seen, request.prompt.size()), {});
    EXPECT_TRUE(written.ok()) << written.error().message;
    const auto own = std::span(text).last(kAfterCut);
    const auto same = std::ranges::mismatch(own, written->tokens).in1 - own.begin();
    agreement.tokens += static_cast<double>(same) / static_cast<double>(texts.size());
    for (size_t i = 0; i < own.size(); ++i)
      agreement.share +=
          own[i] == written->tokens[i] ? 1.0 / static_cast<double>(texts.size() * own.size()) : 0;
  }
  std::cout << files << ", " << seen << " tokens seen: " << agreement.tokens
            << " tokens until the first that differs, " << 100 * agreement.share << "% of " << kAfterCut
            << " agree\n";
  return agreement;
}

// The relation of Table 4 of Mixture of Attentions (arXiv 2410.03804).
TEST(DraftingLoad, WithMoreOfTheTargetTheLoneTextAgreesMore) {
  const auto texts = target_texts(100);
  const Agreement draft = agreement_alone(texts, Method::kDraftTarget, "outrider-draft", kAll);
  const Agreement moa = agreement_alone(texts, Method::kMoa, "outrider-moa", kAll);
  const Agreement last_layers = agreement_alone(texts, Method::kMoa, "outrider-moa-tli3", kAll);
  EXPECT_GE(last_layers.tokens, moa.tokens);
  EXPECT_GE(moa.tokens, draft.tokens);
}

// The private end is as long as what follows. Without states there is no Mixture of Attentions, so states of
// one token stand for none.
TEST(DraftingLoad, PrivateTextGainsFromTheStatesOfTheTextBeforeIt) {
  const auto texts = target_texts(100);
  agreement_alone(texts, Method::kDraftTarget, "outrider-draft", 1);
  for (const char* files : {"outrider-moa", "outrider-moa-tli1", "outrider-moa-tli3"}) {
    const Agreement with = agreement_alone(texts, Method::kMoa, files, 32);
    const Agreement without = agreement_alone(texts, Method::kMoa, files, 1);
    EXPECT_GT(with.tokens, without.tokens) << files;
  }
}

}  // namespace
}  // namespace outrider
