// SPDX-License-Identifier: Apache-2.0
// llama-server's actions on slots.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/serving/serving.h"
#include "tests/serving/serving_calls.h"

namespace outrider {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

class ServerSlots : public testing::Test {
 protected:
  ServerSlots() {
    std::string pattern = (fs::temp_directory_path() / "serving_slots_XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
  }
  ~ServerSlots() override { fs::remove_all(folder_); }

  auto with_folder() const {
    return [this](ServerParts& parts) { parts.options.slot_folder = folder_; };
  }
  static Json complete(TestClient& client, const std::string& more) {
    const std::string body = R"({"prompt":")" + std::string(160, 'a') + R"(","max_tokens":4)" + more + "}";
    const TestAnswer answer = client.post("/v1/completions", body);
    EXPECT_EQ(answer.status, 200) << answer.body;
    return Json::parse(answer.body);
  }
  static int64_t cached(const Json& answer) {
    return answer["usage"]["prompt_tokens_details"]["cached_tokens"];
  }

  fs::path folder_;
};

TEST_F(ServerSlots, SaveEraseAndRestoreAText) {
  std::string text;
  {
    TestServer server(with_folder());
    ASSERT_TRUE(server.wait_until_ready());
    TestClient client(server.port());
    text = complete(client, R"(,"id_slot":1)")["choices"][0]["text"];
    const TestAnswer saved = client.post("/slots/1?action=save", R"({"filename":"story.bin"})");
    ASSERT_EQ(saved.status, 200) << saved.body;
    const Json json = Json::parse(saved.body);
    EXPECT_EQ(json["id_slot"], 1);
    EXPECT_EQ(json["filename"], "story.bin");
    EXPECT_GT(json["n_saved"], 0);
    EXPECT_EQ(json["n_written"], fs::file_size(folder_ / "story.bin"));
    EXPECT_GE(json["timings"]["save_ms"], 0.0);
    const TestAnswer erased = client.post("/slots/1?action=erase", "{}");
    EXPECT_EQ(erased.status, 200);
    EXPECT_GE(Json::parse(erased.body)["n_erased"], json["n_saved"]);
    EXPECT_EQ(cached(complete(client, "")), 0) << "nothing of it is left";
    EXPECT_EQ(client.post("/slots/1?action=save", R"({"filename":"none"})").status, 400);
  }
  TestServer server(with_folder());
  ASSERT_TRUE(server.wait_until_ready());
  TestClient client(server.port());
  const TestAnswer restored = client.post("/slots/0?action=restore", R"({"filename":"story.bin"})");
  ASSERT_EQ(restored.status, 200) << restored.body;
  const Json json = Json::parse(restored.body);
  EXPECT_GT(json["n_restored"], 0);
  EXPECT_EQ(json["n_read"], fs::file_size(folder_ / "story.bin"));
  EXPECT_GE(json["timings"]["restore_ms"], 0.0);
  const Json again = complete(client, "");
  EXPECT_GT(cached(again), 0);
  EXPECT_EQ(again["choices"][0]["text"], text);
  EXPECT_EQ(client.post("/slots/0?action=save", R"({"filename":"copy"})").status, 200)
      << "the slot has its text";
}

TEST_F(ServerSlots, RefuseWhatIsNotThere) {
  TestServer server(with_folder());
  ASSERT_TRUE(server.wait_until_ready());
  TestClient client(server.port());
  complete(client, "");
  const auto status = [&](const std::string& query, const std::string& body) {
    return client.post("/slots/" + query, body).status;
  };
  for (const char* name :
       {"../x", "a/b", "/etc/passwd", "", ".", "..", ".x", "x.tmp", "x.state", "a\\u0000b", "a b"})
    EXPECT_EQ(status("0?action=save", std::string(R"({"filename":")") + name + R"("})"), 400) << name;
  EXPECT_EQ(status("0?action=save", "{}"), 400);
  EXPECT_EQ(status("0?action=fly", R"({"filename":"x"})"), 400);
  EXPECT_EQ(status("0", R"({"filename":"x"})"), 400);
  EXPECT_EQ(status("99?action=save", R"({"filename":"x"})"), 400);
  EXPECT_EQ(status("x?action=save", R"({"filename":"x"})"), 400);
  EXPECT_EQ(status("0?action=restore", R"({"filename":"absent"})"), 404);
  std::ofstream(folder_ / "damaged") << "no pages";
  EXPECT_EQ(status("0?action=restore", R"({"filename":"damaged"})"), 400);
  EXPECT_EQ(client.get("/health").status, 200);
}

TEST(ServerSlotsWithoutFolder, AreRefused) {
  TestServer server;
  ASSERT_TRUE(server.wait_until_ready());
  TestClient client(server.port());
  EXPECT_EQ(client.post("/slots/0?action=save", R"({"filename":"x"})").status, 501);
}

}  // namespace
}  // namespace outrider
