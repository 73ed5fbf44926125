// SPDX-License-Identifier: Apache-2.0
// Clients that draft, over real sockets and over networks that break: the output equals plain decoding on the
// server's machine. Compiled once more, with many more breaks, for the slow suite.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/counter_rng.h"
#include "remote/client/remote_decoder.h"
#include "tests/network/shaped_proxy.h"
#include "tests/serving/drafting_fixture.h"
#include "tests/support/test_certificate.h"

namespace outrider {
namespace {

#ifdef OUTRIDER_SLOW_TEST
constexpr int64_t kCutStep = 1;                // bytes between two cuts that are tried
constexpr uint64_t kBlocks = 20, kBlock = 50;  // of fault schedules
#else
constexpr int64_t kCutStep = 11;
constexpr uint64_t kBlocks = 1, kBlock = 21;
#endif
constexpr const char* kApiKey = "a-key-of-a-client-that-drafts";

TEST(Drafting, EveryDrafterGivesTheServersOwnOutput) {
  TestServer server(verify_for_clients);
  ASSERT_TRUE(server.wait_until_ready());
  for (const std::string method : {"None", "NGram", "Suffix", "DraftTarget"}) {
    SCOPED_TRACE(method);
    DraftingParts parts = drafting_parts(method);
    RemoteDecoder decoder(&parts, server_at(server.port()));
    for (uint64_t number = 0; number < 8; ++number) expect_same_as_local(decoder, request_of(number));
  }
  EXPECT_TRUE(server.wait_until_free());
  EXPECT_EQ(server.metric("outrider:drafting_sessions"), 0);
}

// A client and a server that draft with the head.
void expect_head_drafts(const HeadCase& head,
                        EngineOptions (*with)(EngineOptions, const HeadCase&, const std::filesystem::path&)) {
  SCOPED_TRACE(head.name);
  const auto files = head.make();
  files->write();
  auto opened = open_drafting(with(tiny_engine(), head, files->path()));
  ASSERT_TRUE(opened.ok()) << opened.error().message;
  TestServer server([&](ServerParts& parts) {
    verify_for_clients(parts);
    parts.open = [&] { return Engine::open(with(verifying_engine(), head, files->path())); };
  });
  ASSERT_TRUE(server.wait_until_ready());
  RemoteDecoder decoder(&*opened, server_at(server.port()));
  for (const StateType type : {StateType::kBF16, StateType::kF16, StateType::kQ8}) {
    decoder.set_state_type(type);
    const auto number = static_cast<uint64_t>(type);
    expect_same_as_local(decoder, request_of(number));
  }
  const auto completion = decoder.generate(request_of(1), {});
  ASSERT_TRUE(completion.ok());
  EXPECT_GT(completion->speculation.drafts, completion->speculation.steps / 2) << "states did not arrive";
}

TEST(Drafting, EveryDraftHeadGivesTheServersOwnOutput) {
  for (const HeadCase& head : head_cases()) expect_head_drafts(head, with_head);
}

TEST(Drafting, EveryDraftHeadBesideAnotherDrafterGivesTheServersOwnOutput) {
  for (const HeadCase& head : head_cases()) expect_head_drafts(head, with_suffix_and_head);
}

TEST(Drafting, ADraftHeadIsTheServersOwn) {
  const std::vector<HeadCase> heads = head_cases();
  const auto files = heads.front().make();
  files->write();
  auto opened = open_drafting(with_head(tiny_engine(), heads.front(), files->path()));
  ASSERT_TRUE(opened.ok()) << opened.error().message;
  TestServer server(verify_for_clients);
  ASSERT_TRUE(server.wait_until_ready());
  RemoteDecoder decoder(&*opened, server_at(server.port()));
  const auto completion = decoder.generate(request_of(1), {});
  ASSERT_FALSE(completion.ok());
  EXPECT_NE(completion.error().message.find("draft head"), std::string::npos) << completion.error().message;
}

TEST(Drafting, ADraftModelThatIsRightSavesPassesOfTheServer) {
  TestServer server(verify_for_clients);
  ASSERT_TRUE(server.wait_until_ready());
  DraftingParts parts = drafting_parts("DraftTarget");
  RemoteDecoder decoder(&parts, server_at(server.port()));
  Request request = request_of(2);
  request.max_tokens = 50;
  const auto completion = decoder.generate(request, {});
  ASSERT_TRUE(completion.ok()) << completion.error().message;
  EXPECT_EQ(completion->speculation.steps, decoder.counts().verdicts);
  EXPECT_LE(decoder.counts().verdicts, 20);
  EXPECT_GE(completion->speculation.accepted, 30);
  EXPECT_GT(decoder.counts().bytes_sent, 0);
}

TEST(Drafting, StopRulesAreTheClients) {
  TestServer server(verify_for_clients);
  ASSERT_TRUE(server.wait_until_ready());
  DraftingParts parts = drafting_parts("NGram");
  RemoteDecoder decoder(&parts, server_at(server.port()));
  Request request = request_of(6);
  const Completion whole = local_completion(request);
  request.stop = {whole.text.substr(whole.text.size() / 2, 3)};
  expect_same_as_local(decoder, request);
  request.stop.clear();
  request.stop_tokens = {whole.tokens[7]};
  expect_same_as_local(decoder, request);
  request.ignore_eos = false;
  expect_same_as_local(decoder, request);
}

TEST(Drafting, ManyClientsShareABatchWithOtherRequests) {
  TestServer server(verify_for_clients);
  ASSERT_TRUE(server.wait_until_ready());
  constexpr uint64_t kClients = 12, kRequests = 3;
  std::vector<std::vector<TokenId>> expected;
  for (uint64_t number = 0; number < kClients * kRequests; ++number)
    expected.push_back(local_completion(request_of(number)).tokens);
  std::vector<std::thread> clients;
  for (uint64_t client = 0; client < kClients; ++client) {
    clients.emplace_back([&, client] {
      DraftingParts parts = drafting_parts(client % 2 == 0 ? "NGram" : "Suffix");
      RemoteDecoder decoder(&parts, server_at(server.port()));
      for (uint64_t number = client * kRequests; number < (client + 1) * kRequests; ++number) {
        const auto completion = decoder.generate(request_of(number), {});
        ASSERT_TRUE(completion.ok()) << completion.error().message;
        EXPECT_EQ(completion->tokens, expected[number]);
      }
    });
  }
  TestClient other(server.port());
  EXPECT_EQ(other.post("/v1/completions", R"({"model":"tiny","prompt":"Once","max_tokens":20})").status, 200);
  for (std::thread& client : clients) client.join();
  EXPECT_TRUE(server.wait_until_free());
}

// Cuts the first connections of a schedule after given numbers of bytes.
std::unique_ptr<ShapedProxy> cutting_proxy(int port, std::vector<int64_t> cuts) {
  auto proxy = ShapedProxy::start({.target_port = port, .cut_after = [cuts](int64_t connection) {
                                     return connection < std::ssize(cuts)
                                                ? cuts[static_cast<size_t>(connection)]
                                                : int64_t{-1};
                                   }});
  EXPECT_TRUE(proxy.ok()) << proxy.error().message;
  return std::move(proxy).value();
}

TEST(Drafting, AConnectionMayBreakAfterAnyByte) {
  TestServer server(verify_for_clients);
  ASSERT_TRUE(server.wait_until_ready());
  DraftingParts parts = drafting_parts("NGram");
  Request request = request_of(5);
  request.max_tokens = 12;
  int64_t cuts = 0;
  for (int64_t bytes = 0; bytes < 1500; bytes += kCutStep) {
    SCOPED_TRACE(bytes);
    const auto proxy = cutting_proxy(server.port(), {bytes});
    RemoteDecoder decoder(&parts, server_at(proxy->port()));
    expect_same_as_local(decoder, request);
    cuts += proxy->counts().cuts;
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_GT(cuts, 50);
}

// Everything that goes wrong while one request is decoded, drawn from a seed: how slow the network is, after
// how many bytes its connections break, and whether messages come twice. Bytes sent over a broken connection
// may arrive after the client has made another one. The server restarts after a given output token.
struct FaultSchedule {
  uint64_t seed = 0;

  uint64_t draw(uint64_t number) const { return mix64(seed ^ mix64(number)); }
  ProxyOptions proxy(int port) const {
    const FaultSchedule schedule = *this;
    return {.target_port = port,
            .shape = {.round_trip_ms = static_cast<double>(3 + draw(1) % 4),
                      .jitter_ms = static_cast<double>(draw(2) % 4),
                      .bits_per_second = draw(3) % 2 == 0 ? 0.0 : 5e6},
            .seed = seed,
            .cut_after =
                [schedule](int64_t connection) {
                  // Later connections live longer, so that the largest message gets through at last.
                  const uint64_t bytes = schedule.draw(100 + static_cast<uint64_t>(connection)) % 3000;
                  return static_cast<int64_t>(bytes) + 400 * connection;
                },
            // The client connects again after 20 ms.
            .late_ms = draw(6) % 3 == 0 ? static_cast<double>(5 + draw(7) % 80) : 0.0,
            .duplicates = draw(8) % 3 == 0 ? 0.3 : 0.0};
  }
  std::optional<size_t> restart_after() const {
    return draw(4) % 10 == 0 ? std::optional<size_t>(draw(5) % 20) : std::nullopt;
  }
};

void run_schedule(const FaultSchedule& schedule, RestartedServer& server, DraftingParts& parts) {
  auto proxy = ShapedProxy::start(schedule.proxy(server.port()));
  ASSERT_TRUE(proxy.ok()) << proxy.error().message;
  RemoteDecoder decoder(&parts, server_at((*proxy)->port()));
  const Request request = request_of(schedule.seed);
  std::vector<TokenId> streamed;
  auto restart_after = schedule.restart_after();
  const auto completion = decoder.generate(request, [&](RequestId, const Progress& progress) {
    streamed.insert(streamed.end(), progress.tokens.begin(), progress.tokens.end());
    if (!restart_after || streamed.size() <= *restart_after) return;
    restart_after.reset();
    server.restart();
  });
  ASSERT_TRUE(completion.ok()) << completion.error().message;
  const Completion local = local_completion(request);
  EXPECT_EQ(completion->tokens, local.tokens);
  EXPECT_EQ(completion->text, local.text);
  EXPECT_EQ(streamed, local.tokens);
}

// The schedules from kBlock times the parameter on.
class FaultSchedules : public testing::TestWithParam<uint64_t> {};

TEST_P(FaultSchedules, LoseAndRepeatNothing) {
  RestartedServer servers[] = {RestartedServer(head_case("eagle3")), RestartedServer(head_case("moa")),
                               RestartedServer(head_case("mtp"))};
  std::vector<DraftingParts> drafters;
  for (const RestartedServer& server : servers) drafters.push_back(server.parts_of_its_head());
  for (const char* method : {"NGram", "Suffix", "DraftTarget", "None"})
    drafters.push_back(drafting_parts(method));
  for (uint64_t seed = kBlock * GetParam(); seed < kBlock * (GetParam() + 1); ++seed) {
    SCOPED_TRACE(seed);
    const size_t drafter = seed % drafters.size();
    run_schedule({seed}, servers[drafter % std::size(servers)], drafters[drafter]);
    if (testing::Test::HasFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Drafting, FaultSchedules, testing::Range(uint64_t{0}, kBlocks));

TEST(Drafting, GoesOnAfterTheServerRestarted) {
  DraftingParts parts = drafting_parts("NGram");
  Request request = request_of(4);
  request.max_tokens = 60;
  auto server = std::make_unique<TestServer>(verify_for_clients);
  ASSERT_TRUE(server->wait_until_ready());
  const int port = server->port();
  RemoteDecoder decoder(&parts, server_at(port));
  const Completion local = local_completion(request);
  std::vector<TokenId> streamed;
  int restarts = 0;
  const auto completion = decoder.generate(request, [&](RequestId, const Progress& progress) {
    streamed.insert(streamed.end(), progress.tokens.begin(), progress.tokens.end());
    if (std::ssize(streamed) < 15 * (restarts + 1) || restarts == 2) return;
    ++restarts;
    server.reset();
    server = std::make_unique<TestServer>([port](ServerParts& changed) {
      verify_for_clients(changed);
      changed.options.port = port;
    });
    ASSERT_TRUE(server->wait_until_ready());
  });
  ASSERT_TRUE(completion.ok()) << completion.error().message;
  EXPECT_EQ(completion->tokens, local.tokens);
  EXPECT_EQ(streamed, local.tokens);
  EXPECT_EQ(restarts, 2);
  EXPECT_GE(decoder.counts().reconnects, 2);
}

TEST(Drafting, GivesUpWithOneLine) {
  DraftingParts parts = drafting_parts("NGram");
  RemoteDecoder decoder(&parts, server_at(1), {.give_up_ms = 50});
  const auto completion = decoder.generate(request_of(1), {});
  ASSERT_FALSE(completion.ok());
  EXPECT_TRUE(completion.error().message.starts_with("cannot reach ws://127.0.0.1:1"))
      << completion.error().message;
}

TEST(Drafting, RefusesWhatDoesNotFit) {
  TestServer server(verify_for_clients);
  ASSERT_TRUE(server.wait_until_ready());
  DraftingParts parts = drafting_parts("NGram");
  RemoteDecoder decoder(&parts, server_at(server.port()));
  Request request = request_of(1);
  request.sampling.top_p = -1;
  EXPECT_NE(refusal_of(decoder, request).find("top_p"), std::string::npos) << refusal_of(decoder, request);
  request = request_of(1);
  request.prompt.assign(300, 5);
  EXPECT_NE(refusal_of(decoder, request).find("the context holds 256"), std::string::npos);
  request = request_of(1);
  request.logprobs = 1;
  EXPECT_NE(refusal_of(decoder, request).find("log-probabilities"), std::string::npos);
  parts.vocabulary[0] ^= 1;
  EXPECT_NE(refusal_of(decoder, request_of(1)).find("tokenizer"), std::string::npos);
  EXPECT_TRUE(server.wait_until_free());
  for (const std::string method : {"EarlyExit", "Lookahead"})
    EXPECT_FALSE(open_drafting(drafting_engine(method)).ok()) << method;
}

TEST(Drafting, NeedsTheOptionAKeyAndAWebSocket) {
  TestServer plain;
  ASSERT_TRUE(plain.wait_until_ready());
  DraftingParts parts = drafting_parts("NGram");
  RemoteDecoder none(&parts, server_at(plain.port()));
  EXPECT_NE(refusal_of(none, request_of(1)).find("--remote-drafting"), std::string::npos)
      << refusal_of(none, request_of(1));
  TestServer server([](ServerParts& changed) {
    verify_for_clients(changed);
    changed.options.api_keys = {kApiKey};
  });
  ASSERT_TRUE(server.wait_until_ready());
  DraftingServer address = server_at(server.port());
  RemoteDecoder stranger(&parts, address);
  EXPECT_NE(refusal_of(stranger, request_of(1)).find("status 401"), std::string::npos);
  address.api_key = kApiKey;
  RemoteDecoder known(&parts, address);
  expect_same_as_local(known, request_of(1));
  const std::string key = std::string("Authorization: Bearer ") + kApiKey + "\r\n";
  EXPECT_EQ(TestClient(server.port()).get("/v1/drafting", key).status, 426);
}

TEST(Drafting, TlsIsForServersWhoseCertificateIsTrusted) {
  const TestCertificate certificate;
  TestServer server([&](ServerParts& parts) {
    verify_for_clients(parts);
    parts.options.certificate = certificate.certificate();
    parts.options.certificate_key = certificate.key();
  });
  ASSERT_TRUE(server.wait_until_ready());
  DraftingParts parts = drafting_parts("NGram");
  DraftingServer address = server_at(server.port());
  address.is_secure = true;
  RemoteDecoder stranger(&parts, address);
  EXPECT_NE(refusal_of(stranger, request_of(1)).find("--server-ca"), std::string::npos)
      << refusal_of(stranger, request_of(1));
  address.authority = certificate.certificate();
  RemoteDecoder friendly(&parts, address);
  expect_same_as_local(friendly, request_of(1));
  address.host = "localhost";  // the certificate is for 127.0.0.1
  RemoteDecoder misled(&parts, address);
  EXPECT_NE(refusal_of(misled, request_of(1)).find("over TLS"), std::string::npos);
  address.authority = "/nonexistent";
  RemoteDecoder lost(&parts, address);
  EXPECT_NE(refusal_of(lost, request_of(1)).find("expected certificates"), std::string::npos);
}

TEST(DraftingServers, HaveAddresses) {
  const auto parse = [](std::string_view url) {
    const auto server = DraftingServer::parse(url);
    return server.ok() ? server->host + "|" + server->port + (server->is_secure ? "|TLS" : "")
                       : server.error().message;
  };
  EXPECT_EQ(parse("ws://example.org"), "example.org|80");
  EXPECT_EQ(parse("ws://127.0.0.1:8000/"), "127.0.0.1|8000");
  EXPECT_EQ(parse("ws://[::1]:8000"), "::1|8000");
  EXPECT_EQ(parse("wss://example.org"), "example.org|443|TLS");
  for (const char* wrong : {"http://a", "ws://", "ws://a:b", "ws://a/b", "ws://a:", "ws://u@a"})
    EXPECT_TRUE(parse(wrong).starts_with("expected a server")) << wrong;
}

}  // namespace
}  // namespace outrider
