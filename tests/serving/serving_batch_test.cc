// SPDX-License-Identifier: Apache-2.0
// Batches with the real program: answers equal the answers to the same requests without a batch, and a kill
// loses and doubles no line.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/serving/batch_client.h"
#include "tests/serving/serve_process.h"
#include "tests/serving/serving.h"
#include "tests/serving/serving_calls.h"

namespace outrider {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using Clock = std::chrono::steady_clock;

json chat_body(int number) {
  return {{"messages", {{{"role", "user"}, {"content", "Tell me of day " + std::to_string(number)}}}},
          {"max_tokens", 8 + number},
          {"temperature", number % 2},
          {"seed", number}};
}

std::string long_lines(int count, int tokens) {
  std::string lines;
  for (int i = 0; i < count; ++i) {
    lines += request_line("line-" + std::to_string(i), "/v1/completions",
                          {{"prompt", "Day " + std::to_string(i)},
                           {"max_tokens", tokens},
                           {"ignore_eos", true},
                           {"temperature", 0}});
  }
  return lines;
}

std::vector<std::string> batch_options(const BatchFolder& folder, std::vector<std::string> more = {}) {
  more.insert(more.end(), {"--batch-folder", folder.path(), "--max-batch", "4"});
  return more;
}

TEST(ServingBatch, AnswersEqualThoseOfTheSameRequestsAlone) {
  const BatchFolder folder;
  ServeProcess server(batch_options(folder, {"--speculative", "ngram,max_draft_len=4"}));
  ASSERT_TRUE(server.wait_until_ready());
  const BatchClient client(server.port());
  std::map<std::string, std::pair<std::string, json>> requests;  // url and body by custom_id
  for (int i = 0; i < 12; ++i)
    requests.emplace("chat-" + std::to_string(i), std::pair("/v1/chat/completions", chat_body(i)));
  for (int i = 0; i < 4; ++i)
    requests.emplace(
        "text-" + std::to_string(i),
        std::pair("/v1/completions",
                  json{{"prompt", "Once"}, {"n", 2}, {"seed", i}, {"logprobs", 2}, {"max_tokens", 9}}));
  requests.emplace("vector", std::pair("/v1/embeddings", json{{"input", {"a", "b"}}}));
  requests.emplace(
      "response",
      std::pair("/v1/responses", json{{"input", "Hi"}, {"temperature", 0}, {"max_output_tokens", 9}}));
  std::map<std::string, std::string> files;  // by url
  for (const auto& [id, request] : requests)
    files[request.first] += request_line(id, request.first, request.second);
  for (const auto& [url, lines] : files) {
    const json batch = client.wait_for_end(client.create(client.upload(lines), url));
    ASSERT_EQ(batch["status"], "completed") << batch;
    EXPECT_EQ(batch["error_file_id"], nullptr);
    for (const auto& [id, result] : client.results(batch["output_file_id"])) {
      const json alone = client.ask("POST", url, requests.at(id).second);
      const json& body = result["response"]["body"];
      for (const char* member : {"choices", "data", "object", "model", "usage"}) {
        if (std::string(member) == "usage" && url != "/v1/embeddings") {
          const char* count = url == "/v1/responses" ? "output_tokens" : "completion_tokens";
          EXPECT_EQ(body[member][count], alone[member][count]) << id;
        } else if (alone.contains(member)) {
          EXPECT_EQ(body[member], alone[member]) << id;
        }
      }
      if (url == "/v1/responses") {
        EXPECT_EQ(body["output"][0]["content"], alone["output"][0]["content"]);
      }
      requests.erase(id);
    }
  }
  EXPECT_TRUE(requests.empty());
}

TEST(ServingBatch, AKillLosesNoLineAndDoublesNone) {
  constexpr int kLines = 24;
  const BatchFolder folder;
  std::string id;
  std::set<std::string> whole;  // lines of results before the kills
  for (int run = 0; run < 3; ++run) {
    ServeProcess server(batch_options(folder, {"--speculative", "none"}));
    ASSERT_TRUE(server.wait_until_ready());
    const BatchClient client(server.port());
    if (run == 0) id = client.create(client.upload(long_lines(kLines, 60)), "/v1/completions");
    if (run < 2) {
      client.wait(id, 5 * (run + 1));
      server.end(SIGKILL);
      for (const auto& entry : fs::directory_iterator(fs::path(folder.path()) / "files")) {
        std::ifstream file(entry.path());
        for (std::string line; std::getline(file, line);)
          if (line.starts_with("{\"id\":\"batch_req_") && !file.eof()) whole.insert(line);
      }
      EXPECT_GE(std::ssize(whole), 5 * (run + 1));
      continue;
    }
    const json batch = client.wait_for_end(id);
    EXPECT_EQ(batch["status"], "completed");
    EXPECT_EQ(batch["request_counts"], (json{{"total", kLines}, {"completed", kLines}, {"failed", 0}}));
    EXPECT_EQ(client.results(batch["output_file_id"]).size(), static_cast<size_t>(kLines));
    const std::string text = client.content(batch["output_file_id"]);
    for (const std::string& line : whole)
      EXPECT_NE(text.find(line + "\n"), std::string::npos) << "done again: " << line;
  }
}

TEST(ServingBatch, AServerThatDrainsLeavesTheRestToTheNext) {
  const BatchFolder folder;
  std::string id;
  {
    ServeProcess server(batch_options(folder, {"--speculative", "none"}));
    ASSERT_TRUE(server.wait_until_ready());
    const BatchClient client(server.port());
    id = client.create(client.upload(long_lines(16, 200)), "/v1/completions");
    client.wait(id, 1);
    const auto start = Clock::now();
    EXPECT_EQ(server.end(SIGTERM), 0);
    EXPECT_LT(Clock::now() - start, std::chrono::seconds(20)) << "lines are not waited for";
  }
  ServeProcess server(batch_options(folder, {"--speculative", "none"}));
  ASSERT_TRUE(server.wait_until_ready());
  EXPECT_EQ(BatchClient(server.port()).wait_for_end(id)["request_counts"]["completed"], 16);
}

TEST(ServingBatch, CancelEndsTheLinesThatRun) {
  const BatchFolder folder;
  ServeProcess server(batch_options(folder, {"--speculative", "none"}));
  ASSERT_TRUE(server.wait_until_ready());
  const BatchClient client(server.port());
  const std::string id = client.create(client.upload(long_lines(40, 400)), "/v1/completions");
  client.wait(id, 1);
  client.ask("POST", "/v1/batches/" + id + "/cancel");
  const json batch = client.wait_for_end(id);
  EXPECT_EQ(batch["status"], "cancelled");
  const int failed = batch["request_counts"]["failed"];
  EXPECT_GT(failed, 20);
  EXPECT_EQ(client.results(batch["error_file_id"]).size(), static_cast<size_t>(failed));
  EXPECT_TRUE(server.wait_until_free());
}

TEST(ServingBatch, KeysSeeTheirOwnFilesOnly) {
  const BatchFolder folder;
  const KeyFile keys("0123456789abcdef-one\n0123456789abcdef-two\n");
  ServeProcess server(batch_options(folder, {"--api-key-file", keys.path().string()}));
  ASSERT_TRUE(server.wait_until_ready());
  const BatchClient one(server.port(), "Authorization: Bearer 0123456789abcdef-one\r\n");
  const BatchClient two(server.port(), "Authorization: Bearer 0123456789abcdef-two\r\n");
  const std::string file = one.upload(long_lines(1, 2));
  const std::string id = one.create(file, "/v1/completions");
  const json batch = one.wait_for_end(id);
  const std::string output = batch["output_file_id"];
  for (const std::string& path :
       {"/v1/files/" + file, "/v1/files/" + output + "/content", "/v1/batches/" + id}) {
    EXPECT_EQ(one.send("GET", path).status, 200) << path;
    EXPECT_EQ(two.send("GET", path).status, 404) << path;
    EXPECT_EQ(BatchClient(server.port()).send("GET", path).status, 401) << path;
  }
  EXPECT_EQ(two.send("DELETE", "/v1/files/" + file).status, 404);
  EXPECT_EQ(two.ask("GET", "/v1/files")["data"].size(), 0u);
  EXPECT_EQ(one.ask("GET", "/v1/files?purpose=batch_output")["data"][0]["id"], output);
  EXPECT_EQ(one.send("DELETE", "/v1/files/" + file).status, 200);
}

TEST(ServingBatch, WrongRequestsHaveClearErrors) {
  const BatchFolder folder;
  ServeProcess server(batch_options(folder));
  ASSERT_TRUE(server.wait_until_ready());
  const BatchClient client(server.port());
  const auto status_of = [&](const std::string& body, const std::string& type) {
    return client.send("POST", "/v1/files?purpose=batch&filename=x.jsonl", body, type).status;
  };
  EXPECT_EQ(status_of("{}\n", "application/jsonl"), 200);
  EXPECT_EQ(status_of("{}\n", "application/json"), 415);
  EXPECT_EQ(status_of("{}\n", "multipart/form-data; boundary=x"), 400);
  EXPECT_EQ(status_of("", "application/jsonl"), 400);
  EXPECT_EQ(status_of(std::string(9 << 20, ' '), "application/jsonl"),
            200);  // above the bound of other bodies
  EXPECT_EQ(client.send("POST", "/v1/completions", std::string(9 << 20, ' ')).status, 413);
  EXPECT_EQ(client.send("POST", "/v1/batches", "{}").status, 400);
  EXPECT_EQ(client
                .send("POST", "/v1/batches",
                      R"({"input_file_id":"x","endpoint":"/v1/completions","completion_window":"24h"})")
                .status,
            404);
  EXPECT_EQ(client.send("GET", "/v1/batches?limit=0").status, 400);
  EXPECT_NE(client.send("GET", "/metrics").body.find("outrider:batches{"), std::string::npos);
  ServeProcess without;
  ASSERT_TRUE(without.wait_until_ready());
  const TestAnswer none = BatchClient(without.port()).send("GET", "/v1/batches");
  EXPECT_EQ(none.status, 501);
  EXPECT_NE(none.body.find("--batch-folder"), std::string::npos) << none.body;
}

// Seconds that a request takes, the median of some.
double live_seconds(int port) {
  std::vector<double> times;
  for (int i = 0; i < 7; ++i) {
    const auto start = Clock::now();
    const json body = {{"prompt", "A live request " + std::to_string(i)},
                       {"max_tokens", 48},
                       {"ignore_eos", true},
                       {"temperature", 0}};
    EXPECT_EQ(TestClient(port).post("/v1/completions", body.dump()).status, 200);
    times.push_back(std::chrono::duration<double>(Clock::now() - start).count());
  }
  std::ranges::sort(times);
  return times[times.size() / 2];
}

TEST(ServingBatch, LiveRequestsTakeAsLongAsWithoutABatch) {
  const BatchFolder folder;
  ServeProcess server(batch_options(folder, {"--speculative", "none"}));
  ASSERT_TRUE(server.wait_until_ready());
  const BatchClient client(server.port());
  live_seconds(server.port());
  const double alone = live_seconds(server.port());
  const std::string id = client.create(client.upload(long_lines(400, 300)), "/v1/completions");
  client.wait(id, 1);
  const double beside = live_seconds(server.port());
  EXPECT_EQ(client.batch(id)["status"], "in_progress");
  RecordProperty("alone_ms", std::to_string(alone * 1e3));
  RecordProperty("beside_ms", std::to_string(beside * 1e3));
  std::printf("live request: %.1f ms alone, %.1f ms beside a batch\n", alone * 1e3, beside * 1e3);
  EXPECT_LT(beside,
            2.5 * alone);  // four sequences side by side would take longer, and other programs run here
}

}  // namespace
}  // namespace outrider
