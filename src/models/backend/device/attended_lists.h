// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/kernel_args.h"

namespace outrider {

// The lists of rows as attention on a device reads them; rows of one sequence share its pages.
struct AttendedLists {
  std::vector<int> entries;  // [rows, simt::RowEntries::kNumbers]
  std::vector<int> pages, tails;

  AttendedLists(std::span<const AttentionRow> rows, int64_t page_size);
};

}  // namespace outrider
