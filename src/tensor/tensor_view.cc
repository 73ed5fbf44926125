// SPDX-License-Identifier: Apache-2.0
#include "tensor/tensor_view.h"

namespace outrider {

std::string shape_text(std::span<const int64_t> shape) {
  std::string text;
  for (const int64_t size : shape) text += (text.empty() ? "" : ", ") + std::to_string(size);
  return "[" + text + "]";
}

}  // namespace outrider
