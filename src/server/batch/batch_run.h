// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "platform/mapped_file.h"
#include "server/api/response_store.h"
#include "server/api/served_model.h"
#include "server/batch/batch_line.h"
#include "server/batch/batch_record.h"
#include "server/batch/file_store.h"
#include "server/batch/result_file.h"

namespace outrider {

// The requests of lines depend on this besides their text.
struct LineContext {
  const ServedModel* model = nullptr;
  ResponseStore* responses = nullptr;  // null: responses are not kept
  ApiLimits limits;
};
// `id`: of the request. `scope`: of its key.
ParsedCall prepare_line(const BatchLine& line, const std::string& id, uint64_t scope,
                        const LineContext& context);

// Runs a line and calls `done`, on any thread, maybe before it returns.
using StartLine =
    std::function<void(const BatchLine& line, const std::string& id, uint64_t scope, LineCalls::Done done)>;
using StartPrepared = std::function<void(const std::string& id, std::unique_ptr<GenerationCall> generation,
                                         LineCalls::Done done)>;
// Prepares a line before it starts. One that is no valid request is done at once.
StartLine prepare_and(StartPrepared start, const LineContext& context);

// An input file whose bytes stay in place.
class BatchInput {
 public:
  static Result<BatchInput> open(const std::filesystem::path& path);

  std::string_view text() const {
    return {reinterpret_cast<const char*>(file_.bytes().data()), file_.bytes().size()};
  }
  // Error: the file has changed since it was opened.
  Status check() const { return file_.check(); }

 private:
  explicit BatchInput(MappedFile file) : file_(std::move(file)) {}
  MappedFile file_;
};

// Checks all lines of an input before any of them runs, in pieces.
class BatchCheck {
 public:
  BatchCheck(BatchInput input, std::string endpoint, int64_t max_lines);

  // Checks up to `lines` further lines. True: it has come to the end.
  bool advance(int lines);
  int64_t total() const { return total_; }
  const std::vector<BatchError>& errors() const { return errors_; }

 private:
  void check(std::string_view text);
  void add_error(const LineProblem& problem);

  static constexpr size_t kMaxErrors = 50;

  BatchInput input_;
  std::string endpoint_;
  int64_t max_lines_;
  TextLines reader_;
  std::unordered_set<std::string> ids_;
  int64_t total_ = 0;
  std::vector<BatchError> errors_;
};

// The lines of a batch that are left to do, and the files of its results. It goes on where an earlier run
// was ended.
class BatchRun {
 public:
  BatchRun(const BatchRun&) = delete;
  BatchRun& operator=(const BatchRun&) = delete;

  // Sets the counts of `batch`, which must outlive the run, to what the files of results have.
  static Result<std::unique_ptr<BatchRun>> open(BatchRecord* batch, const FileStore& files);

  BatchRecord& batch() { return *batch_; }
  // The next line that has no result and was not taken yet; nullopt: there is none.
  std::optional<BatchLine> take();
  bool is_taken() const { return is_taken_; }  // take() has come to the end

  // The lines whose requests run: `custom_id` by the id of its request.
  std::unordered_map<std::string, std::string>& running() { return running_; }
  Status add(const std::string& id, const std::string& custom_id, const LineAnswer& answer);
  // Gives all lines without a result an error.
  Status end_rest(const std::string& code, const std::string& message);
  // Makes files of the results and adds them to the store.
  Status finish(FileStore& files, int64_t now_ms);

 private:
  BatchRun(BatchRecord* batch, BatchInput input, ResultFile output, ResultFile errors);

  Status add_problem(const LineProblem& problem);

  BatchRecord* batch_;
  BatchInput input_;
  TextLines reader_;
  ResultFile output_, errors_;
  std::unordered_set<std::string> done_;  // custom_id of all lines with results
  std::unordered_map<std::string, std::string> running_;
  bool is_taken_ = false;
};

}  // namespace outrider
