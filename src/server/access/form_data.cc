// SPDX-License-Identifier: Apache-2.0
#include "server/access/form_data.h"

#include <algorithm>

#include "base/white_space.h"
#include "server/access/request_header.h"

namespace outrider {
namespace {

constexpr size_t kMaxBoundary = 70;         // bytes, of RFC 2046
constexpr size_t kMaxPartHeader = 8 << 10;  // bytes of the header of a field
constexpr std::string_view kLineEnd = "\r\n";

// A parameter of a header's value: name="upload" or name=upload. Names are in any case. Browsers write a
// quote within a value as %22, others with a backslash; semicolons may stand within quotes.
std::optional<std::string> header_parameter(std::string_view value, std::string_view name) {
  size_t at = value.find(';');
  while (at != std::string_view::npos) {
    value = trimmed(value.substr(at + 1));
    const size_t equals = value.find('=');
    if (equals == std::string_view::npos) return std::nullopt;
    const bool is_it = lowered(trimmed(value.substr(0, equals))) == name;
    value.remove_prefix(equals + 1);
    std::string text;
    if (value.starts_with('"')) {
      size_t i = 1;
      for (; i < value.size() && value[i] != '"'; ++i) {
        if (value[i] == '\\' && i + 1 < value.size()) ++i;
        text += value[i];
      }
      if (i >= value.size()) return std::nullopt;
      value.remove_prefix(i + 1);
      at = value.find(';');
    } else {
      at = value.find(';');
      text = trimmed(value.substr(0, at));
    }
    if (is_it) return text;
  }
  return std::nullopt;
}

// Reads the header of a field. False: it names none.
bool read_part_header(std::string_view header, FormField& field) {
  while (!header.empty()) {
    const size_t end = std::min(header.find(kLineEnd), header.size());
    const std::string_view line = header.substr(0, end);
    header.remove_prefix(std::min(end + kLineEnd.size(), header.size()));
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos) return false;
    if (lowered(trimmed(line.substr(0, colon))) != "content-disposition") continue;
    const std::string_view value = trimmed(line.substr(colon + 1));
    if (lowered(value.substr(0, value.find(';'))) != "form-data") return false;
    const std::optional<std::string> name = header_parameter(value, "name");
    if (!name) return false;
    field.name = *name;
    field.file_name = header_parameter(value, "filename");
    return true;
  }
  return false;
}

// Reads the field that `body` begins with, and takes it away with the delimiter behind it.
std::optional<FormField> take_field(std::string_view& body, std::string_view delimiter) {
  constexpr std::string_view kHeaderEnd = "\r\n\r\n";
  body.remove_prefix(std::min(body.find_first_not_of(" \t"), body.size()));  // behind the delimiter before
  const size_t end = body.find(kHeaderEnd);
  if (!body.starts_with(kLineEnd) || end < kLineEnd.size() || end > kMaxPartHeader) return std::nullopt;
  FormField field;
  if (!read_part_header(body.substr(kLineEnd.size(), end - kLineEnd.size()), field)) return std::nullopt;
  body.remove_prefix(end + kHeaderEnd.size());
  const size_t size = body.find(delimiter);
  if (size == std::string_view::npos) return std::nullopt;
  field.content = body.substr(0, size);
  body.remove_prefix(size + delimiter.size());
  return field;
}

}  // namespace

std::optional<std::string> form_boundary(std::string_view content_type) {
  const std::string_view type = trimmed(content_type.substr(0, content_type.find(';')));
  if (lowered(type) != "multipart/form-data") return std::nullopt;
  std::optional<std::string> boundary = header_parameter(content_type, "boundary");
  const auto is_visible = [](char c) { return c >= 0x20 && c < 0x7f; };
  if (!boundary || boundary->empty() || boundary->size() > kMaxBoundary ||
      !std::ranges::all_of(*boundary, is_visible))
    return std::nullopt;
  return boundary;
}

std::optional<std::vector<FormField>> read_form(std::string_view body, std::string_view boundary,
                                                size_t max_fields) {
  const std::string delimiter = std::string(kLineEnd) + "--" + std::string(boundary);
  const std::string_view first = std::string_view(delimiter).substr(kLineEnd.size());
  if (!body.starts_with(first)) return std::nullopt;
  body.remove_prefix(first.size());
  std::vector<FormField> fields;
  while (!body.starts_with("--")) {
    std::optional<FormField> field = take_field(body, delimiter);
    if (!field || fields.size() == max_fields) return std::nullopt;
    fields.push_back(*std::move(field));
  }
  return fields;
}

}  // namespace outrider
