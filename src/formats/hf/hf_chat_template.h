// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

#include "outrider/result.h"

namespace outrider {

// Reads the Jinja source of a Hugging Face directory from chat_template.jinja, else from "chat_template" of
// tokenizer_config.json (a string, or a list of named templates of which "default" is taken). The source is
// empty when there is none.
Result<std::string> read_chat_template(const std::filesystem::path& directory);

}  // namespace outrider
