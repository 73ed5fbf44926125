// SPDX-License-Identifier: Apache-2.0
#include "models/streaming/layer_stream.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/clock.h"

namespace outrider {
namespace {

std::string megabytes(int64_t bytes) { return std::to_string((bytes + 999'999) / 1'000'000) + " MB"; }

// The plan in which that many of the layers are streamed.
StreamPlan plan_with(std::span<const size_t> layer_bytes, int64_t streamed) {
  const auto count = std::ssize(layer_bytes);
  StreamPlan plan;
  size_t kept = 0;
  size_t read = 0;
  size_t largest = 0;
  for (int64_t i = 0; i < count; ++i) {
    const size_t bytes = layer_bytes[static_cast<size_t>(i)];
    plan.streamed.push_back((i + 1) * streamed / count > i * streamed / count);
    (plan.streamed.back() ? read : kept) += bytes;
    if (plan.streamed.back()) largest = std::max(largest, bytes);
  }
  plan.streamed_bytes = static_cast<int64_t>(read);
  plan.memory = static_cast<int64_t>(kept + 2 * largest);
  return plan;
}

std::vector<size_t> sizes_of(std::span<const StoredLayer> layers) {
  std::vector<size_t> sizes;
  for (const StoredLayer& layer : layers) sizes.push_back(layer.bytes);
  return sizes;
}

}  // namespace

StreamPlan plan_streaming(std::span<const size_t> layer_bytes, int64_t memory) {
  int64_t streamed = 0;
  StreamPlan plan = plan_with(layer_bytes, streamed);
  while (plan.memory > memory && streamed < std::ssize(layer_bytes))
    plan = plan_with(layer_bytes, ++streamed);
  return plan;
}

LayerStream::Memory::Memory(size_t size) : buffer(size + DirectFile::kBlock) {
  const auto address = reinterpret_cast<uintptr_t>(buffer.data());
  const size_t gap = (DirectFile::kBlock - address % DirectFile::kBlock) % DirectFile::kBlock;
  bytes = {buffer.data() + gap, size};
}

Result<std::unique_ptr<LayerStream>> LayerStream::open(const std::filesystem::path& path,
                                                       std::vector<StoredLayer> layers,
                                                       DirectFile::Method method) {
  OUTRIDER_TRY(std::unique_ptr<DirectFile> file, DirectFile::open(path, method));
  return std::unique_ptr<LayerStream>(new LayerStream(std::move(file), std::move(layers)));
}

LayerStream::LayerStream(std::unique_ptr<DirectFile> file, std::vector<StoredLayer> layers)
    : layers_(std::move(layers)),
      plan_(plan_streaming(sizes_of(layers_), 0)),
      kept_(layers_.size()),
      file_(std::move(file)) {}

Status LayerStream::keep(int64_t bytes) {
  const std::vector<size_t> sizes = sizes_of(layers_);
  plan_ = plan_streaming(sizes, bytes);
  if (plan_.memory > bytes) {
    return resource_error("layers that are read need " + megabytes(plan_.memory) + " of memory, found " +
                          megabytes(std::max<int64_t>(bytes, 0)));
  }
  OUTRIDER_RETURN_IF_ERROR(read_kept());
  if (plan_.streamed_bytes == 0) return {};
  size_t largest = 0;
  for (size_t i = 0; i < sizes.size(); ++i)
    largest = plan_.streamed[i] ? std::max(largest, sizes[i]) : largest;
  for (Slot& slot : slots_) slot.memory = Memory(largest);
  file_->pin(std::array{slots_[0].memory.bytes, slots_[1].memory.bytes});
  return time_reads();
}

Status LayerStream::read_kept() {
  for (size_t i = 0; i < layers_.size(); ++i) {
    if (plan_.streamed[i]) continue;
    const StoredLayer& layer = layers_[i];
    kept_[i] = Memory(layer.bytes);
    FileRead read;
    file_->begin(read, layer.begin, kept_[i].bytes);
    OUTRIDER_RETURN_IF_ERROR(file_->finish(read));
    place(layer, kept_[i].bytes.data());
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
  const StoredLayer& stored = layers_[static_cast<size_t>(layer)];
  slot.layer = layer;
  bytes_read_ += static_cast<int64_t>(stored.bytes);
  file_->begin(slot.read, stored.begin, slot.memory.bytes.first(stored.bytes));
}

void LayerStream::place(const StoredLayer& layer, std::byte* data) {
  for (const auto& [packed, offset] : layer.matrices)
    packed->data = Buffer::borrowed({data + offset, static_cast<size_t>(packed->bytes())});
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
  place(layers_[static_cast<size_t>(layer)], slot.memory.bytes.data());
  Slot& ahead = slots_[1 - current_];
  const int64_t next = next_streamed(layer);
  if (ahead.layer == next || next == layer) return;
  file_->finish(ahead.read).ok();
  begin(ahead, next);
}

}  // namespace outrider
