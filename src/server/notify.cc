// SPDX-License-Identifier: Apache-2.0
#include "server/notify.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <cstddef>
#include <cstring>

#include "platform/file_descriptor.h"

namespace outrider {

void notify_manager(const std::string& socket_name, std::string_view state) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (socket_name.empty() || socket_name.size() >= sizeof(address.sun_path)) return;
  std::memcpy(address.sun_path, socket_name.data(), socket_name.size());
  if (socket_name.front() == '@') address.sun_path[0] = '\0';
  const FileDescriptor socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + socket_name.size());
  [[maybe_unused]] const ssize_t sent =
      ::sendto(socket.get(), state.data(), state.size(), MSG_NOSIGNAL | MSG_DONTWAIT,
               reinterpret_cast<const sockaddr*>(&address), length);
}

}  // namespace outrider
