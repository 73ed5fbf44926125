// SPDX-License-Identifier: Apache-2.0
#include "device_kernels/simt/emulator.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "base/check.h"
#include "device_kernels/simt/accesses.h"
#include "device_kernels/simt/emulated_block.h"
#include "device_kernels/simt/fiber.h"

namespace outrider::simt {

constinit thread_local RunningWarp running_warp;

namespace {

constexpr const char* kFaultNames[kFaults] = {"out of bounds", "too early", "race", "copy not awaited",
                                              "uneven barrier"};

// Draws orders. Kernels must not depend on them.
class OrderSource {
 public:
  explicit OrderSource(uint64_t seed) : state_(seed) {}
  void shuffle(std::vector<int>& order) {
    for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[next() % i]);
  }

 private:
  uint64_t next() {  // splitmix64
    state_ += 0x9E3779B97F4A7C15;
    uint64_t x = state_;
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9;
    x = (x ^ x >> 27) * 0x94D049BB133111EB;
    return x ^ x >> 31;
  }
  uint64_t state_;
};

std::vector<int> numbers_to(int count) {
  std::vector<int> order(static_cast<size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  return order;
}

}  // namespace

struct OrderedCopy {
  int word;
  int lane;  // the first one
  int lanes;
  int group;
  const void* from;
};

// One warp of the block: its fiber, and the copies under way for it.
struct EmulatedWarp {
  EmulatedTeam* team = nullptr;
  std::unique_ptr<Fiber> fiber = {};
  Block block = {};
  RunningWarp running = {};
  int time = 0;  // counts barriers within the warp
  int barriers = 0;
  bool is_done = true;
  std::vector<OrderedCopy> copies = {};  // under way, oldest first
  int groups = 0;                        // that are complete
};

class EmulatedTeam {
 public:
  EmulationReport run(EmulatedKernel kernel, const void* args, const LaunchShape& shape,
                      const EmulationOptions& options) {
    kernel_ = kernel;
    args_ = args;
    report_ = {};
    options_ = options;
    OrderSource source(options.seed);
    prepare(shape);
    std::vector<int> blocks = numbers_to(shape.blocks);
    source.shuffle(blocks);
    for (const int block : blocks) run_block(block, shape, source);
    running_warp = {};
    return std::move(report_);
  }

  void pass_barrier(const Block& block) {
    EmulatedWarp& warp = warp_of(block);
    if (warp.barriers++ != options_.skipped_barrier) warp.fiber->yield();
  }
  void wait_for_previous() const { running_warp.has_waited = !options_.skips_wait_for_previous; }
  void pass_warp_barrier(const Block& block) { ++warp_of(block).time; }

  void note(Fault fault, const char* what) {
    ++report_.faults[static_cast<size_t>(fault)];
    if (!report_.first.empty()) return;
    const Block& block = *running_warp.block;
    report_.first = std::string(kFaultNames[static_cast<size_t>(fault)]) + ": " + what + ", in warp " +
                    std::to_string(block.warp_index) + " of block " + std::to_string(block.block_index);
  }

  void note_access(const Block& block, int word, int lane, bool writes) {
    const Access now{block_time_, block.warp_index, lane, warp_of(block).time};
    WordAccesses& of_word = accesses_[static_cast<size_t>(word)];
    if (is_pending_[static_cast<size_t>(word)] != 0) note(Fault::kPendingCopy, "shared memory");
    if (of_word.write.is_beside(now) || (writes && of_word.read.is_beside(now)))
      note(Fault::kRace, "shared memory");
    if (writes) {
      of_word.write = now;
      return;
    }
    add_reader(of_word.read, now);
  }

  void order(const Block& block, const OrderedCopy& copy) {
    const int end = copy.word + copy.lanes * kCopyWords;
    std::fill(block.shared + copy.word, block.shared + end, kPoison);
    note_copy(block, copy, true);
    EmulatedWarp& warp = warp_of(block);
    warp.copies.push_back(copy);
    warp.copies.back().group = warp.groups;
  }
  void end_group(const Block& block) { ++warp_of(block).groups; }
  void wait_for_copies(const Block& block, int kept) {
    if (options_.skips_copy_waits) return;
    EmulatedWarp& warp = warp_of(block);
    size_t arrived = 0;
    for (; arrived < warp.copies.size() && warp.copies[arrived].group < warp.groups - kept; ++arrived)
      arrive(block, warp.copies[arrived]);
    warp.copies.erase(warp.copies.begin(), warp.copies.begin() + static_cast<int64_t>(arrived));
  }

 private:
  static constexpr int kCopyWords = 4;

  static void run_warp(void* context) {
    auto& warp = *static_cast<EmulatedWarp*>(context);
    while (true) {
      warp.team->kernel_(warp.block, warp.team->args_);
      warp.is_done = true;
      warp.fiber->yield();
    }
  }

