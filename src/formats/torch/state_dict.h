// SPDX-License-Identifier: Apache-2.0
// The pickle in a file of torch.save(): a dictionary of tensors. A pickle is a program for a stack machine
// that may call any function of Python. Here a few opcodes build plain values, a few names stand for tensors
// and their types, and everything else is refused, so nothing is ever executed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "outrider/result.h"
#include "tensor/tensor_view.h"

namespace outrider {

// A tensor as the pickle describes it, in which its texts lie. Nothing of it has been compared with the
// storage.
struct PickledTensor {
  std::string_view name;
  std::string_view dtype_name;    // of the safetensors format: "BF16"
  std::string_view storage;       // key of the storage, in which the tensor lies
  uint64_t storage_elements = 0;  // size of the whole storage
  uint64_t offset = 0;            // elements of the storage before the tensor
  Shape shape;
  Shape strides;  // elements from one index of a dimension to the next
};

// The tensors of the dictionary that the pickle holds, in its order; other values of it are left out.
// `file_name` is for messages. Time and memory are linear in the pickle, which has at most 32 MiB and 2^19
// values.
// Errors: an opcode or a name that is not allowed, which the message names; a pickle that is cut, of another
// protocol than 2, no dictionary or without a tensor; negative or great sizes.
Result<std::vector<PickledTensor>> read_state_dict(std::span<const std::byte> pickle,
                                                   std::string_view file_name);

// The whole numbers of the list that the pickle holds. Errors: as above; no list of such numbers.
Result<std::vector<int64_t>> read_integer_list(std::span<const std::byte> pickle, std::string_view file_name);

}  // namespace outrider
