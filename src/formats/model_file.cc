// SPDX-License-Identifier: Apache-2.0
#include "formats/model_file.h"

namespace outrider {

void ModelFile::drop_pages(const TensorView& tensor) const {
  const std::span bytes = tensor.source != nullptr
                              ? tensor.source->stored(tensor.first_row, tensor.rows())
                              : std::span(tensor.data, static_cast<size_t>(tensor.bytes()));
  for (const auto& file : mapped) {
    if (bytes.data() >= file.data() && bytes.data() + bytes.size() <= file.data() + file.size()) {
      drop_mapped_pages(bytes);
    }
  }
}

}  // namespace outrider
