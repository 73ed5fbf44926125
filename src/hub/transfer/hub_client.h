// SPDX-License-Identifier: Apache-2.0
// The one user of libcurl: GET requests over http and https, with redirects and the usual proxy variables.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "hub/transfer/transfer_observer.h"
#include "outrider/result.h"

namespace outrider {

struct HubGet {
  std::string url;
  int64_t offset = 0;  // bytes of the body to leave out, by a Range header
  // Takes the body of an answer with status 200 or 206, in pieces. An error ends the request.
  std::function<Status(int status, std::string_view bytes)> body;
};

struct HubAnswer {
  int status = 0;  // of the last answer; 0: none came
  // Why the answer is not complete; empty: it is.
  std::string failure = {};
  bool may_recover = false;                // the failure is one of the network, not of the request
  std::string error_code = {};             // X-Error-Code: the Hub's name of an error
  std::string linked_etag = {};            // X-Linked-Etag: the Hub's checksum of a large file
  std::optional<double> retry_after = {};  // Retry-After, in seconds
};

class HubClient {
 public:
  // `token`: sent as "Authorization: Bearer" to the host of a request and to no other that it redirects to;
  // empty: none. Error: the machine has no libcurl.
  static Result<std::unique_ptr<HubClient>> open(std::string token, TransferObserver& observer);
  ~HubClient();
  HubClient(const HubClient&) = delete;
  HubClient& operator=(const HubClient&) = delete;

  // Errors: the errors of request.body; the observer interrupted. Everything else is an answer.
  Result<HubAnswer> get(const HubGet& request);

 private:
  struct Handle;
  HubClient(std::unique_ptr<Handle> handle, std::string token, TransferObserver& observer);

  std::unique_ptr<Handle> handle_;
  std::string token_;
  TransferObserver& observer_;
};

// "interrupted": the error of a transfer that its observer ended.
Error interrupted_error();

}  // namespace outrider
