// SPDX-License-Identifier: Apache-2.0
// An operator sees probes, lines of the log, traces and metrics, and limits output and time.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <chrono>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "server/http/router.h"
#include "tests/serving/serving.h"
#include "tests/serving/serving_calls.h"

namespace outrider {
namespace {

using Json = nlohmann::json;
using std::chrono::milliseconds;
using std::chrono::seconds;

const std::string kTrace = "4bf92f3577b34da6a3ce929d0e0e4736";
const std::string kParent = "00f067aa0ba902b7";
const std::string kNoNumber = R"({"prompt": "hello", "temperature": 0, "ignore_eos": true})";

// The lines of requests that the server wrote to standard error between begin and end of its life.
class CapturedLog {
 public:
  CapturedLog() { testing::internal::CaptureStderr(); }
  ~CapturedLog() {
    if (is_open_) testing::internal::GetCapturedStderr();
  }
  CapturedLog(const CapturedLog&) = delete;
  CapturedLog& operator=(const CapturedLog&) = delete;

  std::vector<Json> requests() {
    std::istringstream lines(testing::internal::GetCapturedStderr());
    is_open_ = false;
    std::vector<Json> found;
    for (std::string line; std::getline(lines, line);) {
      Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
      if (json.is_object() && json.value("event", "") == "request") found.push_back(std::move(json));
    }
    return found;
  }

 private:
  bool is_open_ = true;
};

std::string code_of(const TestAnswer& answer) {
  const Json json = Json::parse(answer.body, nullptr, false);
  return json.is_object() && json.contains("error") ? json["error"].value("code", "") : "";
}

int64_t output_of(const TestAnswer& answer) {
  const Json json = Json::parse(answer.body, nullptr, false);
  return json.is_object() && json.contains("usage") ? json["usage"].value("completion_tokens", -1) : -1;
}

TEST(Server, ProbesHaveTheNamesThatOrchestratorsUse) {
  TestServer server;
  ASSERT_TRUE(server.wait_until_ready());
  for (const char* path : {"/health", "/healthz", "/v1/health", "/ping"}) {
    const TestAnswer answer = server.client().get(path);
    EXPECT_EQ(answer.status, 200) << path;
    EXPECT_EQ(answer.body, R"({"status":"ok"})") << path;
  }
}

TEST(Server, LinesTellTheClientItsKeyAndTheTrace) {
  const KeyFile keys("0123456789abcdef-one team-a\n0123456789abcdef-two\n");
  CapturedLog log;
  {
    TestServer server([&](ServerParts& parts) { parts.options.api_key_file = keys.path(); });
    ASSERT_TRUE(server.wait_until_ready());
    TestClient client(server.port());
    const TestAnswer answer =
        client.post("/v1/completions", kShort,
                    "Authorization: Bearer 0123456789abcdef-one\r\nX-Request-Id: mine\r\nTraceparent: 00-" +
                        kTrace + "-" + kParent + "-01\r\n");
    EXPECT_EQ(answer.status, 200);
    const std::string trace = answer.headers.count("traceparent") > 0 ? answer.headers.at("traceparent") : "";
    EXPECT_TRUE(trace.starts_with("00-" + kTrace + "-") && trace.ends_with("-01")) << trace;
    EXPECT_EQ(trace.find(kParent), std::string::npos) << trace;
    client.post("/v1/completions", R"({"prompt": "hello", "max_tokens": 3, "stream": true})",
                "x-api-key: 0123456789abcdef-two\r\nX-Request-Id: other\r\n");
    client.get("/v1/models", "x-api-key: 0123456789abcdef-two\r\nX-Request-Id: list\r\n");
    client.post("/v1/completions", kShort, "x-api-key: 0123456789abcdef-no\r\nX-Request-Id: stranger\r\n");
    ASSERT_TRUE(server.stop().ok());
  }
  std::map<std::string, Json> lines;
  for (const Json& line : log.requests()) lines[line["id"].get<std::string>()] = line;
  const Json& stranger = lines["stranger"];
  EXPECT_EQ(stranger["status"], 401);
  EXPECT_EQ(stranger["method"], "POST");
  EXPECT_EQ(stranger["route"], "/v1/completions");
  EXPECT_FALSE(stranger.contains("key"));
  const Json& mine = lines["mine"];
  EXPECT_EQ(mine["client"], "127.0.0.1");
  EXPECT_EQ(mine["key"], "team-a");
  EXPECT_EQ(mine["model"], "tiny");
  EXPECT_EQ(mine["stream"], false);
  EXPECT_EQ(mine["trace_id"], kTrace);
  EXPECT_EQ(mine["parent_id"], kParent);
  EXPECT_EQ(mine.value("span_id", "").size(), 16u);
  EXPECT_EQ(lines["other"]["key"], "key-2");
  EXPECT_EQ(lines["other"]["stream"], true);
  EXPECT_FALSE(lines["other"].contains("trace_id"));
  EXPECT_EQ(lines["list"]["client"], "127.0.0.1");
  EXPECT_FALSE(lines["list"].contains("model"));
  for (const auto& [id, line] : lines) EXPECT_EQ(line.dump().find("0123456789abcdef-"), std::string::npos);
}

TEST(Server, BadTracesAreIgnored) {
  TestServer server;
  ASSERT_TRUE(server.wait_until_ready());
  const std::string valid = "00-" + kTrace + "-" + kParent + "-01";
  const std::string zeros = "00-" + std::string(32, '0') + "-" + kParent + "-01";
  for (const std::string& header : {"Traceparent: " + zeros + "\r\n", std::string("Traceparent: x\r\n"),
                                    "Traceparent: " + valid + "\r\nTraceparent: " + valid + "\r\n"}) {
    const TestAnswer answer = server.client().get("/v1/models", header);
    EXPECT_EQ(answer.status, 200) << header;
    EXPECT_EQ(answer.headers.count("traceparent"), 0u) << header;
  }
}

TEST(Server, RoutesWithoutLinesAreNamed) {
  CapturedLog log;
  {
    TestServer server([](ServerParts& parts) { parts.options.no_log_routes = {"/health", "/completions"}; });
    ASSERT_TRUE(server.wait_until_ready());
    TestClient client(server.port());
    EXPECT_EQ(client.post("/v1/completions", kShort).status, 200);
    EXPECT_EQ(client.get("/v1/models").status, 200);
    ASSERT_TRUE(server.stop().ok());
  }
  const std::vector<Json> lines = log.requests();
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0]["route"], "/v1/models");
  ServerParts parts;
  parts.options.port = 0;
  parts.options.no_log_routes = {"/helth"};
  const auto refused = Server::listen(std::move(parts));
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("/helth"), std::string::npos) << refused.error().message;
}

