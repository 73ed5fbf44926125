// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "config/settings.h"
#include "outrider/engine.h"
#include "outrider/result.h"

namespace outrider {

// A whole file, at most 64 MiB. Errors: missing, a directory, too large, unreadable.
Result<std::string> read_text_file(const std::filesystem::path& path);

// Standard input to its end, at most 64 MiB.
Result<std::string> read_standard_input();

// The text of --prompt, --text, --prompt-file, --text-file or --file; the source was checked by
// check_one_input.
Result<std::string> input_text(const Settings& settings);

// Exactly one of text, file and ids must be given; `choices` names them in the error.
Status check_one_input(const Settings& settings, std::string_view choices);

// Token ids of the input: as given, or the text as the model's tokenizer has it.
Result<std::vector<TokenId>> input_tokens(const Settings& settings, const Engine& engine);

}  // namespace outrider
