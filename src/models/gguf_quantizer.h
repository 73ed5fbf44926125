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

// What becomes of one tensor.
struct QuantizedTensor {
  std::string name;
  DType from = DType::kF32;
  DType to = DType::kF32;
  Shape shape;
  bool fell_back = false;  // `to` is not what was asked for, because its blocks do not divide the rows
  int64_t bytes_before = 0;
  int64_t bytes = 0;
  double rmse = 0;           // root mean square of the error against the input's own numbers
  double relative_rmse = 0;  // over the root mean square of the numbers; 0 where they are all 0
  double max_error = 0;
};

// Types by tensor, errors not yet known. Matrices become `type` (one of Q8_0, Q4_0, Q4_K, Q6_K). The output
// matrix, or the embedding that serves as one, is held at Q6_K where `type` has four bits: it is read once
// per token and its error goes straight into every logit. Rows that blocks of 256 do not divide fall back to
// the type of equal size or more with blocks of 32, those that 32 does not divide stay as they are. Norms and
// biases become F32.
std::vector<QuantizedTensor> plan_quantization(const GgufModel& model, DType type);

struct QuantizeOptions {
  DType type = DType::kQ8_0;
  ThreadPool* pool = nullptr;
  std::function<void(const QuantizedTensor&)> on_tensor;  // after each one; for progress
};

// Writes the model to `path`, replacing what is there only when all is well. The bytes do not depend on the
// number of threads. Errors: numbers that are not finite, or beyond the type; not enough room; what the
// system says.
Result<std::vector<QuantizedTensor>> write_quantized(const GgufModel& model,
                                                     const std::filesystem::path& path,
                                                     const QuantizeOptions& options);

}  // namespace outrider
