// SPDX-License-Identifier: Apache-2.0
// The server as its clients meet it, over real sockets.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "malformed_requests.h"
#include "server/api/router.h"
#include "serving.h"

namespace outrider {
namespace {

using Json = nlohmann::json;
using std::chrono::milliseconds;

const std::string kShort = R"({"prompt": "hello", "max_tokens": 8, "temperature": 0, "ignore_eos": true})";

std::string long_call(bool streams, int tokens = 200) {
  return fmt::format(
      R"({{"prompt": "hello", "max_tokens": {}, "temperature": 0, "ignore_eos": true, "stream": {}}})",
      tokens, streams ? "true" : "false");
}

std::string text_of(const TestAnswer& answer) {
  const Json json = Json::parse(answer.body, nullptr, false);
  return json.is_object() && json.contains("choices") ? json["choices"][0]["text"].get<std::string>() : "";
}

void with_slow_engine(ServerParts& parts) {
  parts.open = [] { return Engine::open(slow_engine(milliseconds(5))); };
}

std::string streamed_text(const std::string& events) {
  std::string text;
  std::istringstream lines(events);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("data: {")) continue;
    const Json chunk = Json::parse(line.substr(6));
    if (!chunk["choices"].empty()) text += chunk["choices"][0]["text"].get<std::string>();
  }
  return text;
}

// The type of the error object; empty: it is none.
std::string error_type(const TestAnswer& answer) {
  const Json json = Json::parse(answer.body, nullptr, false);
  if (!json.is_object() || !json.contains("error") || !json["error"].contains("message")) return {};
  return json["error"].value("type", "");
}

