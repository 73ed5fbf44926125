// SPDX-License-Identifier: Apache-2.0
// The tokens that a drafter can propose, where it does not propose all of them: an output head over the most
// frequent ones costs a fraction (FR-Spec, 2502.14856). Written as EAGLE-3's d2t and t2d.
#pragma once

#include <torch/types.h>

#include <cstdint>

#include "training/heads/draft_head.h"

namespace outrider::training {

// Adds --draft-vocab. standard: what 0 stands for if there is no --init.
void add_draft_vocab_option(CLI::App& command, int64_t& wanted, const std::string& standard);

// The ids that a drafter of `wanted` tokens can propose, int64 in rising order: the ids of --init, then the
// most frequent ones. `wanted` 0: the ids of --init, or else `standard` many. Undefined: all tokens.
Result<at::Tensor> draft_tokens(const HeadContext& context, int64_t wanted, int64_t standard);

// The tokens that a written head can propose, in rising order; undefined: it does not say.
at::Tensor written_tokens(const NamedTensors& stored);

// Adds d2t and t2d, unless all tokens can be proposed (`tokens` is undefined). vocab: of the target.
void append_vocabulary_map(const at::Tensor& tokens, int64_t vocab, HeadExport& result);

}  // namespace outrider::training
