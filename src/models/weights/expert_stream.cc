// SPDX-License-Identifier: Apache-2.0
#include "models/weights/expert_stream.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/check.h"
#include "base/clock.h"

namespace outrider {

Result<std::unique_ptr<ExpertStream>> ExpertStream::open(const std::filesystem::path& path, Experts experts) {
  OUTRIDER_TRY(std::unique_ptr<DirectFile> file, DirectFile::open(path));
  return std::unique_ptr<ExpertStream>(new ExpertStream(std::move(file), std::move(experts)));
}

ExpertStream::ExpertStream(std::unique_ptr<DirectFile> file, Experts experts) : file_(std::move(file)) {
  for (std::vector<StoredPart>& layer : experts) {
    std::vector<Expert>& own = experts_.emplace_back();
    for (StoredPart& part : layer) {
      slot_bytes_ = std::max(slot_bytes_, static_cast<int64_t>(part.bytes));
      own.push_back({.stored = std::move(part)});
    }
  }
}

int64_t ExpertStream::count() const {
  int64_t count = 0;
  for (const std::vector<Expert>& layer : experts_) count += std::ssize(layer);
  return count;
}

Status ExpertStream::keep(int64_t count) {
  OUTRIDER_CHECK(count >= std::min<int64_t>(2, this->count()) && count <= this->count());
  const auto size = static_cast<size_t>(slot_bytes_);
  memory_ = ReadMemory(static_cast<size_t>(count) * size);
  slots_.resize(static_cast<size_t>(count));
  for (size_t i = 0; i < slots_.size(); ++i) slots_[i].memory = memory_.bytes.subspan(i * size, size);
  return fill();
}

// Nothing is known about their use yet: each layer gets as many as the others.
Status ExpertStream::fill() {
  const double begin_ms = now_ms();
  size_t filled = 0;
  for (int32_t expert = 0; filled < slots_.size(); ++expert) {
    for (size_t layer = 0; layer < experts_.size() && filled < slots_.size(); ++layer) {
      if (expert < std::ssize(experts_[layer]))
        load(static_cast<int32_t>(filled++), static_cast<int32_t>(layer), expert);
    }
  }
  for (Slot& slot : slots_) {
    OUTRIDER_RETURN_IF_ERROR(file_->finish(slot.read));
    expert_of(slot).stored.place(slot.memory.data());
  }
  if (std::ssize(slots_) < count()) rate_ = 1e3 * static_cast<double>(bytes_read_) / (now_ms() - begin_ms);
  bytes_read_ = 0;
  return {};
}

ExpertStream::Expert& ExpertStream::expert_of(const Slot& slot) {
  return experts_[static_cast<size_t>(slot.layer)][static_cast<size_t>(slot.expert)];
}

void ExpertStream::forget(Slot& slot) {
  if (slot.layer != kNone) expert_of(slot).slot = kNone;
  slot.layer = slot.expert = kNone;
}

void ExpertStream::load(int32_t slot_index, int32_t layer, int32_t expert) {
  Slot& slot = slots_[static_cast<size_t>(slot_index)];
  forget(slot);
  slot.layer = layer;
  slot.expert = expert;
  Expert& loaded = expert_of(slot);
  loaded.slot = slot_index;
  bytes_read_ += static_cast<int64_t>(loaded.stored.bytes);
  file_->begin(slot.read, loaded.stored.begin, slot.memory.first(loaded.stored.bytes));
}

// Uses lose half of their weight after a while, so that experts of an earlier text do not stay for ever.
void ExpertStream::age() {
  constexpr int64_t kPasses = 64;
  if (++passes_ % kPasses != 0) return;
  for (std::vector<Expert>& layer : experts_) {
    for (Expert& expert : layer) expert.uses /= 2;
  }
}

void ExpertStream::begin(int64_t layer, std::span<const int32_t> experts) {
  // A pass that ended with an error may have left reads on their way.
  for (const Reading& reading : reading_) {
    Slot& slot = slots_[static_cast<size_t>(reading.slot)];
    file_->finish(slot.read).ok();
    forget(slot);
  }
  for (Slot& slot : slots_) slot.is_needed = false;
  reading_.clear();
  ready_.clear();
  if (layer <= layer_) age();
  layer_ = static_cast<int32_t>(layer);
  wanted_.assign(experts.begin(), experts.end());
  present_.clear();
  missing_.clear();
  next_missing_ = 0;
  for (int32_t number = 0; number < std::ssize(wanted_); ++number) {
    Expert& expert = experts_[static_cast<size_t>(layer)][static_cast<size_t>(experts[number])];
    ++expert.uses;
    (expert.slot == kNone ? missing_ : present_).push_back(number);
    if (expert.slot != kNone) slots_[static_cast<size_t>(expert.slot)].is_needed = true;
  }
  read_ahead();
}

// Begins to read missing experts, as many as keep the disk busy.
void ExpertStream::read_ahead() {
  constexpr int64_t kEnough = int64_t{32} << 20;  // bytes on their way
  const auto most = static_cast<size_t>(std::max<int64_t>(2, kEnough / slot_bytes_));
  while (next_missing_ < missing_.size() && reading_.size() < most) {
    const int32_t slot = least_used_slot();
    if (slot == kNone) return;
    const int32_t number = missing_[next_missing_++];
    load(slot, layer_, wanted_[static_cast<size_t>(number)]);
    slots_[static_cast<size_t>(slot)].is_needed = true;
    reading_.push_back({slot, number});
  }
}

// Among experts of equal use, the one in the layer that is computed last from now on gives way.
int32_t ExpertStream::least_used_slot() const {
  const auto layers = static_cast<int32_t>(std::ssize(experts_));
  int32_t least = kNone;
  std::tuple<uint32_t, int32_t> best;
  for (int32_t i = 0; i < std::ssize(slots_); ++i) {
    const Slot& slot = slots_[static_cast<size_t>(i)];
    if (slot.is_needed) continue;
    if (slot.layer == kNone) return i;
    const Expert& expert = experts_[static_cast<size_t>(slot.layer)][static_cast<size_t>(slot.expert)];
    const std::tuple rank{expert.uses, -((slot.layer - layer_ - 1 + layers) % layers)};
    if (least != kNone && rank >= best) continue;
    least = i;
    best = rank;
  }
  return least;
}

std::span<const int32_t> ExpertStream::next() {
  for (const int32_t number : ready_) {
    const auto expert = static_cast<size_t>(wanted_[static_cast<size_t>(number)]);
    slots_[static_cast<size_t>(experts_[static_cast<size_t>(layer_)][expert].slot)].is_needed = false;
  }
  ready_ = std::exchange(present_, {});
  if (!ready_.empty()) return ready_;
  read_ahead();
  if (reading_.empty()) return {};
  const Reading reading = reading_.front();
  Slot& slot = slots_[static_cast<size_t>(reading.slot)];
  const double begin_ms = now_ms();
  if (const Status read = file_->finish(slot.read); !read.ok()) throw ReadFailure(read.error());
  waited_ms_ += now_ms() - begin_ms;
  expert_of(slot).stored.place(slot.memory.data());
  reading_.pop_front();
  ready_ = {reading.number};
  return ready_;
}

}  // namespace outrider
