// SPDX-License-Identifier: Apache-2.0
// The chat page of a running server in a headless Chromium. Skipped if there is no Chromium.
#include "server/page/chat_html.h"

#include <gmock/gmock.h>

#include "tests/support/browser.h"

namespace outrider {
namespace {

using ::testing::IsEmpty;
using Json = Browser::Json;

class PageTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (chromium_program().empty()) return;
    folder_ = std::filesystem::temp_directory_path() / ("outrider_served_page_" + std::to_string(getpid()));
    std::filesystem::create_directories(folder_);
    const std::string models = OUTRIDER_SOURCE_DIR "/models/";
    server_ = std::make_unique<Child>(
        std::vector<std::string>{
            OUTRIDER_PROGRAM, "serve", models + "outrider-small", "--port", "0", "--cache-dir", "none",
            "--speculative", "draft_target,expansion=[2,2,1],speculative_model=" + models + "outrider-draft"},
        folder_ / "server");
    url_ = server_->wait_for_line("listening on ");
    browser_ = std::make_unique<Browser>(folder_);
  }
  static void TearDownTestSuite() {
    browser_.reset();
    server_.reset();
    if (!folder_.empty()) std::filesystem::remove_all(folder_);
  }

  void SetUp() override {
    if (browser_ == nullptr) GTEST_SKIP() << "no chromium on this machine: the page is not opened";
    ASSERT_NE(url_, "");
    browser_->open(url_ + "/");
    ASSERT_TRUE(wait_until("is_ready() && / of /.test(text('batch'))"));
    browser_->take_problems();
  }

  static Json value(const std::string& expression) { return browser_->evaluate(kDefinitions + expression); }
  static bool wait_until(const std::string& expression) {
    return browser_->wait_until(kDefinitions + expression);
  }
  static void set(const std::string& id, const std::string& to) {
    value("document.getElementById('" + id + "').value = '" + to + "'");
  }
  // Types a message, sends it by Enter and waits for the end of the answer.
  static void ask(const std::string& message) {
    browser_->type(message);
    browser_->press("Enter");
    ASSERT_TRUE(
        wait_until("!document.getElementById('send').hidden && document.querySelector('.message.assistant, "
                   ".failed') !== null"));
  }

  static const std::string kDefinitions;
  static std::filesystem::path folder_;
  static std::string url_;
  static std::unique_ptr<Child> server_;
  static std::unique_ptr<Browser> browser_;
};

const std::string PageTest::kDefinitions =
    "var text = (id) => document.getElementById(id).textContent;"
    "var count = (selector) => document.querySelectorAll(selector).length;"
    "var is_ready = () => { const health = new XMLHttpRequest(); health.open('GET', '/health', false);"
    " health.send(); return health.status === 200; };";
std::filesystem::path PageTest::folder_;
std::string PageTest::url_;
std::unique_ptr<Child> PageTest::server_;
std::unique_ptr<Browser> PageTest::browser_;

TEST_F(PageTest, ShowsWhereTokensCameFromAndTheFiguresMove) {
  set("mode", "fixed");
  EXPECT_EQ(value("text('length')"), "–");
  // Checks every value that was shown, even if the whole answer arrives at once.
  value(
      "window.lengths = new Set();"
      "new MutationObserver((changes) => changes.forEach((change) => change.addedNodes.forEach((node) => "
      "lengths.add(node.data)))).observe(document.getElementById('length'), {childList: true}); 0");
  ask("Tell me a story about a dog.");
  EXPECT_GT(value("count('.message.assistant .token')"), 10);
  EXPECT_GT(value("count('.message.assistant .token.accepted')"), 0);
  EXPECT_GT(value("count('.message.assistant .token.recovered, .message.assistant .token.bonus')"), 0);
  EXPECT_EQ(value("count('#legend .token')"), 4);
  EXPECT_GT(value("lengths.size"), 1);
  EXPECT_GT(value("Number(text('length'))"), 1.0);
  EXPECT_EQ(value("/^[0-9.]+ %$/.test(text('rate'))"), true);
  EXPECT_EQ(value("/tokens? · .* per pass · .* accepted/.test(document.querySelector('.assistant "
                  ".figures').textContent)"),
            true);
  // The texts of the tokens are the whole answer.
  EXPECT_EQ(value("document.querySelector('.assistant .text').textContent.trim().length > 20"), true);
  EXPECT_THAT(browser_->take_problems(), IsEmpty());
}

