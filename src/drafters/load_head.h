// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "draft_heads/head_file.h"
#include "drafters/registry.h"

namespace outrider {

// load(head, how) of the checkpoint that the options name, which must be of the kind that they name and not
// be made for another target.
template <typename Load>
auto load_head(const SpeculativeOptions& options, const DrafterContext& context, Load&& load)
    -> decltype(load(std::declval<const HeadFile&>(), std::declval<const ModelOptions&>())) {
  OUTRIDER_TRY(const HeadFile head, open_head_for(*head_kind_named(options.decoding_type),
                                                  options.speculative_model, context.target_fingerprint));
  return load(head, {.kernels = context.kernels, .pool = context.pool, .weights = context.weights});
}

}  // namespace outrider
