// SPDX-License-Identifier: Apache-2.0
#include "models/backend/device/pass_rows.h"

#include <algorithm>
#include <vector>

namespace outrider {

ForwardBatch batch_of_rows(int64_t rows, int64_t logits_rows) {
  ForwardBatch batch;
  for (int32_t row = 0; row < rows; ++row) {
    batch.tokens.push_back(0);
    batch.positions.push_back(0);
    batch.slots.push_back(0);
    batch.sequences.push_back(row);
    batch.prefix_len.push_back(1);
    batch.tail_begin.push_back(0);
    batch.pages.push_back(0);
    batch.page_begin.push_back(row + 1);
    if (row < logits_rows) batch.logits_rows.push_back(row);
  }
  return batch;
}

DevicePassRows::DevicePassRows(Device& device, const Shape& shape)
    : shape_(shape),
      pages_of_sequence_((shape.max_length + shape.page_size - 1) / shape.page_size),
      tokens_(device, shape.rows),
      positions_(device, shape.rows),
      places_(device, shape.rows),
      slots_(device, shape.rows),
      entries_(device, shape.rows * simt::RowEntries::kNumbers),
      tails_(device, shape.rows * shape.tail_size),
      pages_(device, shape.sequences * pages_of_sequence_) {
  const auto rows = [](const DeviceNumbers<int>& numbers) {
    return rows_at<const int>(numbers.address(), numbers.count());
  };
  recorded_ = {.tokens = rows(tokens_),
               .positions = rows(positions_),
               .slots = slots_.list(),
               .entries = entries_.list(),
               .pages = pages_.list(),
               .tails = tails_.list(),
               .max_length = shape.max_length};
}

simt::PassRows DevicePassRows::view() const {
  return {.tokens = tokens_.rows(),
          .positions = positions_.rows(),
          .places = places_.rows(),
          .slots = slots_.rows(),
          .entries = entries_.rows(),
          .tails = tails_.rows(),
          .pages = pages_.list(),
          .page_size = shape_.page_size,
          .pages_of_sequence = static_cast<int>(pages_of_sequence_),
          .tail_size = shape_.tail_size,
          .lag = shape_.lag};
}

simt::Rows<const int> DevicePassRows::places() const {
  return rows_at<const int>(places_.address(), places_.count());
}

void DevicePassRows::set_pages(std::span<const Pages> sequences) {
  std::vector<int> pages(static_cast<size_t>(pages_.count()), -1);
  for (int64_t i = 0; i < std::ssize(sequences); ++i) {
    const auto& [numbers, entry] = sequences[static_cast<size_t>(i)];
    const int64_t first = entry / shape_.page_size;
    OUTRIDER_CHECK(first + std::ssize(numbers) <= pages_of_sequence_);
    std::ranges::copy(numbers, pages.begin() + i * pages_of_sequence_ + first);
  }
  pages_.write(pages);
}

}  // namespace outrider