TEST(Server, MetricsTellTheProcessAndTheKeys) {
  const KeyFile keys("0123456789abcdef-one team-a\n");
  TestServer server([&](ServerParts& parts) { parts.options.api_key_file = keys.path(); });
  const std::string key = "Authorization: Bearer 0123456789abcdef-one\r\n";
  ASSERT_TRUE(server.wait_until_ready());
  TestClient client(server.port());
  EXPECT_EQ(client.post("/v1/completions", kShort, key).status, 200);
  const std::string text = client.get("/metrics", key).body;
  for (const char* name :
       {"\nprocess_cpu_seconds_total ", "\nprocess_resident_memory_bytes ", "\nprocess_start_time_seconds ",
        "\nprocess_open_fds ", "\nprocess_max_fds ", "\nprocess_virtual_memory_bytes ",
        "\noutrider_build_info{version=\"", "\noutrider:prefix_cache_pages{"}) {
    EXPECT_NE(text.find(name), std::string::npos) << name;
  }
  const std::string labels = R"({model_name="tiny",engine="0",key="team-a"})";
  EXPECT_NE(text.find("outrider:key_requests_total" + labels + " 1\n"), std::string::npos) << text;
  EXPECT_NE(text.find("outrider:key_generation_tokens_total" + labels + " 8\n"), std::string::npos) << text;
}

