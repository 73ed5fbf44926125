// SPDX-License-Identifier: Apache-2.0
#include "cli/serving/line_run.h"

#include <utility>

#include "server/calls/random_id.h"

namespace outrider {
namespace {

constexpr auto kWhileOpening = std::chrono::milliseconds(1000);

LiveCalls::Limits limits_of(const ServerParts& parts) {
  return {.calls = parts.max_batch + parts.options.max_queue, .stream_bytes = parts.limits.stream_bytes};
}

}  // namespace

LineRun::LineRun(ServerParts parts) : parts_(std::move(parts)), calls_(limits_of(parts_)) {
  calls_.set_metrics(&metrics_);
}

LineRun::~LineRun() {
  if (engine_ != nullptr) engine_->stop();
}

Result<std::unique_ptr<LineRun>> LineRun::open(ServerParts parts) {
  auto run = std::unique_ptr<LineRun>(new LineRun(std::move(parts)));
  run->engine_ = std::make_unique<EngineLoop>(run->parts_.open, run->events());
  run->lines_ = std::make_unique<LineCalls>(&run->calls_, run->engine_.get());
  while (!run->model_) OUTRIDER_RETURN_IF_ERROR(run->wait(kWhileOpening));
  return run;
}

EngineLoop::Events LineRun::events() {
  return {.opened =
              [this](const Engine& engine) {
                post([this, model = model_to_serve(engine, parts_)] { model_ = model; });
              },
          .failed = [this](const Error& error) { post([this, error] { failure_ = error; }); },
          .has_updates = [this] { post([this] { calls_.deliver(engine_->take_updates()); }); }};
}

void LineRun::post(std::function<void()> job) {
  const std::lock_guard lock(mutex_);
  jobs_.push_back(std::move(job));
  mail_.notify_one();
}

Status LineRun::wait(std::chrono::milliseconds time) {
  std::deque<std::function<void()>> jobs;
  {
    std::unique_lock lock(mutex_);
    mail_.wait_for(lock, time, [this] { return !jobs_.empty(); });
    jobs.swap(jobs_);
  }
  for (const std::function<void()>& job : jobs) job();
  return failure_ ? Status(*failure_) : Status();
}

void LineRun::start(const BatchLine& line, Done done) {
  const std::string id = random_id();
  const LineContext context{.model = &*model_,
                            .limits = {.sequences = calls_.limit(),
                                       .default_tokens = parts_.options.default_max_tokens,
                                       .output_tokens = parts_.options.max_tokens_limit}};
  ParsedCall parsed = prepare_line(line, id, /*scope=*/0, context);
  if (!parsed.ok()) return done(id, {.status = parsed.error().status, .body = error_body(parsed.error())});
  ++running_;
  lines_->start(id, std::move(parsed).value(), /*in_background=*/false,
                [this, id, done = std::move(done)](const std::optional<LineAnswer>& answer) {
                  --running_;
                  if (answer) done(id, *answer);
                });
}

}  // namespace outrider
