// SPDX-License-Identifier: Apache-2.0
#include "cli/serving/serve_fleet.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "config/resolve_settings.h"

namespace outrider {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

const std::string kFolder = OUTRIDER_SOURCE_DIR "/models";

Result<FleetOptions> options_of(std::map<std::string, std::vector<std::string>, std::less<>> given) {
  given["models"] = {kFolder};
  const auto settings =
      resolve_settings({.command = Command::kServe, .command_line = std::move(given), .environment = {}});
  if (!settings.ok()) return settings.error();
  return fleet_options(*settings);
}

TEST(ServeFleet, EnginesHaveTheOptionsThatAreNotOfTheFront) {
  const auto fleet = options_of({{"threads", {"3"}},
                                 {"port", {"9"}},
                                 {"host", {"127.0.0.1"}},
                                 {"speculative", {"ngram,max_draft_len=3"}},
                                 {"remote-drafting", {"true"}},
                                 {"api-key", {"0123456789abcdef"}},
                                 {"no-log-routes", {"/metrics"}},
                                 {"models-memory", {"2G"}},
                                 {"pin-model", {"outrider-small"}}});
  ASSERT_TRUE(fleet.ok()) << fleet.error().message;
  EXPECT_EQ(fleet->memory, int64_t{2} << 30);
  EXPECT_THAT(fleet->environment, Contains("OUTRIDER_API_KEY=0123456789abcdef"));
  int pinned = 0;
  for (const FleetModel& model : fleet->models) {
    std::string line;
    for (const std::string& word : model.arguments) line += word + " ";
    EXPECT_THAT(line, AllOf(HasSubstr("--threads=3 "), HasSubstr("--speculative=ngram"),
                            HasSubstr("--remote-drafting "), HasSubstr("--ctx "), HasSubstr("--kv-pages "),
                            HasSubstr("--no-log-routes /health,"), HasSubstr("/cancel,/metrics "),
                            HasSubstr("--served-model-name " + model.name)));
    EXPECT_THAT(line,
                AllOf(Not(HasSubstr("--port")), Not(HasSubstr("--host")), Not(HasSubstr("0123456789"))));
    EXPECT_GT(model.bytes, int64_t{1} << 20);
    pinned += model.is_pinned ? 1 : 0;
  }
  EXPECT_EQ(pinned, 1);
}

TEST(ServeFleet, OptionsOfOneModelAreRefused) {
  const std::pair<std::map<std::string, std::vector<std::string>, std::less<>>, std::string> cases[] = {
      {{{"served-model-name", {"a"}}}, "--served-model-name or --models"},
      {{{"model", {kFolder + "/outrider-small"}}}, "MODEL or --models"},
      {{{"pin-model", {"outrider-small"}}, {"models-memory", {"20M"}}}, "the pinned models need"},
      {{{"pin-model", {"nosuch"}}}, "--pin-model: no model 'nosuch'"}};
  for (const auto& [given, part] : cases) {
    const auto fleet = options_of(given);
    ASSERT_FALSE(fleet.ok()) << part;
    EXPECT_THAT(fleet.error().message, HasSubstr(part));
  }
}

TEST(ServeFleet, AListIsReadAgain) {
  const std::filesystem::path path = std::filesystem::path(testing::TempDir()) / "serve_fleet_list.yaml";
  const auto write = [&](const std::string& text) { std::ofstream(path) << text; };
  const std::string small = "  - model: " + kFolder + "/outrider-small\n    name: small\n",
                    draft = "  - model: " + kFolder + "/outrider-draft\n    name: draft\n";
  write("models:\n" + small);
  const auto settings = resolve_settings(
      {.command = Command::kServe, .command_line = {{"models", {path.string()}}}, .environment = {}});
  ASSERT_TRUE(settings.ok());
  const auto fleet = fleet_options(*settings);
  ASSERT_TRUE(fleet.ok()) << fleet.error().message;
  const auto same = fleet->read_models();
  ASSERT_TRUE(same.ok()) << same.error().message;
  EXPECT_EQ(same->at(0).arguments, fleet->models.at(0).arguments) << "nothing starts again";
  write("models:\n" + small + "    options: {max-batch: 3}\n" + draft);
  const auto changed = fleet->read_models();
  ASSERT_TRUE(changed.ok()) << changed.error().message;
  ASSERT_EQ(changed->size(), 2u);
  EXPECT_THAT(changed->at(0).arguments, Contains("--max-batch=3"));
  write("models:\n  - name: broken\n");
  const auto broken = fleet->read_models();
  ASSERT_FALSE(broken.ok());
  EXPECT_THAT(broken.error().message, HasSubstr("serve_fleet_list.yaml:2"));
}

}  // namespace
}  // namespace outrider
