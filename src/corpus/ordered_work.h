// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "outrider/result.h"

namespace outrider {

// Threads that take items in order, work on them side by side, and hand the results on in the same order. The
// first error ends the work of all.
template <typename Next, typename Make, typename Take>
class OrderedWork {
 public:
  // next() -> Result<std::optional<Item>>: nullopt after the last one; make(Item) -> Result<Product>;
  // take(Product) -> Status. Only make() runs on several threads at once.
  OrderedWork(Next next, Make make, Take take)
      : next_(std::move(next)), make_(std::move(make)), take_(std::move(take)) {}

  Status run(int threads) {
    std::vector<std::thread> others;
    for (int i = 1; i < threads; ++i) others.emplace_back([this] { work(); });
    work();
    for (std::thread& thread : others) thread.join();
    return status_;
  }

 private:
  void work() {
    try {
      while (do_one()) continue;
    } catch (const std::exception& failure) {
      fail(resource_error(std::string("cannot build the index of a corpus: ") + failure.what()));
    }
  }

  bool do_one() {
    std::unique_lock<std::mutex> reading(reading_);
    if (has_failed()) return false;
    auto item = next_();
    if (!item.ok()) return fail(item.error());
    if (!*item) return false;
    const uint64_t turn = read_++;
    reading.unlock();
    auto product = make_(std::move(**item));
    std::unique_lock<std::mutex> taking(taking_);
    moved_.wait(taking, [&] { return taken_ == turn || !status_.ok(); });
    if (!status_.ok()) return false;
    status_ = product.ok() ? take_(std::move(product).value()) : Status(product.error());
    ++taken_;
    moved_.notify_all();
    return status_.ok();
  }

  bool has_failed() {
    const std::lock_guard<std::mutex> lock(taking_);
    return !status_.ok();
  }

  bool fail(Error error) {
    const std::lock_guard<std::mutex> lock(taking_);
    if (status_.ok()) status_ = std::move(error);
    moved_.notify_all();
    return false;
  }

  Next next_;
  Make make_;
  Take take_;
  std::mutex reading_, taking_;
  std::condition_variable moved_;
  uint64_t read_ = 0, taken_ = 0;
  Status status_;
};

}  // namespace outrider
