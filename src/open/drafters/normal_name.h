// SPDX-License-Identifier: Apache-2.0
// Names of models in one form, so that names of different places can be compared.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace outrider {

// "Qwen/Qwen3-8B-GGUF:Q4_K_M" and "Qwen3 8B" as "qwen3-8b": without the organisation, the ending, the number
// type and words for containers.
std::string normal_name(std::string_view name);

// The words of a normal name before its size, such as "qwen3" of "qwen3-8b-instruct": models of one series
// come in several sizes. Empty: the name has no size.
std::string series_of(std::string_view normal);

// Normal names may differ in points, which some places write as "-".
bool is_same_name(std::string_view a, std::string_view b);

// The words of a name, in small letters.
std::vector<std::string> words_of_name(std::string_view name);
std::string joined_words(const std::vector<std::string>& words);  // with "-" between them

}  // namespace outrider
