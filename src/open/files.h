// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/clock.h"
#include "chat_template/plain_chat.h"
#include "drafters/draft_files.h"
#include "formats/model_file.h"
#include "open/drafters/drafter_search.h"
#include "open/names.h"
#include "outrider/result.h"

namespace outrider {

// Every file of an engine, opened once and handed on: the second value of the road (names.h).
struct OpenedFiles {
  Names names;  // they name the drafter that was found, too
  double start_ms = now_ms();
  ModelFile target = {};
  DraftFiles drafts = {};
  DrafterSearch search = {};  // where a drafter was looked for
};

// Opens the target, then the drafter that the names have or, where they leave it open, the one that is found
// for the target (drafter_search.h). A head gets the rows of the target's output head that
// speculative_token_map or its own files name, see take_output_rows(). Errors: files that cannot be read; a
// head that a method needs and nobody named or found; a token map without speculative_model, or one that does
// not fit.
Result<OpenedFiles> open_files(Names names);

// The model's part in chats. A template that cannot be read is kept as a problem.
ChatFormat chat_format_of(const ModelFile& file);

// Puts the next drafter that was found in the place of one that cannot be used, or none where there is no
// other. False: somebody asked for the drafter or its method, and there is no other.
bool take_next_drafter(OpenedFiles& files, std::string reason);

// The files that these options name. Errors: as above.
Result<DraftFiles> open_draft_files(const SpeculativeOptions& options);

}  // namespace outrider
