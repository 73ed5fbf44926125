// SPDX-License-Identifier: Apache-2.0
#include "kv/disk/run_files.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <charconv>
#include <cstdio>
#include <ctime>
#include <map>
#include <set>
#include <utility>

#include "base/counter_rng.h"

namespace outrider {
namespace {

constexpr std::string_view kSuffix = ".pages";
constexpr size_t kDigits = 16;  // of a half of an id

bool parse_half(std::string_view text, uint64_t& half) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), half, 16);
  return error == std::errc() && end == text.data() + text.size();
}

std::string hex(uint64_t number) {
  char digits[kDigits + 1];
  std::snprintf(digits, sizeof(digits), "%016llx", static_cast<unsigned long long>(number));
  return digits;
}

struct StoredRun {
  std::filesystem::path path;
  RunId before;
  int64_t bytes = 0;
  int64_t used = 0;   // ns since 1970
  int followers = 0;  // files of runs after it
};
using StoredRuns = std::map<RunId, StoredRun>;

StoredRuns list_runs(const std::filesystem::path& all) {
  StoredRuns runs;
  std::error_code error;
  for (const auto& folder : std::filesystem::directory_iterator(all, error)) {
    std::error_code is_no_folder;
    for (const auto& file : std::filesystem::directory_iterator(folder.path(), is_no_folder)) {
      const auto name = parse_file_name(file.path().filename().native());
      struct stat info = {};
      if (!name || ::stat(file.path().c_str(), &info) != 0) continue;
      runs[name->id] = {.path = file.path(),
                        .before = name->before,
                        .bytes = info.st_size,
                        .used = int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec};
    }
  }
  for (auto& [id, run] : runs) {
    if (run.before == kNoRun) continue;
    const auto before = runs.find(run.before);
    if (before != runs.end()) {
      ++before->second.followers;
    } else {
      run.used = 0;  // nothing leads to it
    }
  }
  return runs;
}

}  // namespace

std::filesystem::path folder_of(const std::filesystem::path& all, std::string_view identity) {
  uint64_t hash = 0;
  for (const char byte : identity) hash = mix64(hash ^ static_cast<unsigned char>(byte));
  return all / hex(hash);
}

std::string file_name(const RunId& id, const RunId& before) {
  return hex(id.high) + hex(id.low) + "-" + hex(before.high) + hex(before.low) + std::string(kSuffix);
}

std::optional<RunName> parse_file_name(std::string_view name) {
  RunName parsed;
  if (name.size() != 4 * kDigits + 1 + kSuffix.size() || !name.ends_with(kSuffix)) return std::nullopt;
  if (name[2 * kDigits] != '-') return std::nullopt;
  const auto half = [&](size_t at, uint64_t& number) { return parse_half(name.substr(at, kDigits), number); };
  const bool is_read = half(0, parsed.id.high) && half(kDigits, parsed.id.low) &&
                       half(2 * kDigits + 1, parsed.before.high) && half(3 * kDigits + 1, parsed.before.low);
  if (!is_read) return std::nullopt;
  return parsed;
}

// The clock that stamps files by itself has long steps.
void mark_used(const std::filesystem::path& path) {
  timespec now = {};
  ::clock_gettime(CLOCK_REALTIME, &now);
  const timespec times[2] = {now, now};
  static_cast<void>(::utimensat(AT_FDCWD, path.c_str(), times, 0));
}

Trimmed trim_files(const std::filesystem::path& all, int64_t max_bytes) {
  StoredRuns runs = list_runs(all);
  Trimmed trimmed;
  std::set<std::pair<int64_t, RunId>> last;  // runs that none follows, by their use
  for (const auto& [id, run] : runs) {
    trimmed.bytes += run.bytes;
    if (run.followers == 0) last.emplace(run.used, id);
  }
  while (trimmed.bytes > max_bytes && !last.empty()) {
    const RunId id = last.begin()->second;
    last.erase(last.begin());
    const StoredRun& run = runs.at(id);
    std::error_code error;
    std::filesystem::remove(run.path, error);
    if (error) continue;
    trimmed.bytes -= run.bytes;
    trimmed.removed.push_back(id);
    const auto before = runs.find(run.before);
    if (before != runs.end() && --before->second.followers == 0)
      last.emplace(before->second.used, before->first);
  }
  return trimmed;
}

}  // namespace outrider
