// SPDX-License-Identifier: Apache-2.0
// The client is tested with a server that plays back scripts over real sockets.
#include "loadtest/load_test_run.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <csignal>
#include <list>
#include <mutex>
#include <thread>

#include "loadtest/load_test_report.h"

namespace outrider {
namespace {

namespace net = boost::asio;
namespace http = boost::beast::http;
using Tcp = net::ip::tcp;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Part {
  int delay_ms = 0;
  std::string text = {};
};

struct Script {
  int status = 200;
  std::string type = "text/event-stream";
  std::vector<Part> parts = {};
  bool cuts = false;    // closes the connection without ending the body
  bool closes = false;  // closes it after the answer, without announcing it
};

using Request = http::request<http::string_body>;

// Serves every connection on another thread.
class ScriptedServer {
 public:
  explicit ScriptedServer(std::function<Script(const Request&)> answer) : answer_(std::move(answer)) {
    acceptor_.listen();
    thread_ = std::thread([this] { accept(); });
  }
  ~ScriptedServer() {
    ending_ = true;
    Tcp::socket(io_).connect(acceptor_.local_endpoint());
    thread_.join();
    for (std::thread& session : sessions_) session.join();
  }
  ServerAddress address() const {
    return {.host = "127.0.0.1", .port = std::to_string(acceptor_.local_endpoint().port()), .root = ""};
  }
  int connections() const { return connections_; }

 private:
  void accept() {
    for (;;) {
      Tcp::socket socket = acceptor_.accept();
      if (ending_) return;
      ++connections_;
      sessions_.emplace_back([this, held = std::move(socket)]() mutable { serve(held); });
    }
  }
  void serve(Tcp::socket& socket) {
    boost::system::error_code code;
    boost::beast::flat_buffer buffer;
    for (;;) {
      Request request;
      http::read(socket, buffer, request, code);
      if (code) return;
      const Script script = answer_(request);
      std::string head =
          fmt::format("HTTP/1.1 {} X\r\nContent-Type: {}\r\nTransfer-Encoding: chunked\r\n\r\n",
                      script.status, script.type);
      net::write(socket, net::buffer(head), code);
      for (const Part& part : script.parts) {
        for (int waited = 0; waited < part.delay_ms && !ending_; waited += 10)
          std::this_thread::sleep_for(std::chrono::milliseconds(std::min(10, part.delay_ms - waited)));
        if (part.text.empty()) continue;  // it would end the body
        net::write(socket, net::buffer(fmt::format("{:x}\r\n{}\r\n", part.text.size(), part.text)), code);
      }
      if (script.cuts) return;
      net::write(socket, net::buffer(std::string_view("0\r\n\r\n")), code);
      if (code || script.closes) return;
    }
  }

