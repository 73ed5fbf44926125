// SPDX-License-Identifier: Apache-2.0
#include "models/team/messages.h"

namespace outrider {

void MessageWriter::append(std::span<const std::byte> raw) {
  const size_t begin = bytes_.size();
  bytes_.resize(begin + raw.size());
  if (!raw.empty()) std::memcpy(bytes_.data() + begin, raw.data(), raw.size());
}

void send_message(Communicator& ranks, const MessageWriter& message, int to) {
  const int64_t size = std::ssize(message.bytes());
  ranks.send(std::as_bytes(std::span(&size, 1)), to);
  ranks.send(message.bytes(), to);
}

std::vector<std::byte> receive_message(Communicator& ranks, int from) {
  int64_t size = 0;
  ranks.receive(std::as_writable_bytes(std::span(&size, 1)), from);
  std::vector<std::byte> bytes(static_cast<size_t>(size));
  ranks.receive(bytes, from);
  return bytes;
}

}  // namespace outrider
