// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

#include "outrider/result.h"

namespace outrider {

// The file of a Hugging Face directory that holds its chat template, if any does.
std::filesystem::path chat_template_path(const std::filesystem::path& directory);

// Reads the Jinja source of a Hugging Face directory from chat_template.jinja, else from "chat_template" of
// tokenizer_config.json (a string, or a list of named templates of which "default" is taken). The source is
// empty when there is none.
Result<std::string> read_chat_template(const std::filesystem::path& directory);

}  // namespace outrider
