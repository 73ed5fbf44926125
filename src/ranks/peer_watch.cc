// SPDX-License-Identifier: Apache-2.0
#include "ranks/peer_watch.h"

#include <poll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

namespace outrider {

ProcessPlace ProcessPlace::own() {
  ProcessPlace place;
  std::ifstream("/proc/sys/kernel/random/boot_id").read(place.start.data(), std::ssize(place.start));
  struct stat space = {};
  if (stat("/proc/self/ns/pid", &space) == 0) place.name_space = space.st_ino;
  place.process = getpid();
  return place;
}

PeerWatch::PeerWatch(std::span<const ProcessPlace> places, int own) {
  const ProcessPlace& here = places[static_cast<size_t>(own)];
  for (int rank = 0; rank < static_cast<int>(places.size()); ++rank) {
    const ProcessPlace& place = places[static_cast<size_t>(rank)];
    if (rank == own || !place.is_beside(here)) continue;
    const long process = syscall(SYS_pidfd_open, place.process, 0);
    peers_.push_back({rank, std::make_unique<FileDescriptor>(static_cast<int>(process))});
  }
}

bool PeerWatch::Peer::has_ended() const {
  pollfd state{.fd = process->get(), .events = POLLIN, .revents = 0};
  return poll(&state, 1, 0) > 0;
}

int PeerWatch::ended(int limit) const {
  for (const Peer& peer : peers_) {
    if (peer.rank < limit && peer.has_ended()) return peer.rank;
  }
  return -1;
}

int PeerWatch::neighbours(int below) const {
  return static_cast<int>(std::ranges::count_if(peers_, [&](const Peer& peer) { return peer.rank < below; }));
}

bool PeerWatch::has_ended(int rank) const {
  return std::ranges::any_of(peers_, [&](const Peer& peer) { return peer.rank == rank && peer.has_ended(); });
}

}  // namespace outrider
