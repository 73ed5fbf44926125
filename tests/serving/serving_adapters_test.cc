// SPDX-License-Identifier: Apache-2.0
// Adapters over HTTP: chosen by the name of a model or by "lora", loaded and unloaded while the server runs.
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "formats/model_file.h"
#include "tests/serving/serving.h"
#include "tests/serving/serving_calls.h"
#include "tests/support/adapter_folder.h"

namespace outrider {
namespace {

namespace fs = std::filesystem;
using AdapterJson = nlohmann::json;

fs::path adapters_folder() { return fs::path(testing::TempDir()) / "served_adapters"; }

// A server with the adapters "red" and "blue" by name, and with "green" and "torn" in a folder of adapters to
// load.
void with_adapters(ServerParts& parts) {
  const ModelConfig config = describe_model(tiny_engine().model)->config;
  uint32_t seed = 1;
  for (const char* name : {"red", "blue", "green", "torn"})
    write_adapter(adapters_folder() / name, config, ++seed, {.alpha = 16, .size = 0.3});
  fs::resize_file(adapters_folder() / "torn/adapter_model.safetensors", 1000);
  with_chats(parts);
  parts.options.adapter_folder = adapters_folder();
  parts.open = [] {
    EngineOptions options = tiny_engine();
    options.adapters = {{.name = "red", .path = adapters_folder() / "red"},
                        {.name = "blue", .path = adapters_folder() / "blue"}};
    return Engine::open(options);
  };
}

std::string answer_of(TestClient& client, const std::string& fields) {
  const TestAnswer answer = client.post(
      "/v1/completions",
      R"({"prompt": "hello", "max_tokens": 12, "temperature": 0, "ignore_eos": true)" + fields + "}");
  EXPECT_EQ(answer.status, 200) << answer.body;
  return text_of(answer);
}

TEST(ServedAdapters, AreChosenByModelOrByName) {
  TestServer server(with_adapters);
  ASSERT_TRUE(server.wait_until_ready());
  TestClient client(server.port());
  const std::string plain = answer_of(client, "");
  const std::string red = answer_of(client, R"(, "model": "red")");
  const std::string blue = answer_of(client, R"(, "model": "blue")");
  EXPECT_NE(red, plain);
  EXPECT_NE(blue, plain);
  EXPECT_NE(red, blue);
  for (const char* same : {R"(, "lora": ["red"])", R"(, "lora": [{"id": 0, "scale": 1.0}])",
                           R"(, "lora": [{"name": "red"}])", R"(, "model": "blue", "lora": ["red"])"})
    EXPECT_EQ(answer_of(client, same), red) << same;
  for (const char* none : {R"(, "lora": [])", R"(, "lora": [{"id": 1, "scale": 0}])", R"(, "model": "tiny")"})
    EXPECT_EQ(answer_of(client, none), plain) << none;
  EXPECT_NE(answer_of(client, R"(, "lora": ["red", {"name": "blue", "scale": 0.5}])"), red);
  const std::string chat = R"("messages":[{"role":"user","content":"Hi"}],"max_tokens":12,"temperature":0)";
  const TestAnswer by_chat = client.post("/v1/chat/completions", "{" + chat + R"(,"model":"red"})");
  EXPECT_EQ(by_chat.status, 200) << by_chat.body;
  EXPECT_NE(
      AdapterJson::parse(by_chat.body)["choices"][0]["message"]["content"],
      AdapterJson::parse(
          client.post("/v1/chat/completions", "{" + chat + "}").body)["choices"][0]["message"]["content"]);
}

TEST(ServedAdapters, AreListedAsModelsOfAParent) {
  TestServer server(with_adapters);
  ASSERT_TRUE(server.wait_until_ready());
  TestClient client(server.port());
  const auto models = AdapterJson::parse(client.get("/v1/models").body)["data"];
  ASSERT_EQ(models.size(), 3u);
  EXPECT_EQ(models[1]["id"], "red");
  EXPECT_EQ(models[1]["parent"], "tiny");
  EXPECT_TRUE(models[0]["parent"].is_null());
  EXPECT_EQ(client.get("/v1/models/blue").status, 200);
  const auto adapters = AdapterJson::parse(client.get("/lora-adapters").body);
  ASSERT_EQ(adapters.size(), 2u);
  EXPECT_EQ(adapters[1]["id"], 1);
  EXPECT_EQ(adapters[1]["name"], "blue");
  EXPECT_EQ(adapters[1]["rank"], 4);
  EXPECT_EQ(adapters[1]["scale"], 0.0) << "requests that choose none do not use it";
}

TEST(ServedAdapters, WrongChoicesAreRefused) {
  TestServer server(with_adapters);
  ASSERT_TRUE(server.wait_until_ready());
  TestClient client(server.port());
  const auto refused = [&](const std::string& fields, int status, const std::string& text) {
    const TestAnswer answer =
        client.post("/v1/completions", R"({"prompt": "a", "max_tokens": 1, )" + fields + "}");
    EXPECT_EQ(answer.status, status) << fields;
    EXPECT_NE(answer.body.find(text), std::string::npos) << answer.body;
  };
  refused(R"("model": "yellow")", 404, "model_not_found");
  refused(R"("lora": ["yellow"])", 400, "no adapter 'yellow'");
  refused(R"("lora": [{"id": 2, "scale": 1}])", 400, "lora[0].id");
  refused(R"("lora": [{"scale": 1}])", 400, "lora[0]");
  refused(R"("lora": "red")", 400, "lora");
  refused(R"("lora": [{"id": 0, "scale": 1e9}])", 400, "lora[0].scale");
}

TEST(ServedAdapters, ComeAndGoWhileRequestsRun) {
  TestServer server(with_adapters);
  ASSERT_TRUE(server.wait_until_ready());
  TestClient client(server.port());
  const std::string blue = answer_of(client, R"(, "model": "blue")");
  std::thread others([&] {
    TestClient busy(server.port());
    for (int i = 0; i < 40; ++i) EXPECT_EQ(answer_of(busy, R"(, "model": "blue")"), blue);
  });
  const auto post = [&](const std::string& path, const std::string& body) { return client.post(path, body); };
  std::string green;
  for (int round = 0; round < 5; ++round) {
    const TestAnswer loaded =
        post("/v1/load_lora_adapter", R"({"lora_name": "green", "lora_path": "green"})");
    ASSERT_EQ(loaded.status, 200) << loaded.body;
    EXPECT_EQ(post("/v1/load_lora_adapter", R"({"lora_name": "green", "lora_path": "red"})").status, 400);
    const std::string text = answer_of(client, R"(, "model": "green")");
    if (round == 0) green = text;
    EXPECT_EQ(text, green);
    EXPECT_EQ(post("/v1/unload_lora_adapter", R"({"lora_name": "green"})").status, 200);
    EXPECT_EQ(post("/v1/unload_lora_adapter", R"({"lora_name": "green"})").status, 400);
  }
  others.join();
  EXPECT_NE(green, blue);
  for (const char* path : {"../served_adapters/../../etc", "/etc", "torn", "nothing", ""}) {
    const std::string body = AdapterJson({{"lora_name", "x"}, {"lora_path", path}}).dump();
    EXPECT_EQ(post("/v1/load_lora_adapter", body).status, 400) << path;
  }
  EXPECT_EQ(AdapterJson::parse(client.get("/lora-adapters").body).size(), 2u);
}

TEST(ServedAdapters, ScalesOfAllRequestsAreSet) {
  TestServer server(with_adapters);
  ASSERT_TRUE(server.wait_until_ready());
  TestClient client(server.port());
  const std::string plain = answer_of(client, ""), blue = answer_of(client, R"(, "model": "blue")");
  EXPECT_EQ(client.post("/lora-adapters", R"([{"id": 1, "scale": 1.0}])").status, 200);
  EXPECT_EQ(answer_of(client, ""), blue);
  EXPECT_EQ(answer_of(client, R"(, "lora": [])"), plain);
  EXPECT_EQ(client.post("/lora-adapters", "[]").status, 200);
  EXPECT_EQ(answer_of(client, ""), plain);
  EXPECT_EQ(client.post("/lora-adapters", R"([{"id": 9, "scale": 1.0}])").status, 400);
  EXPECT_EQ(client.post("/lora-adapters", R"({"id": 1})").status, 400);
}

TEST(ServedAdapters, AreNotLoadedWithoutAFolder) {
  TestServer server;
  ASSERT_TRUE(server.wait_until_ready());
  TestClient client(server.port());
  EXPECT_EQ(client.get("/lora-adapters").body, "[]");
  const TestAnswer refused = client.post("/v1/load_lora_adapter", R"({"lora_name": "x", "lora_path": "x"})");
  EXPECT_EQ(refused.status, 501);
  EXPECT_NE(refused.body.find("--lora-folder"), std::string::npos) << refused.body;
}

}  // namespace
}  // namespace outrider
