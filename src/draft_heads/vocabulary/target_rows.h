// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>

#include "draft_heads/head_file.h"
#include "formats/model_file.h"
#include "outrider/token.h"

namespace outrider {

// The name of the tensor that take_target_rows() adds.
inline constexpr std::string_view kTargetRows = "target_rows.weight";

// Gives a head that drafts with the target's output head the rows of it for some tokens alone: of a large
// vocabulary, the whole is most of the work of a draft (FR-Spec, 2502.14856). The tokens are those of
// `token_map`, rising, or else of the head's own d2t; where there is neither, nothing changes. The rows are
// read from the target's file, which must stay open until the head is loaded.
// Errors: an output head of its own, with a token map; a target whose states do not enter the output head as
// they are; a d2t that does not fit; ids beyond the vocabulary.
Status take_target_rows(HeadFile& head, const ModelFile& target, std::span<const TokenId> token_map);

// Allows the tensors d2t and t2d of a head that drafts with the target's output head.
void append_map_tensors(const HeadFile& head, int64_t vocab_size, std::vector<HeadTensor>& expected);

}  // namespace outrider
