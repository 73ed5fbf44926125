// SPDX-License-Identifier: Apache-2.0
// The audit log: what operators and keys do, and who is refused.
#include <gtest/gtest.h>
#include <chrono>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "tests/serving/serving.h"
#include "tests/serving/serving_calls.h"
#include "tests/support/test_certificate.h"

namespace outrider {
namespace {

namespace fs = std::filesystem;
using AuditJson = nlohmann::json;

const std::string kOne = "Authorization: Bearer 0123456789abcdef-one\r\n",
                  kTwo = "x-api-key: 0123456789abcdef-two\r\n";

class ServedAudit : public testing::Test {
 protected:
  ServedAudit() {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  ~ServedAudit() override { fs::remove_all(folder_); }

  void configure(ServerParts& parts) const {
    parts.options.audit_log = path_;
    parts.options.api_key_file = keys_.path();
    parts.options.slot_folder = folder_ / "slots";
    parts.options.batch_folder = folder_ / "batches";
    parts.options.adapter_folder = folder_;
  }
  auto configured() const {
    return [this](ServerParts& parts) { configure(parts); };
  }
  std::vector<AuditJson> lines(const fs::path& path) const {
    std::vector<AuditJson> found;
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) {
      EXPECT_EQ(line.find("0123456789abcdef"), std::string::npos) << "a key's value";
      found.push_back(AuditJson::parse(line));
    }
    return found;
  }
  // "action outcome subject" of every line.
  std::vector<std::string> summary(const fs::path& path) const {
    std::vector<std::string> texts;
    for (const AuditJson& line : lines(path)) {
      const std::string subject = line.value("subject", "");
      texts.push_back(line["action"].get<std::string>() + " " + line["outcome"].get<std::string>() +
                      (subject.empty() ? "" : " " + subject));
    }
    return texts;
  }

