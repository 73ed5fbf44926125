// SPDX-License-Identifier: Apache-2.0
// Programs that a test starts, and a headless Chromium driven over its DevTools protocol.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace outrider {

// A child process with its standard output in a file. The destructor ends it.
class Child {
 public:
  Child(std::vector<std::string> command, std::filesystem::path output);
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // The rest of the first line of output that begins with a prefix; empty: timeout.
  std::string wait_for_line(const std::string& beginning) const;

 private:
  std::filesystem::path output_;
  pid_t pid_ = -1;
};

// The command of an installed Chromium; empty: none.
std::string chromium_program();

class Browser {
 public:
  using Json = nlohmann::json;

  explicit Browser(const std::filesystem::path& folder);  // `folder` holds its profile
  ~Browser();

  // Opens a page and waits until it is loaded.
  void open(const std::string& url);
  // The value of a JavaScript expression; awaits a promise.
  Json evaluate(const std::string& expression);
  // Waits until the expression is true, at most 60 s. False: timeout.
  bool wait_until(const std::string& expression);
  void type(const std::string& text);
  void press(const std::string& key);  // "Enter"
  void set_media(const std::string& feature, const std::string& value);
  void set_width(int width, int height, bool is_phone);
  void save_picture(const std::filesystem::path& path);  // of the visible part, as PNG
  // Exceptions, and errors and warnings of the console, since the last call.
  std::vector<std::string> take_problems();

  Json call(const std::string& method, Json parameters = Json::object());

 private:
  struct Socket;
  void note(const Json& event);

  std::unique_ptr<Child> program_;
  std::unique_ptr<Socket> socket_;
  std::string session_;
  int last_id_ = 0;
  std::vector<std::string> problems_;
};

}  // namespace outrider
