// SPDX-License-Identifier: Apache-2.0
// The list of models is read again while the server runs.
#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tests/fleet/fleet_fixture.h"
#include "tests/serving/serve_process.h"
#include "tests/serving/serving_calls.h"

namespace outrider {
namespace {

namespace fs = std::filesystem;
using ReloadJson = nlohmann::json;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr auto kPatience = seconds(300);  // for a stream of seconds on a machine that is busy otherwise

// A list of models that a test changes, as an operator changes a file.
class ChangingList {
 public:
  explicit ChangingList(const std::vector<std::string>& names) { set(models_of(names)); }

  static std::vector<FleetModel> models_of(const std::vector<std::string>& names) {
    std::vector<FleetModel> models;
    for (const std::string& name : names) models.push_back(fleet_model(name));
    return models;
  }
  void set(Result<std::vector<FleetModel>> models) {
    const std::lock_guard lock(mutex_);
    models_ = std::move(models);
    ++number_;
  }
  FleetOptions options() {
    FleetOptions options = fleet_of({}, 1);
    options.memory = int64_t{1} << 40;
    options.models = *models_;
    options.read_models = [this] {
      const std::lock_guard lock(mutex_);
      read_ = number_;
      return models_;
    };
    return options;
  }
  // Lets the server read this list, and waits until it has.
  void set_and_reload(FleetServer& server, Result<std::vector<FleetModel>> models) {
    set(std::move(models));
    server.server().reload();
    while (true) {
      std::this_thread::sleep_for(milliseconds(5));
      const std::lock_guard lock(mutex_);
      if (read_ == number_) break;
    }
    std::this_thread::sleep_for(milliseconds(50));  // the I/O thread takes it over
  }

