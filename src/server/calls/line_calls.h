// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>

#include "server/api/generation_call.h"
#include "server/calls/live_calls.h"

namespace outrider {

// The answer to one line of a batch, as a client of the server would have it.
struct LineAnswer {
  int status = 200;  // of HTTP
  std::string body;  // the answer, or the error
  int64_t output_tokens = 0;
};

// Runs prepared requests without a connection, the lines of batches. Only the thread of LiveCalls uses it.
class LineCalls {
 public:
  // nullopt: it was cancelled, and has no answer. It may be called within start().
  using Done = std::function<void(std::optional<LineAnswer> answer)>;

  LineCalls(LiveCalls* calls, EngineLoop* engine) : calls_(calls), engine_(engine) {}
  ~LineCalls();
  LineCalls(const LineCalls&) = delete;
  LineCalls& operator=(const LineCalls&) = delete;

  // `id`: no other line that runs has it. In the background its requests run where others leave places.
  void start(const std::string& id, std::unique_ptr<GenerationCall> generation, bool in_background,
             Done done);
  // Ends a line, which is then done without an answer. Unknown lines are ignored.
  void cancel(const std::string& id);
  // Ends all lines, and refuses further ones.
  void close();

 private:
  struct Line {
    std::shared_ptr<LiveCall> call;
    Done done;
    bool is_cancelled = false;
  };

  void on_update(const std::string& id);
  void cancel(Line& line);

  LiveCalls* calls_;
  EngineLoop* engine_;
  std::unordered_map<std::string, Line> lines_;
  bool is_closed_ = false;
};

}  // namespace outrider
