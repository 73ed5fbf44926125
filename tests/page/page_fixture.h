// SPDX-License-Identifier: Apache-2.0
// A server of the built-in models and its chat page in a headless Chromium, for the tests of the page.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/support/browser.h"

namespace outrider {

// Each test begins with an empty browser. Skipped if there is no Chromium.
class PageTest : public ::testing::Test {
 protected:
  using Json = Browser::Json;

  static void SetUpTestSuite();
  static void TearDownTestSuite();
  // Starts `outrider serve` with these arguments, and a browser.
  static void start(const std::vector<std::string>& arguments);
  void SetUp() override;

  // The value of a JavaScript expression that may use text(id), count(selector), press(id), set(id, value),
  // button(name) and idle().
  static Json value(const std::string& expression);
  static bool wait_until(const std::string& expression);
  // Fills in a field of the page, as a user does.
  static void set(const std::string& id, const std::string& to);
  // Types a message, sends it by Enter and waits for the end of the answer.
  static void ask(const std::string& message);
  // Lets the next answers be exactly this text.
  static void force_answer(const std::string& text);
  static void reload();
  // Leaves a picture of the page beside the built programs, for people to look at.
  static void take_picture(const std::string& name);

  static std::filesystem::path folder_;
  static std::string url_;
  static std::unique_ptr<Child> server_;
  static std::unique_ptr<Browser> browser_;
};

}  // namespace outrider
