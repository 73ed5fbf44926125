// SPDX-License-Identifier: Apache-2.0
#include "models/mistral.h"

#include "models/decoder.h"

namespace outrider {

Result<std::unique_ptr<Model>> load_mistral(const ModelFile& file, const ModelOptions& options) {
  return load_decoder(file, options, DecoderTraits{});
}

}  // namespace outrider