  std::function<Script(const Request&)> answer_;
  net::io_context io_;
  Tcp::acceptor acceptor_{io_, Tcp::endpoint(net::ip::address_v4::loopback(), 0)};
  std::atomic<bool> ending_ = false;
  std::atomic<int> connections_ = 0;
  std::thread thread_;
  std::list<std::thread> sessions_;
};

Script plain(std::string body, int status = 200) {
  return {.status = status, .type = "application/json", .parts = {{0, std::move(body)}}};
}

std::string sse_event(const std::string& text, int tokens) {
  return fmt::format(
      "data: {{\"choices\":[{{\"delta\":{{\"content\":\"{}\"}}}}],\"usage\":{{\"prompt_tokens\":3,"
      "\"completion_tokens\":{}}}}}\n\n",
      text, tokens);
}

// An answer of 2, 3 and 1 tokens, 30 ms apart.
Script answer_of_six() {
  return {.parts = {{30, sse_event("ab", 2)},
                    {30, sse_event("cde", 5)},
                    {30, sse_event("f", 6)},
                    {0, "data: [DONE]\n\n"}}};
}

bool is_model_list(const Request& request) { return request.target() == "/v1/models"; }
Script model_list() { return plain(R"({"data":[{"id":"tiny"}]})"); }

LoadTestPlan plan_for(const ScriptedServer& server) {
  LoadTestPlan plan;
  plan.server = server.address();
  plan.prompts = {{.id = "one", .turns = {"Hello"}}, {.id = "two", .turns = {"a", "b", "c"}}};
  plan.levels = {{.concurrency = 2}};
  plan.requests = 6;
  plan.timeout_s = 20;
  return plan;
}

Result<LoadTestOutcome> run(const LoadTestPlan& plan) {
  return run_load_test(plan, [](const LoadTestProgress&) {});
}

// The counters of /metrics when it is read for the n-th time.
Script metrics_of(int n) {
  return plain(
      fmt::format("vllm:spec_decode_num_drafts_total {}\nvllm:spec_decode_num_draft_tokens_total {}\n"
                  "vllm:spec_decode_num_accepted_tokens_total {}\n",
                  10 * n, 40 * n, 25 * n));
}

void expect_six_tokens(const AnswerRecord& request) {
  ASSERT_TRUE(request.succeeded()) << request.failure << request.message;
  EXPECT_EQ(request.output_tokens, 6);
  EXPECT_EQ(request.counted, TokenCount::kUsage);
  EXPECT_GE(request.ttft_ms(), 29);
  EXPECT_GE(request.e2e_ms(), 89);
  ASSERT_EQ(token_latencies(request).size(), 5u);
  // The arithmetic is exact for any times of arrival.
  const double gap = request.arrivals[1].at_ms - request.arrivals[0].at_ms;
  EXPECT_DOUBLE_EQ(token_latencies(request)[1].ms, gap / 3);
}

TEST(LoadTestRun, MeasuresSeveralTokensPerChunk) {
  std::atomic<int> scrapes = 0;
  std::mutex mutex;
  std::vector<std::string> bodies;
  std::string authorization;
  ScriptedServer server([&](const Request& request) -> Script {
    if (is_model_list(request)) return model_list();
    if (request.target() == "/metrics") {
      return metrics_of(++scrapes);
    }
    const std::lock_guard lock(mutex);
    bodies.push_back(request.body());
    authorization = std::string(request[http::field::authorization]);
    return answer_of_six();
  });
  LoadTestPlan plan = plan_for(server);
  plan.api_key = "secret";
  plan.seed = 5;
  plan.warmup = 1;
  const auto outcome = run(plan);
  ASSERT_TRUE(outcome.ok()) << outcome.error().message;
  EXPECT_EQ(outcome->model, "tiny");
  ASSERT_EQ(outcome->levels.size(), 1u);
  const LevelRecord& level = outcome->levels[0];
  ASSERT_EQ(level.requests.size(), 6u);
  EXPECT_EQ(level.peak_concurrency, 2);
  for (const AnswerRecord& request : level.requests) expect_six_tokens(request);
  EXPECT_GE(level.duration_ms, 3 * 89);  // two connections with three requests each, one after the other
  ASSERT_TRUE(level.server_speculation);
  EXPECT_EQ(level.server_speculation->steps, 10);
  EXPECT_DOUBLE_EQ(level.server_speculation->acceptance_length(), 3.5);
  EXPECT_EQ(authorization, "Bearer secret");
  EXPECT_EQ(server.connections(), 2);
  ASSERT_EQ(bodies.size(), 8u);  // the first two are the probe and the warm-up
  EXPECT_THAT(bodies[0], HasSubstr("\"max_tokens\":4"));
  EXPECT_THAT(bodies[2], HasSubstr("\"max_tokens\":128"));
  EXPECT_THAT(bodies[2], HasSubstr("\"continuous_usage_stats\":true"));
  const std::string all = bodies[2] + bodies[3];
  EXPECT_THAT(all, HasSubstr("\"seed\":5"));
  EXPECT_THAT(all, HasSubstr("\"seed\":6"));
  EXPECT_THAT(
      all,
      HasSubstr(
          R"({"role":"user","content":"a"},{"role":"assistant","content":"b"},{"role":"user","content":"c"})"));
}

TEST(LoadTestRun, CountsEveryKindOfFailure) {
  std::atomic<int> calls = -1;  // the probe
  ScriptedServer server([&](const Request& request) -> Script {
    if (is_model_list(request)) return model_list();
    if (request.target() == "/metrics") return plain("", 404);
    switch (calls++) {
      case 0:
        return plain(R"({"error":{"message":"the queue is full"}})", 429);
      case 1:
        return {.parts = {{0, sse_event("a", 1)}, {0, "data: {\"choic\n\n"}}};
      case 2:
        return {
            .parts = {{0, sse_event("a", 1)}, {0, "data: {\"error\":{\"message\":\"out of pages\"}}\n\n"}}};
      case 3:
        return {.parts = {{0, sse_event("a", 1)}}, .cuts = true};
      case 4:
        return {.parts = {{0, sse_event("a", 1)}, {5000, "data: [DONE]\n\n"}}};
      case 5:
        return plain("{}");
      default:
        return answer_of_six();
    }
  });
  LoadTestPlan plan = plan_for(server);
  plan.levels = {{.concurrency = 1}};
  plan.requests = 7;
  plan.timeout_s = 0.3;
  const auto outcome = run(plan);
  ASSERT_TRUE(outcome.ok()) << outcome.error().message;
  std::vector<std::string> failures;
  for (const AnswerRecord& request : outcome->levels[0].requests) failures.push_back(request.failure);
  EXPECT_THAT(failures, ElementsAre("429", "broken stream", "error event", "connection broken", "timeout",
                                    "no event stream", ""));
  EXPECT_EQ(outcome->levels[0].requests[0].message, "the queue is full");
  EXPECT_FALSE(outcome->levels[0].server_speculation);
  const std::string text = load_test_text(plan, *outcome);
  EXPECT_THAT(text, HasSubstr("Failed requests:                                        6"));
  EXPECT_THAT(text, HasSubstr("the queue is full"));
}

TEST(LoadTestRun, AsksForLessUsageWhereMoreIsRefused) {
  ScriptedServer server([&](const Request& request) -> Script {
    if (is_model_list(request)) return model_list();
    if (request.target() == "/metrics") return plain("", 404);
    if (request.body().find("continuous_usage_stats") != std::string::npos)
      return plain(R"({"error":{"message":"Unrecognized request argument"}})", 400);
    return answer_of_six();
  });
  const auto outcome = run(plan_for(server));
  ASSERT_TRUE(outcome.ok()) << outcome.error().message;
  EXPECT_TRUE(outcome->levels[0].requests[0].succeeded());
}

TEST(LoadTestRun, SaysWhyAServerCannotBeMeasured) {
  int status = 200;
  ScriptedServer server([&](const Request& request) -> Script {
    if (is_model_list(request))
      return status == 401 ? plain(R"({"error":{"message":"no key"}})", 401) : model_list();
    return plain(R"({"error":{"message":"no such model"}})", 404);
  });
  LoadTestPlan plan = plan_for(server);
  auto outcome = run(plan);
  ASSERT_FALSE(outcome.ok());
  EXPECT_THAT(outcome.error().message, HasSubstr("expected a streamed answer, found 404: no such model"));
  status = 401;
  outcome = run(plan);
  ASSERT_FALSE(outcome.ok());
  EXPECT_THAT(outcome.error().message, HasSubstr("401: no key; --api-key-file gives the key"));
  {
    net::io_context io;  // finds a port on which nobody listens
    Tcp::acceptor taken(io, Tcp::endpoint(net::ip::address_v4::loopback(), 0));
    plan.server.port = std::to_string(taken.local_endpoint().port());
  }
  outcome = run(plan);
  ASSERT_FALSE(outcome.ok());
  EXPECT_THAT(outcome.error().message, HasSubstr("Connection refused; is the server running?"));
}

TEST(LoadTestRun, SurvivesConnectionsThatCloseBetweenRequests) {
  ScriptedServer server([&](const Request& request) -> Script {
    if (is_model_list(request)) return model_list();
    Script script = answer_of_six();
    script.closes = true;
    return script;
  });
  const auto outcome = run(plan_for(server));
  ASSERT_TRUE(outcome.ok()) << outcome.error().message;
  for (const AnswerRecord& request : outcome->levels[0].requests)
    EXPECT_TRUE(request.succeeded()) << request.failure << ": " << request.message;
}

TEST(LoadTestRun, BeginsRequestsAtARate) {
  ScriptedServer server([&](const Request& request) -> Script {
    if (is_model_list(request)) return model_list();
    return answer_of_six();
  });
  LoadTestPlan plan = plan_for(server);
  plan.levels = {{.concurrency = 0, .request_rate = 100}};
  plan.requests = 40;
  const auto outcome = run(plan);
  ASSERT_TRUE(outcome.ok()) << outcome.error().message;
  const auto& requests = outcome->levels[0].requests;
  ASSERT_EQ(requests.size(), 40u);
  EXPECT_GT(outcome->levels[0].peak_concurrency, 2);  // 100 per second, 90 ms each
  const double span_ms = requests.back().start_ms - requests.front().start_ms;
  EXPECT_GT(span_ms, 150);  // 390 on average
  plan.requests = 0;
  plan.duration_s = 0.2;
  const auto timed = run(plan);
  ASSERT_TRUE(timed.ok());
  EXPECT_GE(timed->levels[0].requests.size(), 3u);
  for (const AnswerRecord& request : timed->levels[0].requests) {
    EXPECT_LT(request.start_ms, 220);
    EXPECT_TRUE(request.succeeded());
  }
}

TEST(LoadTestRun, KeepsWhatWasMeasuredBeforeAnInterrupt) {
  std::atomic<int> calls = 0;
  ScriptedServer server([&](const Request& request) -> Script {
    if (is_model_list(request)) return model_list();
    if (request.target() == "/metrics") return plain("", 404);
    if (++calls == 5) std::raise(SIGINT);  // the probe, two finished calls, two in progress
    if (calls >= 4) return {.parts = {{10000, sse_event("a", 1)}}};
    return answer_of_six();
  });
  LoadTestPlan plan = plan_for(server);
  plan.requests = 1000;
  const auto outcome = run(plan);
  ASSERT_TRUE(outcome.ok()) << outcome.error().message;
  EXPECT_TRUE(outcome->is_interrupted);
  ASSERT_EQ(outcome->levels[0].requests.size(), 4u);
  const LevelFigures figures = figures_of(outcome->levels[0], {});
  EXPECT_EQ(figures.succeeded, 2);
  EXPECT_EQ(figures.interrupted, 2);
}

TEST(LoadTestReport, NeedsNothingElse) {
  LoadTestPlan plan;
  plan.server.host = "h";
  LoadTestOutcome outcome{.model = "</script><script>alert(1)</script>"};
  outcome.levels.resize(2);
  std::string page = load_test_html(plan, outcome);
  EXPECT_EQ(page.find("{{data}}"), std::string::npos);
  EXPECT_EQ(page.find("<script>alert"), std::string::npos);
  for (const char* known : {"http://www.w3.org/2000/svg", "http://h:80"})
    for (size_t at = 0; (at = page.find(known)) != std::string::npos;)
      page.erase(at, std::string_view(known).size());
  for (const char* part : {"http:", "https:", "src=\"", "@import", "url("})
    EXPECT_EQ(page.find(part), std::string::npos) << part;
}

}  // namespace
}  // namespace outrider
