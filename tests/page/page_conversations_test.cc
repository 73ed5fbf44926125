// SPDX-License-Identifier: Apache-2.0
// The conversations that the chat page keeps: reload, search, edit, regenerate, delete, export and import.
#include <gmock/gmock.h>

#include "tests/page/page_fixture.h"

namespace outrider {
namespace {

using ::testing::IsEmpty;

class PageConversationsTest : public PageTest {
 protected:
  void SetUp() override {
    PageTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    set("max_tokens", "12");
    value("panels.show('archive')");
  }

  static std::string last_answer() {
    return value("[...document.querySelectorAll('.assistant .text')].at(-1).textContent");
  }
  static void begin_and_ask(const std::string& message) {
    value("press('new')");
    ask(message);
    ASSERT_TRUE(wait_until("count('#list .entry') > 0"));
  }
  // Gives the page a file to import.
  static void give_file(const std::string& content) {
    value("{ const files = new DataTransfer(); files.items.add(new File([" + Json(content).dump() +
          "], 'x.json')); const field = document.getElementById('file'); field.files = files.files;"
          " field.dispatchEvent(new Event('change')); }");
  }
};

TEST_F(PageConversationsTest, ComeBackAfterAReload) {
  ask("Tell me about a red kite.");
  const std::string answer = last_answer();
  reload();
  EXPECT_EQ(value("count('.message')"), 2);
  EXPECT_EQ(last_answer(), answer);
  EXPECT_EQ(value("document.querySelector('.user .text').textContent"), "Tell me about a red kite.");
  ask("And a blue one?");  // the conversation goes on
  EXPECT_EQ(value("count('.message')"), 4);
  EXPECT_EQ(value("count('#list .entry')"), 1);
  EXPECT_THAT(browser_->take_problems(), IsEmpty());
}

TEST_F(PageConversationsTest, APartOfAnAnswerSurvivesAReload) {
  set("max_tokens", "900");
  set("more", R"({"ignore_eos": true})");
  value("document.getElementById('input').focus()");
  browser_->type("A long story");
  browser_->press("Enter");
  ASSERT_TRUE(wait_until(
      "new Promise((resolve) => { const opened = indexedDB.open('outrider'); opened.onsuccess = () => {"
      " const read = opened.result.transaction('conversations').objectStore('conversations').getAll();"
      " read.onsuccess = () => { opened.result.close();"
      " resolve(read.result[0]?.messages[1]?.content.length > 4); }; }; })"));
  reload();
  EXPECT_EQ(value("count('.message')"), 2);
  EXPECT_GT(last_answer().size(), 4u);
}

TEST_F(PageConversationsTest, AreFoundByTheirWords) {
  begin_and_ask("Tell me about the green lantern.");
  begin_and_ask("Tell me about the yellow river.");
  set("search", "GREEN lant");
  EXPECT_EQ(value("count('#list .entry')"), 1);
  EXPECT_EQ(value("document.querySelector('#list .title').textContent"), "Tell me about the green lantern.");
  EXPECT_EQ(value("text('found')"), "1 found");
  value("document.querySelector('#list .entry').click()");
  EXPECT_EQ(value("document.querySelector('.user .text').textContent"), "Tell me about the green lantern.");
  set("search", "purple");
  EXPECT_EQ(value("count('#list .entry')"), 0);
  set("search", "");
  EXPECT_EQ(value("count('#list .entry')"), 2);
}

TEST_F(PageConversationsTest, AnEditedMessageIsAskedAgain) {
  ask("Tell me about a dog.");
  ask("And then?");
  value("document.querySelector('.user').querySelector('.actions button:last-child').click()");
  EXPECT_EQ(value("document.querySelector('.edit').value"), "Tell me about a dog.");
  value(
      "document.querySelector('.edit').value = 'Tell me about a cat.'; "
      "document.querySelector('.editing').requestSubmit()");
  ASSERT_TRUE(wait_until("idle() && count('.message') === 2"));
  EXPECT_EQ(value("document.querySelector('.user .text').textContent"), "Tell me about a cat.");
  reload();
  EXPECT_EQ(value("count('.message')"), 2);
  EXPECT_EQ(value("document.querySelector('.user .text').textContent"), "Tell me about a cat.");
}

TEST_F(PageConversationsTest, AnEditedAnswerIsKept) {
  ask("Tell me about a dog.");
  value(
      "[...document.querySelectorAll('.assistant button')].find((each) => each.textContent === "
      "'Edit').click()");
  value(
      "document.querySelector('.edit').value = 'My **own** words'; "
      "document.querySelector('.editing').requestSubmit()");
  ASSERT_TRUE(wait_until("count('.assistant .text strong') === 1"));
  reload();
  EXPECT_EQ(last_answer(), "My own words");
  set("mode", "off");
  ask("Go on");  // the model reads the new text
  EXPECT_EQ(value("count('.message.failed')"), 0);
}

TEST_F(PageConversationsTest, RegenerateReplacesTheAnswer) {
  set("temperature", "1.5");
  ask("Tell me about a dog.");
  const std::string first = last_answer();
  for (int i = 0; i < 5 && last_answer() == first; ++i) {
    value("button('Regenerate').click()");
    ASSERT_TRUE(wait_until("idle()"));
  }
  EXPECT_NE(last_answer(), first);
  EXPECT_EQ(value("count('.message')"), 2);
  const std::string second = last_answer();
  set("temperature", "9");  // the server refuses it: the answer stays
  value("button('Regenerate').click()");
  ASSERT_TRUE(wait_until("idle() && count('.failed') === 1"));
  EXPECT_EQ(last_answer(), second);
}

TEST_F(PageConversationsTest, ADeletedOneCanComeBack) {
  begin_and_ask("Tell me about the sea.");
  value("document.querySelector('#list .entry + button').click()");
  ASSERT_TRUE(wait_until("count('#list .entry') === 0 && !document.getElementById('undo').hidden"));
  EXPECT_EQ(value("count('.message')"), 0);
  value("press('undo-button')");
  ASSERT_TRUE(wait_until("count('#list .entry') === 1"));
  reload();
  EXPECT_EQ(value("count('#list .entry')"), 1);
}

TEST_F(PageConversationsTest, ADeletedOneStaysAwayWhenItsAnswerEnds) {
  set("max_tokens", "900");
  set("more", R"({"ignore_eos": true})");
  value(
      "new MutationObserver((changes, observer) => {"
      "  const remove = document.querySelector('#list .entry + button');"
      "  if (remove === null) return;"
      "  observer.disconnect();"
      "  remove.click();"
      "}).observe(document.body, {childList: true, subtree: true}); 0");
  value("document.getElementById('input').focus()");
  browser_->type("A long story");
  browser_->press("Enter");
  ASSERT_TRUE(wait_until("idle() && !document.getElementById('undo').hidden"));
  EXPECT_EQ(value("new Promise((resolve) => setTimeout(resolve, 100)).then(() => count('#list .entry'))"), 0);
  EXPECT_EQ(value("store.newestFirst().length"), 0);
}

TEST_F(PageConversationsTest, AreExportedAndImported) {
  begin_and_ask("Tell me about <b>the</b> moon.");
  value(
      "URL.createObjectURL = (blob) => { window.exported = blob; return 'blob:none'; };"
      "HTMLAnchorElement.prototype.click = () => {}; press('export')");
  const std::string file = value("exported.text()");
  const Json content = Json::parse(file);
  EXPECT_EQ(content["format"], "outrider-conversations");
  EXPECT_EQ(content["conversations"][0]["messages"][0]["content"], "Tell me about <b>the</b> moon.");
  value("document.querySelector('#list .entry + button').click()");
  ASSERT_TRUE(wait_until("count('#list .entry') === 0"));
  give_file(file);
  ASSERT_TRUE(wait_until("count('#list .entry') === 1"));
  EXPECT_EQ(value("text('found')"), "1 conversation imported");
  value("document.querySelector('#list .entry').click()");
  EXPECT_EQ(value("document.querySelector('.user .text').textContent"), "Tell me about <b>the</b> moon.");
}

TEST_F(PageConversationsTest, OtherFilesAreRefused) {
  const auto refused = [](const std::string& file) {
    give_file(file);
    EXPECT_TRUE(wait_until("count('.failed') === 1")) << file;
    const std::string message = value("document.querySelector('.failed .text').textContent");
    value("document.querySelector('.failed').remove()");
    EXPECT_EQ(value("count('#list .entry')"), 0) << file;
    return message;
  };
  const std::string start = R"({"format": "outrider-conversations", "version": 1, "conversations": [)";
  EXPECT_THAT(refused("{"), ::testing::HasSubstr("not JSON"));
  EXPECT_THAT(refused("[]"), ::testing::HasSubstr("expected a file"));
  EXPECT_THAT(refused(start + "{}]}"), ::testing::HasSubstr("conversation 1"));
  EXPECT_THAT(
      refused(
          start +
          R"({"id": "a", "title": "", "system": "", "changed": 1, "messages": [{"role": "root", "content": ""}]}]})"),
      ::testing::HasSubstr("conversation 1"));
}

TEST_F(PageConversationsTest, AreBounded) {
  value(
      "{ const big = store.create(''); big.title = 'big'; big.messages.push({role: 'user', content: "
      "'x'.repeat(store.LIMITS.characters)}); chat.open(big); }");
  ask("More");
  EXPECT_EQ(value("/as long as can be kept/.test(text('messages'))"), true);
  EXPECT_EQ(value("document.getElementById('input').value"), "More");
  // The most that are kept.
  EXPECT_EQ(value("(async () => { for (let i = 0; i < store.LIMITS.conversations; ++i) await "
                  "store.put(store.create(''));"
                  " return store.put(store.create('')).then(() => 'kept', (error) => error.message); })()"),
            "1000 conversations are kept, and no more: export and delete some");
}

}  // namespace
}  // namespace outrider
