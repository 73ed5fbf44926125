// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <filesystem>
#include <memory>
#include <span>
#include <vector>

#include "models/weights/memory_plan.h"
#include "models/weights/stored_part.h"
#include "outrider/result.h"
#include "platform/direct_file.h"

namespace outrider {

// Experts of a mixture that is larger than the memory it may use. The experts that passes use most stay in
// memory. A pass reads the others that its rows have chosen while it computes with what is there.
class ExpertStream {
 public:
  using Experts = std::vector<std::vector<StoredPart>>;  // [layers][experts], empty where a layer has none

  // The matrices must outlive the stream and stay in place. Error: the file cannot be opened.
  static Result<std::unique_ptr<ExpertStream>> open(const std::filesystem::path& path, Experts experts);

  // Makes room for `count` experts, at least two or all, reads so many, and measures the rate. Called once,
  // before the first begin(). Errors: errors of reading.
  Status keep(int64_t count);

  // Begins to use these experts of a layer, each of them once.
  void begin(int64_t layer, std::span<const int32_t> experts);
  // Numbers in the list given to begin() of experts with matrices that are readable until the next call. Each
  // comes once, first the experts in memory; none: all have come. Throws ReadFailure.
  std::span<const int32_t> next();

  int64_t count() const;                              // in all layers
  double rate() const { return rate_; }               // bytes per second of reads in keep(); 0: all stay
  int64_t bytes_read() const { return bytes_read_; }  // by next()
  double waited_ms() const { return waited_ms_; }     // for reads in next()

 private:
  static constexpr int32_t kNone = -1;
  // Memory and the expert that it holds or is being filled with.
  struct Slot {
    std::span<std::byte> memory;
    FileRead read;
    int32_t layer = kNone;
    int32_t expert = kNone;
    bool is_needed = false;  // until its expert has been computed
  };
  struct Expert {
    StoredPart stored;
    int32_t slot = kNone;
    uint32_t uses = 0;  // by late passes
  };
  // An expert of begin() on its way into a slot.
  struct Reading {
    int32_t slot = kNone;
    int32_t number = 0;  // in the list of begin()
  };

  ExpertStream(std::unique_ptr<DirectFile> file, Experts experts);
  Status fill();
  void age();
  void read_ahead();
  int32_t least_used_slot() const;
  void load(int32_t slot, int32_t layer, int32_t expert);
  void forget(Slot& slot);
  Expert& expert_of(const Slot& slot);

  std::vector<std::vector<Expert>> experts_;  // [layers][experts]
  int64_t slot_bytes_ = 0;
  ReadMemory memory_;
  std::vector<Slot> slots_;

  int32_t layer_ = 0;  // of the last begin()
  int64_t passes_ = 0;
  std::vector<int32_t> wanted_;   // experts of the last begin()
  std::vector<int32_t> present_;  // numbers in `wanted_` of experts in memory
  std::vector<int32_t> missing_;  // numbers in `wanted_` of experts to be read
  size_t next_missing_ = 0;       // the first that is not being read yet
  std::deque<Reading> reading_;
  std::vector<int32_t> ready_;  // what next() returned last
  double rate_ = 0;
  int64_t bytes_read_ = 0;
  double waited_ms_ = 0;
  std::unique_ptr<DirectFile> file_;  // last, because it waits for reads into the memory above
};

}  // namespace outrider
