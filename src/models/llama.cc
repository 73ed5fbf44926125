// SPDX-License-Identifier: Apache-2.0
#include "models/llama.h"

#include "models/decoder.h"

namespace outrider {

Result<std::unique_ptr<Model>> load_llama(const ModelFile& file, const ModelOptions& options) {
  using Use = DecoderTraits::Use;
  return load_decoder(
      file, options, {.qkv_bias = Use::kOptional, .output_bias = Use::kOptional, .mlp_bias = Use::kOptional});
}

}  // namespace outrider
