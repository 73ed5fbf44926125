// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "outrider/result.h"
#include "tokenizer/bpe_model.h"
#include "tokenizer/tokenizer_spec.h"

namespace outrider {

// Fills in what a file may leave out (attributes, added tokens) and refuses what cannot be right on its own:
// sizes that differ, pieces that are empty, too long or not UTF-8, ids outside of the vocabulary.
Status complete_and_check(TokenizerSpec& spec);

// Piece -> id; views of spec.pieces. Error: a piece that is there twice.
Result<PieceIds> index_pieces(const TokenizerSpec& spec);

}  // namespace outrider
