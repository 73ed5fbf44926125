// SPDX-License-Identifier: Apache-2.0
// The Batch API of a server of several models: lines have the texts of their models, wait for live requests,
// and run again when an engine dies.
#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <chrono>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "tests/fleet/fleet_fixture.h"
#include "tests/serving/batch_client.h"
#include "tests/serving/serving_calls.h"

namespace outrider {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;

const std::string kUrl = "/v1/completions";

std::function<void(ServerParts&)> with_batches(const BatchFolder& folder) {
  return [&folder](ServerParts& parts) {
    parts.options.batch_folder = folder.path();
    parts.max_batch = 4;
  };
}

// `count` lines for each model.
std::string lines_of(const std::vector<std::string>& models, int count) {
  std::string lines;
  for (int i = 0; i < count; ++i) {
    for (const std::string& model : models)
      lines += request_line(model + "-" + std::to_string(i), kUrl, json::parse(fleet_completion(model)));
  }
  // Streams are for connections.
  for (size_t at = lines.find(R"("stream":false,)"); at != std::string::npos;
       at = lines.find(R"("stream":false,)", at))
    lines.erase(at, std::string(R"("stream":false,)").size());
  return lines;
}

void expect_texts(const BatchClient& client, const json& batch, size_t count) {
  ASSERT_EQ(batch["status"], "completed") << batch;
  EXPECT_EQ(batch["error_file_id"], nullptr) << batch;
  const auto results = client.results(batch["output_file_id"]);
  EXPECT_EQ(results.size(), count);
  for (const auto& [id, result] : results) {
    const std::string model = id.substr(0, id.find('-'));
    EXPECT_EQ(result["response"]["body"]["choices"][0]["text"], texts_alone().at(model)) << id;
  }
}

TEST(FleetBatch, LinesHaveTheTextsOfTheirModels) {
  const BatchFolder folder;
  const FleetServer server(fleet_of(kFleetNames.size()), with_batches(folder));
  const BatchClient client(server.port());
  const std::string input = client.upload(lines_of(kFleetNames, 3));
  expect_texts(client, client.wait_for_end(client.create(input, kUrl)), 3 * kFleetNames.size());
  const std::string metrics = server.client().get("/metrics").body;
  EXPECT_NE(metrics.find("outrider:batch_lines_total{result=\"completed\"} 18"), std::string::npos)
      << metrics;
}

TEST(FleetBatch, ModelsTakeTurnsWhereMemoryIsShort) {
  const BatchFolder folder;
  const FleetServer server(fleet_of(1), with_batches(folder));
  const BatchClient client(server.port());
  const std::string input = client.upload(lines_of({"llama", "qwen2"}, 4));
  expect_texts(client, client.wait_for_end(client.create(input, kUrl)), 8);
  EXPECT_LE(server.stats("llama")["starts"], 3);
}

TEST(FleetBatch, WrongLinesGetTheAnswerOfTheServer) {
  const BatchFolder folder;
  const FleetServer server(fleet_of(kFleetNames.size()), with_batches(folder));
  const BatchClient client(server.port());
  const std::string input =
      client.upload(request_line("nobody", kUrl, {{"model", "nobody"}, {"prompt", "a"}}) +
                    request_line("unnamed", kUrl, {{"prompt", "a"}}) +
                    request_line("wrong", kUrl, {{"model", "llama"}, {"prompt", "a"}, {"n", "x"}}));
  const json batch = client.wait_for_end(client.create(input, kUrl));
  EXPECT_EQ(batch["request_counts"]["failed"], 3) << batch;
  const auto results = client.results(batch["error_file_id"]);
  EXPECT_EQ(results.at("nobody")["response"]["status_code"], 404);
  EXPECT_EQ(results.at("unnamed")["response"]["status_code"], 400);
  EXPECT_EQ(results.at("wrong")["response"]["status_code"], 400);
  EXPECT_EQ(results.at("wrong")["response"]["body"]["error"]["param"], "n");
}

// A model that is asked for all the time keeps its engine, and the batch comes afterwards.
TEST(FleetBatch, LiveRequestsKeepTheirEngine) {
  const BatchFolder folder;
  const FleetServer server(fleet_of(1), with_batches(folder));
  const BatchClient client(server.port());
  server.ask(fleet_completion("llama"));
  const std::string batch = client.create(client.upload(lines_of({"qwen2"}, 4)), kUrl);
  const auto end = std::chrono::steady_clock::now() + milliseconds(1500);
  while (std::chrono::steady_clock::now() < end) {
    EXPECT_EQ(text_of(server.ask(fleet_completion("llama"))), texts_alone().at("llama"));
    std::this_thread::sleep_for(milliseconds(20));
  }
  EXPECT_EQ(server.stats("qwen2")["starts"], 0);
  EXPECT_EQ(server.stats("llama")["starts"], 1);
  expect_texts(client, client.wait_for_end(batch), 4);
}

TEST(FleetBatch, LinesOfAnEngineThatDiesRunAgain) {
  const BatchFolder folder;
  FleetOptions options = fleet_of(0);
  options.models = {fleet_model("long", {"--kernels", "reference", "--speculative", "none"},
                                OUTRIDER_SOURCE_DIR "/models/outrider-small")};
  const FleetServer server(std::move(options), with_batches(folder));
  const BatchClient client(server.port());
  std::string lines;
  for (int i = 0; i < 3; ++i)
    lines +=
        request_line(std::to_string(i), kUrl,
                     {{"prompt", "hello"}, {"max_tokens", 300}, {"temperature", 0}, {"ignore_eos", true}});
  const std::string batch = client.create(client.upload(lines), kUrl);
  ASSERT_TRUE(server.wait_for_state("long", "loaded"));
  std::this_thread::sleep_for(milliseconds(100));
  ASSERT_EQ(kill(server.stats("long")["process"], SIGKILL), 0);
  const json ended = client.wait_for_end(batch);
  ASSERT_EQ(ended["request_counts"]["completed"], 3) << ended;
  EXPECT_EQ(server.stats("long")["starts"], 2);
  const auto results = client.results(ended["output_file_id"]);
  for (const auto& [id, result] : results)
    EXPECT_EQ(result["response"]["body"]["choices"], results.at("0")["response"]["body"]["choices"]);
}

TEST(FleetBatch, ACancelledBatchEnds) {
  const BatchFolder folder;
  FleetOptions options = fleet_of(0);
  options.models = {fleet_model("long", {"--kernels", "reference", "--speculative", "none"},
                                OUTRIDER_SOURCE_DIR "/models/outrider-small")};
  const FleetServer server(std::move(options), with_batches(folder));
  const BatchClient client(server.port());
  const std::string batch =
      client.create(client.upload(request_line(
                        "0", kUrl, {{"prompt", "hello"}, {"max_tokens", 900}, {"ignore_eos", true}})),
                    kUrl);
  ASSERT_TRUE(server.wait_for_state("long", "loaded"));
  client.ask("POST", "/v1/batches/" + batch + "/cancel");
  EXPECT_EQ(client.wait_for_end(batch)["status"], "cancelled");
  for (int i = 0; i < 500 && server.stats("long")["running"] != 0; ++i)
    std::this_thread::sleep_for(milliseconds(10));
  EXPECT_EQ(server.stats("long")["running"], 0);
}

// Engines ask for keys, but not for lines of batches, whose server had the key of the batch.
TEST(FleetBatch, BatchesBelongToTheirKeys) {
  const BatchFolder folder;
  const KeyFile keys("0123456789abcdef-one\n0123456789abcdef-two\n");
  FleetOptions options = fleet_of(kFleetNames.size());
  for (FleetModel& model : options.models)
    model.arguments.insert(model.arguments.end(), {"--api-key-file", keys.path().string()});
  const FleetServer server(std::move(options), [&](ServerParts& parts) {
    with_batches(folder)(parts);
    parts.options.api_key_file = keys.path();
  });
  const BatchClient client(server.port(), "x-api-key: 0123456789abcdef-one\r\n"),
      other(server.port(), "x-api-key: 0123456789abcdef-two\r\n");
  const std::string batch = client.create(client.upload(lines_of({"gpt2"}, 2)), kUrl);
  expect_texts(client, client.wait_for_end(batch), 2);
  EXPECT_EQ(other.send("GET", "/v1/batches/" + batch).status, 404);
  const std::string invented = "X-Outrider-Background: 0123456789abcdef-one 1\r\n";
  EXPECT_EQ(server.client().post(kUrl, fleet_completion("gpt2"), invented).status, 401);
}

}  // namespace
}  // namespace outrider
