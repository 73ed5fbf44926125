// SPDX-License-Identifier: Apache-2.0
// Files from a server that end up complete and checked, or not at all.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "hub/transfer/checksum.h"
#include "hub/transfer/hub_client.h"
#include "hub/transfer/transfer_observer.h"
#include "outrider/result.h"

namespace outrider {

// How often a request is repeated when the network or the server fails.
struct RetryPolicy {
  int attempts = 5;          // without a single byte between them
  double first_pause_s = 1;  // doubled after every attempt
};

struct RemoteFile {
  std::string url;
  std::filesystem::path path;  // where it is to lie; its folder is made
  int64_t bytes = 0;
  Checksum checksum;
};

// Fetches a text of at most `max_bytes`.
// Errors: status other than 200, named by its meaning; no connection; too long; interrupted.
Result<std::string> fetch_text(HubClient& client, TransferObserver& observer, const std::string& url,
                               size_t max_bytes, const RetryPolicy& retries = {});

// Fetches a file unless it is there already. Until it is complete and its checksum is right, it lies beside
// its place as "NAME.<sum>.partial", from where a later call goes on, also in another process. Errors: as
// fetch_text(); the disk is full; the checksum is wrong; another process fetches the file.
Status download_file(HubClient& client, TransferObserver& observer, const RemoteFile& file,
                     const RetryPolicy& retries = {});

}  // namespace outrider
