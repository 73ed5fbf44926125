// SPDX-License-Identifier: Apache-2.0
// The chat page of a running server: answers, marks, trees, settings, looks.
#include <gmock/gmock.h>

#include <set>

#include "server/page/chat_html.h"
#include "tests/page/page_fixture.h"

namespace outrider {
namespace {

using ::testing::IsEmpty;

std::string long_answer() {
  std::string text;
  for (int i = 0; i < 40; ++i) text += "This is sentence number " + std::to_string(i) + " of a story.\n\n";
  return text;
}

TEST_F(PageTest, MarksAreOffUntilTheyAreSwitchedOn) {
  set("mode", "fixed");
  set("temperature", "0");  // a drawn answer may be short
  ask("Tell me a story about a dog.");
  EXPECT_EQ(value("count('#messages .token')"), 0);
  EXPECT_EQ(value("document.getElementById('speculation').hidden"), true);
  EXPECT_EQ(value("/tokens? · .* per pass · .* accepted/.test(document.querySelector('.assistant "
                  ".figures').textContent)"),
            true);
  const std::string answer = value("document.querySelector('.assistant .text').textContent");
  EXPECT_GT(answer.size(), 20u);

  value("press('speculation-button')");  // one click leads to the tree and the figures
  EXPECT_EQ(value("text('tree-title').startsWith('Step ')"), true);
  EXPECT_GT(value("Number(text('length'))"), 1.0);
  EXPECT_EQ(value("/^[0-9.]+ %$/.test(text('rate'))"), true);
  EXPECT_EQ(value("count('#legend .token')"), 4);
  value("press('marks')");
  EXPECT_GT(value("count('.message.assistant .token')"), 10);
  EXPECT_GT(value("count('.message.assistant .token.accepted')"), 0);
  EXPECT_GT(value("count('.message.assistant .token.recovered, .message.assistant .token.bonus')"), 0);
  for (const std::string theme : {"light", "dark"}) {
    browser_->set_media("prefers-color-scheme", theme);
    take_picture("marks_" + theme);
  }
  value("press('marks')");
  EXPECT_EQ(value("count('#messages .token')"), 0);
  EXPECT_EQ(value("document.querySelector('.assistant .text').textContent"), answer);
  EXPECT_THAT(browser_->take_problems(), IsEmpty());
}

TEST_F(PageTest, FiguresMoveWhileTheAnswerArrives) {
  set("mode", "fixed");
  set("temperature", "0");  // a drawn answer may be short
  value("press('speculation-button')");
  value("press('marks')");
  EXPECT_EQ(value("text('length')"), "–");
  // Checks every value that was shown, even if the whole answer arrives at once.
  value(
      "window.lengths = new Set();"
      "new MutationObserver((changes) => changes.forEach((change) => change.addedNodes.forEach((node) => "
      "lengths.add(node.data)))).observe(document.getElementById('length'), {childList: true}); 0");
  ask("Tell me a story about a dog.");
  EXPECT_GT(value("lengths.size"), 1);
  EXPECT_GT(value("count('.message.assistant .token')"), 10);
}

TEST_F(PageTest, StepsThroughTheTrees) {
  set("mode", "fixed");
  set("temperature", "0");
  value("press('speculation-button')");
  value("press('marks')");
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
  set("max_tokens", "16");
  set("more", R"({"ignore_eos": true})");  // a drawn answer may be short
  value("press('marks')");
  ask("Tell me a story about a bird.");
  EXPECT_EQ(value("count('.message.assistant .token.plain')"), 16);
  EXPECT_EQ(value("count('.message.assistant .token:not(.plain)')"), 0);
  EXPECT_EQ(value("Number(text('length'))"), 1.0);
  EXPECT_EQ(value("text('rate')"), "–");
}

TEST_F(PageTest, EscapeStopsTheAnswer) {
  set("max_tokens", "900");
  set("mode", "off");
  set("more", R"({"ignore_eos": true})");
  // This runs within the page, because a fast model would finish before the test sees the first tokens.
  value(
      "new MutationObserver((changes, observer) => {"
      "  if ((document.querySelector('.assistant .text')?.textContent.length ?? 0) < 10) return;"
      "  observer.disconnect();"
      "  document.body.dispatchEvent(new KeyboardEvent('keydown', {key: 'Escape', bubbles: true}));"
      "}).observe(document.body, {childList: true, subtree: true}); 0");
  ask("Tell me a story about a horse.");
  const std::string figures = value("document.querySelector('.assistant .figures').textContent");
  EXPECT_THAT(figures, ::testing::EndsWith(" · stopped"));
  EXPECT_LT(std::stoi(figures), 900);
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
  EXPECT_EQ(value("count('.message.user')"), 0);
  EXPECT_EQ(value("count('img')"), 0);
  set("temperature", "");
  set("schema", "{");
  value("document.getElementById('input').value = ''");
  ask("Hello");
  EXPECT_EQ(value("/JSON schema.*not valid JSON/.test(text('messages'))"), true) << value("text('messages')");
}

TEST_F(PageTest, SendsEverySettingAndTheChosenModel) {
  // The server has one model; the page shall offer what the list says.
  value(
      "window.sent = []; window.plainFetch = fetch;"
      "fetch = (url, options) => { if (options?.body) sent.push(JSON.parse(options.body));"
      " return url !== 'v1/models' ? plainFetch(url, options) :"
      " Promise.resolve(new Response('{\"data\": [{\"id\": \"outrider-small\"}, {\"id\": \"other\"}]}')); };"
      "settings.showModels()");
  ASSERT_TRUE(wait_until("!document.getElementById('models').hidden && count('#models option') === 2"));
  const std::vector<std::pair<std::string, std::string>> fields = {{"temperature", "0.5"},
                                                                   {"top_k", "20"},
                                                                   {"top_p", "0.9"},
                                                                   {"min_p", "0.1"},
                                                                   {"presence_penalty", "0"},
                                                                   {"frequency_penalty", "0.1"},
                                                                   {"max_tokens", "7"},
                                                                   {"seed", "3"},
                                                                   {"repetition_penalty", "1.1"},
                                                                   {"stop-texts", "one\ntwo"},
                                                                   {"thinking", "off"},
                                                                   {"more", R"({"min_tokens": 2})"},
                                                                   {"system", "Be brief."},
                                                                   {"mode", "fixed"},
                                                                   {"budget", "5"}};
  for (const auto& [id, to] : fields) set(id, to);
  ask("Hello");
  const Json expected = {
      {"messages",
       {{{"role", "system"}, {"content", "Be brief."}}, {{"role", "user"}, {"content", "Hello"}}}},
      {"stream", true},
      {"stream_options", {{"include_usage", true}}},
      {"speculative", {{"mode", "fixed"}, {"trace", "detailed"}, {"budget", 5}}},
      {"model", "outrider-small"},
      {"temperature", 0.5},
      {"top_k", 20},
      {"top_p", 0.9},
      {"min_p", 0.1},
      {"presence_penalty", 0},
      {"frequency_penalty", 0.1},
      {"max_tokens", 7},
      {"seed", 3},
      {"repetition_penalty", 1.1},
      {"stop", {"one", "two"}},
      {"enable_thinking", false},
      {"min_tokens", 2}};
  EXPECT_EQ(value("sent[0]"), expected) << value("sent[0]").dump(1);
  EXPECT_EQ(value("count('.message.assistant')"), 1) << value("text('messages')");
}

TEST_F(PageTest, FollowsTheThemeAndFitsAPhone) {
  const std::string background = "getComputedStyle(document.body).backgroundColor";
  browser_->set_media("prefers-color-scheme", "light");
  const std::string light = value(background);
  browser_->set_media("prefers-color-scheme", "dark");
  EXPECT_NE(value(background), light);
  value("press('theme')");
  EXPECT_EQ(value(background), light);
  browser_->set_width(390, 844, true);
  ask("Tell me a story about a fish.");
  EXPECT_LE(value("document.documentElement.scrollWidth"), 390);
  take_picture("phone");
  for (const std::string panel : {"archive", "speculation", "settings"}) {
    value("press('" + panel + "-button')");
    EXPECT_EQ(value("document.getElementById('" + panel + "').getBoundingClientRect().width"), 390) << panel;
    EXPECT_LE(value("document.documentElement.scrollWidth"), 390) << panel;
    EXPECT_EQ(value("count('.panel:not([hidden])')"), 1) << panel;
    take_picture("phone_" + panel);
  }
  browser_->press("Escape");
  EXPECT_EQ(value("count('.panel:not([hidden])')"), 0);
}

TEST_F(PageTest, TextFilesGoAlongAsBlocksOfCode) {
  value(
      "attachments.add([new File(['a = 1\\n'], 'x.py'), new File(['say ```hi```'], 'notes.md'), "
      "new File([new Uint8Array([0, 255, 1])], 'picture.png')])");
  ASSERT_TRUE(wait_until("count('#files li') === 2"));
  EXPECT_EQ(value("document.querySelector('.failed .text').textContent"),
            "picture.png is no text in UTF-8; only text can be attached");
  take_picture("files");
  ask("What is this?");
  EXPECT_EQ(value("document.querySelector('.message.user .text').textContent"),
            "What is this?\n\nFile x.py:\n```py\na = 1\n```\n\nFile notes.md:\n````md\nsay ```hi```\n````");
  EXPECT_EQ(value("document.getElementById('files').hidden"), true);
  EXPECT_THAT(browser_->take_problems(), IsEmpty());
}

TEST_F(PageTest, AnswersStayInSightWhenAPanelOpens) {
  force_answer(long_answer());
  ask("Tell me a long story.");
  const std::string shows_end =
      "(() => { const box = document.getElementById('messages').getBoundingClientRect();"
      "  const last = [...document.querySelectorAll('.assistant .text p')].at(-1).getBoundingClientRect();"
      "  return last.bottom <= box.bottom && last.top >= box.top; })()";
  for (const int width : {1280, 390}) {
    browser_->set_width(width, 844, width < 500);
    EXPECT_TRUE(wait_until(shows_end)) << width;
    value("press('speculation-button')");
    value("new Promise((done) => setTimeout(done, 200))");
    EXPECT_EQ(value(shows_end), true) << width;
    EXPECT_GT(value("document.getElementById('messages').clientHeight"), 120) << width;
    take_picture("panel_" + std::to_string(width));
    value("press('speculation-button')");
  }
  browser_->set_width(1280, 900, false);
  EXPECT_THAT(browser_->take_problems(), IsEmpty());
}

TEST_F(PageTest, EverythingToPressHasAName) {
  ask("Hello");
  for (const char* panel : {"archive", "settings", "speculation"})
    value("document.getElementById('" + std::string(panel) + "').hidden = false");
  const Json tree = browser_->call("Accessibility.getFullAXTree");
  int named = 0;
  for (const Json& node : tree["nodes"]) {
    const std::string role = node.value(Json::json_pointer("/role/value"), "");
    const std::set<std::string> roles = {"button", "textbox",  "searchbox",  "spinbutton",    "combobox",
                                         "switch", "checkbox", "navigation", "complementary", "log"};
    if (!roles.contains(role) || node.value("ignored", false)) continue;
    ++named;
    EXPECT_NE(node.value(Json::json_pointer("/name/value"), ""), "") << node.dump();
  }
  EXPECT_GT(named, 25);
}

TEST(Page, NeedsNothingElse) {
  const std::string page(chat_html());
  EXPECT_NE(page.find("default-src 'none'; style-src 'sha256-"), std::string::npos);
  EXPECT_NE(page.find("require-trusted-types-for 'script'; trusted-types 'none'\""), std::string::npos);
  const std::string markup = page.substr(0, page.find("<script>"));
  // The policy would refuse a style.
  for (const char* part : {" style=\"", "http:", "https:", "src=\"", "@import", "url("})
    EXPECT_EQ(markup.find(part), std::string::npos) << part;
}

}  // namespace
}  // namespace outrider