  EmulatedWarp& warp_of(const Block& block) { return *warps_[static_cast<size_t>(block.warp_index)]; }

  void prepare(const LaunchShape& shape) {
    OUTRIDER_CHECK(shape.warps > 0 && shape.shared_bytes % 4 == 0);
    while (std::ssize(warps_) < shape.warps) warps_.push_back(std::make_unique<EmulatedWarp>());
    shared_.resize(static_cast<size_t>(shape.shared_bytes / 4));
    accesses_.assign(options_.checks_races ? shared_.size() : 0, {});
    block_time_ = 0;
  }

  void begin_warp(int index, int block, const LaunchShape& shape) {
    EmulatedWarp& warp = *warps_[static_cast<size_t>(index)];
    warp.team = this;
    warp.block = {.team = this,
                  .block_index = block,
                  .block_count = shape.blocks,
                  .warp_index = index,
                  .warp_count = shape.warps,
                  .shared = shared_.data(),
                  .shared_words = static_cast<int>(shared_.size()),
                  .checks_races = options_.checks_races};
    warp.running = {.block = &warp.block};
    warp.is_done = false;
    warp.barriers = 0;
    warp.copies.clear();
    warp.groups = 0;
    if (warp.fiber == nullptr) warp.fiber = std::make_unique<Fiber>(run_warp, &warp);
  }

  void run_block(int block, const LaunchShape& shape, OrderSource& source) {
    std::ranges::fill(shared_, kPoison);
    is_pending_.assign(accesses_.size(), 0);
    for (int w = 0; w < shape.warps; ++w) begin_warp(w, block, shape);
    std::vector<int> order = numbers_to(shape.warps);
    for (int done = 0; done == 0;) {  // each warp runs to its next barrier, or to its end
      ++block_time_;
      source.shuffle(order);
      for (const int w : order) {
        EmulatedWarp& warp = *warps_[static_cast<size_t>(w)];
        running_warp = warp.running;
        warp.fiber->resume();
        warp.running = running_warp;
        done += static_cast<int>(warp.is_done);
      }
      if (done != 0 && done != shape.warps) abandon(shape.warps);
    }
  }

  // Warps that wait for ever leave their stacks behind.
  void abandon(int warps) {
    note(Fault::kUnevenBarrier, "some warps ended while others wait");
    for (int w = 0; w < warps; ++w) {
      if (!warps_[static_cast<size_t>(w)]->is_done) warps_[static_cast<size_t>(w)]->fiber.reset();
    }
  }

  void arrive(const Block& block, const OrderedCopy& copy) {
    std::memcpy(block.shared + copy.word, copy.from,
                static_cast<size_t>(copy.lanes * kCopyWords) * sizeof(int32_t));
    note_copy(block, copy, false);
  }

  // A copy writes when it is ordered and when it arrives.
  void note_copy(const Block& block, const OrderedCopy& copy, bool is_pending) {
    if (!options_.checks_races) return;
    for (int i = 0; i < copy.lanes * kCopyWords; ++i) {
      uint8_t& pending = is_pending_[static_cast<size_t>(copy.word + i)];
      if (!is_pending) pending = 0;
      note_access(block, copy.word + i, copy.lane + i / kCopyWords, true);
      pending = static_cast<uint8_t>(is_pending);
    }
  }

  EmulatedKernel kernel_ = nullptr;
  const void* args_ = nullptr;
  EmulationReport report_;
  EmulationOptions options_;
  std::vector<std::unique_ptr<EmulatedWarp>> warps_;  // fibers are used again for later blocks
  std::vector<int32_t> shared_;
  std::vector<WordAccesses> accesses_;  // of the words; empty: races are not checked
  std::vector<uint8_t> is_pending_;     // words that a copy is under way to
  int block_time_ = 0;
};

void Block::sync() const { team->pass_barrier(*this); }
void Block::sync_warp() const { team->pass_warp_barrier(*this); }
void Block::wait_for_previous() const { team->wait_for_previous(); }

void note_fault(Fault fault, const char* what) { running_warp.block->team->note(fault, what); }
void note_shared_access(const Block& block, int word, int lane, bool writes) {
  block.team->note_access(block, word, lane, writes);
}
void order_copies(const Block& block, int word, int lane, int lanes, const void* from) {
  block.team->order(block, {.word = word, .lane = lane, .lanes = lanes, .group = 0, .from = from});
}
void end_copy_group(const Block& block) { block.team->end_group(block); }
void wait_for_copies(const Block& block, int groups) { block.team->wait_for_copies(block, groups); }

EmulationReport emulate(EmulatedKernel kernel, const void* args, const LaunchShape& shape,
                        const EmulationOptions& options) {
  thread_local EmulatedTeam team;
  return team.run(kernel, args, shape, options);
}

}  // namespace outrider::simt
