// SPDX-License-Identifier: Apache-2.0
#include "server/fleet/engine_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <csignal>
#include <cstring>
#include <utility>

namespace outrider {
namespace {

constexpr int kLastDescriptor = 1 << 16;  // where the system cannot close a range

std::vector<char*> pointers_to(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

void close_descriptors(int first) {
  if (::syscall(SYS_close_range, first, ~0U, 0) == 0) return;
  for (int descriptor = first; descriptor < kLastDescriptor; ++descriptor) ::close(descriptor);
}

// In the child: only calls that are allowed between fork and exec.
[[noreturn]] void run_program(const char* program, char* const* arguments, char* const* environment,
                              pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != parent) ::_exit(0);
  ::setpgid(0, 0);
  const int nothing = ::open("/dev/null", O_RDWR);
  ::dup2(nothing, STDIN_FILENO);
  ::dup2(nothing, STDOUT_FILENO);
  close_descriptors(STDERR_FILENO + 1);
  ::execve(program, arguments, environment);
  ::_exit(127);
}

std::string ending_of(int status) {
  if (WIFSIGNALED(status)) return fmt::format("signal {}", WTERMSIG(status));
  return fmt::format("exit status {}", WEXITSTATUS(status));
}

}  // namespace

Result<std::unique_ptr<EngineProcess>> EngineProcess::start(const boost::asio::any_io_executor& executor,
                                                            const std::filesystem::path& program,
                                                            const std::vector<std::string>& arguments,
                                                            const std::vector<std::string>& environment) {
  std::vector<std::string> words = {program.string()};
  words.insert(words.end(), arguments.begin(), arguments.end());
  const std::vector<char*> argument_list = pointers_to(words), variables = pointers_to(environment);
  const pid_t parent = ::getpid(), pid = ::fork();
  if (pid == 0) run_program(program.c_str(), argument_list.data(), variables.data(), parent);
  if (pid < 0)
    return resource_error(fmt::format("cannot start {}: {}", program.string(), std::strerror(errno)));
  const auto descriptor = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
  if (descriptor < 0) {
    const std::string reason = std::strerror(errno);
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
    return resource_error(fmt::format("cannot watch a process: {}", reason));
  }
  return std::unique_ptr<EngineProcess>(new EngineProcess(executor, pid, descriptor));
}

EngineProcess::~EngineProcess() {
  if (has_ended()) return;
  kill();
  reap(0);
}

boost::asio::awaitable<std::string> EngineProcess::wait() {
  while (!ending_) {
    boost::system::error_code error;
    co_await descriptor_.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                                    boost::asio::redirect_error(boost::asio::use_awaitable, error));
    if (error) co_return "an error: " + error.message();
    reap(WNOHANG);
  }
  co_return *ending_;
}

void EngineProcess::reap(int options) {
  int status = 0;
  if (::waitpid(pid_, &status, options) == pid_) ending_ = ending_of(status);
}

void EngineProcess::send(int signal) const {
  if (!has_ended()) ::kill(pid_, signal);
}

void EngineProcess::terminate() const { send(SIGTERM); }
void EngineProcess::reload() const { send(SIGHUP); }
void EngineProcess::kill() const { send(SIGKILL); }

}  // namespace outrider
