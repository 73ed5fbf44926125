// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <variant>
#include <vector>

#include "device/device.h"
#include "device/device_links.h"

namespace outrider {

// Launches, copies, fills and exchanges in the order in which a device runs them, and loops of them: a plain
// value that names memory of the device.
class DeviceList {
 public:
  struct Launch {
    const DeviceKernel* kernel = nullptr;
    std::vector<std::byte> args = {};
    LaunchShape shape = {};
  };
  struct Copy {
    DeviceAddress from = 0, to = 0;
    int64_t bytes = 0;
  };
  struct Fill {
    DeviceAddress to = 0;
    std::byte value = {};
    int64_t bytes = 0;
  };
  struct Exchange {
    DeviceLinks* links = nullptr;
    std::vector<DeviceTransfer> transfers = {};
  };
  // The body runs while the word, an int32, is not 0, but at most `limit` times.
  struct Loop {
    DeviceAddress word = 0;
    int limit = 0;
    std::shared_ptr<const DeviceList> body = nullptr;
  };
  using Entry = std::variant<Launch, Copy, Fill, Exchange, Loop>;

  // As the functions of Device and DeviceLinks.
  void launch(const DeviceKernel& kernel, const void* args, const LaunchShape& shape);
  void copy(DeviceAddress from, DeviceAddress to, int64_t bytes);
  void fill(DeviceAddress to, std::byte value, int64_t bytes);
  void exchange(DeviceLinks& links, std::vector<DeviceTransfer> transfers);
  void repeat(DeviceAddress word, int limit, DeviceList body);

  const std::vector<Entry>& entries() const { return entries_; }
  bool has_loops() const { return has<Loop>(); }
  bool has_exchanges() const { return has<Exchange>(); }

 private:
  template <typename Kind>
  bool has() const {
    return std::ranges::any_of(entries_,
                               [](const Entry& entry) { return std::holds_alternative<Kind>(entry); });
  }

  std::vector<Entry> entries_;
};

// Runs a list entry by entry. The runner has launch(), copy() and fill() as a device, and word_at().
template <typename Runner>
void run_entries(const DeviceList& list, Runner& runner) {
  struct Visitor {
    Runner& runner;
    void operator()(const DeviceList::Launch& launch) const {
      runner.launch(*launch.kernel, launch.args.data(), launch.shape);
    }
    void operator()(const DeviceList::Copy& copy) const { runner.copy(copy.from, copy.to, copy.bytes); }
    void operator()(const DeviceList::Fill& fill) const { runner.fill(fill.to, fill.value, fill.bytes); }
    void operator()(const DeviceList::Exchange& exchange) const {
      exchange.links->exchange(exchange.transfers);
    }
    void operator()(const DeviceList::Loop& loop) const {
      for (int round = 0; round < loop.limit && runner.word_at(loop.word) != 0; ++round)
        run_entries(*loop.body, runner);
    }
  };
  for (const DeviceList::Entry& entry : list.entries()) std::visit(Visitor{runner}, entry);
}

}  // namespace outrider