 private:
  std::mutex mutex_;
  Result<std::vector<FleetModel>> models_ = std::vector<FleetModel>();
  int number_ = 0, read_ = 0;
};

std::vector<std::string> listed(const FleetServer& server) {
  std::vector<std::string> names;
  const ReloadJson models = ReloadJson::parse(server.client().get("/v1/models").body);
  for (const ReloadJson& model : models["data"]) names.push_back(model["id"]);
  return names;
}

TEST(FleetReload, NewModelsAppearAndGoneOnesAreRefused) {
  ChangingList list({"llama", "qwen2"});
  FleetServer server(list.options());
  EXPECT_EQ(text_of(server.ask(fleet_completion("llama"))), texts_alone().at("llama"));
  list.set_and_reload(server, ChangingList::models_of({"qwen2", "gpt2"}));
  EXPECT_EQ(listed(server), (std::vector<std::string>{"qwen2", "gpt2"}));
  EXPECT_EQ(server.ask(fleet_completion("llama")).status, 404);
  EXPECT_EQ(text_of(server.ask(fleet_completion("gpt2"))), texts_alone().at("gpt2"));
  for (int i = 0; i < 3000 && !server.stats("llama").is_null(); ++i)
    std::this_thread::sleep_for(milliseconds(10));
  EXPECT_TRUE(server.stats("llama").is_null()) << "its engine has ended";
  list.set_and_reload(server, ChangingList::models_of({"llama", "gpt2"}));
  EXPECT_EQ(text_of(server.ask(fleet_completion("llama"))), texts_alone().at("llama"));
  EXPECT_EQ(server.stats("gpt2")["starts"], 1);
}

FleetModel long_model(const std::vector<std::string>& options = {}) {
  std::vector<std::string> all = {"--kernels", "reference", "--speculative", "none"};
  all.insert(all.end(), options.begin(), options.end());
  return fleet_model("long", all, OUTRIDER_SOURCE_DIR "/models/outrider-small");
}

TEST(FleetReload, RunningRequestsOfAGoneModelEnd) {
  ChangingList list({"llama"});
  list.set(std::vector<FleetModel>{fleet_model("llama"), long_model()});
  FleetServer server(list.options());
  TestClient client = server.client();
  client.send(post_text("/v1/completions", fleet_completion("long", true, 300)));
  const auto begin = client.receive_until("data: ", seconds(20));
  ASSERT_TRUE(begin);
  list.set_and_reload(server, ChangingList::models_of({"llama"}));
  EXPECT_EQ(server.ask(fleet_completion("long")).status, 404);
  EXPECT_TRUE(client.receive_until("data: [DONE]", kPatience));
  for (int i = 0; i < 3000 && !server.stats("long").is_null(); ++i)
    std::this_thread::sleep_for(milliseconds(10));
  EXPECT_TRUE(server.stats("long").is_null());
}

int64_t batch_of(const FleetServer& server, const std::string& model) {
  return ReloadJson::parse(server.client().get("/stats?model=" + model).body).value("max_batch", 0);
}

TEST(FleetReload, OtherOptionsWaitUntilTheEngineIsIdle) {
  ChangingList list({});
  list.set(std::vector<FleetModel>{long_model({"--max-batch", "3"}), fleet_model("llama")});
  FleetServer server(list.options());
  TestClient client = server.client();
  client.send(post_text("/v1/completions", fleet_completion("long", true, 300)));
  ASSERT_TRUE(client.receive_until("data: ", seconds(20)));
  EXPECT_EQ(server.ask(fleet_completion("llama")).status, 200);
  list.set_and_reload(server,
                      std::vector<FleetModel>{long_model({"--max-batch", "5"}), fleet_model("llama")});
  EXPECT_EQ(batch_of(server, "long"), 3);
  EXPECT_TRUE(client.receive_until("data: [DONE]", kPatience));
  for (int i = 0; i < 3000 && batch_of(server, "long") != 5; ++i)
    std::this_thread::sleep_for(milliseconds(10));
  EXPECT_EQ(batch_of(server, "long"), 5) << "it is loaded again without a request";
  EXPECT_EQ(server.stats("long")["starts"], 2);
  EXPECT_EQ(server.stats("llama")["starts"], 1);
}

TEST(FleetReload, AListWithAnErrorIsNotTakenOver) {
  const fs::path path = fs::path(testing::TempDir()) / "fleet_reload_audit";
  fs::remove(path);
  testing::internal::CaptureStderr();
  {
    ChangingList list({"llama"});
    FleetServer server(list.options(), [&](ServerParts& parts) { parts.options.audit_log = path; });
    EXPECT_EQ(server.ask(fleet_completion("llama")).status, 200);
    list.set_and_reload(server, input_error("list.yaml:3: expected a list"));
    EXPECT_EQ(listed(server), std::vector<std::string>{"llama"});
    EXPECT_EQ(server.ask(fleet_completion("llama")).status, 200);
    EXPECT_EQ(server.stats("llama")["starts"], 1);
    EXPECT_EQ(server.client().post("/v1/models/unload", R"({"model": "llama"})").status, 200);
    EXPECT_TRUE(server.wait_for_state("llama", "unloaded"));
  }
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_NE(log.find(R"("event":"models_kept","detail":"list.yaml:3: expected a list")"), std::string::npos)
      << log;
  std::vector<std::string> actions;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const ReloadJson json = ReloadJson::parse(line);
    actions.push_back(json["action"].get<std::string>() + " " + json["outcome"].get<std::string>());
  }
  EXPECT_EQ(actions, (std::vector<std::string>{"start ok", "model_loaded ok", "models_reload failed",
                                               "model_unload ok", "model_unloaded ok", "stop ok"}));
}

// Two models stay, one of them with options that change; two others come and go. No request is dropped.
TEST(FleetReload, NoRequestIsDroppedUnderLoad) {
  const std::vector<std::string> stay = {"llama", "qwen2"}, come = {"gpt2", "olmo2"};
  ChangingList list({"llama", "qwen2", "gpt2", "olmo2"});
  FleetServer server(list.options());
  ASSERT_FALSE(texts_alone().empty());
  std::atomic<bool> is_over = false;
  std::atomic<int> right = 0, refused = 0, wrong = 0;
  const auto ask = [&](unsigned seed) {
    std::mt19937 random(seed);
    while (!is_over) {
      const bool stays = random() % 2 == 0, streams = random() % 2 == 0;
      const std::string& name = (stays ? stay : come)[random() % 2];
      TestClient client = server.client();
      client.send(post_text("/v1/completions", fleet_completion(name, streams)));
      const TestAnswer answer = client.read_answer(seconds(120));
      const std::string events =
          streams ? answer.body.substr(std::min(answer.body.find("data: "), answer.body.size())) : "";
      const bool is_right = answer.status == 200 && answer.is_whole &&
                            (streams ? streamed_text(events) : text_of(answer)) == texts_alone().at(name);
      const bool is_refused = !stays && answer.status == 404;
      ++(is_right ? right : is_refused ? refused : wrong);
      if (!is_right && !is_refused) ADD_FAILURE() << name << ": " << answer.status << " " << answer.body;
    }
  };
  std::vector<std::thread> clients;
  for (unsigned i = 0; i < 8; ++i) clients.emplace_back(ask, i);
  for (int round = 0; round < 12; ++round) {
    std::vector<FleetModel> models = {fleet_model("llama", {"--max-batch", std::to_string(2 + round % 3)}),
                                      fleet_model("qwen2")};
    for (const std::string& name : come) {
      if (round % 3 != 0 || name == come[static_cast<size_t>(round) % 2])
        models.push_back(fleet_model(name, round % 4 == 3 ? std::vector<std::string>{"--max-batch", "3"}
                                                          : std::vector<std::string>{}));
    }
    list.set_and_reload(server, std::move(models));
    std::this_thread::sleep_for(milliseconds(400));
  }
  is_over = true;
  for (std::thread& client : clients) client.join();
  std::printf("%d right, %d refused while their model was gone, %d wrong; llama started %d times\n",
              right.load(), refused.load(), wrong.load(), server.stats("llama")["starts"].get<int>());
  EXPECT_EQ(wrong, 0);
  EXPECT_GT(right, 50);
  EXPECT_GT(server.stats("llama")["starts"].get<int>(), 1);
}

// The program itself, with a file and a signal.
TEST(FleetReload, SighupReadsAFile) {
  const fs::path path = fs::path(testing::TempDir()) / "fleet_reload_list.yaml";
  const auto write = [&](const std::string& text) { std::ofstream(path) << text; };
  const std::string llama = "  - model: " OUTRIDER_SOURCE_DIR "/tests/data/models/llama\n    name: llama\n",
                    gpt2 = "  - model: " OUTRIDER_SOURCE_DIR "/tests/data/models/gpt2\n    name: gpt2\n";
  write("models:\n" + llama);
  const ServeProcess server({"--models", path.string(), "--cache-dir", "none", "--threads", "1"}, {}, "");
  ASSERT_TRUE(server.wait_until_ready());
  const auto status = [&](const std::string& model) {
    return TestClient(server.port()).post("/v1/completions", fleet_completion(model)).status;
  };
  EXPECT_EQ(status("llama"), 200);
  EXPECT_EQ(status("gpt2"), 404);
  write("models:\n" + llama + gpt2);
  server.send(SIGHUP);
  for (int i = 0; i < 3000 && status("gpt2") != 200; ++i) std::this_thread::sleep_for(milliseconds(10));
  EXPECT_EQ(status("gpt2"), 200);
  write("models:\n  - name: broken\n");
  server.send(SIGHUP);
  std::this_thread::sleep_for(milliseconds(300));
  EXPECT_EQ(status("gpt2"), 200);
  EXPECT_EQ(status("llama"), 200);
}

}  // namespace
}  // namespace outrider
