// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/api/api_error.h"

namespace outrider {

enum class BatchStatus : uint8_t {
  kValidating,
  kInProgress,
  kFinalizing,
  kCancelling,
  // A batch in one of these has ended.
  kCompleted,
  kFailed,
  kExpired,
  kCancelled,
};
inline constexpr std::array<std::string_view, 8> kBatchStatuses = {
    "validating", "in_progress", "finalizing", "cancelling", "completed", "failed", "expired", "cancelled"};

// Why a batch failed.
struct BatchError {
  std::string code;
  std::string message;
  std::string param = {};            // empty: null
  std::optional<int64_t> line = {};  // of the input, from 1
};

// A batch as OpenAI's API shows it, and what it takes to go on with it after a restart.
struct BatchRecord {
  std::string id;
  uint64_t owner = 0;  // the scope of its key
  int64_t created_ms = 0;
  std::string endpoint;
  std::string input_file;
  std::string completion_window;
  std::string metadata = "null";  // a JSON object of texts, or null
  BatchStatus status = BatchStatus::kValidating;
  BatchStatus end = BatchStatus::kCompleted;  // what a batch that is finalizing or cancelling comes to
  int64_t expires_at = 0;                     // Unix time, as all below
  // Since when it has each status; 0: it had none.
  std::array<int64_t, kBatchStatuses.size()> since = {};
  // The files that its results are written to, from the time on at which it is in progress.
  std::string output_file, error_file;
  int64_t total = 0, completed = 0, failed = 0;  // lines
  std::vector<BatchError> errors;

  bool has_ended() const { return status >= BatchStatus::kCompleted; }
  void enter(BatchStatus next, int64_t now) {
    status = next;
    since[static_cast<size_t>(next)] = now;
  }
};

// OpenAI's batch object.
std::string batch_body(const BatchRecord& batch);

// The text that is kept of a batch, and its reader.
std::string record_text(const BatchRecord& batch);
ApiResult<BatchRecord> read_record(std::string_view text);

// Reads what POST /v1/batches says about a new batch. Errors name the field.
ApiResult<BatchRecord> read_batch_request(std::string_view body, int64_t now_ms);

}  // namespace outrider
