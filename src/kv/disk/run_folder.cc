// SPDX-License-Identifier: Apache-2.0
#include "kv/disk/run_folder.h"

#include <algorithm>
#include <exception>
#include <system_error>
#include <utility>
#include <vector>

#include "base/log.h"
#include "kv/disk/run_files.h"
#include "platform/durable_file.h"

namespace outrider {
namespace {

// Other people may not read what the folder tells of texts.
Status make_private_folder(const std::filesystem::path& folder) {
  std::error_code error;
  if (std::filesystem::is_directory(folder, error)) return {};
  OUTRIDER_RETURN_IF_ERROR(make_directories(folder));
  std::filesystem::permissions(folder, std::filesystem::perms::owner_all, error);
  return error ? io_error("cannot protect " + folder.string() + ": " + error.message()) : Status();
}

}  // namespace

RunFolder::RunFolder(Options options)
    : options_(std::move(options)),
      own_folder_(folder_of(options_.folder, options_.identity)),
      index_(options_.full_length, options_.page_size) {
  Status made = make_private_folder(options_.folder);
  if (made.ok()) made = make_private_folder(own_folder_);
  if (made.ok()) made = check_writable(own_folder_ / "trial");
  if (!made.ok()) stop_writing(made.error());
  scan();
  if (is_writable_) trim();
  thread_ = std::thread([this] { work(); });
}

RunFolder::~RunFolder() {
  {
    const std::lock_guard lock(mutex_);
    stops_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

void RunFolder::scan() {
  if (is_writable_) remove_unfinished(own_folder_);
  std::error_code error;
  for (const auto& file : std::filesystem::directory_iterator(own_folder_, error)) {
    const auto name = parse_file_name(file.path().filename().native());
    if (!name) continue;
    Result<PageRun> run = read_run(file.path(), options_.identity);
    const bool fits = run.ok() && run->id == name->id && run->before == name->before &&
                      !index_.has(run->id) && !run->tokens.empty() &&
                      std::cmp_less_equal(run->tokens.size(), options_.full_length) &&
                      run->tokens.size() % static_cast<size_t>(options_.page_size) == 0;
    if (fits) {
      index_.add(std::move(run).value());
      continue;
    }
    log_warning("removing a damaged file of the prompt cache: " + file.path().string());
    std::filesystem::remove(file.path(), error);
  }
}

RunIndex::Found RunFolder::find(std::span<const TokenId> tokens, uint64_t scope) const {
  const std::lock_guard lock(mutex_);
  return index_.find(tokens, scope);
}

bool RunFolder::has(const RunId& id) const {
  const std::lock_guard lock(mutex_);
  return index_.has(id);
}

int64_t RunFolder::length(const RunId& id) const {
  const std::lock_guard lock(mutex_);
  const PageRun* run = index_.find(id);
  return run == nullptr ? 0 : std::ssize(run->tokens);
}

int64_t RunFolder::size() const {
  const std::lock_guard lock(mutex_);
  return index_.size();
}

bool RunFolder::is_writable() const {
  const std::lock_guard lock(mutex_);
  return is_writable_;
}

bool RunFolder::has_room() const {
  const std::lock_guard lock(mutex_);
  return is_writable_ && queued_bytes_ < options_.max_queued;
}

void RunFolder::wait_for_room() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !is_writable_ || queued_bytes_ < options_.max_queued; });
}

void RunFolder::flush() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return queue_.empty(); });
}

void RunFolder::write(PageRun run, RunParts parts, const RunId& replaced) {
  const std::lock_guard lock(mutex_);
  if (!is_writable_) return;
  index_.add(run);
  queued_bytes_ += std::ssize(parts.bytes);
  queue_.push_back({std::move(run), std::move(parts), replaced});
  changed_.notify_all();
}

