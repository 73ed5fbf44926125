// SPDX-License-Identifier: Apache-2.0
// A library to preload: the wall clock is off by the seconds in the file OUTRIDER_CLOCK_OFFSET, which may
// change.
#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include <cstdint>
#include <ctime>

namespace {

int64_t offset() {
  int64_t seconds = 0;
  const int file = open(OUTRIDER_CLOCK_OFFSET, O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  if (read(file, &seconds, sizeof seconds) != sizeof seconds) seconds = 0;
  close(file);
  return seconds;
}

}  // namespace

extern "C" {

int clock_gettime(clockid_t clock, timespec* now) noexcept {
  const auto status = static_cast<int>(syscall(SYS_clock_gettime, clock, now));
  if (status == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) now->tv_sec += offset();
  return status;
}

int gettimeofday(timeval* now, void* /*zone*/) noexcept {
  timespec time = {};
  clock_gettime(CLOCK_REALTIME, &time);
  now->tv_sec = time.tv_sec;
  now->tv_usec = time.tv_nsec / 1000;
  return 0;
}

time_t time(time_t* out) noexcept {
  timespec now = {};
  clock_gettime(CLOCK_REALTIME, &now);
  if (out != nullptr) *out = now.tv_sec;
  return now.tv_sec;
}
}
