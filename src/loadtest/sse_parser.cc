// SPDX-License-Identifier: Apache-2.0
#include "loadtest/sse_parser.h"

namespace outrider {

bool SseParser::feed(std::string_view bytes, const Sink& sink) {
  constexpr size_t kMaxBytes = 16 << 20;
  for (const char c : bytes) {
    const bool is_second = c == '\n' && after_return_;
    after_return_ = c == '\r';
    if (is_second) continue;
    if (c == '\n' || c == '\r') {
      take_line(line_, sink);
      line_.clear();
    } else {
      line_ += c;
    }
  }
  return line_.size() + data_.size() <= kMaxBytes;
}

void SseParser::take_line(std::string_view line, const Sink& sink) {
  if (line.empty()) {
    if (has_data_) sink(name_, data_);
    name_.clear();
    data_.clear();
    has_data_ = false;
    return;
  }
  const size_t colon = line.find(':');
  const std::string_view field = line.substr(0, colon);
  std::string_view value = colon == std::string_view::npos ? "" : line.substr(colon + 1);
  if (value.starts_with(' ')) value.remove_prefix(1);
  if (field == "event") name_ = value;
  if (field != "data") return;
  if (has_data_) data_ += '\n';
  data_ += value;
  has_data_ = true;
}

}  // namespace outrider
