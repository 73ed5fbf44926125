// SPDX-License-Identifier: Apache-2.0
#include "device/nccl_links.h"

#include <chrono>
#include <utility>

#include "base/clock.h"

namespace outrider {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kPeriod(50);         // of the watch
constexpr milliseconds kLongestCall(1000);  // a longer one waits for a rank that has ended
constexpr double kLongestJoinMs = 60'000;

std::string text_of(const NcclLibrary& nccl, int code) {
  return nccl.name() + " says: " + nccl.error_text(code);
}

// A join under way on a thread that may stay for ever where another rank never comes.
struct Joining {
  NcclLibrary::Group group = nullptr;
  int code = 0;
  std::atomic<bool> is_done = false;
};

}  // namespace

Result<std::unique_ptr<NcclLinks>> NcclLinks::join(CudaDevice& device, const NcclLibrary& nccl, Group group) {
  const auto joining = std::make_shared<Joining>();
  std::thread([joining, &device, nccl, id = group.id, size = group.size, rank = group.rank] {
    device.enter();
    joining->code = nccl.join(&joining->group, size, id, rank);
    joining->is_done = true;
  }).detach();
  const double start = now_ms();
  while (!joining->is_done) {
    if (group.has_ended()) return resource_error("a rank has ended");
    if (now_ms() - start > kLongestJoinMs) return resource_error(nccl.name() + " takes longer than a minute");
    std::this_thread::sleep_for(milliseconds(1));
  }
  if (joining->code != 0) return resource_error(text_of(nccl, joining->code));
  return std::unique_ptr<NcclLinks>(new NcclLinks(device, nccl, joining->group, std::move(group)));
}

NcclLinks::NcclLinks(CudaDevice& device, const NcclLibrary& nccl, NcclLibrary::Group joined, Group group)
    : device_(device), nccl_(nccl), joined_(joined), group_(std::move(group)), watcher_([this] {
        watch();
      }) {}

NcclLinks::~NcclLinks() {
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
  }
  end_.notify_all();
  watcher_.join();
  if (is_aborted_) return;
  device_.enter();
  has_failed_ || group_.has_ended() ? nccl_.abort(joined_) : nccl_.leave(joined_);
}

int NcclLinks::call(std::span<const DeviceTransfer> transfers, NcclLibrary::Stream stream) const {
  int code = nccl_.begin_calls();
  if (code != 0) return code;
  for (const DeviceTransfer& one : transfers) {
    const auto bytes = static_cast<size_t>(one.bytes);
    auto* const at = reinterpret_cast<void*>(one.at);
    if (code == 0 && one.is_receive) code = nccl_.receive(at, bytes, kNcclBytes, one.rank, joined_, stream);
    if (code == 0 && !one.is_receive) code = nccl_.send(at, bytes, kNcclBytes, one.rank, joined_, stream);
  }
  const int end = nccl_.end_calls();
  return code == 0 ? end : code;
}

void NcclLinks::exchange(std::span<const DeviceTransfer> transfers) {
  const std::lock_guard lock(calls_);
  if (has_failed_) return;
  const int code = device_.order([&](CudaDriver::Handle stream) { return call(transfers, stream); });
  if (code != 0) fail(text_of(nccl_, code));
}

void NcclLinks::fail(const std::string& reason) {
  const std::lock_guard lock(mutex_);
  if (failure_.empty()) failure_ = reason;
  has_failed_ = true;
}

std::string NcclLinks::failure() const {
  if (!has_failed_) return {};
  const std::lock_guard lock(mutex_);
  return failure_;
}

std::string NcclLinks::problem() const {
  if (group_.has_ended()) return "a rank has ended";
  int failure = 0;
  const int code = nccl_.get_failure(joined_, &failure);
  if (code != 0) return text_of(nccl_, code);
  return failure == 0 || failure == kNcclBusy ? std::string() : text_of(nccl_, failure);
}

// The failure is known before anything on the GPU ends without its numbers.
void NcclLinks::watch() {
  while (!has_failed_) {
    {
      std::unique_lock lock(mutex_);
      if (end_.wait_for(lock, kPeriod, [this] { return is_over_; })) return;
    }
    if (const std::string found = problem(); !found.empty()) fail(found);
  }
  std::unique_lock lock(calls_, std::defer_lock);
  for (milliseconds waited(0); waited < kLongestCall && !lock.try_lock(); waited += kPeriod)
    std::this_thread::sleep_for(kPeriod);
  is_aborted_ = true;
  nccl_.abort(joined_);
}

}  // namespace outrider
