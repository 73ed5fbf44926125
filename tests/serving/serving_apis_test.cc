// SPDX-License-Identifier: Apache-2.0
// The APIs of responses and messages over HTTP, names of paths, and bodies in gzip.
#include <gtest/gtest.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "tests/serving/serving.h"
#include "tests/serving/serving_calls.h"

namespace outrider {
namespace {

using ApiJson = nlohmann::json;

const std::string kHiThere = R"("messages":[{"role":"user","content":"Hi"}])";

TEST(ServerApis, PathsHaveTheirUsualNames) {
  TestServer server(with_chats);
  ASSERT_TRUE(server.wait_until_ready());
  TestClient client(server.port());
  for (const std::string path : {"/v1/chat/completions", "/chat/completions", "/v1/messages", "/messages"}) {
    EXPECT_EQ(client.post(path, "{" + kHiThere + R"(,"max_tokens":4})").status, 200) << path;
  }
  EXPECT_EQ(client.get("/models").body, client.get("/v1/models").body);
  for (const std::string path : {"/props", "/slots", "/tokenizer_info"})
    EXPECT_EQ(client.get(path).status, 200);
  EXPECT_EQ(ApiJson::parse(client.get("/tokenizer_info").body)["chat_template"], kPlainTurns);
  EXPECT_EQ(ApiJson::parse(client.get("/slots").body).size(), 4u);
  EXPECT_EQ(error_type(client.post("/rerank", R"({"query":"x","documents":["y"]})")), "not_supported_error");
}

TEST(ServerApis, EmbeddingsDependOnTheirTextAlone) {
  TestServer server([](ServerParts& parts) { parts.options.pooling = Pooling::kMean; });
  ASSERT_TRUE(server.wait_until_ready());
  TestClient client(server.port());
  const auto data = [&](const std::string& input) {
    const TestAnswer answer = client.post("/v1/embeddings", R"({"input":)" + input + "}");
    EXPECT_EQ(answer.status, 200) << answer.body;
    return ApiJson::parse(answer.body)["data"];
  };
  const ApiJson both = data(R"(["red ball","blue dog"])");
  ASSERT_EQ(both.size(), 2u);
  EXPECT_EQ(both[0]["embedding"], data(R"("red ball")")[0]["embedding"]);
  EXPECT_EQ(both[1]["embedding"], data(R"("blue dog")")[0]["embedding"]);
  EXPECT_NE(both[0]["embedding"], both[1]["embedding"]);
  double sum = 0;
  for (const double value : both[0]["embedding"]) sum += value * value;
  EXPECT_NEAR(sum, 1, 1e-5);
}

TEST(ServerApis, ARerankerNeedsTokensForItsAnswers) {
  TestServer server([](ServerParts& parts) {
    with_chats(parts);
    parts.options.pooling = std::nullopt;
  });
  ASSERT_TRUE(server.wait_until_ready());
  TestClient client(server.port());
  const TestAnswer answer = client.post("/reranking", R"({"query":"a","documents":["b"]})");
  EXPECT_EQ(answer.status, 501);  // the vocabulary is tiny
  EXPECT_NE(answer.body.find("no single token for"), std::string::npos) << answer.body;
  EXPECT_EQ(error_type(client.post("/v1/embeddings", R"({"input":"x"})")), "not_supported_error");
}

TEST(ServerApis, HeadHasNoBody) {
  TestServer server;
  ASSERT_TRUE(server.wait_until_ready());
  TestClient client(server.port());
  const std::string length = client.get("/v1/models").headers.at("content-length");
  client.send("HEAD /v1/models HTTP/1.1\r\nHost: localhost\r\n\r\n");
  const auto head = client.receive_until("\r\n\r\n", std::chrono::seconds(5));
  ASSERT_TRUE(head);
  EXPECT_NE(head->find("Content-Length: " + length), std::string::npos) << *head;
  EXPECT_EQ(client.get("/health").status, 200);  // no byte of a body is in the way
}

TEST(ServerApis, ResponsesAreKeptForTheirKey) {
  const KeyFile keys("0123456789abcdef-one\n0123456789abcdef-two\n");
  TestServer server([&](ServerParts& parts) {
    with_chats(parts);
    parts.options.api_key_file = keys.path();
  });
  const std::string one = "x-api-key: 0123456789abcdef-one\r\n", two = "x-api-key: 0123456789abcdef-two\r\n";
  TestClient client(server.port());
  while (client.get("/health").status != 200) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  const TestAnswer made = client.post("/v1/responses", R"({"input":"Hi","max_output_tokens":4})", one);
  ASSERT_EQ(made.status, 200) << made.body;
  const std::string id = ApiJson::parse(made.body)["id"];
  const std::string next = R"({"input":"And?","max_output_tokens":4,"previous_response_id":")" + id + "\"}";
  EXPECT_EQ(client.post("/v1/responses", next, one).status, 200);
  EXPECT_EQ(client.post("/v1/responses", next, two).status, 404);
  EXPECT_EQ(client.get("/v1/responses/" + id, one).body, made.body);
  EXPECT_EQ(client.get("/v1/responses/" + id, two).status, 404);
  EXPECT_EQ(ApiJson::parse(client.get("/v1/responses/" + id + "/input_items", one).body)["data"].size(), 1u);
  const std::string remove = "DELETE /v1/responses/" + id + " HTTP/1.1\r\nHost: localhost\r\n";
  client.send(remove + two + "\r\n");
  EXPECT_EQ(client.read_answer().status, 404);
  client.send(remove + one + "\r\n");
  EXPECT_EQ(client.read_answer().status, 200);
  EXPECT_EQ(client.post("/v1/responses", next, one).status, 404);
}

TEST(ServerApis, ErrorsHaveTheFormOfTheirApi) {
  TestServer server(with_chats);
  ASSERT_TRUE(server.wait_until_ready());
  TestClient client(server.port());
  const ApiJson anthropic = ApiJson::parse(client.post("/v1/messages", "{}").body);
  EXPECT_EQ(anthropic["type"], "error");
  EXPECT_EQ(anthropic["error"]["type"], "invalid_request_error");
  EXPECT_EQ(ApiJson::parse(client.post("/v1/responses", "{}").body)["error"]["param"], "input");
  EXPECT_EQ(ApiJson::parse(client.get("/v1/messages").body)["type"], "error");
}

TEST(ServerApis, ClientsOfOllamaAndLlamaServerAreAnswered) {
  TestServer server(with_chats);
  ASSERT_TRUE(server.wait_until_ready());
  TestClient client(server.port());
  const std::string name = ApiJson::parse(client.get("/api/tags").body)["models"][0]["name"];
  EXPECT_TRUE(ApiJson::parse(client.get("/api/version").body).contains("version"));
  const std::string model = R"({"model":")" + name + "\"";
  EXPECT_TRUE(ApiJson::parse(client.post("/api/show", model + "}").body).contains("model_info"));
  const std::string options = R"("options":{"temperature":0,"num_predict":6})";
  const TestAnswer chat = client.post("/api/chat", model + "," + kHiThere + "," + options + "}");
  EXPECT_EQ(chat.status, 200) << chat.body;
  EXPECT_EQ(chat.headers.at("content-type"), "application/x-ndjson");
  std::string streamed;
  size_t begin = 0;
  for (size_t end = 0; (end = chat.body.find('\n', begin)) != std::string::npos; begin = end + 1)
    streamed += ApiJson::parse(chat.body.substr(begin, end - begin))["message"]["content"];
  EXPECT_EQ(begin, chat.body.size());
  const TestAnswer whole =
      client.post("/api/chat", model + R"(,"stream":false,)" + kHiThere + "," + options + "}");
  const ApiJson answer = ApiJson::parse(whole.body);
  EXPECT_EQ(answer["message"]["content"], streamed);
  EXPECT_EQ(answer["eval_count"], 6);
  const std::string raw =
      client.post("/api/generate", model + R"(,"prompt":"red","raw":true,"stream":false,)" + options + "}")
          .body;
  const std::string plain = R"({"prompt":"red","n_predict":6,"temperature":0})";
  EXPECT_EQ(ApiJson::parse(raw)["response"],
            ApiJson::parse(client.post("/completion", plain).body)["content"]);
  const TestAnswer events = client.post("/completion", R"({"prompt":[2,"red"],"n_predict":3,"stream":true})");
  EXPECT_EQ(events.headers.at("content-type"), "text/event-stream; charset=utf-8");
  EXPECT_NE(events.body.find("\"stop\":true"), std::string::npos);
  const TestAnswer refused = client.post("/api/chat", R"({"model":"none","messages":[]})");
  EXPECT_EQ(refused.status, 404);
  EXPECT_TRUE(ApiJson::parse(refused.body)["error"].is_string()) << refused.body;
}

