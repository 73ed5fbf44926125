// SPDX-License-Identifier: Apache-2.0
#include "tests/support/browser.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/websocket.hpp>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <thread>
#include <utility>

#include "tests/support/base64.h"

namespace outrider {
namespace {

constexpr auto kPause = std::chrono::milliseconds(20);
constexpr int kPauses = 60 * 50;  // 60 s

}  // namespace

Child::Child(std::vector<std::string> command, std::filesystem::path output) : output_(std::move(output)) {
  std::vector<char*> arguments;
  for (std::string& part : command) arguments.push_back(part.data());
  arguments.push_back(nullptr);
  const std::string path = output_.string();
  pid_ = fork();
  if (pid_ != 0) return;
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  dup2(file, STDOUT_FILENO);
  dup2(open("/dev/null", O_WRONLY), STDERR_FILENO);
  execvp(arguments[0], arguments.data());
  _exit(127);
}

Child::~Child() {
  kill(pid_, SIGTERM);
  for (int i = 0; i < 250; ++i) {
    if (waitpid(pid_, nullptr, WNOHANG) == pid_) return;
    std::this_thread::sleep_for(kPause);
  }
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

std::string Child::wait_for_line(const std::string& beginning) const {
  for (int i = 0; i < kPauses; ++i) {
    std::ifstream file(output_);
    for (std::string line; std::getline(file, line) && !file.eof();)
      if (line.starts_with(beginning)) return line.substr(beginning.size());
    std::this_thread::sleep_for(kPause);
  }
  return "";
}

std::string chromium_program() {
  for (const char* name : {"chromium", "chromium-browser", "google-chrome"}) {
    if (std::system((std::string("command -v ") + name + " >/dev/null 2>&1").c_str()) == 0) return name;
  }
  return "";
}

struct Browser::Socket {
  boost::asio::io_context io;
  boost::beast::websocket::stream<boost::asio::ip::tcp::socket> stream{io};
};

Browser::Browser(const std::filesystem::path& folder) {
  const std::filesystem::path profile = folder / "profile";
  std::filesystem::create_directories(profile);
  program_ = std::make_unique<Child>(
      std::vector<std::string>{chromium_program(), "--headless", "--no-sandbox", "--disable-gpu",
                               "--disable-dev-shm-usage", "--remote-debugging-port=0",
                               "--user-data-dir=" + profile.string(), "about:blank"},
      folder / "chromium");
  std::string port, path;
  for (int i = 0; i < kPauses && path.empty(); ++i) {
    std::ifstream file(profile / "DevToolsActivePort");
    if (!(std::getline(file, port) && std::getline(file, path))) std::this_thread::sleep_for(kPause);
  }
  if (path.empty()) throw std::runtime_error("chromium did not open its DevTools");
  socket_ = std::make_unique<Socket>();
  const auto loopback = boost::asio::ip::address_v4::loopback();
  socket_->stream.next_layer().connect({loopback, static_cast<uint16_t>(std::stoi(port))});
  socket_->stream.read_message_max(64 << 20);
  socket_->stream.handshake("127.0.0.1:" + port, path);
  const std::string target = call("Target.createTarget", {{"url", "about:blank"}})["targetId"];
  session_ = call("Target.attachToTarget", {{"targetId", target}, {"flatten", true}})["sessionId"];
  for (const char* domain : {"Page.enable", "Runtime.enable", "Log.enable"}) call(domain);
}

Browser::~Browser() = default;

Browser::Json Browser::call(const std::string& method, Json parameters) {
  const int id = ++last_id_;
  Json message = {{"id", id}, {"method", method}, {"params", std::move(parameters)}};
  if (!session_.empty()) message["sessionId"] = session_;
  socket_->stream.write(boost::asio::buffer(message.dump()));
  for (;;) {
    boost::beast::flat_buffer buffer;
    socket_->stream.read(buffer);
    const Json answer = Json::parse(boost::beast::buffers_to_string(buffer.data()));
    if (!answer.contains("id")) {
      note(answer);
    } else if (answer["id"] == id) {
      if (answer.contains("error")) throw std::runtime_error(method + ": " + answer["error"].dump());
      return answer["result"];
    }
  }
}

void Browser::note(const Json& event) {
  const std::string method = event["method"];
  const Json& parameters = event["params"];
  if (method == "Runtime.exceptionThrown") problems_.push_back(parameters.dump());
  if (method == "Runtime.consoleAPICalled" && parameters["type"] != "log")
    problems_.push_back(parameters.dump());
  if (method == "Log.entryAdded" && parameters["entry"]["level"] != "verbose")
    problems_.push_back(parameters["entry"]["text"]);
}

std::vector<std::string> Browser::take_problems() { return std::exchange(problems_, {}); }

void Browser::open(const std::string& url) {
  call("Page.navigate", {{"url", url}});
  wait_until("document.readyState === 'complete' && location.href !== 'about:blank'");
}

Browser::Json Browser::evaluate(const std::string& expression) {
  const Json result =
      call("Runtime.evaluate", {{"expression", expression}, {"awaitPromise", true}, {"returnByValue", true}});
  if (result.contains("exceptionDetails")) throw std::runtime_error(result["exceptionDetails"].dump());
  return result["result"].value("value", Json());
}

bool Browser::wait_until(const std::string& expression) {
  for (int i = 0; i < kPauses; ++i) {
    if (evaluate(expression) == true) return true;
    std::this_thread::sleep_for(kPause);
  }
  return false;
}

void Browser::type(const std::string& text) { call("Input.insertText", {{"text", text}}); }

void Browser::press(const std::string& key) {
  Json event = {{"type", "keyDown"}, {"key", key}, {"code", key}};
  if (key == "Enter") event.update({{"text", "\r"}, {"windowsVirtualKeyCode", 13}});
  call("Input.dispatchKeyEvent", event);
  call("Input.dispatchKeyEvent", {{"type", "keyUp"}, {"key", key}, {"code", key}});
}

void Browser::set_media(const std::string& feature, const std::string& value) {
  call("Emulation.setEmulatedMedia", {{"features", {{{"name", feature}, {"value", value}}}}});
}

void Browser::set_width(int width, int height, bool is_phone) {
  call("Emulation.setDeviceMetricsOverride",
       {{"width", width}, {"height", height}, {"deviceScaleFactor", 1}, {"mobile", is_phone}});
}

void Browser::save_picture(const std::filesystem::path& path) {
  const std::string text = call("Page.captureScreenshot", {{"format", "png"}})["data"];
  std::ofstream(path, std::ios::binary) << from_base64(text);
}

}  // namespace outrider
