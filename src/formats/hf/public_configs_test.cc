// SPDX-License-Identifier: Apache-2.0
// The config.json of public models: models of supported families are read, others are refused by name.
// "source" says where a file was found; keys of vision, audio and labels are left out.
#include <gtest/gtest.h>
#include <simdjson.h>

#include <string>
#include <string_view>
#include <utility>

#include "formats/hf/hf_config.h"
#include "formats/test_outcome.h"

namespace outrider {
namespace {

const char* const kPath = OUTRIDER_SOURCE_DIR "/tests/data/formats/public_configs.json";

TEST(PublicConfigs, AreReadOrRefusedByName) {
  simdjson::dom::parser parser;
  size_t found = 0;
  for (const simdjson::dom::element entry : simdjson::dom::array(parser.load(kPath))) {
    SCOPED_TRACE(std::string(std::string_view(entry["name"])));
    found += std::string_view(entry["source"]) != "written from memory";
    const auto config = parse_hf_config(simdjson::minify(simdjson::dom::element(entry["config"])));
    std::string_view family;
    if (entry["family"].get(family) == simdjson::SUCCESS) {
      ASSERT_TRUE(config.ok()) << config.error().message;
      EXPECT_EQ(config->family, family);
    } else if (!config.ok()) {
      const std::string& message = config.error().message;
      EXPECT_NE(message.find(" is not supported"), message.npos) << message;
      EXPECT_EQ(message.find('\n'), message.npos);
    }
  }
  EXPECT_GE(found, 60U);
}

TEST(PublicConfigs, EveryByteReplaced) {
  simdjson::dom::parser parser;
  std::string_view last;
  for (const simdjson::dom::element entry : simdjson::dom::array(parser.load(kPath))) {
    std::string_view family;
    if (entry["family"].get(family) != simdjson::SUCCESS || std::exchange(last, family) == family) continue;
    SCOPED_TRACE(family);
    const std::string valid = simdjson::minify(simdjson::dom::element(entry["config"]));
    for (size_t i = 0; i < valid.size(); ++i) {
      constexpr std::string_view kOthers("\0\"{}[,:9-\\\xff", 11);
      std::string text = valid;
      text[i] = kOthers[i % kOthers.size()];
      expect_refused_or_valid(parse_hf_config(text));
    }
  }
}

}  // namespace
}  // namespace outrider
