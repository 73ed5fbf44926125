// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <vector>

#include "models/weights/memory_plan.h"
#include "models/weights/stored_part.h"
#include "outrider/result.h"
#include "platform/direct_file.h"

namespace outrider {

// Layers of a model that is larger than the memory it may use. Some stay in memory; the others are read from
// the file of packed weights into one of two buffers while the layers before them are computed.
class LayerStream {
 public:
  // The matrices must outlive the stream and stay in place. Error: the file cannot be opened.
  static Result<std::unique_ptr<LayerStream>> open(const std::filesystem::path& path,
                                                   std::vector<StoredPart> layers,
                                                   DirectFile::Method method = DirectFile::Method::kBest);

  // Reads the layers that stay, and measures the rate at which others are read. Called once, before the first
  // acquire(). Errors: errors of reading.
  Status keep(StreamPlan plan);

  // Makes the matrices of the layer readable until the next call, and begins to read the next layer of a
  // pass. Throws ReadFailure.
  void acquire(int64_t layer);

  // Bytes per second of the reads that keep() timed; 0: all layers stay.
  double rate() const { return rate_; }
  int64_t bytes_read() const { return bytes_read_; }  // by acquire()
  double waited_ms() const { return waited_ms_; }     // for reads in acquire()

 private:
  // Memory and the layer it holds or is being filled with.
  struct Slot {
    ReadMemory memory;
    FileRead read;
    int64_t layer = -1;
  };

  LayerStream(std::unique_ptr<DirectFile> file, std::vector<StoredPart> layers);
  bool is_streamed(int64_t layer) const { return plan_.streamed[static_cast<size_t>(layer)]; }
  Status read_kept();
  Status time_reads();
  int64_t next_streamed(int64_t layer) const;
  void begin(Slot& slot, int64_t layer);

  std::vector<StoredPart> layers_;
  StreamPlan plan_;
  std::vector<ReadMemory> kept_;  // [layers], empty where streamed
  std::array<Slot, 2> slots_;
  size_t current_ = 0;  // the slot that acquire() used last
  double rate_ = 0;
  int64_t bytes_read_ = 0;
  double waited_ms_ = 0;
  std::unique_ptr<DirectFile> file_;  // last, because it waits for reads into the buffers above
};

}  // namespace outrider
