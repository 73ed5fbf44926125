// SPDX-License-Identifier: Apache-2.0
// Checkpoints written by torch.save() since PyTorch 1.6, such as pytorch_model.bin: a zip archive with the
// pickle data.pkl and one entry for each storage.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "formats/stored_tensor.h"
#include "outrider/result.h"

namespace outrider {

// The tensors of a dictionary in the file, within `bytes`; tensors may share a storage. Nothing in the file
// is executed. `name` is for messages. Errors: the errors of read_stored_zip() and read_state_dict(); the
// format before PyTorch 1.6; big-endian numbers. A storage that is missing or of another size; a tensor that
// lies beyond its storage or is not stored row by row.
Result<StoredTensors> parse_torch_file(std::span<const std::byte> bytes, std::string_view name);

// The whole numbers of a list in such a file. Errors: as of read_stored_zip() and read_integer_list().
Result<std::vector<int64_t>> parse_torch_list(std::span<const std::byte> bytes, std::string_view name);

}  // namespace outrider
