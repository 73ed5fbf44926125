// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "outrider/result.h"
#include "tokenizer/bpe_model.h"
#include "tokenizer/tokenizer_spec.h"

namespace outrider {

// Fills in the parts that a file may leave out (attributes, added tokens). Errors: arrays of different sizes,
// pieces that are empty, too long or not UTF-8, ids outside the vocabulary.
Status complete_and_check(TokenizerSpec& spec);

// A map from pieces, which are views of spec.pieces, to ids. Error: a piece appears twice.
Result<PieceIds> index_pieces(const TokenizerSpec& spec);

}  // namespace outrider
