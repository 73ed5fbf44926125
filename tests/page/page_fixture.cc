// SPDX-License-Identifier: Apache-2.0
#include "tests/page/page_fixture.h"

#include <unistd.h>

namespace outrider {
namespace {

const std::string kDefinitions =
    "var text = (id) => document.getElementById(id).textContent;"
    "var count = (selector) => document.querySelectorAll(selector).length;"
    "var press = (id) => (document.getElementById(id).click(), true);"
    "var set = (id, value) => { const field = document.getElementById(id);"
    " field.type === 'checkbox' ? field.checked = value : field.value = value;"
    " for (const name of ['input', 'change']) field.dispatchEvent(new Event(name, {bubbles: true})); };"
    "var button = (name) => [...document.querySelectorAll('button')].filter("
    " (each) => each.textContent === name).at(-1);"
    "var idle = () => !document.getElementById('send').hidden && !chat.isRunning();";

}  // namespace

std::filesystem::path PageTest::folder_;
std::string PageTest::url_;
std::unique_ptr<Child> PageTest::server_;
std::unique_ptr<Browser> PageTest::browser_;

void PageTest::SetUpTestSuite() {
  const std::string models = OUTRIDER_SOURCE_DIR "/models/";
  start({models + "outrider-small", "--speculative",
         "draft_target,policy=fixed,expansion=[2,2,1],speculative_model=" + models + "outrider-draft"});
}

void PageTest::start(const std::vector<std::string>& arguments) {
  if (chromium_program().empty()) return;
  folder_ = std::filesystem::temp_directory_path() / ("outrider_served_page_" + std::to_string(getpid()));
  std::filesystem::create_directories(folder_);
  std::vector<std::string> words = {OUTRIDER_PROGRAM, "serve"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  words.insert(words.end(), {"--port", "0", "--cache-dir", "none", "--cors-origin", "*"});
  server_ = std::make_unique<Child>(words, folder_ / "server");
  url_ = server_->wait_for_line("listening on ");
  browser_ = std::make_unique<Browser>(folder_);
}

void PageTest::TearDownTestSuite() {
  browser_.reset();
  server_.reset();
  if (!folder_.empty()) std::filesystem::remove_all(folder_);
}

void PageTest::SetUp() {
  if (browser_ == nullptr) GTEST_SKIP() << "no chromium on this machine: the page is not opened";
  ASSERT_NE(url_, "");
  browser_->call("Storage.clearDataForOrigin", {{"origin", url_}, {"storageTypes", "all"}});
  browser_->set_width(1280, 800, false);
  browser_->set_media("prefers-color-scheme", "light");
  browser_->open(url_ + "/");
  ASSERT_TRUE(
      wait_until("document.body.dataset.ready === 'true' && / of /.test(text('batch')) && "
                 "count('#models option') > 0 && fetch('/health').then((answer) => answer.ok)"));
  browser_->take_problems();
}

PageTest::Json PageTest::value(const std::string& expression) {
  return browser_->evaluate(kDefinitions + expression);
}

bool PageTest::wait_until(const std::string& expression) {
  return browser_->wait_until(kDefinitions + expression);
}

void PageTest::set(const std::string& id, const std::string& to) {
  value("set('" + id + "', " + Json(to).dump() + ")");
}

void PageTest::ask(const std::string& message) {
  value("document.getElementById('input').focus()");
  browser_->type(message);
  browser_->press("Enter");
  ASSERT_TRUE(wait_until("idle() && count('.message.assistant, .failed') > 0"));
}

void PageTest::force_answer(const std::string& text) {
  set("more", Json({{"structured_outputs", {{"choice", {text}}}}}).dump());
}

void PageTest::reload() {
  value("document.body.dataset.ready = 'false'");
  browser_->call("Page.reload");
  ASSERT_TRUE(wait_until("document.body?.dataset.ready === 'true'"));
}

void PageTest::take_picture(const std::string& name) {
  std::filesystem::create_directories(OUTRIDER_PICTURES);
  browser_->save_picture(std::filesystem::path(OUTRIDER_PICTURES) / (name + ".png"));
}

}  // namespace outrider
