// SPDX-License-Identifier: Apache-2.0
#include "models/backend/split/mirrored_rows.h"

#include <algorithm>
#include <iterator>
#include <span>
#include <utility>

#include "base/check.h"

namespace outrider {

void MirroredRows::add(FloatAddress rows, int64_t count) {
  rows_[rows.address()] = {.count = std::max<int64_t>(count, 1)};
}

MirroredRows::Found MirroredRows::find(FloatAddress rows) const {
  const auto after = rows_.upper_bound(rows.address());
  if (after == rows_.begin()) return {};
  auto& [begin, found] = *std::prev(after);
  const auto first = static_cast<int64_t>((rows.address() - begin) / sizeof(float));
  return first < found.count ? Found{FloatAddress(begin), &found, first} : Found{};
}

std::vector<MirroredRows::Run> MirroredRows::runs_of(const Rows& rows, Run range, Current current) {
  OUTRIDER_CHECK(range.begin <= range.end && range.end <= rows.count);
  std::vector<Run> found;
  auto run = std::prev(rows.runs.upper_bound(range.begin));
  for (; run != rows.runs.end() && run->first < range.end; ++run) {
    const auto next = std::next(run);
    const int64_t end = next == rows.runs.end() ? rows.count : next->first;
    if (run->second == current)
      found.push_back({std::max(range.begin, run->first), std::min(range.end, end)});
  }
  return found;
}

void MirroredRows::set(Rows& rows, Run range, Current current) {
  if (range.begin == range.end) return;
  auto& runs = rows.runs;
  if (range.end < rows.count) runs.emplace(range.end, std::prev(runs.upper_bound(range.end))->second);
  runs.erase(runs.lower_bound(range.begin), runs.lower_bound(range.end));
  runs.emplace(range.begin, current);
  // Neighbours of one kind are one run.
  const auto own = runs.find(range.begin), after = std::next(own);
  if (after != runs.end() && after->second == current) runs.erase(after);
  if (own != runs.begin() && std::prev(own)->second == current) runs.erase(own);
}

bool MirroredRows::is_on_host(FloatAddress rows, int64_t count) const {
  const Found at = find(rows);
  return at.rows != nullptr && !runs_of(*at.rows, {at.first, at.first + count}, Current::kHost).empty();
}

void MirroredRows::use_on_device(FloatAddress rows, int64_t count, RowUse use) {
  const Found at = find(rows);
  if (at.rows == nullptr) return;
  const Run range{at.first, at.first + count};
  for (const Run& run : runs_of(*at.rows, range, Current::kHost)) {
    if (use == RowUse::kWrite) break;
    const auto numbers = at.rows->host.as<float>().subspan(static_cast<size_t>(run.begin),
                                                           static_cast<size_t>(run.end - run.begin));
    device_.upload(std::as_bytes(numbers), (at.begin + run.begin).address());
    set(*at.rows, run, Current::kBoth);
  }
  if (use != RowUse::kRead) set(*at.rows, range, Current::kDevice);
}

FloatAddress MirroredRows::use_on_host(FloatAddress rows, int64_t count, RowUse use) {
  const Found at = find(rows);
  OUTRIDER_CHECK(at.rows != nullptr);
  Buffer& host = at.rows->host;
  if (host.size() == 0) host = Buffer(static_cast<size_t>(at.rows->count) * sizeof(float));
  const Run range{at.first, at.first + count};
  for (const Run& run : runs_of(*at.rows, range, Current::kDevice)) {
    if (use == RowUse::kWrite) break;
    const auto numbers =
        host.as<float>().subspan(static_cast<size_t>(run.begin), static_cast<size_t>(run.end - run.begin));
    device_.download((at.begin + run.begin).address(), std::as_writable_bytes(numbers));
    set(*at.rows, run, Current::kBoth);
  }
  if (use != RowUse::kRead) set(*at.rows, range, Current::kHost);
  return FloatAddress(reinterpret_cast<uintptr_t>(host.as<float>().data() + at.first));
}

}  // namespace outrider
