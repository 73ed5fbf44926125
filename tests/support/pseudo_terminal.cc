// SPDX-License-Identifier: Apache-2.0
#include "tests/support/pseudo_terminal.h"

#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <thread>
#include <utility>

namespace outrider {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::seconds kPatience{30};

PseudoTerminal::PseudoTerminal(const std::vector<std::string>& arguments, const std::string& home,
                               const std::vector<std::string>& variables) {
  winsize size = {.ws_row = 24, .ws_col = 80, .ws_xpixel = 0, .ws_ypixel = 0};
  pid_ = forkpty(&terminal_, nullptr, nullptr, &size);
  if (pid_ != 0) return;
  setenv("TERM", "xterm", 1);
  setenv("HOME", home.c_str(), 1);
  for (const char* name : {"XDG_STATE_HOME", "XDG_CACHE_HOME"}) unsetenv(name);
  for (const std::string& variable : variables) putenv(const_cast<char*>(variable.c_str()));
  std::vector<char*> words = {const_cast<char*>(OUTRIDER_PROGRAM)};
  for (const std::string& argument : arguments) words.push_back(const_cast<char*>(argument.c_str()));
  words.push_back(nullptr);
  execv(OUTRIDER_PROGRAM, words.data());
  _exit(127);
}

PseudoTerminal::~PseudoTerminal() {
  if (pid_ > 0) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  if (terminal_ >= 0) close(terminal_);
}

void PseudoTerminal::type(const std::string& keys) {
  // A terminal's queue is short, and the program's echo has to be read meanwhile.
  for (size_t done = 0; done < keys.size();) {
    pollfd ready = {.fd = terminal_, .events = POLLIN | POLLOUT, .revents = 0};
    if (poll(&ready, 1, 10'000) <= 0) return;
    if ((ready.revents & POLLOUT) != 0) {
      const ssize_t count = write(terminal_, keys.data() + done, std::min<size_t>(keys.size() - done, 512));
      if (count <= 0) return;
      done += static_cast<size_t>(count);
    }
    if ((ready.revents & POLLIN) == 0) continue;
    char text[4096];
    const ssize_t count = read(terminal_, text, sizeof text);
    if (count > 0) pending_.append(text, static_cast<size_t>(count));
  }
}

std::string PseudoTerminal::read_until(const std::string& expected) {
  const auto end = Clock::now() + kPatience;
  while (true) {
    if (const size_t place = pending_.find(expected); place != std::string::npos) {
      const std::string text = pending_.substr(0, place + expected.size());
      pending_.erase(0, text.size());
      return text;
    }
    pollfd ready = {.fd = terminal_, .events = POLLIN, .revents = 0};
    char text[4096];
    if (Clock::now() > end || poll(&ready, 1, 1000) < 0) return std::exchange(pending_, "");
    if ((ready.revents & (POLLIN | POLLHUP)) == 0) continue;
    const ssize_t count = read(terminal_, text, sizeof text);
    if (count <= 0) return std::exchange(pending_, "");
    pending_.append(text, static_cast<size_t>(count));
  }
}

int PseudoTerminal::wait() {
  for (const auto end = Clock::now() + kPatience; Clock::now() < end;) {
    int status = 0;
    if (waitpid(pid_, &status, WNOHANG) == pid_) {
      pid_ = -1;
      return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    }
    pollfd ready = {.fd = terminal_, .events = POLLIN, .revents = 0};
    char text[4096];
    if (poll(&ready, 1, 50) > 0 && read(terminal_, text, sizeof text) < 0)
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return -1;
}

}  // namespace outrider
