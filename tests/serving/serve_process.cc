// SPDX-License-Identifier: Apache-2.0
#include "tests/serving/serve_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>
#include <utility>

#include "tests/serving/serving.h"

namespace outrider {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

void raise_file_limit() {
  rlimit limit = {};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace

ServeProcess::ServeProcess(const std::vector<std::string>& options, const std::vector<std::string>& before,
                           const std::string& model) {
  raise_file_limit();
  int out[2];
  if (pipe(out) != 0) std::abort();
  pid_ = fork();
  if (pid_ == 0) {
    dup2(out[1], STDOUT_FILENO);
    dup2(::open("/dev/null", O_WRONLY), STDERR_FILENO);
    ::close(out[0]);
    std::vector<std::string> words = before;
    for (const char* word : {OUTRIDER_PROGRAM, "serve", "--port", "0"}) words.emplace_back(word);
    if (!model.empty()) words.push_back(model);
    words.insert(words.end(), options.begin(), options.end());
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    execvp(arguments.front(), arguments.data());
    _exit(127);
  }
  ::close(out[1]);
  std::string line;
  for (char c = 0; read(out[0], &c, 1) == 1 && c != '\n';) line += c;
  ::close(out[0]);
  port_ = std::atoi(line.substr(line.rfind(':') + 1).c_str());
}

ServeProcess::~ServeProcess() {
  if (pid_ > 0) end(SIGKILL);
}

bool ServeProcess::wait_until_ready() const {
  const auto end = Clock::now() + 60s;
  while (Clock::now() < end) {
    if (TestClient(port_).get("/health").status == 200) return true;
    std::this_thread::sleep_for(5ms);
  }
  return false;
}

bool ServeProcess::wait_until_free() const {
  const auto end = Clock::now() + 60s;
  while (Clock::now() < end) {
    const nlohmann::json now = stats();
    if (now.is_object() && now["used_pages"] == 0 && now["calls"] == 0) return true;
    std::this_thread::sleep_for(20ms);
  }
  return false;
}

void ServeProcess::send(int signal) const { kill(pid_, signal); }

int ServeProcess::end(int signal) {
  int status = 0;
  kill(pid_, signal);
  waitpid(std::exchange(pid_, -1), &status, 0);
  return status;
}

double ServeProcess::resident_mib() const {
  std::ifstream file(fmt::format("/proc/{}/status", pid_));
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("VmRSS:")) return std::atof(line.c_str() + 6) / 1024;
  }
  return -1;
}

int64_t ServeProcess::descriptors() const {
  const std::filesystem::directory_iterator folder(fmt::format("/proc/{}/fd", pid_));
  return std::distance(folder, std::filesystem::directory_iterator());
}

nlohmann::json ServeProcess::stats() const {
  return nlohmann::json::parse(TestClient(port_).get("/stats").body, nullptr, false);
}

}  // namespace outrider
