// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "platform/file_descriptor.h"
#include "server/batch/batch_record.h"
#include "server/batch/batch_run.h"
#include "server/batch/file_store.h"
#include "server/calls/preparation_worker.h"
#include "server/telemetry/server_metrics.h"

namespace outrider {

// Where the lines of batches run.
struct LineEngine {
  int places = 1;  // lines at a time
  // The worker calls these.
  StartLine start;
  std::function<void(const std::string& id)> cancel;
};

// The parameters of lists; empty: the usual.
struct ListQuery {
  std::string limit, after, order, purpose;
};

// The files and batches of OpenAI's Batch API, in one folder. Everything acknowledged survives a crash:
// results are in files line by line, and a batch goes on with the lines that have none. One thread, the
// worker, does everything: it answers the API, checks inputs, prepares lines and writes results.
class Batches {
 public:
  struct Limits {
    FileStore::Limits files;
    int64_t lines = 50'000;  // of a batch, as OpenAI's
    size_t unended = 100;    // batches that have not ended
    size_t ended = 1'000;    // batches that have; the oldest are forgotten
  };
  using Clock = std::function<int64_t()>;  // milliseconds of Unix time

  // Error: the folder cannot be used, or another server uses it.
  static Result<std::unique_ptr<Batches>> open(const std::filesystem::path& folder, const Limits& limits,
                                               Clock clock);
  ~Batches();  // stops
  Batches(const Batches&) = delete;
  Batches& operator=(const Batches&) = delete;

  // These may be called on any thread.
  PreparationWorker& worker() { return worker_; }
  // From now on lines run, until the first of them is done without an answer.
  void start(LineEngine engine);
  // Looks for batches whose time is over. To be called at least every second.
  void tick();
  // Ends the worker after its current job.
  void stop() { worker_.stop(); }
  BatchFigures figures() const;

  // All that follows is for the worker. The results are bodies of OpenAI's answers; `owner` is the scope of a
  // key.
  ApiResult<std::string> create_file(uint64_t owner, std::string name, const std::string& purpose,
                                     std::string_view content);
  ApiResult<std::string> list_files(uint64_t owner, const ListQuery& query) const;
  ApiResult<std::string> file(uint64_t owner, const std::string& id) const;
  ApiResult<std::shared_ptr<const BatchInput>> content(uint64_t owner, const std::string& id) const;
  ApiResult<std::string> erase_file(uint64_t owner, const std::string& id);

  ApiResult<std::string> create_batch(uint64_t owner, std::string_view body);
  ApiResult<std::string> list_batches(uint64_t owner, const ListQuery& query) const;
  ApiResult<std::string> batch(uint64_t owner, const std::string& id) const;
  ApiResult<std::string> cancel_batch(uint64_t owner, const std::string& id);

 private:
  // A batch with what it needs at its present stage.
  struct Entry {
    BatchRecord record;
    std::unique_ptr<BatchCheck> check = nullptr;  // while it is validating
    std::unique_ptr<BatchRun> run = nullptr;      // from then until it ends
  };

  Batches(std::filesystem::path folder, const Limits& limits, Clock clock, FileDescriptor lock,
          FileStore files);

  ApiResult<const Entry*> find(uint64_t owner, const std::string& id) const;
  size_t count(bool ended) const;
  std::filesystem::path record_path(const std::string& id) const {
    return folder_ / "batches" / (id + ".json");
  }
  void save(const BatchRecord& batch);
  void enter(BatchRecord& batch, BatchStatus status);
  void resume(Entry& entry);
  void check(const std::string& id);
  void begin(Entry& entry);
  void feed();
  Entry* next_to_feed();
  void start_line(Entry& entry);
  void on_done(const std::string& batch, const std::string& id, const std::optional<LineAnswer>& answer);
  void add(Entry& entry, const std::string& id, const std::string& custom_id, const LineAnswer& answer);
  void end_early(Entry& entry, BatchStatus end);
  void finish_if_done(Entry& entry);
  void fail(Entry& entry, const Error& error);
  void expire();
  void forget_oldest();
  void publish();

  std::filesystem::path folder_;
  Limits limits_;
  Clock clock_;
  FileDescriptor lock_;
  FileStore files_;
  std::map<std::string, std::unique_ptr<Entry>> entries_;  // by id
  std::optional<LineEngine> engine_;                       // nullopt: no lines run
  int64_t running_ = 0, completed_ = 0, failed_ = 0;       // lines

  std::atomic<bool> is_ticking_ = false;  // a tick waits for the worker
  mutable std::mutex mutex_;
  BatchFigures figures_;

  PreparationWorker worker_;  // last, since it uses all members above
};

}  // namespace outrider
