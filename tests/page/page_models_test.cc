// SPDX-License-Identifier: Apache-2.0
// The chat page of a server of several models.
#include <fstream>

#include "tests/page/page_fixture.h"

namespace outrider {
namespace {

class PageOfModelsTest : public PageTest {
 protected:
  static void SetUpTestSuite() {
    const std::string list = testing::TempDir() + "page_models.yaml";
    std::ofstream(list) << "models:\n  - {model: " OUTRIDER_SOURCE_DIR
                           "/models/outrider-small, name: first, pinned: true}\n"
                        << "  - {model: " OUTRIDER_SOURCE_DIR "/models/outrider-draft, name: second}\n";
    start({"--models", list});
  }
};

TEST_F(PageOfModelsTest, TheChosenModelAnswers) {
  EXPECT_EQ(value("count('#models option')"), 2);
  ASSERT_TRUE(wait_until("text('model').startsWith('first')"));
  ask("Tell me a story.");
  EXPECT_EQ(value("count('.failed')"), 0);
  set("models", "second");
  ASSERT_TRUE(wait_until("text('model').startsWith('second')"));
  ask("Tell me another one.");
  EXPECT_EQ(value("count('.failed')"), 0);
  EXPECT_EQ(value("count('.message.assistant')"), 2);
  ASSERT_TRUE(
      wait_until("fetch('/v1/models').then((answer) => answer.json())"
                 ".then(({data}) => data.every(({status}) => status.value === 'loaded'))"));
  take_picture("models");
}

}  // namespace
}  // namespace outrider
