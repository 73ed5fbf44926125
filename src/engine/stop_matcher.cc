// SPDX-License-Identifier: Apache-2.0
#include "engine/stop_matcher.h"

#include <algorithm>
#include <utility>

namespace outrider {

StopMatcher::StopMatcher(std::vector<std::string> stops) : stops_(std::move(stops)) {
  constexpr size_t kLongToken = 256;  // bytes; only longer tokens make push() allocate
  held_.reserve(kLongToken);
  std::erase_if(stops_, [](const std::string& stop) { return stop.empty(); });
}

void StopMatcher::push(std::string_view text, std::string& out) {
  if (matched_) return;
  held_.append(text);
  size_t match = std::string::npos;
  for (const std::string& stop : stops_) match = std::min(match, held_.find(stop));
  if (match != std::string::npos) {
    out.append(held_, 0, match);
    held_.clear();
    matched_ = true;
    return;
  }
  // The longest tail that begins some stop string is held back.
  size_t keep = 0;
  for (const std::string& stop : stops_) {
    for (size_t length = std::min(stop.size() - 1, held_.size()); length > keep; --length) {
      if (held_.compare(held_.size() - length, length, stop, 0, length) == 0) keep = length;
    }
  }
  out.append(held_, 0, held_.size() - keep);
  held_.erase(0, held_.size() - keep);
}

void StopMatcher::finish(std::string& out) { out += std::exchange(held_, {}); }

}  // namespace outrider