TEST(ServerApis, OneCompletionMayHaveManyPrompts) {
  TestServer server([](ServerParts& parts) { parts.options.max_queue = 40; });
  ASSERT_TRUE(server.wait_until_ready());
  TestClient client(server.port());
  const auto body_of = [](int prompts) {
    const ApiJson body = {{"prompt", std::vector<std::string>(static_cast<size_t>(prompts), "hello")},
                          {"max_tokens", 2},
                          {"temperature", 0}};
    return body.dump();
  };
  const TestAnswer answer = client.post("/v1/completions", body_of(44));
  ASSERT_EQ(answer.status, 200) << answer.body;
  EXPECT_EQ(ApiJson::parse(answer.body)["choices"].size(), 44u);
  EXPECT_EQ(client.post("/v1/completions", body_of(45)).status, 400);  // more than batch and queue
}

TEST(ServerApis, TakeBodiesInGzip) {
  TestServer server;
  ASSERT_TRUE(server.wait_until_ready());
  TestClient client(server.port());
  // `printf %s '{"prompt":"hello","max_tokens":2}' | gzip -n9`
  const std::string packed(
      "\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03\xab\x56\x2a\x28\xca\xcf\x2d\x28\x51\xb2"
      "\x52\xca\x48\xcd\xc9\xc9\x57\xd2\x51\xca\x4d\xac\x88\x2f\xc9\xcf\x4e\xcd\x2b\x56\xb2\x32\xaa\x05\x00"
      "\xd8\x8c\x44\x27\x21\x00\x00\x00",
      53);
  EXPECT_EQ(client.post("/v1/completions", packed, "Content-Encoding: gzip\r\n").status, 200);
  EXPECT_EQ(client.post("/tokenize", packed, "Content-Encoding: GZIP\r\n").status, 200);
  EXPECT_EQ(client.post("/v1/completions", packed.substr(0, 30), "Content-Encoding: gzip\r\n").status, 400);
  EXPECT_EQ(client.post("/v1/completions", packed, "Content-Encoding: br\r\n").status, 415);
}

