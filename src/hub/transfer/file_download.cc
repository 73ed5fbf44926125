// SPDX-License-Identifier: Apache-2.0
#include "hub/transfer/file_download.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include "base/quote.h"
#include "hub/transfer/partial_file.h"

namespace outrider {
namespace {

namespace fs = std::filesystem;

// Status 200 or 206 with the whole body is no error, nor is 416, which says that there is nothing to send.
std::optional<Error> error_of(const HubAnswer& answer, const std::string& url) {
  if (!answer.failure.empty()) return io_error(fmt::format("{}: {}", url, printable(answer.failure)));
  const auto refused = [&](std::string_view found) {
    return input_error(fmt::format("{}: status {}: {}", url, answer.status, found));
  };
  switch (answer.status) {
    case 200:
    case 206:
    case 416:
      return std::nullopt;
    case 401:
    case 403:
      return refused(
          "no access; check the name, and for a private or gated repository set HF_TOKEN to a token of an "
          "account that may read it");
    case 404:
      return refused("no such repository or file; check the name");
    case 429:
      return refused("too many requests; wait some minutes, or set HF_TOKEN, which has a higher limit");
    default:
      return refused(answer.error_code.empty() ? "the server failed" : printable(answer.error_code));
  }
}

bool is_passing(const HubAnswer& answer) {
  if (!answer.failure.empty()) return answer.may_recover;
  return answer.status == 408 || answer.status == 429 || answer.status >= 500;
}

// Repeats a request until it succeeds or fails for good.
class Attempts {
 public:
  Attempts(const RetryPolicy& policy, TransferObserver& observer) : policy_(policy), observer_(observer) {}

  // Waits before the next attempt. Error: there is none, because that was the last one, or the observer
  // interrupted. `has_progress`: bytes arrived since the attempt before.
  Status wait(const HubAnswer& answer, const Error& error, bool has_progress) {
    if (has_progress) failures_ = 0;
    if (!is_passing(answer) || ++failures_ >= policy_.attempts) return error;
    constexpr double kMaxPause = 60;
    const double pause =
        std::min(kMaxPause, answer.retry_after.value_or(policy_.first_pause_s * (1 << (failures_ - 1))));
    observer_.waits(error.message, pause);
    const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(pause);
    while (std::chrono::steady_clock::now() < end) {
      if (observer_.is_interrupted()) return interrupted_error();
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    return {};
  }

 private:
  const RetryPolicy& policy_;
  TransferObserver& observer_;
  int failures_ = 0;  // in a row
};

class Download {
 public:
  Download(HubClient& client, TransferObserver& observer, const RemoteFile& file, PartialFile& partial)
      : client_(client), observer_(observer), file_(file), partial_(partial) {}

  // Fetches all that is missing.
  Status fetch(const RetryPolicy& retries) {
    if (partial_.bytes() > file_.bytes) OUTRIDER_RETURN_IF_ERROR(partial_.clear());
    observer_.began(file_.path.filename().string(), file_.bytes, partial_.bytes());
    OUTRIDER_RETURN_IF_ERROR(check_space());
    Attempts attempts(retries, observer_);
    while (partial_.bytes() < file_.bytes) {
      const int64_t before = partial_.bytes();
      OUTRIDER_TRY(const HubAnswer answer, request());
      OUTRIDER_RETURN_IF_ERROR(check_etag(answer));
      if (partial_.bytes() == file_.bytes) break;
      const Error error = error_of(answer, file_.url).value_or(too_short());
      OUTRIDER_RETURN_IF_ERROR(attempts.wait(answer, error, partial_.bytes() > before));
    }
    return {};
  }

  // Whether the bytes on disk have the checksum.
  Result<bool> is_right() {
    const auto found =
        checksum_of(partial_.path(), file_.checksum.kind, [&] { return observer_.is_interrupted(); });
    if (observer_.is_interrupted()) return interrupted_error();
    return found && *found == file_.checksum;
  }

 private:
  Result<HubAnswer> request() {
    HubGet request{.url = file_.url, .offset = partial_.bytes(), .body = {}};
    bool is_first = true;
    request.body = [&](int status, std::string_view bytes) -> Status {
      // A server that knows no ranges sends everything again.
      if (is_first && status == 200 && request.offset > 0) OUTRIDER_RETURN_IF_ERROR(partial_.clear());
      is_first = false;
      return keep(bytes);
    };
    return client_.get(request);
  }

