// SPDX-License-Identifier: Apache-2.0
#include "remote/session/state_queue.h"

#include <algorithm>

#include "remote/protocol/state_rows.h"

namespace outrider {
namespace {

constexpr int64_t kMaxPayload = 1 << 18;  // bytes of rows in a message, unless one row is larger

}  // namespace

int64_t StateQueue::row_size() const { return state_row_bytes(type_, size_); }

int64_t StateQueue::end() const { return bytes_.empty() ? first_ : first_ + std::ssize(bytes_) / row_size(); }

void StateQueue::add(std::span<const float> rows) {
  if (type_ != StateType::kNone) append_state_rows(type_, rows, size_, bytes_);
}

std::optional<StatesMessage> StateQueue::next() {
  if (sent_ == end()) return std::nullopt;
  const int64_t rows = std::min(end() - sent_, std::max<int64_t>(1, kMaxPayload / row_size()));
  StatesMessage message{.first = static_cast<uint32_t>(sent_),
                        .rows = bytes_.substr(static_cast<size_t>((sent_ - first_) * row_size()),
                                              static_cast<size_t>(rows * row_size()))};
  sent_ += rows;
  return message;
}

void StateQueue::confirm(int64_t known) {
  if (bytes_.empty()) return;
  const int64_t rows = std::clamp<int64_t>(known - first_, 0, sent_ - first_);
  bytes_.erase(0, static_cast<size_t>(rows * row_size()));
  first_ += rows;
}

Status StateQueue::resume(int64_t known) {
  if (type_ == StateType::kNone) return {};
  if (known < first_ || known > end()) {
    return input_error("expected a client with the states of " + std::to_string(first_) + " to " +
                       std::to_string(end()) + " tokens, found one with those of " + std::to_string(known));
  }
  sent_ = known;
  confirm(known);
  return {};
}

}  // namespace outrider
