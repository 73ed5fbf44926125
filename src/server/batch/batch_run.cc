// SPDX-License-Identifier: Apache-2.0
#include "server/batch/batch_run.h"

#include <fmt/format.h>

#include <ctime>
#include <utility>

#include "base/quote.h"
#include "server/calls/random_id.h"

namespace outrider {

ParsedCall prepare_line(const BatchLine& line, const std::string& id, uint64_t scope,
                        const LineContext& context) {
  const CallContext call{.model = context.model,
                         .responses = context.responses,
                         .limits = context.limits,
                         .id = id,
                         .created = std::time(nullptr),
                         .random_seed = random_seed(),
                         .cache_scope = scope};
  return parse_call(line.parse, line.body, call);
}

StartLine prepare_and(StartPrepared start, const LineContext& context) {
  return [start = std::move(start), context](const BatchLine& line, const std::string& id, uint64_t scope,
                                             const LineCalls::Done& done) {
    ParsedCall parsed = prepare_line(line, id, scope, context);
    if (!parsed.ok())
      return done(LineAnswer{.status = parsed.error().status, .body = error_body(parsed.error())});
    start(id, std::move(parsed).value(), done);
  };
}

Result<BatchInput> BatchInput::open(const std::filesystem::path& path) {
  OUTRIDER_TRY(MappedFile file, MappedFile::open(path));
  return BatchInput(std::move(file));
}

BatchCheck::BatchCheck(BatchInput input, std::string endpoint, int64_t max_lines)
    : input_(std::move(input)),
      endpoint_(std::move(endpoint)),
      max_lines_(max_lines),
      reader_(input_.text()) {}

void BatchCheck::add_error(const LineProblem& problem) {
  errors_.push_back(
      {.code = problem.code, .message = problem.message, .param = problem.param, .line = reader_.number()});
}

void BatchCheck::check(std::string_view text) {
  const Result<BatchLine, LineProblem> line = read_batch_line(text);
  if (!line.ok()) return add_error(line.error());
  if (line->url != endpoint_) {
    return add_error({.code = "mismatched_url",
                      .message = "expected " + endpoint_ + ", the endpoint of the batch, found " + line->url,
                      .param = "url"});
  }
  if (!ids_.insert(line->custom_id).second) add_error(duplicate_problem(line->custom_id));
}

bool BatchCheck::advance(int lines) {
  for (int i = 0; i < lines; ++i) {
    const std::optional<std::string_view> text = reader_.next();
    if (!text || errors_.size() >= kMaxErrors) {
      if (total_ == 0) errors_.push_back({.code = "empty_file", .message = "expected requests, found none"});
      return true;
    }
    if (++total_ > max_lines_) {
      errors_.push_back({.code = "too_many_tasks",
                         .message = fmt::format("expected at most {} requests in one file", max_lines_)});
      return true;
    }
    check(*text);
  }
  return false;
}

BatchRun::BatchRun(BatchRecord* batch, BatchInput input, ResultFile output, ResultFile errors)
    : batch_(batch),
      input_(std::move(input)),
      reader_(input_.text()),
      output_(std::move(output)),
      errors_(std::move(errors)) {}

Result<std::unique_ptr<BatchRun>> BatchRun::open(BatchRecord* batch, const FileStore& files) {
  std::unordered_set<std::string> done;
  const auto keep = [&](const ResultLine& line) { done.insert(line.custom_id); };
  OUTRIDER_TRY(BatchInput input, BatchInput::open(files.path_of(batch->input_file)));
  OUTRIDER_TRY(ResultFile output,
               ResultFile::open(files.path_of(batch->output_file), ResultFile::Damage::kCut, keep));
  OUTRIDER_TRY(ResultFile errors,
               ResultFile::open(files.path_of(batch->error_file), ResultFile::Damage::kCut, keep));
  batch->completed = output.lines();
  batch->failed = errors.lines();
  auto run =
      std::unique_ptr<BatchRun>(new BatchRun(batch, std::move(input), std::move(output), std::move(errors)));
  run->done_ = std::move(done);
  return run;
}

std::optional<BatchLine> BatchRun::take() {
  while (const std::optional<std::string_view> text = reader_.next()) {
    Result<BatchLine, LineProblem> line = read_batch_line(*text);
    if (line.ok() && !done_.contains(line->custom_id)) return std::move(line).value();
  }
  is_taken_ = true;
  return std::nullopt;
}

Status BatchRun::add(const std::string& id, const std::string& custom_id, const LineAnswer& answer) {
  const bool is_good = answer.status == 200;
  OUTRIDER_RETURN_IF_ERROR((is_good ? output_ : errors_).append(answer_line(id, custom_id, answer)));
  ++(is_good ? batch_->completed : batch_->failed);
  done_.insert(custom_id);
  return {};
}

Status BatchRun::add_problem(const LineProblem& problem) {
  OUTRIDER_RETURN_IF_ERROR(errors_.append(problem_line(random_id(), problem)));
  ++batch_->failed;
  done_.insert(problem.custom_id);
  return {};
}

Status BatchRun::end_rest(const std::string& code, const std::string& message) {
  TextLines reader(input_.text());
  while (const std::optional<std::string_view> text = reader.next()) {
    const Result<BatchLine, LineProblem> line = read_batch_line(*text);
    if (!line.ok() || done_.contains(line->custom_id)) continue;
    OUTRIDER_RETURN_IF_ERROR(add_problem({.custom_id = line->custom_id, .code = code, .message = message}));
  }
  return {};
}

Status BatchRun::finish(FileStore& files, int64_t now_ms) {
  OUTRIDER_RETURN_IF_ERROR(input_.check());
  for (auto [file, id, kind] : {std::tuple(&output_, &batch_->output_file, "output"),
                                std::tuple(&errors_, &batch_->error_file, "error")}) {
    OUTRIDER_RETURN_IF_ERROR(file->sync());
    if (file->lines() == 0) {
      std::error_code ignored;
      std::filesystem::remove(files.path_of(*id), ignored);
      continue;
    }
    OUTRIDER_RETURN_IF_ERROR(files.adopt({.id = *id,
                                          .name = fmt::format("{}_{}.jsonl", batch_->id, kind),
                                          .purpose = "batch_output",
                                          .owner = batch_->owner,
                                          .created_ms = now_ms}));
  }
  return {};
}

}  // namespace outrider