// A client may store as much as it likes: the memory stays within its limit, and new conversations still
// work.
TEST(ServerApis, StoredConversationsStayWithinTheirMemory) {
  TestServer server([](ServerParts& parts) {
    with_chats(parts);
    parts.options.response_memory = 1;
  });
  ASSERT_TRUE(server.wait_until_ready());
  TestClient client(server.port());
  // The template shows only roles and contents, so this hidden text costs memory and no tokens.
  const std::string hidden(25 << 10, 'r');
  std::string first, last;
  for (int i = 0; i < 40; ++i) {
    const TestAnswer answer =
        client.post("/v1/responses",
                    R"({"max_output_tokens":2,"input":[{"type":"reasoning","summary":[],"content":")" +
                        hidden + R"("},{"role":"assistant","content":"a"},{"role":"user","content":"Hi"}]})");
    ASSERT_EQ(answer.status, 200) << answer.body;
    last = ApiJson::parse(answer.body)["id"];
    if (i == 0) first = last;
  }
  EXPECT_EQ(client.get("/v1/responses/" + first).status, 404);
  EXPECT_EQ(client.get("/v1/responses/" + last).status, 200);
  const TestAnswer refused = client.post(
      "/v1/responses", R"({"input":"Hi","metadata":{"x":")" + std::string(100 << 10, 'r') + "\"}}");
  EXPECT_EQ(refused.status, 400);
}

}  // namespace
}  // namespace outrider
