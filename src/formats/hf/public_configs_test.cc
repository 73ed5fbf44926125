// SPDX-License-Identifier: Apache-2.0
// The numbers of the config.json of 43 public models: a reader takes them, or says by name what it lacks.
#include <gtest/gtest.h>
#include <simdjson.h>

#include <string>

#include "formats/hf/hf_config.h"

namespace outrider {
namespace {

TEST(PublicConfigs, AreReadOrRefusedByName) {
  simdjson::dom::parser parser;
  const char* const path = OUTRIDER_SOURCE_DIR "/tests/data/formats/public_configs.json";
  size_t models = 0, read = 0;
  for (const simdjson::dom::element entry : simdjson::dom::array(parser.load(path))) {
    SCOPED_TRACE(std::string(std::string_view(entry["name"])));
    ++models;
    const auto config = parse_hf_config(simdjson::minify(simdjson::dom::element(entry["config"])));
    if (config.ok()) {
      EXPECT_EQ(config->family, std::string_view(entry["family"]));
      ++read;
    } else {
      const std::string& message = config.error().message;
      EXPECT_TRUE(message.find("not supported") != message.npos || message.find("is missing") != message.npos)
          << message;
      EXPECT_EQ(message.find('\n'), message.npos);
    }
  }
  EXPECT_EQ(models, 45u);
  EXPECT_GE(read, 16u);
}

}  // namespace
}  // namespace outrider