  const fs::path folder_ = fs::path(testing::TempDir()) / "served_audit";
  const fs::path path_ = folder_ / "audit.jsonl";
  const KeyFile keys_{"0123456789abcdef-one team-a\n0123456789abcdef-two\n"};
};

std::string form_with(const std::string& lines) {
  return "--b\r\nContent-Disposition: form-data; name=\"purpose\"\r\n\r\nbatch\r\n--b\r\n"
         "Content-Disposition: form-data; name=\"file\"; filename=\"a.jsonl\"\r\n\r\n" +
         lines + "\r\n--b--\r\n";
}

std::string id_in(const TestAnswer& answer) {
  const AuditJson json = AuditJson::parse(answer.body, nullptr, false);
  return json.is_object() ? json.value("id", "") : "";
}

TestAnswer upload(TestClient& client) {
  const std::string body = form_with(R"({"custom_id":"a","method":"POST","url":"/v1/completions","body":)" +
                                     long_call(false) + "}");
  client.send("POST /v1/files HTTP/1.1\r\nHost: localhost\r\n" + kOne +
              "Content-Type: multipart/form-data; boundary=b\r\nContent-Length: " +
              std::to_string(body.size()) + "\r\n\r\n" + body);
  return client.read_answer();
}

TestAnswer erase(TestClient& client, const std::string& path) {
  client.send("DELETE " + path + " HTTP/1.1\r\nHost: localhost\r\n" + kOne + "\r\n");
  return client.read_answer();
}

// Until its lines have ended, a batch keeps its file.
void wait_until_cancelled(TestClient& client, const std::string& batch) {
  for (int i = 0; i < 1000; ++i) {
    const TestAnswer answer = client.get("/v1/batches/" + batch, kOne);
    if (answer.body.find(R"("status":"cancelled")") != std::string::npos) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  FAIL() << batch << " is not cancelled";
}

TEST_F(ServedAudit, WhatAKeyDoesIsThere) {
  std::string file, batch, response;
  {
    TestServer server([this](ServerParts& parts) {
      configure(parts);
      with_slow_engine(parts);  // the batch is cancelled before its end
    });
    ASSERT_TRUE(server.wait_until_ready());
    TestClient client(server.port());
    EXPECT_EQ(client.post("/v1/completions", kShort, kOne).status, 200);
    client.get("/v1/models", kOne);
    client.get("/health");
    client.post("/slots/1?action=save", R"({"filename":"story"})", kOne);
    client.post("/slots/1?action=erase", "{}", kOne);
    client.post("/v1/load_lora_adapter", R"({"lora_name":"sql","lora_path":"none"})", kTwo);
    file = id_in(upload(client));
    client.get("/v1/files/" + file + "/content", kOne);
    batch = id_in(client.post(
        "/v1/batches",
        R"({"input_file_id":")" + file + R"(","endpoint":"/v1/completions","completion_window":"24h"})",
        kOne));
    client.post("/v1/batches/" + batch + "/cancel", "{}", kOne);
    wait_until_cancelled(client, batch);
    erase(client, "/v1/files/" + file);
    erase(client, "/v1/responses/nosuch");
    client.post("/v1/requests/nosuch/cancel", "{}", kOne);
    ASSERT_TRUE(server.stop().ok());
  }
  const std::vector<std::string> expected = {"start ok",
                                             "model_loaded ok tiny",
                                             "slot_save failed 1 story",
                                             "slot_erase ok 1",
                                             "adapter_load failed sql",
                                             "file_create ok " + file,
                                             "file_read ok " + file,
                                             "batch_create ok " + batch,
                                             "batch_cancel ok " + batch,
                                             "file_delete ok " + file,
                                             "response_delete failed nosuch",
                                             "request_cancel failed nosuch",
                                             "stop ok"};
  EXPECT_EQ(summary(path_), expected);
  const AuditJson adapter = lines(path_)[4];
  EXPECT_EQ(adapter["key"], "key-2");
  EXPECT_EQ(adapter["client"], "127.0.0.1");
  EXPECT_EQ(adapter["route"], "/v1/load_lora_adapter");
  EXPECT_EQ(adapter["status"], 400);
}

TEST_F(ServedAudit, WhoIsRefusedIsThere) {
  {
    TestServer server([this](ServerParts& parts) {
      configure(parts);
      parts.options.requests_per_minute = 1;
    });
    ASSERT_TRUE(server.wait_until_ready());
    TestClient client(server.port());
    EXPECT_EQ(client.post("/v1/completions", kShort, "x-api-key: 0123456789abcdef-no\r\n").status, 401);
    client.send("GET /v1/models HTTP/1.1\r\nHost: evil.example\r\n" + kOne + "\r\n");
    EXPECT_EQ(client.read_answer().status, 403);
    EXPECT_EQ(client.post("/v1/completions", kShort, kOne).status, 200);
    EXPECT_EQ(client.post("/v1/completions", kShort, kOne).status, 429);
    EXPECT_EQ(client.get("/nosuch", kOne).status, 404);
    ASSERT_TRUE(server.stop().ok());
  }
  std::vector<std::string> refused;
  for (const AuditJson& line : lines(path_)) {
    if (line["outcome"] == "refused")
      refused.push_back(line["action"].get<std::string>() + " " + line["error"].get<std::string>() + " " +
                        line.value("route", "") + " " + line.value("key", ""));
  }
  const std::vector<std::string> expected = {"request invalid_api_key /v1/completions ",
                                             "request host_not_allowed /v1/models ",
                                             "request rate_limit_exceeded /v1/completions team-a"};
  EXPECT_EQ(refused, expected);
}

TEST_F(ServedAudit, SighupOpensTheFileAgain) {
  const TestCertificate certificate;
  {
    TestServer server([&](ServerParts& parts) {
      configure(parts);
      parts.options.certificate = certificate.certificate();
      parts.options.certificate_key = certificate.key();
    });
    ASSERT_TRUE(server.wait_until_ready());
    fs::rename(path_, folder_ / "audit.1");
    keys_.write("short\n");
    server.server().reload();
    EXPECT_EQ(server.client().get("/v1/models", kOne).status, 200);
    ASSERT_TRUE(server.stop().ok());
  }
  EXPECT_EQ(summary(folder_ / "audit.1"), (std::vector<std::string>{"start ok", "model_loaded ok tiny"}));
  EXPECT_EQ(summary(path_),
            (std::vector<std::string>{"keys_reload failed", "certificate_reload ok", "stop ok"}));
}

// A full disk costs lines and no answer, and the log says how many when it can.
TEST_F(ServedAudit, AFullDiskCostsLines) {
  fs::create_symlink(folder_ / "real", path_);
  {
    TestServer server(configured());
    ASSERT_TRUE(server.wait_until_ready());
    TestClient client(server.port());
    const auto point_to = [&](const fs::path& target) {
      fs::remove(path_);
      fs::create_symlink(target, path_);
      server.server().reload();
      client.get("/health");  // which comes after it
    };
    point_to("/dev/full");
    for (int i = 0; i < 3; ++i) EXPECT_EQ(client.post("/slots/1?action=erase", "{}", kOne).status, 200);
    const std::string metrics = client.get("/metrics", kOne).body;
    EXPECT_NE(metrics.find("outrider:audit_lines_lost_total{model_name=\"tiny\",engine=\"0\"} 4\n"),
              std::string::npos);
    point_to(folder_ / "later");
    ASSERT_TRUE(server.stop().ok());
  }
  const std::vector<AuditJson> found = [&] {
    std::vector<AuditJson> all;
    std::ifstream file(folder_ / "later");
    for (std::string line; std::getline(file, line);) all.push_back(AuditJson::parse(line));
    return all;
  }();
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0]["action"], "audit_lines_lost");
  EXPECT_EQ(found[0]["lines"], 4);
  EXPECT_EQ(found[1]["action"], "keys_reload");
}

TEST_F(ServedAudit, AServerThatCannotKeepItDoesNotStart) {
  for (const fs::path path : {"/dev/full", "/nonexistent/audit"}) {
    ServerParts parts;
    parts.options.port = 0;
    parts.options.audit_log = path;
    const auto server = Server::listen(std::move(parts));
    ASSERT_FALSE(server.ok());
    EXPECT_NE(server.error().message.find(path.string()), std::string::npos) << server.error().message;
  }
}

}  // namespace
}  // namespace outrider
