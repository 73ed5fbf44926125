// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "config/settings.h"
#include "outrider/engine.h"
#include "outrider/result.h"

namespace outrider {

// Reads a whole file of at most 64 MiB. Errors: missing, a directory, too large, unreadable.
Result<std::string> read_text_file(const std::filesystem::path& path);

// Reads standard input to its end, at most 64 MiB.
Result<std::string> read_standard_input();

// The text of --prompt, --text, --prompt-file, --text-file or --file; check_one_input() must have
// succeeded before.
Result<std::string> input_text(const Settings& settings);

// Error unless exactly one of text, file and ids is given. `choices` names them in the message.
Status check_one_input(const Settings& settings, std::string_view choices);

// Token ids of the input: the given ids, or the text's by the model's tokenizer.
Result<std::vector<TokenId>> input_tokens(const Settings& settings, const Engine& engine);

// Whether the prompt is a message to the model: --chat or --system was given.
bool wants_chat(const Settings& settings);

// The text as a user's message after the system message, if there is one, as {role, content}.
Result<std::vector<std::pair<std::string, std::string>>> chat_messages(const Settings& settings);

}  // namespace outrider
