// SPDX-License-Identifier: Apache-2.0
#include "tests/fleet/fleet_fixture.h"

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>
#include <utility>

#include "config/environment.h"

namespace outrider {
namespace {

constexpr int64_t kEach = 100;  // bytes that are planned for each model, whatever it takes

}  // namespace

std::string fleet_completion(const std::string& model, bool streams, int tokens) {
  return nlohmann::json({{"model", model},
                         {"prompt", "hello"},
                         {"max_tokens", tokens},
                         {"temperature", 0},
                         {"ignore_eos", true},
                         {"stream", streams}})
      .dump();
}

FleetModel fleet_model(const std::string& name, const std::vector<std::string>& options,
                       const std::string& path) {
  FleetModel model{.name = name, .arguments = {"serve", path}, .bytes = kEach};
  if (path.empty()) model.arguments[1] = OUTRIDER_SOURCE_DIR "/tests/data/models/" + name;
  model.arguments.insert(model.arguments.end(), {"--served-model-name", name, "--threads", "1", "--kv-pages",
                                                 "80", "--cache-dir", "none"});
  model.arguments.insert(model.arguments.end(), options.begin(), options.end());
  return model;
}

FleetOptions fleet_of(const std::vector<std::string>& names, size_t places) {
  FleetOptions options{
      .program = OUTRIDER_PROGRAM, .environment = environment_without({}), .drain_timeout = 5};
  for (const std::string& name : names) options.models.push_back(fleet_model(name));
  options.memory = places < names.size() ? kEach : int64_t{1} << 40;
  return options;
}
FleetServer::FleetServer(FleetOptions options, const std::function<void(ServerParts&)>& change)
    : TestServer([&](ServerParts& parts) {
        parts.fleet = std::move(options);
        if (change) change(parts);
      }) {}

nlohmann::json FleetServer::stats(const std::string& model) const {
  const nlohmann::json all = nlohmann::json::parse(client().get("/stats").body);
  for (const nlohmann::json& entry : all["models"]) {
    if (entry["model"] == model) return entry;
  }
  return {};
}

bool FleetServer::wait_for_state(const std::string& model, const std::string& state) const {
  for (int i = 0; i < 1000; ++i) {
    if (stats(model)["state"] == state) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

std::map<std::string, std::string> texts_of(const std::vector<std::string>& names) {
  std::map<std::string, std::string> texts;
  for (const std::string& name : names) {
    const std::filesystem::path output = std::filesystem::path(testing::TempDir()) / "fleet_alone";
    const std::string line =
        std::string(OUTRIDER_PROGRAM) + " generate " OUTRIDER_SOURCE_DIR "/tests/data/models/" + name +
        " -p hello --max-tokens 12 --temperature 0 --ignore-eos --speculative none --json > " +
        output.string();
    EXPECT_EQ(std::system(line.c_str()), 0);
    std::ifstream file(output);
    texts[name] = nlohmann::json::parse(file)["text"];
  }
  return texts;
}

const std::map<std::string, std::string>& texts_alone() {
  static const std::map<std::string, std::string> kTexts = texts_of(kFleetNames);
  return kTexts;
}

}  // namespace outrider
