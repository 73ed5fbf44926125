// SPDX-License-Identifier: Apache-2.0
#include "platform/bus_guard.h"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <mutex>

namespace outrider {

// The handler reads the list of ranges on any thread, at any moment, so ranges are never freed, only used
// again.
class BusHandler {
 public:
  static BusHandler& get() {
    static BusHandler handler;
    return handler;
  }

  GuardedRange* add(uintptr_t begin, uintptr_t end) {
    const std::lock_guard lock(mutex_);
    GuardedRange* range = first_;
    while (range != nullptr && range->begin_ != 0) range = range->next_;
    const bool is_new = range == nullptr;
    if (is_new) range = new GuardedRange;
    range->is_damaged_ = false;
    range->end_ = end;
    range->begin_ = begin;
    if (is_new) {
      range->next_ = first_;
      first_ = range;
    }
    return range;
  }

  void remove(GuardedRange& range) {
    const std::lock_guard lock(mutex_);
    range.begin_ = 0;
  }

 private:
  BusHandler() {
    page_ = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
    instance_ = this;
    struct sigaction action = {};
    action.sa_sigaction = handle;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigemptyset(&action.sa_mask);
    sigaction(SIGBUS, &action, &before_);
  }

  static void handle(int signal, siginfo_t* info, void* context) {
    BusHandler& handler = *instance_;
    if (handler.repair(reinterpret_cast<uintptr_t>(info->si_addr))) return;
    if ((handler.before_.sa_flags & SA_SIGINFO) != 0)
      return handler.before_.sa_sigaction(signal, info, context);
    if (handler.before_.sa_handler != SIG_DFL && handler.before_.sa_handler != SIG_IGN)
      return handler.before_.sa_handler(signal);
    sigaction(SIGBUS, &handler.before_, nullptr);  // the access is repeated, and ends the process
  }

  // Only system calls and lock-free atomics.
  bool repair(uintptr_t address) const {
    for (GuardedRange* range = first_; range != nullptr; range = range->next_) {
      const uintptr_t end = range->end_;
      if (address < range->begin_ || address >= end || range->begin_ == 0) continue;
      const uintptr_t page = address / page_ * page_;
      range->is_damaged_ = true;
      return mmap(reinterpret_cast<void*>(page), end - page, PROT_READ,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED;
    }
    return false;
  }

  static inline BusHandler* instance_ = nullptr;

  std::mutex mutex_;  // of changes
  std::atomic<GuardedRange*> first_ = nullptr;
  uintptr_t page_ = 0;
  struct sigaction before_ = {};
};

GuardedRange* GuardedRange::guard(std::span<const std::byte> bytes) {
  const auto begin = reinterpret_cast<uintptr_t>(bytes.data());
  return BusHandler::get().add(begin, begin + bytes.size());
}

void GuardedRange::release() { BusHandler::get().remove(*this); }

}  // namespace outrider
