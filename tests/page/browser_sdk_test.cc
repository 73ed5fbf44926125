// SPDX-License-Identifier: Apache-2.0
// OpenAI's JavaScript client within a page of another origin. tools/check_page.sh installs it; skipped
// without it.
#include <gmock/gmock.h>

#include <fstream>

#include "tests/page/page_fixture.h"

namespace outrider {
namespace {

const std::filesystem::path kModules = OUTRIDER_SOURCE_DIR "/build/browser/node_modules";

class BrowserSdkTest : public PageTest {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(kModules / "openai"))
      GTEST_SKIP() << "the openai package is not installed: tools/check_page.sh does it";
    PageTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    std::ofstream(folder_ / "index.html") << "<!doctype html><title>A page of another origin</title>";
    std::filesystem::create_directory_symlink(kModules / "openai", folder_ / "openai");
    files_ = std::make_unique<Child>(
        std::vector<std::string>{"python3", "-u", "-m", "http.server", "--bind", "127.0.0.1", "--directory",
                                 folder_.string(), "0"},
        folder_ /
            ("files_of_" + std::string(::testing::UnitTest::GetInstance()->current_test_info()->name())));
    const std::string port = files_->wait_for_line("Serving HTTP on 127.0.0.1 port ");
    browser_->open("http://127.0.0.1:" + std::to_string(std::stoi(port)) + "/index.html");
    value("import('/openai/index.mjs').then((module) => { window.client = new module.default({baseURL: '" +
          url_ +
          "/v1', apiKey: 'none', dangerouslyAllowBrowser: true, maxRetries: 0});"
          " window.ask = (more) => client.chat.completions.create({model: 'outrider-small', max_tokens: 12, "
          "seed: 1,"
          " messages: [{role: 'user', content: 'Hello'}], ...more}); })");
  }
  void TearDown() override { std::filesystem::remove(folder_ / "openai"); }

 private:
  std::unique_ptr<Child> files_;
};

TEST_F(BrowserSdkTest, ChatsWithAndWithoutAStream) {
  const std::string whole = value("ask({}).then((answer) => answer.choices[0].message.content)");
  EXPECT_GT(whole.size(), 5u);
  EXPECT_EQ(value("(async () => { let text = ''; for await (const chunk of await ask({stream: true}))"
                  " text += chunk.choices[0]?.delta?.content || ''; return text; })()"),
            whole);
}

TEST_F(BrowserSdkTest, CallsToolsAndKeepsAResponse) {
  EXPECT_EQ(
      value("ask({max_tokens: 100, tool_choice: 'required', tools: [{type: 'function', function: {name: "
            "'weather', parameters:"
            " {type: 'object', properties: {city: {enum: ['Bonn']}}, required: ['city'], "
            "additionalProperties: false}}}]})"
            ".then((answer) => JSON.parse(answer.choices[0].message.tool_calls[0].function.arguments))"),
      Json({{"city", "Bonn"}}));
  EXPECT_EQ(
      value("(async () => { const first = await client.responses.create({model: 'outrider-small', input: "
            "'Hello',"
            " max_output_tokens: 5}); const kept = await client.responses.retrieve(first.id);"
            " await client.responses.delete(first.id); return kept.output_text === first.output_text; })()"),
      true);
}

TEST_F(BrowserSdkTest, ErrorsAndAbortsArriveAsTheClientExpects) {
  EXPECT_EQ(value("ask({temperature: 7}).then(() => 'taken', (error) => `${error.status} ${error.param}`)"),
            "400 temperature");
  EXPECT_LT(
      value(
          "(async () => { const stream = await ask({stream: true, max_tokens: 900, ignore_eos: true});"
          " let chunks = 0; for await (const chunk of stream) if (++chunks === 3) stream.controller.abort();"
          " return chunks; })()"),
      200);  // the chunks that were received already
}

}  // namespace
}  // namespace outrider
