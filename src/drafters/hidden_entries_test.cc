// SPDX-License-Identifier: Apache-2.0
// Rows on a device do not see what EntryHiding hides from the same rows.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "device_kernels/kernel_names.h"
#include "models/backend/entry_hiding.h"

namespace outrider {
namespace {

constexpr int kPasses = 2000, kMostEntries = 90;

struct RandomRows {
  std::mt19937 engine;
  int below(int end) { return static_cast<int>(engine() % static_cast<unsigned>(end)); }
};

// The lists of the rows of a pass: prefixes, or the first entries and some of a tree.
struct Lists {
  std::vector<int> entries, tails;

  Lists(RandomRows& random, int rows) {
    for (int row = 0; row < rows; ++row) {
      const int prefix = 1 + random.below(random.below(2) == 0 ? 4 : kMostEntries - 20);
      const auto first = static_cast<int>(tails.size());
      for (int entry = prefix + random.below(3); random.below(3) != 0 && entry < prefix + 12;
           entry += 1 + random.below(3))
        tails.push_back(entry);
      entries.insert(entries.end(), {row * 7, prefix, first, static_cast<int>(tails.size()) - first});
    }
  }
  int rows() const { return static_cast<int>(entries.size()) / simt::RowEntries::kNumbers; }
  AttentionRow row(int index) const {
    const int* const numbers = &entries[static_cast<size_t>(simt::RowEntries::kNumbers * index)];
    return {.prefix_len = numbers[1], .tail = tails.data() + numbers[2], .tail_len = numbers[3]};
  }
};

void expect_same_entries(const Lists& lists, int first, int warps) {
  std::vector<AttentionRow> rows;
  for (int row = 0; row < lists.rows(); ++row) rows.push_back(lists.row(row));
  EntryHiding hiding;
  hiding.reserve(lists.rows(), lists.rows(), kMostEntries);
  hiding.hide_before(first, rows);
  std::vector<int> seen_entries(lists.entries.size(), -5);
  std::vector<int> seen(static_cast<size_t>(lists.rows() * kMostEntries), -5);
  const simt::HideEntriesArgs args{.entries = {lists.entries.data(), std::ssize(lists.entries)},
                                   .tails = {lists.tails.data(), std::ssize(lists.tails)},
                                   .seen_entries = {seen_entries.data(), std::ssize(seen_entries)},
                                   .seen = {seen.data(), std::ssize(seen)},
                                   .rows = lists.rows(),
                                   .most = kMostEntries,
                                   .first = first};
  const simt::EmulationReport report =
      emulate(KernelName::kHideEntries, args, {.blocks = (lists.rows() + warps - 1) / warps, .warps = warps},
              {.checks_races = true});
  EXPECT_EQ(report.first, "");
  for (int row = 0; row < lists.rows(); ++row) {
    const AttentionRow& expected = rows[static_cast<size_t>(row)];
    const int* const found = &seen_entries[static_cast<size_t>(simt::RowEntries::kNumbers * row)];
    EXPECT_EQ(found[0], row * 7);
    EXPECT_EQ(found[1], expected.prefix_len);
    ASSERT_EQ(found[3], expected.tail_len) << row;
    EXPECT_TRUE(std::equal(expected.tail, expected.tail + expected.tail_len, seen.begin() + found[2])) << row;
  }
}

TEST(HiddenEntries, AreTheEntriesThatThisMachineHides) {
  RandomRows random{std::mt19937(3)};
  for (int pass = 0; pass < kPasses && !testing::Test::HasFailure(); ++pass) {
    const Lists lists(random, 1 + random.below(9));
    expect_same_entries(lists, 1 + random.below(4), 1 + random.below(4));
  }
}

// A row that nobody uses sees nothing.
TEST(HiddenEntries, UnusedRowsHaveNone) {
  std::vector<int> entries = {3, 0, 0, 0}, seen_entries(4, -5), tails, seen(4, -5);
  const simt::HideEntriesArgs args{.entries = {entries.data(), 4},
                                   .tails = {tails.data(), 0},
                                   .seen_entries = {seen_entries.data(), 4},
                                   .seen = {seen.data(), 4},
                                   .rows = 1,
                                   .most = 4,
                                   .first = 2};
  EXPECT_EQ(emulate(KernelName::kHideEntries, args, {}).first, "");
  EXPECT_EQ(seen_entries, (std::vector<int>{3, 0, 0, 0}));
  EXPECT_EQ(seen, std::vector<int>(4, -5));
}

}  // namespace
}  // namespace outrider
