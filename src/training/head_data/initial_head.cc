// SPDX-License-Identifier: Apache-2.0
#include "training/head_data/initial_head.h"

#include <ATen/ATen.h>

#include <cstring>
#include <utility>

#include "draft_heads/head_file.h"
#include "training/core/tensor_values.h"

namespace outrider::training {

Result<NamedTensors> read_initial_head(const std::filesystem::path& folder) {
  OUTRIDER_TRY(const HeadFile head, open_head(folder));
  NamedTensors tensors;
  for (const auto& [name, stored] : head.tensors) {
    if (const auto numbers = head.file.tensors.find(name); numbers != head.file.tensors.end()) {
      tensors.emplace_back(name, tensor_values(numbers->second));
    } else if (stored.dtype_name == "I64") {
      at::Tensor integers = at::empty(stored.shape, at::kLong);
      std::memcpy(integers.data_ptr(), stored.data.data(), integers.nbytes());
      tensors.emplace_back(name, std::move(integers));
    }
  }
  return tensors;
}

}  // namespace outrider::training
