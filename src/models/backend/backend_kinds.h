// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "models/backend/layer_backend.h"
#include "models/decoder_weights.h"

namespace outrider {

// A kind of machine that computes networks. Addresses of rows are good in all backends of one kind.
struct BackendKind {
  std::string_view name;
  Result<std::unique_ptr<LayerBackend>> (*make)(const ModelConfig& config, const ModelOptions& options,
                                                const LoadWeights& load);
};

// The kinds that this program has; the last computes networks that name none.
std::vector<BackendKind>& backend_kinds();

// Precondition: the program has the kind that the options name.
Result<std::unique_ptr<LayerBackend>> make_backend(const ModelConfig& config, const ModelOptions& options,
                                                   const LoadWeights& load);

}  // namespace outrider
