// SPDX-License-Identifier: Apache-2.0
#include "server/batch/batches.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <utility>

#include "base/quote.h"
#include "platform/durable_file.h"
#include "server/api/json_writer.h"
#include "server/calls/random_id.h"
#include "server/telemetry/request_log.h"

namespace outrider {
namespace {

constexpr int kCheckedAtOnce = 1000;  // lines of an input, between two other jobs

ApiError no_such(std::string_view what) {
  return {.status = 404,
          .type = "not_found_error",
          .message = fmt::format("no {} of this id is kept", what),
          .param = "id",
          .code = fmt::format("{}_not_found", what)};
}

Result<FileDescriptor> lock_folder(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / "lock";
  FileDescriptor lock(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (lock.get() < 0)
    return io_error(fmt::format("--batch-folder: cannot write {}: {}", path.string(), std::strerror(errno)));
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0)
    return io_error(fmt::format("--batch-folder: another server uses {}", folder.string()));
  return lock;
}

// A folder that only this user can read.
Status make_private(const std::filesystem::path& folder) {
  OUTRIDER_RETURN_IF_ERROR(make_directories(folder));
  std::error_code error;
  std::filesystem::permissions(folder, std::filesystem::perms::owner_all, error);
  if (error) return io_error(fmt::format("cannot protect {}: {}", folder.string(), error.message()));
  return {};
}

Result<std::vector<BatchRecord>> read_records(const std::filesystem::path& folder) {
  std::vector<BatchRecord> records;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    if (entry.path().extension() != ".json") continue;
    std::ifstream file(entry.path(), std::ios::binary);
    auto record = read_record(std::string(std::istreambuf_iterator<char>(file), {}));
    if (!record.ok() || record->id != entry.path().stem().string())
      return input_error(fmt::format("expected a batch in {}; remove it", entry.path().string()));
    records.push_back(std::move(record).value());
  }
  if (error) return io_error(fmt::format("cannot read {}: {}", folder.string(), error.message()));
  return records;
}

struct ListedItem {
  std::string id, body;
};

ApiError bad_query(const std::string& name, std::string_view expected) {
  return {.message = fmt::format("expected {} in ?{}=", expected, name), .param = name};
}

// A page of a list, of items with the newest first.
ApiResult<std::string> page_of(std::vector<ListedItem> items, const ListQuery& query, int usual_limit) {
  const int limit = query.limit.empty() ? usual_limit : std::atoi(query.limit.c_str());
  if (limit < 1 || limit > 10'000) return bad_query("limit", "a number from 1 to 10000");
  if (query.order != "asc" && query.order != "desc" && !query.order.empty())
    return bad_query("order", "asc or desc");
  if (query.order == "asc") std::ranges::reverse(items);
  auto first = items.begin();
  if (!query.after.empty()) {
    first = std::ranges::find(items, query.after, &ListedItem::id);
    if (first == items.end()) return bad_query("after", "the id of an item of the list");
    ++first;
  }
  const auto last = first + std::min<std::ptrdiff_t>(limit, items.end() - first);
  std::string text;
  JsonWriter json(text);
  json.begin_object().member("object", "list").key("data").begin_array();
  for (auto item = first; item != last; ++item) json.json(item->body);
  json.end_array().member("first_id", text_or_null(first == last ? "" : first->id));
  json.member("last_id", text_or_null(first == last ? "" : std::prev(last)->id));
  json.member("has_more", last != items.end()).end_object();
  return text;
}

}  // namespace

Result<std::unique_ptr<Batches>> Batches::open(const std::filesystem::path& folder, const Limits& limits,
                                               Clock clock) {
  OUTRIDER_RETURN_IF_ERROR(make_directories(folder));
  OUTRIDER_TRY(FileDescriptor lock, lock_folder(folder));
  for (const char* part : {"files", "batches"}) OUTRIDER_RETURN_IF_ERROR(make_private(folder / part));
  OUTRIDER_TRY(std::vector<BatchRecord> records, read_records(folder / "batches"));
  std::vector<std::string> kept;
  for (const BatchRecord& record : records) {
    if (!record.has_ended()) kept.insert(kept.end(), {record.output_file, record.error_file});
  }
  OUTRIDER_TRY(FileStore files, FileStore::open(folder / "files", limits.files, kept));
  auto batches = std::unique_ptr<Batches>(
      new Batches(folder, limits, std::move(clock), std::move(lock), std::move(files)));
  for (BatchRecord& record : records) {
    const std::string id = record.id;
    batches->entries_.emplace(id, std::make_unique<Entry>(Entry{.record = std::move(record)}));
  }
  batches->worker_.submit([raw = batches.get()] {
    for (const auto& [id, entry] : raw->entries_) raw->resume(*entry);
    raw->publish();
  });
  return batches;
}

Batches::Batches(std::filesystem::path folder, const Limits& limits, Clock clock, FileDescriptor lock,
                 FileStore files)
    : folder_(std::move(folder)),
      limits_(limits),
      clock_(std::move(clock)),
      lock_(std::move(lock)),
      files_(std::move(files)) {}

Batches::~Batches() { stop(); }

void Batches::start(LineEngine engine) {
  worker_.submit([this, engine = std::move(engine)] {
    engine_ = engine;
    feed();
  });
}

void Batches::tick() {
  if (is_ticking_.exchange(true)) return;
  worker_.submit([this] {
    is_ticking_ = false;
    expire();
  });
}

BatchFigures Batches::figures() const {
  const std::lock_guard lock(mutex_);
  return figures_;
}

void Batches::publish() {
  BatchFigures figures{.batches = {}, .completed = completed_, .failed = failed_, .running = running_};
  for (const std::string_view status : kBatchStatuses) figures.batches.emplace_back(status, 0);
  for (const auto& [id, entry] : entries_)
    ++figures.batches[static_cast<size_t>(entry->record.status)].second;
  const std::lock_guard lock(mutex_);
  figures_ = std::move(figures);
}

ApiResult<std::string> Batches::create_file(uint64_t owner, std::string name, const std::string& purpose,
                                            std::string_view content) {
  if (purpose != "batch")
    return ApiError{.message = "expected the purpose batch, found " + quote(purpose), .param = "purpose"};
  if (content.empty())
    return ApiError{.message = "expected a file with requests, found an empty one",
                    .param = "file",
                    .code = "empty_file"};
  OUTRIDER_TRY(
      const std::string id,
      files_.add({.name = std::move(name), .purpose = purpose, .owner = owner, .created_ms = clock_()},
                 content));
  return file_body(*files_.find(owner, id));
}

ApiResult<std::string> Batches::list_files(uint64_t owner, const ListQuery& query) const {
  std::vector<ListedItem> items;
  for (const StoredFile* file : files_.of(owner)) {
    if (query.purpose.empty() || file->purpose == query.purpose)
      items.push_back({file->id, file_body(*file)});
  }
  std::ranges::reverse(items);
  return page_of(std::move(items), query, 10'000);
}

ApiResult<std::string> Batches::file(uint64_t owner, const std::string& id) const {
  const StoredFile* file = files_.find(owner, id);
  if (file == nullptr) return no_such("file");
  return file_body(*file);
}

ApiResult<std::shared_ptr<const BatchInput>> Batches::content(uint64_t owner, const std::string& id) const {
  if (files_.find(owner, id) == nullptr) return no_such("file");
  auto file = BatchInput::open(files_.path_of(id));
  if (file.ok()) return std::make_shared<const BatchInput>(std::move(file).value());
  log_event("batch_folder_failed", file.error().message);
  return ApiError{
      .status = 500, .type = "server_error", .message = "the file cannot be read", .code = "storage_failed"};
}

ApiResult<std::string> Batches::erase_file(uint64_t owner, const std::string& id) {
  for (const auto& [batch, entry] : entries_) {
    if (entry->record.has_ended() || entry->record.input_file != id || entry->record.owner != owner) continue;
    return ApiError{.status = 409,
                    .message = fmt::format("{} reads this file; cancel it first", batch),
                    .param = "id",
                    .code = "file_in_use"};
  }
  if (!files_.erase(owner, id)) return no_such("file");
  std::string text;
  JsonWriter json(text);
  json.begin_object().member("id", id).member("object", "file").member("deleted", true).end_object();
  return text;
}

ApiResult<const Batches::Entry*> Batches::find(uint64_t owner, const std::string& id) const {
  const auto found = entries_.find(id);
  if (found == entries_.end() || found->second->record.owner != owner) return no_such("batch");
  return found->second.get();
}

size_t Batches::count(bool ended) const {
  return static_cast<size_t>(std::ranges::count_if(
      entries_, [=](const auto& one) { return one.second->record.has_ended() == ended; }));
}

ApiResult<std::string> Batches::create_batch(uint64_t owner, std::string_view body) {
  OUTRIDER_TRY(BatchRecord record, read_batch_request(body, clock_()));
  record.owner = owner;
  const StoredFile* input = files_.find(owner, record.input_file);
  if (input == nullptr) {
    ApiError error = no_such("file");
    error.param = "input_file_id";
    return error;
  }
  if (count(/*ended=*/false) >= limits_.unended) {
    return ApiError{.status = 429,
                    .type = "rate_limit_error",
                    .message = fmt::format("the server works on {} batches; try again when one has ended",
                                           limits_.unended),
                    .code = "too_many_batches"};
  }
  if (auto refused = files_.refusal(0)) return *std::move(refused);  // its results need room
  const Status saved = write_durably(record_path(record.id), record_text(record));
  if (!saved.ok()) {
    log_event("batch_folder_failed", saved.error().message);
    return ApiError{.status = 507,
                    .type = "server_error",
                    .message = "the batch could not be stored",
                    .code = "storage_failed"};
  }
  forget_oldest();
  const std::string id = record.id;
  std::string text = batch_body(record);
  resume(*entries_.emplace(id, std::make_unique<Entry>(Entry{.record = std::move(record)})).first->second);
  publish();
  return text;
}

ApiResult<std::string> Batches::list_batches(uint64_t owner, const ListQuery& query) const {
  std::vector<const BatchRecord*> records;
  for (const auto& [id, entry] : entries_) {
    if (entry->record.owner == owner) records.push_back(&entry->record);
  }
  std::ranges::sort(records, std::greater(),
                    [](const BatchRecord* one) { return std::pair(one->created_ms, one->id); });
  std::vector<ListedItem> items;
  for (const BatchRecord* record : records) items.push_back({record->id, batch_body(*record)});
  return page_of(std::move(items), query, 20);
}

ApiResult<std::string> Batches::batch(uint64_t owner, const std::string& id) const {
  OUTRIDER_TRY(const Entry* entry, find(owner, id));
  return batch_body(entry->record);
}

ApiResult<std::string> Batches::cancel_batch(uint64_t owner, const std::string& id) {
  OUTRIDER_TRY(const Entry* found, find(owner, id));
  Entry& entry = *entries_.at(id);
  if (found->record.has_ended()) {
    return ApiError{.status = 409,
                    .message = fmt::format("the batch is {} already",
                                           kBatchStatuses[static_cast<size_t>(found->record.status)]),
                    .param = "id",
                    .code = "batch_ended"};
  }
  if (entry.record.end == BatchStatus::kCompleted) {
    enter(entry.record, BatchStatus::kCancelling);
    end_early(entry, BatchStatus::kCancelled);
  }
  publish();
  return batch_body(entry.record);
}

void Batches::save(const BatchRecord& batch) {
  const Status saved = write_durably(record_path(batch.id), record_text(batch));
  if (!saved.ok()) log_event("batch_folder_failed", saved.error().message);
}

void Batches::enter(BatchRecord& batch, BatchStatus status) {
  batch.enter(status, clock_() / 1000);
  log_event("batch", fmt::format("{} {}: {} of {} lines done, {} failed", batch.id,
                                 kBatchStatuses[static_cast<size_t>(status)], batch.completed, batch.total,
                                 batch.failed));
}

// Goes on with a batch that is new, or that an earlier process has left.
void Batches::resume(Entry& entry) {
  BatchRecord& record = entry.record;
  if (record.has_ended()) return;
  if (!record.output_file.empty()) return begin(entry);
  auto input = BatchInput::open(files_.path_of(record.input_file));
  if (!input.ok()) return fail(entry, input.error());
  entry.check = std::make_unique<BatchCheck>(std::move(input).value(), record.endpoint, limits_.lines);
  worker_.submit([this, id = record.id] { check(id); });
}

void Batches::check(const std::string& id) {
  const auto found = entries_.find(id);
  if (found == entries_.end() || found->second->check == nullptr) return;
  Entry& entry = *found->second;
  BatchRecord& record = entry.record;
  if (!entry.check->advance(kCheckedAtOnce)) return worker_.submit([this, id] { check(id); });
  record.total = entry.check->total();
  record.errors = entry.check->errors();
  entry.check.reset();
  if (!record.errors.empty()) {
    enter(record, BatchStatus::kFailed);
    save(record);
    return publish();
  }
  record.output_file = "file-" + random_id();
  record.error_file = "file-" + random_id();
  enter(record, BatchStatus::kInProgress);
  save(record);
  begin(entry);
}

void Batches::begin(Entry& entry) {
  auto run = BatchRun::open(&entry.record, files_);
  if (!run.ok()) return fail(entry, run.error());
  entry.run = std::move(run).value();
  if (entry.record.end != BatchStatus::kCompleted) finish_if_done(entry);
  publish();
  feed();
}

// The batch with the fewest lines that run, the oldest of them.
Batches::Entry* Batches::next_to_feed() {
  Entry* best = nullptr;
  const auto rank = [](const Entry& entry) {
    return std::pair(entry.run->running().size(), entry.record.created_ms);
  };
  for (const auto& [id, entry] : entries_) {
    if (entry->run == nullptr || entry->run->is_taken() || entry->record.end != BatchStatus::kCompleted)
      continue;
    if (best == nullptr || rank(*entry) < rank(*best)) best = entry.get();
  }
  return best;
}

void Batches::feed() {
  while (engine_ && running_ < engine_->places) {
    Entry* entry = next_to_feed();
    if (entry == nullptr) break;
    start_line(*entry);
  }
  publish();
}

void Batches::start_line(Entry& entry) {
  const std::optional<BatchLine> line = entry.run->take();
  if (!line) return finish_if_done(entry);
  const std::string id = random_id();
  entry.run->running().emplace(id, line->custom_id);
  ++running_;
  LineCalls::Done done = [this, batch = entry.record.id, id](const std::optional<LineAnswer>& answer) {
    worker_.submit([this, batch, id, answer] { on_done(batch, id, answer); });
  };
  engine_->start(*line, id, entry.record.owner, std::move(done));
}

void Batches::on_done(const std::string& batch, const std::string& id,
                      const std::optional<LineAnswer>& answer) {
  Entry& entry = *entries_.at(batch);
  const std::string custom_id = std::move(entry.run->running().at(id));
  entry.run->running().erase(id);
  --running_;
  if (answer) {
    add(entry, id, custom_id, *answer);
  } else if (entry.record.end == BatchStatus::kCompleted) {
    engine_.reset();  // the server ends; a later one runs the line again
  }
  finish_if_done(entry);
  feed();
}

void Batches::add(Entry& entry, const std::string& id, const std::string& custom_id,
                  const LineAnswer& answer) {
  const Status added = entry.run->add(id, custom_id, answer);
  ++(answer.status == 200 ? completed_ : failed_);
  if (!added.ok()) fail(entry, added.error());
}

// Ends the lines that run, and runs no others.
void Batches::end_early(Entry& entry, BatchStatus end) {
  entry.record.end = end;
  entry.check.reset();
  save(entry.record);
  if (entry.run != nullptr && engine_) {
    for (const auto& [id, custom_id] : entry.run->running()) engine_->cancel(id);
  }
  finish_if_done(entry);
}

void Batches::finish_if_done(Entry& entry) {
  BatchRecord& record = entry.record;
  const bool is_early = record.end != BatchStatus::kCompleted;
  if (record.has_ended() || entry.check != nullptr) return;
  if (entry.run != nullptr) {
    if (!entry.run->running().empty() || (!is_early && (!engine_ || !entry.run->is_taken()))) return;
    Status written;
    if (record.end == BatchStatus::kCancelled)
      written =
          entry.run->end_rest("batch_cancelled", "The batch was cancelled before this request was executed.");
    if (record.end == BatchStatus::kExpired)
      written = entry.run->end_rest(
          "batch_expired", "This request could not be executed before the completion window expired.");
    if (!is_early) {
      enter(record, BatchStatus::kFinalizing);
      save(record);
    }
    if (written.ok()) written = entry.run->finish(files_, clock_());
    entry.run.reset();
    if (!written.ok()) return fail(entry, written.error());
  }
  enter(record, record.end);
  save(record);
  publish();
}

// Ends a batch whose files cannot be read or written.
void Batches::fail(Entry& entry, const Error& error) {
  log_event("batch_folder_failed", error.message);
  BatchRecord& record = entry.record;
  record.errors = {{.code = "storage_failed", .message = "a file of the batch cannot be read or written"}};
  if (entry.run != nullptr) return end_early(entry, BatchStatus::kFailed);
  enter(record, BatchStatus::kFailed);
  save(record);
  publish();
}

void Batches::expire() {
  std::vector<Entry*> expired;
  for (const auto& [id, entry] : entries_) {
    const BatchRecord& record = entry->record;
    if (!record.has_ended() && record.end == BatchStatus::kCompleted && record.expires_at <= clock_() / 1000)
      expired.push_back(entry.get());
  }
  for (Entry* entry : expired) {
    enter(entry->record, BatchStatus::kFinalizing);
    end_early(*entry, BatchStatus::kExpired);
  }
}

void Batches::forget_oldest() {
  while (count(/*ended=*/true) > limits_.ended) {
    const auto end = [](const auto& one) {
      const BatchRecord& record = one.second->record;
      return std::pair(!record.has_ended(), record.since[static_cast<size_t>(record.status)]);
    };
    const auto oldest = std::ranges::min_element(entries_, {}, end);
    std::error_code ignored;
    std::filesystem::remove(record_path(oldest->first), ignored);
    entries_.erase(oldest);
  }
}

}  // namespace outrider