TEST(Server, OutputHasADefaultAndALimit) {
  TestServer server([](ServerParts& parts) {
    parts.options.default_max_tokens = 5;
    parts.options.max_tokens_limit = 20;
  });
  ASSERT_TRUE(server.wait_until_ready());
  TestClient client(server.port());
  EXPECT_EQ(output_of(client.post("/v1/completions", kNoNumber)), 5);
  EXPECT_EQ(output_of(client.post("/v1/completions", kShort)), 8);
  const TestAnswer refused = client.post("/v1/completions", long_call(false, 21));
  EXPECT_EQ(refused.status, 400);
  EXPECT_EQ(Json::parse(refused.body)["error"]["param"], "max_tokens");
  EXPECT_NE(refused.body.find("at most 20"), std::string::npos) << refused.body;
  EXPECT_EQ(client.post("/v1/completions", long_call(false, 20)).status, 200);
}

TEST(Server, ALimitIsTheDefaultOfRequestsWithoutANumber) {
  TestServer server([](ServerParts& parts) { parts.options.max_tokens_limit = 7; });
  ASSERT_TRUE(server.wait_until_ready());
  EXPECT_EQ(output_of(server.client().post("/v1/completions", kNoNumber)), 7);
}

TEST(Server, RequestsThatTakeTooLongEnd) {
  TestServer server([](ServerParts& parts) {
    with_slow_engine(parts);
    parts.options.request_timeout = 0.3;
  });
  ASSERT_TRUE(server.wait_until_ready());
  TestClient client(server.port()), stream(server.port());
  stream.send(post_text("/v1/completions", long_call(true)));
  ASSERT_TRUE(stream.receive_until("data: ", seconds(10)));
  const TestAnswer late = client.post("/v1/completions", long_call(false));
  EXPECT_EQ(late.status, 504);
  EXPECT_EQ(code_of(late), "request_timeout");
  const auto event = stream.receive_until("request_timeout", seconds(10));
  ASSERT_TRUE(event);
  EXPECT_EQ(event->find("[DONE]"), std::string::npos);
  ASSERT_TRUE(server.wait_until_free());
  EXPECT_EQ(client.post("/v1/completions", kShort).status, 200);
}

TEST(Server, AKeyHasItsShareOfTheRequests) {
  const KeyFile keys("0123456789abcdef-one\n0123456789abcdef-two\n");
  TestServer server([&](ServerParts& parts) {
    with_slow_engine(parts);
    parts.options.api_key_file = keys.path();
    parts.options.max_running_per_key = 2;
  });
  ASSERT_TRUE(server.wait_until_ready());
  const std::string one = "Authorization: Bearer 0123456789abcdef-one\r\n",
                    two = "Authorization: Bearer 0123456789abcdef-two\r\n";
  TestClient busy(server.port()), client(server.port());
  busy.send(post_text("/v1/completions", long_call(true), one));
  ASSERT_TRUE(busy.receive_until("data: ", seconds(10)));
  const std::string twice = R"({"prompt": "hello", "max_tokens": 4, "n": 2})";
  const TestAnswer refused = client.post("/v1/completions", twice, one);
  EXPECT_EQ(refused.status, 429);
  EXPECT_EQ(code_of(refused), "key_busy");
  EXPECT_EQ(refused.headers.count("retry-after"), 1u);
  EXPECT_EQ(client.post("/v1/completions", kShort, one).status, 200);
  EXPECT_EQ(client.post("/v1/completions", twice, two).status, 200);
}

