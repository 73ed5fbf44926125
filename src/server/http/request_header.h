// SPDX-License-Identifier: Apache-2.0
// Parts of a request's head, taken apart and judged. Pure functions over hostile text.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace outrider {

// The path of a request target, percent-decoded and without its query. Nothing: not a path ("*", a whole
// URL), a broken escape, or a control character.
std::optional<std::string> request_path(std::string_view target);

// The name in a Host header, in lower case, without port and brackets. Nothing: malformed.
std::optional<std::string> host_name(std::string_view host);

// Which names a browser may know this server by: a page of another site that points its own name here (DNS
// rebinding) is turned away.
class HostNames {
 public:
  // `bound`: the address that is listened on; any address written in digits is fine where that is a wildcard.
  HostNames(std::string_view bound, const std::vector<std::string>& allowed);
  bool allow(std::string_view host_header) const;

 private:
  std::vector<std::string> names_;
  bool any_address_ = false;
};

// "application/json", whatever its parameters.
bool is_json_type(std::string_view content_type);

// Fit to be repeated in headers and logs: letters, digits and ._- ; at most 128.
bool is_request_id(std::string_view id);

// The key in an Authorization header: of "Bearer KEY", or the password of "Basic ...". Empty: none.
std::string credential(std::string_view authorization);

}  // namespace outrider
