// SPDX-License-Identifier: Apache-2.0
// Parsing and checking the header fields of a request. Pure functions over untrusted text.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace outrider {

// The path of a request target, percent-decoded and without its query. nullopt: the target is no path ("*", a
// URL), or has an invalid escape or a control character.
std::optional<std::string> request_path(std::string_view target);

// The name in a Host header, in lower case, without port and brackets. nullopt: malformed.
std::optional<std::string> host_name(std::string_view host);

// The path of the UNIX socket that --host names: after "unix:", or a name with a slash or with ".sock" at its
// end. Empty: it names an address.
std::string socket_path(std::string_view host);

// The host names that requests may use. Others are refused, so that a page of another site cannot reach the
// server by pointing its own name here (DNS rebinding).
class AllowedHosts {
 public:
  // `bound`: the address that the server listens on. If it is a wildcard, every numeric address is allowed.
  // If it is a UNIX socket, every name is allowed, since no page reaches it. `machine`: the names of this
  // machine, in lower case.
  AllowedHosts(std::string_view bound, const std::vector<std::string>& allowed,
               const std::vector<std::string>& machine);
  bool allow(std::string_view host_header) const;

 private:
  std::vector<std::string> names_;
  bool any_address_ = false;
  bool any_name_ = false;
};

std::string lowered(std::string_view text);

// Whether the type is "application/json", with any parameters.
bool is_json_type(std::string_view content_type);

// Whether an id is safe to repeat in headers and logs: 1 to 128 letters, digits and ._-
bool is_request_id(std::string_view id);

// The first address in X-Forwarded-For; empty: none, or no address.
std::string client_address(std::string_view forwarded_for);

// nullopt: an invalid escape.
std::optional<std::string> percent_decoded(std::string_view text);

// The value of a name in the query of a request target, percent-decoded; empty: there is none.
std::string query_value(std::string_view target, std::string_view name);

// The key in an Authorization header: KEY of "Bearer KEY", or the password of "Basic ...". Empty: none.
std::string credential(std::string_view authorization);

}  // namespace outrider