void RunFolder::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stops_ || !queue_.empty(); });
    if (queue_.empty()) return;
    if (is_writable_) {
      const Job& job = queue_.front();  // stays where it is while others are queued
      lock.unlock();
      write_or_stop(job);
      lock.lock();
    }
    queued_bytes_ -= std::ssize(queue_.front().parts.bytes);
    queue_.pop_front();
    changed_.notify_all();
  }
}

void RunFolder::write_or_stop(const Job& job) {
  try {
    write_file(job);
  } catch (const std::exception& error) {  // no memory
    const std::lock_guard lock(mutex_);
    stop_writing(io_error(error.what()));
  }
}

void RunFolder::write_file(const Job& job) {
  const std::filesystem::path path = path_of(job.run);
  if (!has(job.run.id)) return;  // removed while it waited
  if (Status written = write_run(path, options_.identity, job.run, job.parts); !written.ok()) {
    const std::lock_guard lock(mutex_);
    stop_writing(written.error());
    index_.remove(job.run.id);
    return;
  }
  outrider::mark_used(path);
  if (job.replaced != kNoRun) remove(job.replaced);
  std::error_code error;
  const auto bytes = static_cast<int64_t>(std::filesystem::file_size(path, error));
  if (error) return;  // another process has removed it already
  total_bytes_ += bytes;
  since_listing_ += bytes;
  // Others may write, too, and are only seen in a list.
  const int64_t often = options_.max_bytes / 16;
  if (total_bytes_ > options_.max_bytes || since_listing_ > often) trim();
}

// Makes more room than is needed, so that the files are seldom listed.
void RunFolder::trim() {
  constexpr int64_t kSpare = 20;  // a part of this
  Trimmed trimmed = trim_files(options_.folder, options_.max_bytes);
  if (!trimmed.removed.empty()) {
    Trimmed more = trim_files(options_.folder, options_.max_bytes - options_.max_bytes / kSpare);
    trimmed.removed.insert(trimmed.removed.end(), more.removed.begin(), more.removed.end());
    trimmed.bytes = more.bytes;
  }
  const std::lock_guard lock(mutex_);
  for (const RunId& id : trimmed.removed) index_.remove(id);
  total_bytes_ = trimmed.bytes;
  since_listing_ = 0;
}

void RunFolder::remove(const RunId& id) {
  std::vector<PageRun> removed;
  {
    const std::lock_guard lock(mutex_);
    removed = index_.remove(id);
  }
  std::error_code error;
  for (const PageRun& run : removed) std::filesystem::remove(path_of(run), error);
}

void RunFolder::remove_damaged(const RunId& id) {
  {
    const std::lock_guard lock(mutex_);
    if (!std::exchange(has_told_damage_, true))
      log_warning("a file of the prompt cache is damaged; its pages are computed again");
  }
  remove(id);
}

void RunFolder::stop_writing(const Error& error) {
  if (std::exchange(is_writable_, false))
    log_warning("the prompt cache cannot be written, and is only read: " + error.message);
}

bool RunFolder::is_queued(const RunId& id) const {
  return std::ranges::any_of(queue_, [&](const Job& job) { return job.run.id == id; });
}

std::filesystem::path RunFolder::path_of(const PageRun& run) const {
  return own_folder_ / file_name(run.id, run.before);
}

std::optional<RunFile> RunFolder::open(const RunId& id) {
  std::filesystem::path path;
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !is_queued(id); });
    const PageRun* run = index_.find(id);
    if (run == nullptr) return std::nullopt;
    path = path_of(*run);
  }
  Result<RunFile> file = RunFile::open(path, options_.identity);
  if (file.ok() && file->run().id == id) return std::move(file).value();
  if (file.ok() || file.error().kind == ErrorKind::kInput) {
    remove_damaged(id);
  } else {
    const std::lock_guard lock(mutex_);
    index_.remove(id);
  }
  return std::nullopt;
}

void RunFolder::mark_used(const RunId& id) const {
  const std::lock_guard lock(mutex_);
  const PageRun* run = index_.find(id);
  if (run != nullptr) outrider::mark_used(path_of(*run));
}

}  // namespace outrider