  Status keep(std::string_view bytes) {
    if (partial_.bytes() + static_cast<int64_t>(bytes.size()) > file_.bytes) {
      OUTRIDER_RETURN_IF_ERROR(partial_.clear());
      return input_error(
          fmt::format("{}: expected {} bytes, found more; fetch it again", file_.url, file_.bytes));
    }
    const Status status = partial_.append(bytes);
    if (!status.ok()) {
      return io_error(fmt::format("{}; {} of {} bytes are kept: make room and run the same command again",
                                  status.error().message, partial_.bytes(), file_.bytes));
    }
    observer_.advanced(partial_.bytes());
    return {};
  }

  Error too_short() const {
    return io_error(fmt::format("{}: expected {} bytes, found {}", file_.url, file_.bytes, partial_.bytes()));
  }

  // The Hub names the checksum of a large file in its answer, too.
  Status check_etag(const HubAnswer& answer) const {
    if (file_.checksum.kind != ChecksumKind::kSha256 || !is_hex_digest(answer.linked_etag, 32)) return {};
    if (answer.linked_etag == file_.checksum.hex) return {};
    return input_error(fmt::format("{}: expected the contents {}, found {}; fetch it again", file_.url,
                                   file_.checksum.hex, answer.linked_etag));
  }

  Status check_space() const {
    std::error_code code;
    const fs::space_info space = fs::space(partial_.path().parent_path(), code);
    const int64_t needed = file_.bytes - partial_.bytes();
    if (code || space.available >= static_cast<uintmax_t>(needed)) return {};
    return resource_error(fmt::format("{}: expected {} bytes of free disk space for the rest of {}, found {}",
                                      partial_.path().parent_path().string(), needed,
                                      file_.path.filename().string(), space.available));
  }

  HubClient& client_;
  TransferObserver& observer_;
  const RemoteFile& file_;
  PartialFile& partial_;
};

bool is_complete(const RemoteFile& file, TransferObserver& observer) {
  std::error_code code;
  if (!fs::is_regular_file(file.path, code) ||
      static_cast<int64_t>(fs::file_size(file.path, code)) != file.bytes)
    return false;
  return checksum_of(file.path, file.checksum.kind, [&] { return observer.is_interrupted(); }) ==
         file.checksum;
}

}  // namespace

Result<std::string> fetch_text(HubClient& client, TransferObserver& observer, const std::string& url,
                               size_t max_bytes, const RetryPolicy& retries) {
  Attempts attempts(retries, observer);
  for (;;) {
    std::string text;
    HubGet request{.url = url, .body = [&](int, std::string_view bytes) -> Status {
                     if (text.size() + bytes.size() > max_bytes)
                       return input_error(fmt::format("{}: expected at most {} bytes", url, max_bytes));
                     text += bytes;
                     return {};
                   }};
    OUTRIDER_TRY(const HubAnswer answer, client.get(request));
    const std::optional<Error> error = error_of(answer, url);
    if (!error) return text;
    OUTRIDER_RETURN_IF_ERROR(attempts.wait(answer, *error, false));
  }
}

Status download_file(HubClient& client, TransferObserver& observer, const RemoteFile& file,
                     const RetryPolicy& retries) {
  if (is_complete(file, observer)) {
    observer.began(file.path.filename().string(), file.bytes, file.bytes);
    return {};
  }
  OUTRIDER_TRY(PartialFile partial, PartialFile::open(file.path, file.checksum));
  const bool was_begun = partial.bytes() > 0;
  Download download(client, observer, file, partial);
  OUTRIDER_RETURN_IF_ERROR(download.fetch(retries));
  OUTRIDER_TRY(bool is_right, download.is_right());
  if (!is_right && was_begun) {  // the part of an earlier run may have been damaged
    OUTRIDER_RETURN_IF_ERROR(partial.clear());
    OUTRIDER_RETURN_IF_ERROR(download.fetch(retries));
    OUTRIDER_TRY(is_right, download.is_right());
  }
  if (is_right) return partial.finish();
  OUTRIDER_RETURN_IF_ERROR(partial.clear());
  return input_error(fmt::format("{}: the checksum is wrong, so nothing was kept; fetch it again", file.url));
}

}  // namespace outrider