TEST(Server, ListensOnAUnixSocket) {
  const std::string path = testing::TempDir() + "outrider_" + std::to_string(::getpid()) + ".sock";
  {
    TestServer server([&](ServerParts& parts) { parts.options.host = path; });
    EXPECT_EQ(server.server().url(), "unix:" + path);
    EXPECT_EQ(server.port(), 0);
    while (TestClient(path).get("/health").status != 200) std::this_thread::sleep_for(milliseconds(5));
    TestClient client(path);
    client.send("GET /v1/models HTTP/1.1\r\nHost: upstream\r\n\r\n");
    EXPECT_EQ(client.read_answer().status, 200);
    EXPECT_EQ(client.post("/v1/completions", kShort).status, 200);
    ServerParts second;
    second.options.host = path;
    EXPECT_FALSE(Server::listen(std::move(second)).ok()) << "two servers on one socket";
    EXPECT_EQ(TestClient(path).get("/health").status, 200);
  }
  EXPECT_FALSE(std::filesystem::exists(path));
  // The file that a killed server leaves is replaced.
  const int left = socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  ASSERT_EQ(bind(left, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  ::close(left);
  ServerParts parts;
  parts.options.host = "unix:" + path;
  EXPECT_TRUE(Server::listen(std::move(parts)).ok());
}

TEST(Server, ServesBelowTheRootPathToo) {
  TestServer server([](ServerParts& parts) { parts.options.root_path = "/llm"; });
  ASSERT_TRUE(server.wait_until_ready());
  TestClient client(server.port());
  EXPECT_EQ(client.post("/llm/v1/completions", kShort).status, 200);
  for (const char* path : {"/llm/", "/llm/v1/models", "/llm/models", "/v1/models", "/"})
    EXPECT_EQ(client.get(path).status, 200) << path;
  for (const char* path : {"/llmv1/models", "/other/v1/models", "/llm/llm/v1/models"})
    EXPECT_EQ(client.get(path).status, 404) << path;
  EXPECT_EQ(Json::parse(client.get("/openapi.json").body)["servers"][0]["url"], "/llm");
}

TEST(Server, DescribesItsRoutes) {
  TestServer server;
  ASSERT_TRUE(server.wait_until_ready());
  const Json api = Json::parse(server.client().get("/openapi.json").body);
  EXPECT_EQ(api["openapi"], "3.1.0");
  std::set<std::string> operations;
  for (const RouteRow& row : route_table()) {
    std::string method(row.method);
    std::ranges::transform(method, method.begin(), [](unsigned char c) { return std::tolower(c); });
    const Json& operation = api["paths"][std::string(row.pattern)][method];
    ASSERT_TRUE(operation.is_object()) << row.pattern;
    EXPECT_TRUE(operations.insert(operation["operationId"].get<std::string>()).second) << row.pattern;
    EXPECT_EQ(operation.contains("security"), row.is_public) << row.pattern;
  }
  const Json& fields = api["components"]["schemas"]["Generation"]["properties"];
  EXPECT_EQ(fields["max_tokens"]["type"], "integer");
  EXPECT_EQ(fields["temperature"]["maximum"], 2);
}

TEST(Server, HasAChatPageUnlessToldOtherwise) {
  TestServer server([](ServerParts& parts) { parts.options.has_chat_page = false; });
  ASSERT_TRUE(server.wait_until_ready());
  EXPECT_EQ(server.client().get("/").status, 404);
  EXPECT_EQ(server.client().get("/v1/models").status, 200);
}

TEST(Server, AModelHasSeveralNames) {
  TestServer server([](ServerParts& parts) { parts.model_aliases = {"gpt-4"}; });
  ASSERT_TRUE(server.wait_until_ready());
  TestClient client(server.port());
  const TestAnswer answer =
      client.post("/v1/completions", R"({"model": "gpt-4", "prompt": "a", "max_tokens": 1})");
  EXPECT_EQ(Json::parse(answer.body)["model"], "tiny");
  EXPECT_EQ(client.post("/v1/completions", R"({"model": "gpt-5", "prompt": "a"})").status, 404);
  const Json list = Json::parse(client.get("/v1/models").body)["data"];
  ASSERT_EQ(list.size(), 2u);
  EXPECT_EQ(list[0]["id"], "tiny");
  EXPECT_EQ(list[1]["id"], "gpt-4");
  EXPECT_EQ(client.get("/v1/models/gpt-4").status, 200);
}

TEST(Server, AnswersToTheNameOfItsMachine) {
  TestServer server;
  ASSERT_TRUE(server.wait_until_ready());
  std::array<char, 256> name = {};
  ASSERT_EQ(gethostname(name.data(), name.size() - 1), 0);
  TestClient client(server.port());
  client.send("GET /v1/models HTTP/1.1\r\nHost: " + std::string(name.data()) + ":8000\r\n\r\n");
  EXPECT_EQ(client.read_answer().status, 200);
}

}  // namespace
}  // namespace outrider
