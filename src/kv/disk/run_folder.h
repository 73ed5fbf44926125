// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "kv/disk/page_run.h"
#include "kv/disk/run_index.h"

namespace outrider {

// The saved runs of one cache in a folder that all models share. A thread writes them. A failure to write or
// to read costs speed only, and the log says so once. Other processes may use the folder at the same time:
// files are never changed, and one that another process has removed counts as never written.
class RunFolder {
 public:
  struct Options {
    std::filesystem::path folder;
    int64_t max_bytes = 0;    // of all files of all models
    std::string identity;     // all that the bytes of runs depend on, besides tokens
    int64_t full_length = 0;  // as RunIndex has them
    int page_size = 0;
    int64_t max_queued = int64_t{64} << 20;  // bytes that wait for the thread
  };
  // Reads what every file says of its run, and removes files that are damaged or of another identity.
  explicit RunFolder(Options options);
  ~RunFolder();  // writes what waits
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;

  RunIndex::Found find(std::span<const TokenId> tokens, uint64_t scope) const;
  bool has(const RunId& id) const;
  int64_t length(const RunId& id) const;  // tokens; 0: there is no such run
  int64_t size() const;                   // runs

  // Whether write() would take a run.
  bool has_room() const;
  // Waits until it would, or until nothing is written any more.
  void wait_for_room();
  bool is_writable() const;
  // Waits until all is written.
  void flush();
  // Queues a run. `replaced` goes when it is written.
  void write(PageRun run, RunParts parts, const RunId& replaced = kNoRun);

  // nullopt: it cannot be read. One that is damaged is removed.
  std::optional<RunFile> open(const RunId& id);
  // Removes a run with bytes that are not as they were written, and all that follow it.
  void remove_damaged(const RunId& id);
  void mark_used(const RunId& id) const;

 private:
  struct Job {
    PageRun run;
    RunParts parts;
    RunId replaced;
  };
  void scan();
  void work();
  void write_or_stop(const Job& job);
  void write_file(const Job& job);
  void trim();
  void remove(const RunId& id);
  // Precondition for the rest: the caller has the lock, or is the only thread.
  void stop_writing(const Error& error);
  bool is_queued(const RunId& id) const;
  std::filesystem::path path_of(const PageRun& run) const;

  Options options_;
  std::filesystem::path own_folder_;

  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;  // of queue_ and what follows it
  RunIndex index_;
  std::deque<Job> queue_;  // the first one is being written
  int64_t queued_bytes_ = 0;
  bool is_writable_ = true;
  bool stops_ = false;
  bool has_told_damage_ = false;

  int64_t total_bytes_ = 0;    // of all files, when they were listed last, and what was written since
  int64_t since_listing_ = 0;  // bytes written since then
  std::thread thread_;         // last, since it uses all members above
};

}  // namespace outrider
