// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace outrider {

// The converted value of an option; the member of its type is set. kChoice uses texts[0]. The keys of
// speculation are converted together (speculative_config.h).
struct OptionValue {
  bool flag = false;
  int64_t integer = 0;
  double number = 0;
  std::vector<std::string> texts;

  const std::string& text() const { return texts.front(); }
};

}  // namespace outrider
