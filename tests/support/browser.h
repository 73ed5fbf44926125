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

// A child process whose standard output goes into a file. The destructor ends the process.
class Child {
 public:
  Child(std::vector<std::string> command, std::filesystem::path output);
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // Waits for the first output line with this beginning and returns the rest of the line; empty if none came
  // in time.
  std::string wait_for_line(const std::string& beginning) const;

 private:
  std::filesystem::path output_;
  pid_t pid_ = -1;
};

// The name of a Chromium on this machine; empty if there is none.
std::string chromium_program();

class Browser {
 public:
  using Json = nlohmann::json;

  explicit Browser(const std::filesystem::path& folder);  // folder: holds its profile
  ~Browser();

  // Waits until the page is loaded.
  void open(const std::string& url);
  // The value of a JavaScript expression, or that of the promise that it gives.
  Json evaluate(const std::string& expression);
  // Waits until the expression is true; false if it was not within 60 s.
  bool wait_until(const std::string& expression);
  void type(const std::string& text);
  void press(const std::string& key);  // "Enter"
  void set_media(const std::string& feature, const std::string& value);
  void set_width(int width, int height, bool is_phone);
  // Errors and warnings of the console, and exceptions, since the last call.
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
