// SPDX-License-Identifier: Apache-2.0
#include "models/qwen3.h"

#include "models/decoder.h"

namespace outrider {

Result<std::unique_ptr<Model>> load_qwen3(const ModelFile& file, const ModelOptions& options) {
  using Use = DecoderTraits::Use;
  return load_decoder(file, options,
                      {.qkv_bias = Use::kOptional, .output_bias = Use::kOptional, .qk_norm = Use::kAlways});
}

}  // namespace outrider
