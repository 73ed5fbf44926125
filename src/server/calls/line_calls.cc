// SPDX-License-Identifier: Apache-2.0
#include "server/calls/line_calls.h"

#include <utility>

#include "base/clock.h"

namespace outrider {
namespace {

LineAnswer answer_of(LiveCall& call) {
  if (call.error) return {.status = call.error->status, .body = error_body(*call.error)};
  return {.body = call.generation->body(), .output_tokens = call.totals.output_tokens};
}

}  // namespace

LineCalls::~LineCalls() {
  for (const auto& [id, line] : lines_) line.call->wake = nullptr;
}

void LineCalls::start(const std::string& id, std::unique_ptr<GenerationCall> generation, bool in_background,
                      Done done) {
  if (is_closed_) return done(std::nullopt);
  for (Request& request : generation->requests()) request.is_background = in_background;
  LiveCall call;
  call.id = call.request_id = id;
  call.arrived_ms = now_ms();
  call.is_logged = call.has_time_limit = false;
  call.is_background = true;
  call.generation = std::move(generation);
  const std::shared_ptr<LiveCall> opened = calls_->open(std::move(call));
  opened->wake = [this, id] { on_update(id); };
  lines_.emplace(id, Line{.call = opened, .done = std::move(done)});
  calls_->submit(*opened, *engine_);
}

void LineCalls::on_update(const std::string& id) {
  const auto found = lines_.find(id);
  if (found == lines_.end() || !found->second.call->is_finished) return;
  Line line = std::move(found->second);
  lines_.erase(found);
  if (line.is_cancelled) return line.done(std::nullopt);
  line.done(answer_of(*line.call));
}

void LineCalls::cancel(Line& line) {
  line.is_cancelled = true;
  engine_->cancel(line.call->number);
}

void LineCalls::cancel(const std::string& id) {
  if (const auto found = lines_.find(id); found != lines_.end()) cancel(found->second);
}

void LineCalls::close() {
  is_closed_ = true;
  for (auto& [id, line] : lines_) cancel(line);
}

}  // namespace outrider
