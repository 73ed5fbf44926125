// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "engine/step/step_tracer.h"

namespace outrider {

// Hands the traces of a step to the trace sink, if there is one.
class TraceStage {
 public:
  // An empty sink ends tracing.
  void set_sink(TraceSink sink, int64_t vocab_size, const Model& target) {
    tracer_.reset();
    if (sink) tracer_.emplace(std::move(sink), vocab_size, target);
  }
  // The tracer that the other stages tell what they do; null without a sink.
  StepTracer* tracer() { return tracer_ ? &*tracer_ : nullptr; }

  void run() {
    if (tracer_) tracer_->finish_step();
  }

 private:
  std::optional<StepTracer> tracer_;
};

}  // namespace outrider
