// SPDX-License-Identifier: Apache-2.0
#include "models/qwen2.h"

#include "models/decoder.h"

namespace outrider {

Result<std::unique_ptr<Model>> load_qwen2(const ModelFile& file, const ModelOptions& options) {
  using Use = DecoderTraits::Use;
  return load_decoder(file, options, {.qkv_bias = Use::kAlways});
}

}  // namespace outrider
