// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <csignal>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <unordered_set>
#include <utility>

#include "base/clock.h"
#include "base/interrupt_guard.h"
#include "base/quote.h"
#include "cli/commands/commands.h"
#include "cli/serving/line_run.h"
#include "cli/serving/one_model.h"
#include "cli/terminal.h"
#include "server/batch/batch_line.h"
#include "server/batch/batch_run.h"
#include "server/batch/result_file.h"
#include "server/calls/random_id.h"

namespace outrider {
namespace {

constexpr auto kMostWait = std::chrono::milliseconds(100);  // until an interruption is noticed

// The requests: a file whose bytes stay in place, or all of standard input.
class InputText {
 public:
  static Result<InputText> read(const std::filesystem::path& path) {
    InputText input;
    if (path == "-") {
      input.text_.assign(std::istreambuf_iterator<char>(std::cin), {});
      if (std::cin.bad()) return io_error("cannot read standard input");
      return input;
    }
    OUTRIDER_TRY(input.file_, BatchInput::open(path));
    return input;
  }

  std::string_view text() const { return file_ ? file_->text() : std::string_view(text_); }
  Status check() const { return file_ ? file_->check() : Status(); }

 private:
  std::optional<BatchInput> file_;
  std::string text_;
};

// The results: a file that grows, or standard output.
class Results {
 public:
  static Result<Results> open(const std::filesystem::path& path) {
    Results results;
    if (path.empty() || path == "-") return results;
    OUTRIDER_RETURN_IF_ERROR(keep_good_results(path));
    OUTRIDER_TRY(results.file_,
                 ResultFile::open(path, ResultFile::Damage::kRefused,
                                  [&](const ResultLine& line) { results.kept_.insert(line.custom_id); }));
    return results;
  }

  // Whether an earlier run has the answer.
  bool has(const std::string& custom_id) const { return kept_.contains(custom_id); }
  Status add(const std::string& line) {
    if (file_) return file_->append(line);
    write_output(line + "\n");
    std::fflush(stdout);
    return {};
  }
  Status finish() { return file_ ? file_->sync() : flush_output(); }

 private:
  std::optional<ResultFile> file_;
  std::unordered_set<std::string> kept_;
};

// The numbers of a run, on standard error: one line on a terminal, else a line every ten seconds.
class LineProgress {
 public:
  explicit LineProgress(int64_t total) : total_(total), on_terminal_(error_is_terminal()) {}

  void keep() { ++kept_; }
  void add(bool is_good, int64_t tokens) {
    ++(is_good ? good_ : failed_);
    tokens_ += tokens;
  }
  int64_t failed() const { return failed_; }
  int64_t done() const { return kept_ + good_ + failed_; }

  void show() {
    constexpr double kFrameMs = 200, kLineMs = 10'000;
    const double now = now_ms();
    if (now - shown_ms_ < (on_terminal_ ? kFrameMs : kLineMs)) return;
    shown_ms_ = now;
    if (on_terminal_) {
      write_error_text("\r\x1b[K" + text());
    } else {
      write_error_line(text());
    }
  }
  void finish() const {
    if (on_terminal_) write_error_text("\r\x1b[K");
    write_error_line(text());
  }

 private:
  // "120 of 1000 done, 20 of them before, 1 failed; 812 tokens/s, 2 min 10 s left"
  std::string text() const {
    const double elapsed = now_ms() - start_ms_;
    std::string line = fmt::format("{} of {} done", done(), total_);
    if (kept_ > 0) line += fmt::format(", {} of them before", kept_);
    if (failed_ > 0) line += fmt::format(", {} failed", failed_);
    line += fmt::format("; {:.0f} tokens/s", static_cast<double>(tokens_) / elapsed * 1e3);
    const std::string left = done() == total_ ? "" : time_left(elapsed, good_ + failed_, total_ - kept_);
    return left.empty() ? line : line + ", " + left;
  }

  int64_t total_;
  bool on_terminal_;
  int64_t kept_ = 0, good_ = 0, failed_ = 0;
  int64_t tokens_ = 0;
  double start_ms_ = now_ms(), shown_ms_ = start_ms_;
};

// Runs the lines of an input that have no answer yet.
class BatchCommand {
 public:
  BatchCommand(std::string_view input, Results& results, LineRun& run)
      : reader_(input), results_(results), run_(run), progress_(count_lines(input)) {}

  // True: all lines have a result.
  Result<bool> run() {
    const InterruptGuard guard({SIGINT, SIGTERM}, InterruptGuard::Repeats::kEndProgram);
    bool has_more = true;
    while ((has_more || run_.running() > 0) && !InterruptGuard::interrupted() && written_.ok()) {
      while (has_more && run_.running() < run_.places() && written_.ok()) has_more = start_next();
      if (run_.running() > 0) OUTRIDER_RETURN_IF_ERROR(run_.wait(kMostWait));
      progress_.show();
    }
    progress_.finish();
    OUTRIDER_RETURN_IF_ERROR(written_);
    OUTRIDER_RETURN_IF_ERROR(results_.finish());
    return !has_more && run_.running() == 0;
  }

  const LineProgress& progress() const { return progress_; }

 private:
  // False: there are no more lines.
  bool start_next() {
    const std::optional<std::string_view> text = reader_.next();
    if (!text) return false;
    const Result<BatchLine, LineProblem> line = read_batch_line(*text);
    if (!line.ok()) {
      refuse(line.error());
    } else if (!seen_.insert(line->custom_id).second) {
      refuse(duplicate_problem(line->custom_id));
    } else if (results_.has(line->custom_id)) {
      progress_.keep();
    } else {
      run_.start(*line, [this, custom_id = line->custom_id](const std::string& id, const LineAnswer& answer) {
        progress_.add(answer.status == 200, answer.output_tokens);
        write(answer_line(id, custom_id, answer));
      });
    }
    return true;
  }

  void refuse(LineProblem problem) {
    progress_.add(/*is_good=*/false, 0);
    problem.message = fmt::format("line {}: {}", reader_.number(), problem.message);
    write(problem_line(random_id(), problem));
  }

  void write(const std::string& line) {
    if (written_.ok()) written_ = results_.add(line);
  }

  TextLines reader_;
  Results& results_;
  LineRun& run_;
  LineProgress progress_;
  std::unordered_set<std::string> seen_;  // custom_id of all lines so far
  Status written_;
};

}  // namespace

Status run_batch(const Settings& settings) {
  const std::filesystem::path& output = settings.batch.output;
  if (settings.batch.input.empty())
    return usage_error("expected a FILE of requests, or - for standard input");
  OUTRIDER_TRY(const InputText input, InputText::read(settings.batch.input));
  OUTRIDER_TRY(Results results, Results::open(output));
  ServerParts parts;
  parts.options = settings.server;
  OUTRIDER_RETURN_IF_ERROR(add_model(settings, parts));
  OUTRIDER_TRY(const std::unique_ptr<LineRun> run, LineRun::open(std::move(parts)));
  BatchCommand command(input.text(), results, *run);
  OUTRIDER_TRY(const bool is_whole, command.run());
  OUTRIDER_RETURN_IF_ERROR(input.check());
  const bool is_file = !output.empty() && output != "-";
  if (!is_whole) {
    return io_error(is_file ? fmt::format("interrupted; the same command goes on, with the answers in {}",
                                          output.string())
                            : "interrupted");
  }
  if (const int64_t failed = command.progress().failed(); failed > 0)
    return input_error(
        fmt::format("{} request{} failed; their lines say why", failed, failed == 1 ? "" : "s"));
  return {};
}

}  // namespace outrider
