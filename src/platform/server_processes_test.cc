// SPDX-License-Identifier: Apache-2.0
#include "platform/server_processes.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "platform/file_descriptor.h"

namespace outrider {
namespace {

namespace fs = std::filesystem;

TEST(ServerProcesses, FindsThisProcessWhileItListens) {
  const std::string program = fs::read_symlink("/proc/self/exe").filename().string();
  const auto find_own = [&] {
    const auto servers = server_processes(program);
    const auto found = std::ranges::find(servers, getpid(), &ServerProcess::pid);
    return found == servers.end() ? ServerProcess{} : *found;
  };
  EXPECT_EQ(find_own().pid, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const FileDescriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(listen(socket.get(), 1), 0);
  socklen_t size = sizeof address;
  ASSERT_EQ(getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
  const ServerProcess own = find_own();
  EXPECT_EQ(own.pid, getpid());
  EXPECT_THAT(own.addresses, testing::ElementsAre("127.0.0.1:" + std::to_string(ntohs(address.sin_port))));
  ASSERT_FALSE(own.arguments.empty());
  EXPECT_THAT(own.arguments.front(), testing::HasSubstr(program));
  EXPECT_GT(own.resident_bytes, 1 << 20);
  EXPECT_GE(own.seconds, 0);
  EXPECT_LT(own.seconds, 3600);
}

TEST(ServerProcesses, ReadsTheTablesOfTheKernel) {
  const fs::path proc = fs::path(testing::TempDir()) / ("proc_" + std::to_string(getpid()));
  const auto write = [&](const fs::path& file, std::string_view text) {
    fs::create_directories((proc / file).parent_path());
    std::ofstream(proc / file, std::ios::binary) << text;
  };
  write("uptime", "1000.5 2000.0\n");
  write("42/cmdline", std::string_view("outrider\0serve\0m\0", 17));
  write("42/statm", "100 25 0 0 0 0 0\n");
  write("42/stat", "42 (a ) b) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 " +
                       std::to_string(900 * sysconf(_SC_CLK_TCK)) + " 0 0\n");
  write("42/net/tcp",
        "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
        "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 7 1\n"
        "   1: 0100007F:1F91 00000000:0000 01 00000000:00000000 00:00000000 00000000     0        0 8 1\n");
  write("42/net/tcp6",
        "  sl  local_address                         remote_address                        st\n"
        "   0: 00000000000000000000000001000000:1F90 00000000000000000000000000000000:0000 0A 0:0 0:0 0 0 0 "
        "9 1\n");
  write("42/net/unix",
        "Num       RefCount Protocol Flags    Type St Inode Path\n"
        "0: 00000002 00000000 00010000 0001 01 10 /run/o.sock\n");
  fs::create_directories(proc / "42/fd");
  fs::create_symlink("/usr/bin/outrider (deleted)", proc / "42/exe");
  for (const char* inode : {"7", "8", "9", "10"})
    fs::create_symlink("socket:[" + std::string(inode) + "]", proc / "42/fd" / inode);
  fs::create_directories(proc / "43");
  fs::create_symlink("/usr/bin/other", proc / "43/exe");
  const auto servers = server_processes("outrider", proc);
  fs::remove_all(proc);
  ASSERT_EQ(servers.size(), 1u);
  EXPECT_EQ(servers[0].pid, 42);
  EXPECT_THAT(servers[0].arguments, testing::ElementsAre("outrider", "serve", "m"));
  EXPECT_THAT(servers[0].addresses, testing::ElementsAre("127.0.0.1:8080", "[::1]:8080", "unix:/run/o.sock"));
  EXPECT_EQ(servers[0].resident_bytes, 25 * sysconf(_SC_PAGESIZE));
  EXPECT_NEAR(servers[0].seconds, 100.5, 0.01);
}

}  // namespace
}  // namespace outrider
