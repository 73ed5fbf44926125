// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/clock.h"
#include "chat_template/plain_chat.h"
#include "drafters/draft_files.h"
#include "formats/model_file.h"
#include "open/names.h"
#include "outrider/result.h"

namespace outrider {

// Every file of an engine, opened once and handed on: the second value of the road (names.h).
struct OpenedFiles {
  Names names;  // they name the drafter that was found, too
  double start_ms = now_ms();
  ModelFile target = {};
  DraftFiles drafts = {};
};

// Opens the target, then the drafter that the names have or, where they leave it open, the one that is found
// for the target (own_drafter.h). A head gets the rows of the target's output head that speculative_token_map
// or its own files name, see take_output_rows(). Errors: files that cannot be read; a head that a method
// needs and nobody named or found; a token map without speculative_model, or one that does not fit.
Result<OpenedFiles> open_files(Names names);

// The model's part in chats. A template that cannot be read is kept as a problem.
ChatFormat chat_format_of(const ModelFile& file);

// The files that these options name. Errors: as above.
Result<DraftFiles> open_draft_files(const SpeculativeOptions& options);

}  // namespace outrider
