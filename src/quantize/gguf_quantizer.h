// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "formats/gguf/gguf_export.h"
#include "outrider/result.h"

namespace outrider {

// The old and new type of one tensor, and the error that the change costs.
struct QuantizedTensor {
  std::string name;
  DType from = DType::kF32;
  DType to = DType::kF32;
  Shape shape;
  bool fell_back = false;  // blocks of the wanted type do not divide the rows, so `to` is another
  int64_t bytes_before = 0;
  int64_t bytes = 0;
  double rmse = 0;           // root mean square of the error against the input's numbers
  double relative_rmse = 0;  // rmse over the root mean square of the numbers; 0 where they are all 0
  double max_error = 0;
};

// Chooses the types of all tensors; their errors are not yet known. Matrices become `type`, a block type that
// can_quantize(). The output matrix, or the embedding that serves as one, is held at Q6_K where `type` has
// fewer bits, because its error goes straight into every logit. Rows that blocks of 256 do not divide fall
// back to the type of equal size or more with blocks of 32; rows that 32 does not divide keep their type.
// Norms and biases become F32.
std::vector<QuantizedTensor> plan_quantization(const GgufModel& model, DType type);

struct QuantizeOptions {
  DType type = DType::kQ8_0;
  ThreadPool* pool = nullptr;
  std::function<void(const QuantizedTensor&)> on_tensor;  // called after each tensor; for progress
};

// Writes the model to `path`; an existing file is replaced only once the new one is complete. The bytes do
// not depend on the number of threads. Errors: numbers that are not finite or beyond the type, not enough
// room on the disk, errors of the file system.
Result<std::vector<QuantizedTensor>> write_quantized(const GgufModel& model,
                                                     const std::filesystem::path& path,
                                                     const QuantizeOptions& options);

}  // namespace outrider
