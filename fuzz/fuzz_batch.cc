// SPDX-License-Identifier: Apache-2.0
// Uploads for batches: forms, and lines of requests; and lines of results as a crash may leave them.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "server/access/form_data.h"
#include "server/batch/batch_line.h"
#include "server/batch/batch_record.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::string_view type = text.substr(0, text.find('\n'));
  if (const auto boundary = outrider::form_boundary(type)) {
    const std::string_view body = text.substr(std::min(type.size() + 1, size));
    const auto fields = outrider::read_form(body, *boundary, 4);
    if (fields && fields->size() > 4) __builtin_trap();
    for (const outrider::FormField& field : fields.value_or(std::vector<outrider::FormField>())) {
      const bool is_within = field.content.data() >= body.data() &&
                             field.content.data() + field.content.size() <= body.data() + body.size();
      if (!is_within) __builtin_trap();
    }
  }
  for (outrider::TextLines reader(text); const auto line = reader.next();) {
    const auto request = outrider::read_batch_line(*line);
    const std::string result =
        request.ok() ? outrider::answer_line("0", request->custom_id, {.status = 200, .body = request->body})
                     : outrider::problem_line("0", request.error());
    const auto read = outrider::read_result_line(result);
    if (!read || (request.ok() && read->custom_id != request->custom_id)) __builtin_trap();
    static_cast<void>(outrider::read_result_line(*line));
    static_cast<void>(outrider::read_record(*line));
    static_cast<void>(outrider::read_batch_request(*line, 0));
  }
  return 0;
}