TEST_F(PageTest, StepsThroughTheTrees) {
  set("mode", "fixed");
  ask("Tell me a story about a cat.");
  const std::string last = value("text('tree-title')");
  value("document.activeElement.blur()");
  for (int i = 0; i < 3; ++i) browser_->press("ArrowLeft");
  EXPECT_NE(value("text('tree-title')"), last);
  value("document.querySelector('.message.assistant .token').click()");
  EXPECT_EQ(value("text('tree-title').startsWith('Step 1 of ')"), true);
  EXPECT_EQ(value("document.getElementById('follow').getAttribute('aria-pressed')"), "false");
  ASSERT_TRUE(
      wait_until("document.getElementById('next').disabled || count('#tree .node.rejected') > 0 ||"
                 "(document.getElementById('next').click(), false)"));
  ASSERT_GT(value("count('#tree .node.rejected')"), 0);
  value("document.querySelector('#tree .node.rejected').focus()");
  EXPECT_EQ(value("/outcome(lost arg-max|not reached)/.test(text('details'))"), true)
      << value("text('details')");
  EXPECT_GT(value("count('#messages .token.chosen')"), 0);
  EXPECT_THAT(browser_->take_problems(), IsEmpty());
}

TEST_F(PageTest, PlainDecodingShowsPlainTokens) {
  set("mode", "off");
  ask("Tell me a story about a bird.");
  EXPECT_GT(value("count('.message.assistant .token.plain')"), 10);
  EXPECT_EQ(value("count('.message.assistant .token:not(.plain)')"), 0);
  EXPECT_EQ(value("Number(text('length'))"), 1.0);
  EXPECT_EQ(value("text('rate')"), "–");
}

TEST_F(PageTest, EscapeStopsTheAnswer) {
  set("max-tokens", "900");
  set("mode", "off");
  // An answer that is long enough to be stopped on any machine.
  value(
      "window.plainFetch = fetch; fetch = (url, options) => plainFetch(url, options.body === undefined ? "
      "options :"
      "{...options, body: options.body.replace('{', '{\"ignore_eos\":true,')}); 0");
  // This runs within the page, because a fast model would finish before the test sees the first tokens.
  value(
      "new MutationObserver((changes, observer) => {"
      "  if (count('.message.assistant .token') <= 3) return;"
      "  observer.disconnect();"
      "  document.body.dispatchEvent(new KeyboardEvent('keydown', {key: 'Escape', bubbles: true}));"
      "}).observe(document.body, {childList: true, subtree: true}); 0");
  ask("Tell me a story about a horse.");
  ASSERT_TRUE(wait_until("!document.getElementById('send').hidden"));
  const std::string figures = value("document.querySelector('.assistant .figures').textContent");
  EXPECT_THAT(figures, ::testing::EndsWith(" · stopped"));
  EXPECT_LT(value("count('.message.assistant .token')"), 900);
  ASSERT_TRUE(wait_until("text('batch').startsWith('0 of ')"));  // the server has stopped, too
  EXPECT_THAT(browser_->take_problems(), IsEmpty());
}

TEST_F(PageTest, AnErrorIsShownAndTheMessageComesBack) {
  set("temperature", "-1");
  ask("Hello <img src=x onerror=alert(1)>");
  EXPECT_EQ(value("count('.message.failed')"), 1);
  EXPECT_EQ(value("document.querySelector('.failed .text').textContent.includes('temperature')"), true)
      << value("document.querySelector('.failed .text').textContent");
  EXPECT_EQ(value("document.getElementById('input').value"), "Hello <img src=x onerror=alert(1)>");
  EXPECT_EQ(value("count('img')"), 0);
}

TEST_F(PageTest, FollowsTheThemeAndFitsAPhone) {
  const std::string background = "getComputedStyle(document.body).backgroundColor";
  browser_->set_media("prefers-color-scheme", "light");
  const std::string light = value(background);
  browser_->set_media("prefers-color-scheme", "dark");
  EXPECT_NE(value(background), light);
  value("document.getElementById('theme').click()");
  EXPECT_EQ(value(background), light);
  value("localStorage.clear()");
  browser_->set_width(390, 844, true);
  ask("Tell me a story about a fish.");
  EXPECT_LE(value("document.documentElement.scrollWidth"), 390);
  browser_->call("Emulation.clearDeviceMetricsOverride");
  browser_->set_media("prefers-color-scheme", "light");
}

TEST(Page, NeedsNothingElse) {
  std::string page(chat_html());
  EXPECT_NE(page.find("default-src 'none'; style-src 'sha256-"), std::string::npos);
  EXPECT_EQ(page.find(" style=\""), std::string::npos);  // the policy would refuse it
  const std::string known = "http://www.w3.org/2000/svg";
  for (size_t at = 0; (at = page.find(known)) != std::string::npos;) page.erase(at, known.size());
  for (const char* part : {"http:", "https:", "src=\"", "@import", "url(", "innerHTML", "eval("})
    EXPECT_EQ(page.find(part), std::string::npos) << part;
}

}  // namespace
}  // namespace outrider
