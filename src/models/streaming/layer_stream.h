// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <stdexcept>
#include <vector>

#include "kernels/packed_matrix.h"
#include "outrider/result.h"
#include "platform/direct_file.h"

namespace outrider {

// Weights could not be read in the middle of a pass.
class ReadFailure : public std::runtime_error {
 public:
  explicit ReadFailure(const Error& error) : std::runtime_error(error.message) {}
};

// Which layers of a model are read in every pass.
struct StreamPlan {
  std::vector<bool> streamed;  // [layers]
  int64_t streamed_bytes = 0;
  int64_t memory = 0;  // bytes of the other layers, and of the two buffers that streamed ones are read into
};

// The fewest streamed layers with which the others and the buffers fit into `memory` bytes, spread evenly so
// that reads have time between them; all layers are streamed where `memory` is too little for anything else.
StreamPlan plan_streaming(std::span<const size_t> layer_bytes, int64_t memory);

// A layer's matrices, one after the other in a file of packed weights.
struct StoredLayer {
  struct Matrix {
    PackedMatrix* packed = nullptr;
    size_t offset = 0;  // from `begin`
  };
  size_t begin = 0;  // offset in the file, a multiple of DirectFile::kBlock
  size_t bytes = 0;  // a multiple of DirectFile::kBlock
  std::vector<Matrix> matrices;
};

// Layers of a model that is larger than the memory it may use. Some stay in memory; the others are read from
// the file of packed weights into one of two buffers while the layers before them are computed.
class LayerStream {
 public:
  // The matrices must outlive the stream and stay in place. Error: the file cannot be opened.
  static Result<std::unique_ptr<LayerStream>> open(const std::filesystem::path& path,
                                                   std::vector<StoredLayer> layers,
                                                   DirectFile::Method method = DirectFile::Method::kBest);

  // Keeps as many layers as `bytes` allow, see plan_streaming(), and measures the rate at which others are
  // read. Called once, before the first acquire(). Errors: `bytes` are too few for the two buffers; those of
  // reading.
  Status keep(int64_t bytes);

  // Makes the matrices of the layer readable until the next call, and begins to read the next layer of a
  // pass. Throws ReadFailure.
  void acquire(int64_t layer);

  const StreamPlan& plan() const { return plan_; }
  // Bytes per second of the reads that keep() timed; 0: all layers stay.
  double rate() const { return rate_; }
  int64_t bytes_read() const { return bytes_read_; }  // by acquire()
  double waited_ms() const { return waited_ms_; }     // for reads in acquire()

 private:
  // Memory whose address direct reads accept.
  struct Memory {
    Memory() = default;
    explicit Memory(size_t bytes);
    Buffer buffer;
    std::span<std::byte> bytes;
  };
  // Memory and the layer it holds or is being filled with.
  struct Slot {
    Memory memory;
    FileRead read;
    int64_t layer = -1;
  };

  LayerStream(std::unique_ptr<DirectFile> file, std::vector<StoredLayer> layers);
  bool is_streamed(int64_t layer) const { return plan_.streamed[static_cast<size_t>(layer)]; }
  Status read_kept();
  Status time_reads();
  int64_t next_streamed(int64_t layer) const;
  void begin(Slot& slot, int64_t layer);
  static void place(const StoredLayer& layer, std::byte* data);

  std::vector<StoredLayer> layers_;
  StreamPlan plan_;
  std::vector<Memory> kept_;  // [layers], empty where streamed
  std::array<Slot, 2> slots_;
  size_t current_ = 0;  // the slot that acquire() used last
  double rate_ = 0;
  int64_t bytes_read_ = 0;
  double waited_ms_ = 0;
  std::unique_ptr<DirectFile> file_;  // last, because it waits for reads into the buffers above
};

}  // namespace outrider
