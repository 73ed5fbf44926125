// SPDX-License-Identifier: Apache-2.0
#include "models/weights/layer_stream.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"

namespace outrider {

Result<std::unique_ptr<LayerStream>> LayerStream::open(const std::filesystem::path& path,
                                                       std::vector<StoredPart> layers,
                                                       DirectFile::Method method) {
  OUTRIDER_TRY(std::unique_ptr<DirectFile> file, DirectFile::open(path, method));
  return std::unique_ptr<LayerStream>(new LayerStream(std::move(file), std::move(layers)));
}

LayerStream::LayerStream(std::unique_ptr<DirectFile> file, std::vector<StoredPart> layers)
    : layers_(std::move(layers)), kept_(layers_.size()), file_(std::move(file)) {}

Status LayerStream::keep(StreamPlan plan) {
  plan_ = std::move(plan);
  OUTRIDER_RETURN_IF_ERROR(read_kept());
  if (plan_.streamed_bytes == 0) return {};
  size_t largest = 0;
  for (size_t i = 0; i < layers_.size(); ++i)
    largest = plan_.streamed[i] ? std::max(largest, layers_[i].bytes) : largest;
  for (Slot& slot : slots_) slot.memory = ReadMemory(largest);
  file_->pin(std::array{slots_[0].memory.bytes, slots_[1].memory.bytes});
  return time_reads();
}

Status LayerStream::read_kept() {
  for (size_t i = 0; i < layers_.size(); ++i) {
    if (plan_.streamed[i]) continue;
    const StoredPart& layer = layers_[i];
    kept_[i] = ReadMemory(layer.bytes);
    FileRead read;
    file_->begin(read, layer.begin, kept_[i].bytes);
    OUTRIDER_RETURN_IF_ERROR(file_->finish(read));
    layer.place(kept_[i].bytes.data());
  }
  return {};
}

// Both buffers are filled in turn, as in a pass, for a tenth of a second.
Status LayerStream::time_reads() {
  constexpr double kEnough = 100;  // ms
  size_t bytes = 0;
  const double begin_ms = now_ms();
  int64_t layer = next_streamed(-1);
  begin(slots_[0], layer);
  for (size_t turn = 0; bytes == 0 || now_ms() - begin_ms < kEnough; ++turn) {
    layer = next_streamed(layer);
    begin(slots_[(turn + 1) % 2], layer);
    Slot& slot = slots_[turn % 2];
    OUTRIDER_RETURN_IF_ERROR(file_->finish(slot.read));
    bytes += slot.read.into.size();
  }
  rate_ = 1e3 * static_cast<double>(bytes) / (now_ms() - begin_ms);
  for (Slot& slot : slots_) OUTRIDER_RETURN_IF_ERROR(file_->finish(slot.read));
  bytes_read_ = 0;
  return {};
}

// The first streamed layer after this one, from the last on the first of all.
int64_t LayerStream::next_streamed(int64_t layer) const {
  const auto count = std::ssize(layers_);
  do {
    layer = (layer + 1) % count;
  } while (!is_streamed(layer));
  return layer;
}

void LayerStream::begin(Slot& slot, int64_t layer) {
  const StoredPart& stored = layers_[static_cast<size_t>(layer)];
  slot.layer = layer;
  bytes_read_ += static_cast<int64_t>(stored.bytes);
  file_->begin(slot.read, stored.begin, slot.memory.bytes.first(stored.bytes));
}

void LayerStream::acquire(int64_t layer) {
  if (!is_streamed(layer)) return;
  const double begin_ms = now_ms();
  const size_t other = 1 - current_;
  if (slots_[current_].layer != layer) {
    // The other buffer has it unless a pass left layers out; what is on its way there is then of no use.
    if (slots_[other].layer != layer) {
      file_->finish(slots_[other].read).ok();
      begin(slots_[other], layer);
    }
    current_ = other;
  }
  Slot& slot = slots_[current_];
  if (const Status read = file_->finish(slot.read); !read.ok()) {
    slot.layer = -1;
    throw ReadFailure(read.error());
  }
  waited_ms_ += now_ms() - begin_ms;
  layers_[static_cast<size_t>(layer)].place(slot.memory.bytes.data());
  Slot& ahead = slots_[1 - current_];
  const int64_t next = next_streamed(layer);
  if (ahead.layer == next || next == layer) return;
  file_->finish(ahead.read).ok();
  begin(ahead, next);
}

}  // namespace outrider