// A file of keys that lives as long as the test.
class KeyFile {
 public:
  explicit KeyFile(const std::string& keys)
      : path_(std::filesystem::temp_directory_path() / fmt::format("outrider_keys_{}", ::getpid())) {
    write(keys);
  }
  ~KeyFile() { std::filesystem::remove(path_); }
  void write(const std::string& keys) const {
    std::ofstream(path_) << keys;
    std::filesystem::permissions(path_,
                                 std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

TEST(Server, AnswersAndKeepsTheConnection) {
  TestServer server;
  ASSERT_TRUE(server.wait_until_ready());
  TestClient client(server.port());
  EXPECT_EQ(client.get("/health").body, R"({"status":"ok"})");
  const TestAnswer models = client.get("/v1/models");
  EXPECT_EQ(models.headers.at("content-type"), "application/json");
  EXPECT_EQ(Json::parse(models.body)["data"][0]["id"], "tiny");
  EXPECT_EQ(client.get("/v1/models/tiny").status, 200);
  const TestAnswer unknown = client.get("/v1/models/..%2f..%2fetc");
  EXPECT_EQ(unknown.status, 404);
  EXPECT_EQ(Json::parse(unknown.body)["error"]["code"], "model_not_found");
  EXPECT_EQ(client.get("/version").status, 200);
  EXPECT_EQ(client.get("/stats").status, 200);
  EXPECT_TRUE(client.get("/").body.starts_with("<!doctype html"));
  const TestAnswer first = client.post("/v1/completions", kShort);
  const TestAnswer second = client.post("/v1/completions", kShort);
  EXPECT_EQ(first.status, 200);
  EXPECT_EQ(text_of(first), text_of(second));
}

TEST(Server, StreamsWhatItAnswersWhole) {
  TestServer server;
  ASSERT_TRUE(server.wait_until_ready());
  TestClient client(server.port());
  const std::string whole = text_of(client.post("/v1/completions", long_call(false, 60)));
  ASSERT_FALSE(whole.empty());
  const TestAnswer stream = client.post("/v1/completions", long_call(true, 60));
  EXPECT_EQ(stream.headers.at("x-accel-buffering"), "no");
  EXPECT_TRUE(stream.is_whole);
  EXPECT_TRUE(stream.body.ends_with("data: [DONE]\n\n")) << stream.body;
  EXPECT_EQ(streamed_text(stream.body), whole);
  EXPECT_EQ(client.get("/health").status, 200);  // the connection goes on
}

TEST(Server, OlderClientsGetAStreamThatEndsByClosing) {
  TestServer server;
  ASSERT_TRUE(server.wait_until_ready());
  TestClient client(server.port());
  const std::string body = long_call(true, 20);
  client.send(fmt::format(
      "POST /v1/completions HTTP/1.0\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{}",
      body.size(), body));
  const auto all = client.receive_until("data: [DONE]\n\n", std::chrono::seconds(20));
  ASSERT_TRUE(all);
  EXPECT_EQ(all->find("Transfer-Encoding"), std::string::npos);
  EXPECT_TRUE(client.is_closed(std::chrono::seconds(5)));
}

TEST(Server, RepeatsRequestIdsThatAreFit) {
  TestServer server;
  ASSERT_TRUE(server.wait_until_ready());
  TestClient client(server.port());
  EXPECT_EQ(client.get("/health", "X-Request-Id: my-id.1\r\n").headers.at("x-request-id"), "my-id.1");
  const std::string made = client.get("/health", "X-Request-Id: no good\r\n").headers.at("x-request-id");
  EXPECT_EQ(made.size(), 32u);
  EXPECT_NE(client.get("/health").headers.at("x-request-id"), made);
}

TEST(Server, EveryRouteButHealthWantsAKey) {
  const KeyFile keys("# two of them\n0123456789abcdef-one\n0123456789abcdef-two\n");
  TestServer server([&](ServerParts& parts) { parts.options.api_key_file = keys.path(); });
  TestClient client(server.port());
  while (client.get("/health").status != 200) std::this_thread::sleep_for(milliseconds(5));
  for (const RouteRow& row : route_table()) {
    for (const std::string key :
         {"", "Authorization: Bearer 0123456789abcdef-on\r\n", "Authorization: Basic !!\r\n"}) {
      client.send(
          fmt::format("{} {} HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
                      "application/json\r\nContent-Length: 2\r\n{}\r\n{{}}",
                      row.method, row.pattern, key));
      const TestAnswer answer = client.read_answer();
      EXPECT_EQ(answer.status, row.route == Route::kHealth ? 200 : 401) << row.pattern << " " << key;
      EXPECT_EQ(answer.headers.count("www-authenticate"), answer.status == 401 ? 1u : 0u);
    }
  }
  EXPECT_EQ(client.get("/no/such/path").status, 401);
  EXPECT_EQ(client.get("/v1/models", "Authorization: Bearer 0123456789abcdef-two\r\n").status, 200);
  // A browser's way: any name, the key as password ("x:0123456789abcdef-one").
  EXPECT_EQ(client.get("/", "Authorization: Basic eDowMTIzNDU2Nzg5YWJjZGVmLW9uZQ==\r\n").status, 200);
  keys.write("another-key-of-length\n");
  server.server().reload_keys();
  while (client.get("/v1/models", "Authorization: Bearer another-key-of-length\r\n").status != 200) {
    std::this_thread::sleep_for(milliseconds(5));
  }
  EXPECT_EQ(client.get("/v1/models", "Authorization: Bearer 0123456789abcdef-two\r\n").status, 401);
}

TEST(Server, RefusesAPublicAddressWithoutKeys) {
  ServerParts parts;
  parts.options.host = "0.0.0.0";
  parts.options.port = 0;
  const auto server = Server::listen(std::move(parts));
  ASSERT_FALSE(server.ok());
  EXPECT_NE(server.error().message.find("--api-key-file"), std::string::npos) << server.error().message;
}

TEST(Server, RefusesKeysThatOthersCanRead) {
  const KeyFile keys("0123456789abcdef-one\n");
  std::filesystem::permissions(keys.path(), std::filesystem::perms::others_read,
                               std::filesystem::perm_options::add);
  ServerParts parts;
  parts.options.api_key_file = keys.path();
  EXPECT_FALSE(Server::listen(std::move(parts)).ok());
}

struct HeadCase {
  std::string name;
  std::string request;
  int status;
};

TEST(Server, HeadsAreJudgedBeforeTheirBodies) {
  TestServer server([](ServerParts& parts) {
    parts.options.cors_origins = {"https://good.example"};
    parts.limits.body_bytes = 1000;
  });
  ASSERT_TRUE(server.wait_until_ready());
  const std::vector<HeadCase> cases = {
      {"foreign name", "GET /v1/models HTTP/1.1\r\nHost: evil.example\r\n\r\n", 403},
      {"loopback by address", "GET /v1/models HTTP/1.1\r\nHost: 127.0.0.1:80\r\n\r\n", 200},
      {"loopback v6", "GET /v1/models HTTP/1.1\r\nHost: [::1]:80\r\n\r\n", 200},
      {"no host", "GET /v1/models HTTP/1.1\r\n\r\n", 400},
      {"two hosts", "GET /v1/models HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n", 400},
      {"unknown path", "GET /v1/nothing HTTP/1.1\r\nHost: localhost\r\n\r\n", 404},
      {"wrong method", "GET /v1/completions HTTP/1.1\r\nHost: localhost\r\n\r\n", 405},
      {"form",
       "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\nContent-Length: "
       "2\r\n\r\n{}",
       415},
      {"no type", "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}", 415},
      {"too long a body",
       "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
       "application/json\r\nContent-Length: 1001\r\n\r\n",
       413},
      {"preflight",
       "OPTIONS /v1/completions HTTP/1.1\r\nHost: localhost\r\nOrigin: https://good.example\r\n\r\n", 204},
      {"preflight of others",
       "OPTIONS /v1/completions HTTP/1.1\r\nHost: localhost\r\nOrigin: https://bad.example\r\n\r\n", 405},
  };
  for (const HeadCase& item : cases) {
    TestClient client(server.port());
    client.send(item.request);
    const TestAnswer answer = client.read_answer(std::chrono::seconds(5));
    EXPECT_EQ(answer.status, item.status) << item.name << ": " << answer.body;
    EXPECT_EQ(error_type(answer).empty(), answer.status < 400) << item.name;
  }
  TestClient client(server.port());
  EXPECT_EQ(
      client.get("/health", "Origin: https://good.example\r\n").headers.at("access-control-allow-origin"),
      "https://good.example");
  EXPECT_EQ(
      client.get("/health", "Origin: https://bad.example\r\n").headers.count("access-control-allow-origin"),
      0u);
  EXPECT_EQ(client.get("/v1/completions").headers.at("allow"), "POST");
}

// An engine that opens when it is told to.
class Gate {
 public:
  void open() { is_open_ = true; }
  void wait() const {
    while (!is_open_) std::this_thread::sleep_for(milliseconds(1));
  }

 private:
  std::atomic<bool> is_open_ = false;
};

TEST(Server, SaysThatItIsLoading) {
  Gate gate;
  const auto stage = std::make_shared<std::atomic<LoadStage>>(LoadStage::kFiles);
  TestServer server([&](ServerParts& parts) {
    parts.load_stage = stage;
    parts.open = [&gate] {
      gate.wait();
      return Engine::open(tiny_engine());
    };
  });
  TestClient client(server.port());
  for (const auto& [now, name, fraction] :
       {std::tuple(LoadStage::kFiles, "files", 0.0), std::tuple(LoadStage::kCosts, "costs", 0.75)}) {
    stage->store(now);
    const TestAnswer health = client.get("/health");
    EXPECT_EQ(health.status, 503);
    const Json json = Json::parse(health.body);
    EXPECT_EQ(json["status"], "loading");
    EXPECT_EQ(json["stage"], name);
    EXPECT_EQ(json["stages"].size(), kLoadStages.size());
    EXPECT_EQ(json["fraction"], fraction);
    EXPECT_GE(json["seconds"], 0.0);
  }
  const TestAnswer work = client.post("/v1/completions", kShort);
  EXPECT_EQ(work.status, 503);
  EXPECT_EQ(work.headers.count("retry-after"), 1u);
  EXPECT_EQ(client.get("/metrics").status, 200);
  gate.open();
  ASSERT_TRUE(server.wait_until_ready());
  EXPECT_EQ(client.post("/v1/completions", kShort).status, 200);
}

TEST(Server, EndsWithTheErrorOfAModelThatCannotBeOpened) {
  TestServer server([](ServerParts& parts) {
    parts.open = [] {
      EngineOptions options = tiny_engine();
      options.model = "/no/such/model";
      return Engine::open(options);
    };
  });
  const Status status = server.wait();
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().message.find("/no/such/model"), std::string::npos);
}

TEST(Server, RefusesWhatTheQueueCannotHold) {
  TestServer server([](ServerParts& parts) {
    parts.options.max_queue = 2;
    parts.max_batch = 1;
    parts.open = [] {
      EngineOptions options = slow_engine(milliseconds(5));
      options.max_batch = 1;
      return Engine::open(options);
    };
  });
  ASSERT_TRUE(server.wait_until_ready());
  std::vector<TestClient> busy;
  for (int i = 0; i < 3; ++i) {
    busy.emplace_back(server.port());
    busy.back().send(post_text("/v1/completions", long_call(true)));
    ASSERT_TRUE(busy.back().receive_until("\r\n\r\n", std::chrono::seconds(10)));
  }
  TestClient client(server.port());
  const auto start = std::chrono::steady_clock::now();
  const TestAnswer refused = client.post("/v1/completions", kShort);
  EXPECT_EQ(refused.status, 429);
  EXPECT_EQ(refused.headers.count("retry-after"), 1u);
  EXPECT_EQ(error_type(refused), "rate_limit_error");
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(1));
  EXPECT_EQ(client.get("/health").status, 200);
  busy.clear();
  ASSERT_TRUE(server.wait_until_free());
  EXPECT_EQ(client.post("/v1/completions", kShort).status, 200);
}

TEST(Server, ACallEndsWithItsClient) {
  TestServer server(with_slow_engine);
  ASSERT_TRUE(server.wait_until_ready());
  for (const bool streams : {true, false}) {
    const double before = server.metric("outrider:disconnected_requests_total");
    TestClient client(server.port());
    client.send(post_text("/v1/completions", long_call(streams)));
    ASSERT_TRUE(server.wait_until_busy());
    client.close();
    ASSERT_TRUE(server.wait_until_free());
    EXPECT_EQ(server.metric("outrider:disconnected_requests_total"), before + 1) << streams;
  }
  EXPECT_EQ(server.metric("vllm:request_success_total", "abort"), 2);
}

TEST(Server, CancelsById) {
  TestServer server(with_slow_engine);
  ASSERT_TRUE(server.wait_until_ready());
  TestClient client(server.port());
  client.send(post_text("/v1/completions", long_call(true), "X-Request-Id: mine\r\n"));
  ASSERT_TRUE(client.receive_until("data: ", std::chrono::seconds(10)));
  TestClient other(server.port());
  EXPECT_EQ(other.post("/v1/requests/another/cancel", "{}").status, 404);
  EXPECT_EQ(other.post("/v1/requests/mine/cancel", "{}").status, 200);
  EXPECT_TRUE(client.receive_until("data: [DONE]", std::chrono::seconds(10)));
  ASSERT_TRUE(server.wait_until_free());
  EXPECT_EQ(other.post("/v1/requests/mine/cancel", "{}").status, 404);
}

TEST(Server, KeysCancelOnlyTheirOwn) {
  const KeyFile keys("0123456789abcdef-one\n0123456789abcdef-two\n");
  TestServer server([&](ServerParts& parts) {
    with_slow_engine(parts);
    parts.options.api_key_file = keys.path();
  });
  ASSERT_TRUE(server.wait_until_ready());
  const std::string one = "Authorization: Bearer 0123456789abcdef-one\r\n",
                    two = "Authorization: Bearer 0123456789abcdef-two\r\n";
  TestClient client(server.port());
  client.send(post_text("/v1/completions", long_call(true), one + "X-Request-Id: mine\r\n"));
  ASSERT_TRUE(client.receive_until("data: ", std::chrono::seconds(10)));
  TestClient other(server.port());
  EXPECT_EQ(other.post("/v1/requests/mine/cancel", "{}", two).status, 404);
  EXPECT_EQ(other.post("/v1/requests/mine/cancel", "{}", one).status, 200);
}

TEST(Server, DrainsWhatRuns) {
  TestServer server(with_slow_engine);
  ASSERT_TRUE(server.wait_until_ready());
  TestClient client(server.port()), other(server.port());
  client.send(post_text("/v1/completions", long_call(true, 200)));
  ASSERT_TRUE(client.receive_until("data: ", std::chrono::seconds(10)));
  server.server().drain();
  const TestAnswer health = other.get("/health");
  EXPECT_EQ(Json::parse(health.body)["status"], "draining");
  const TestAnswer refused = TestClient(server.port()).post("/v1/completions", kShort);
  EXPECT_TRUE(refused.status == 503 || refused.status == 0) << refused.status;
  EXPECT_TRUE(client.receive_until("data: [DONE]", std::chrono::seconds(30)));
}

TEST(Server, ASignalEndsAnIdleServer) {
  TestServer server([](ServerParts&) {}, /*takes_signals=*/true);
  ASSERT_TRUE(server.wait_until_ready());
  ASSERT_EQ(std::raise(SIGTERM), 0);
  EXPECT_TRUE(server.wait().ok());
}

TEST(Server, AbortedStreamsEndWithAnError) {
  TestServer server([](ServerParts& parts) {
    with_slow_engine(parts);
    parts.options.drain_timeout = 0.05;
  });
  ASSERT_TRUE(server.wait_until_ready());
  TestClient client(server.port());
  client.send(post_text("/v1/completions", long_call(true)));
  ASSERT_TRUE(client.receive_until("data: ", std::chrono::seconds(10)));
  server.server().drain();
  const auto event = client.receive_until("\"error\"", std::chrono::seconds(10));
  ASSERT_TRUE(event);
  EXPECT_EQ(event->find("[DONE]"), std::string::npos);
  EXPECT_TRUE(client.is_closed(std::chrono::seconds(5)));
  EXPECT_TRUE(server.stop().ok());
}

TEST(Server, SlowHeadersAndBodiesAreCutOff) {
  TestServer server([](ServerParts& parts) {
    parts.limits.header_time = milliseconds(200);
    parts.limits.body_gap = milliseconds(200);
    parts.limits.idle_time = milliseconds(300);
  });
  ASSERT_TRUE(server.wait_until_ready());
  TestClient silent(server.port()), head(server.port()), body(server.port());
  head.send("GET /health HT");
  body.send(
      "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: "
      "10\r\n\r\n{");
  EXPECT_TRUE(silent.is_closed(std::chrono::seconds(5)));
  EXPECT_EQ(head.read_answer(std::chrono::seconds(5)).status, 408);
  EXPECT_EQ(body.read_answer(std::chrono::seconds(5)).status, 408);
  TestClient idle(server.port());
  EXPECT_EQ(idle.get("/health").status, 200);
  EXPECT_TRUE(idle.is_closed(std::chrono::seconds(5)));
  EXPECT_EQ(server.metric("outrider:dropped_connections_total", "slow_body"), 1);
}

void with_small_buffers(ServerParts& parts) {
  parts.limits.stream_bytes = 100;
  parts.limits.send_buffer_bytes = 1;  // as small as the system makes it
}

TEST(Server, SlowReadersMissNothing) {
  TestServer server(with_small_buffers);
  ASSERT_TRUE(server.wait_until_ready());
  const std::string whole = text_of(TestClient(server.port()).post("/v1/completions", long_call(false)));
  TestClient slow(server.port(), "127.0.0.1", 1);
  slow.send(post_text("/v1/completions", long_call(true)));
  ASSERT_TRUE(server.wait_until_free());  // all is made, little of it is taken
  const TestAnswer answer = slow.read_answer();
  EXPECT_TRUE(answer.is_whole);
  EXPECT_TRUE(answer.body.ends_with("data: [DONE]\n\n"));
  EXPECT_EQ(streamed_text(answer.body), whole);
  const auto events = [](const std::string& text) { return std::count(text.begin(), text.end(), '\n') / 2; };
  EXPECT_LT(events(answer.body), 150);  // of 200 steps: what waited was merged
}

TEST(Server, ReadersThatStallAreDropped) {
  TestServer server([](ServerParts& parts) {
    with_small_buffers(parts);
    parts.limits.write_stall = milliseconds(300);
  });
  ASSERT_TRUE(server.wait_until_ready());
  TestClient stalled(server.port(), "127.0.0.1", 1);
  stalled.send(post_text("/v1/completions",
                         R"({"prompt": "hello", "max_tokens": 200, "ignore_eos": true, "stream": true,
                                               "n": 4, "logprobs": 5})"));
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (server.metric("outrider:dropped_connections_total", "slow_reader") == 0 &&
         std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(milliseconds(20));
  }
  EXPECT_EQ(server.metric("outrider:dropped_connections_total", "slow_reader"), 1);
  EXPECT_TRUE(server.wait_until_free());
}

TEST(Server, PingsSilentStreams) {
  TestServer server([](ServerParts& parts) {
    parts.limits.ping_interval = milliseconds(30);
    parts.max_batch = 1;
    parts.open = [] {
      EngineOptions options = slow_engine(milliseconds(5));
      options.max_batch = 1;
      return Engine::open(options);
    };
  });
  ASSERT_TRUE(server.wait_until_ready());
  TestClient busy(server.port()), waiting(server.port());
  busy.send(post_text("/v1/completions", long_call(true)));
  ASSERT_TRUE(busy.receive_until("data: ", std::chrono::seconds(10)));
  waiting.send(post_text("/v1/completions", long_call(true, 4)));
  EXPECT_TRUE(waiting.receive_until(": ping\n\n", std::chrono::seconds(10)));
}

TEST(Server, KeepsConnectionsWithinTheirLimits) {
  TestServer server([](ServerParts& parts) { parts.options.max_connections_per_address = 3; });
  ASSERT_TRUE(server.wait_until_ready());
  std::vector<TestClient> clients;
  for (int i = 0; i < 3; ++i) {
    clients.emplace_back(server.port(), "127.0.0.2");
    EXPECT_EQ(clients.back().get("/health").status, 200);
  }
  EXPECT_TRUE(TestClient(server.port(), "127.0.0.2").is_closed(std::chrono::seconds(5)));
  EXPECT_EQ(TestClient(server.port(), "127.0.0.3").get("/health").status, 200);
  clients.pop_back();
  bool is_back = false;
  for (int i = 0; i < 100 && !is_back; ++i)
    is_back = TestClient(server.port(), "127.0.0.2").get("/health").status == 200;
  EXPECT_TRUE(is_back);
}

TEST(Server, RequestsMayComeBeforeAnAnswerIsDone) {
  TestServer server;
  ASSERT_TRUE(server.wait_until_ready());
  TestClient client(server.port());
  client.send(post_text("/v1/completions", long_call(true, 30)) + post_text("/v1/completions", kShort) +
              "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_TRUE(client.read_answer().body.ends_with("data: [DONE]\n\n"));
  EXPECT_EQ(client.read_answer().status, 200);
  EXPECT_EQ(client.read_answer().body, R"({"status":"ok"})");
}

TEST(Server, AnswersExpectations) {
  TestServer server;
  ASSERT_TRUE(server.wait_until_ready());
  TestClient client(server.port());
  client.send(
      fmt::format("POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
                  "application/json\r\nContent-Length: {}\r\n"
                  "Expect: 100-continue\r\n\r\n",
                  kShort.size()));
  ASSERT_TRUE(client.receive_until("100 Continue\r\n\r\n", std::chrono::seconds(5)));
  client.send(kShort);
  EXPECT_EQ(client.read_answer().status, 200);
}

TEST(Server, MalformedRequestsAreErrors) {
  TestServer server([](ServerParts& parts) {
    parts.limits.header_time = milliseconds(500);  // what never ends is cut off soon
    parts.limits.body_gap = milliseconds(500);
    parts.limits.close_time = milliseconds(300);
  });
  ASSERT_TRUE(server.wait_until_ready());
  const std::vector<MalformedRequest> cases = malformed_requests();
  EXPECT_GE(cases.size(), 100u);
  for (const MalformedRequest& item : cases) {
    TestClient client(server.port());
    client.send(item.bytes);
    const TestAnswer answer = client.read_answer(std::chrono::seconds(10));
    if (answer.status == 0) continue;  // closed
    EXPECT_GE(answer.status, 400) << item.name;
    EXPECT_LT(answer.status, 500) << item.name;
    EXPECT_FALSE(error_type(answer).empty()) << item.name << ": " << answer.body;
    EXPECT_EQ(answer.body.find(OUTRIDER_SOURCE_DIR), std::string::npos) << item.name;
  }
  TestClient client(server.port());
  EXPECT_EQ(client.post("/v1/completions", kShort).status, 200);
}

// Cut anywhere, a request is no request.
TEST(Server, CutRequestsAreNotAnswered) {
  TestServer server;
  ASSERT_TRUE(server.wait_until_ready());
  const std::string whole = post_text("/v1/completions", kShort);
  for (size_t size = 0; size < whole.size(); ++size) {
    TestClient client(server.port());
    client.send(whole.substr(0, size));
    client.half_close();
    const TestAnswer answer = client.read_answer(std::chrono::seconds(10));
    EXPECT_TRUE(answer.status == 0 || answer.status == 400) << size << ": " << answer.status;
  }
  ASSERT_TRUE(server.wait_until_free());
}

}  // namespace
}  // namespace outrider
