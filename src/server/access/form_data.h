// SPDX-License-Identifier: Apache-2.0
// The form of uploads: multipart/form-data (RFC 7578).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace outrider {

// A field of a form. It points into the body.
struct FormField {
  std::string name;
  std::optional<std::string> file_name;  // of a file
  std::string_view content;
};

// The boundary that a Content-Type names; nullopt: another type, or no valid boundary.
std::optional<std::string> form_boundary(std::string_view content_type);

// All fields of a body, in their order; nullopt: the body is malformed, or has more than `max_fields`.
std::optional<std::vector<FormField>> read_form(std::string_view body, std::string_view boundary,
                                                size_t max_fields);

}  // namespace outrider
