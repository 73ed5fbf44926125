// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>

#include "draft_heads/head_file.h"
#include "formats/model_file.h"
#include "outrider/token.h"

namespace outrider {

// The name of the tensor that add_output_rows() adds.
inline constexpr std::string_view kOutputRows = "output_rows.weight";

// Adds the rows of a model's output head for some tokens, by rising ids, to `file`, which may be that
// model's. With a large vocabulary, the whole is most of the work of a draft (FR-Spec, 2502.14856). The rows
// are read from the model's file, which must stay open until they are loaded. Errors: a model with states
// that do not enter the output head as they are; ids beyond the vocabulary.
Status add_output_rows(ModelFile& file, const ModelFile& model, std::vector<TokenId> ids);

// Gives a head that drafts with the target's output head the rows of it for the tokens of `token_map`,
// rising, or else of its own d2t; where there is neither, nothing changes. Errors: as above; a separate
// output head, with a token map; a d2t that does not fit.
Status take_output_rows(HeadFile& head, const ModelFile& target, std::span<const TokenId> token_map);

// Allows the tensors d2t and t2d of a head that drafts with the target's output head.
void append_map_tensors(const HeadFile& head, int64_t vocab_size, std::vector<HeadTensor>& expected);

}  // namespace outrider
