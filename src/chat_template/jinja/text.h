// SPDX-License-Identifier: Apache-2.0
// Python's str operations on UTF-8. A byte that is not part of valid UTF-8 counts as one character.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace outrider::jinja {

// One entry per character, each a view into `text`.
std::vector<std::string_view> split_characters(std::string_view text);
int64_t count_characters(std::string_view text);
// `character` is one entry of split_characters(); -1 for an invalid byte.
int32_t code_point(std::string_view character);

bool is_whitespace(int32_t code_point);

enum class StripSide { kBoth, kLeft, kRight };
// Without `characters`, strips whitespace.
std::string_view strip(std::string_view text, StripSide side,
                       std::optional<std::string_view> characters = {});

std::string to_upper(std::string_view text);
std::string to_lower(std::string_view text);
// First character upper case, the rest lower case.
std::string capitalize(std::string_view text);
// Every run of letters capitalized: str.title().
std::string title_words(std::string_view text);

bool is_letter(int32_t code_point);
bool is_decimal_digit(int32_t code_point);
bool is_upper(int32_t code_point);
bool is_lower(int32_t code_point);

std::vector<std::string_view> split_lines(std::string_view text);
// `limit` < 0 splits at every separator.
std::vector<std::string_view> split(std::string_view text, std::string_view separator, int64_t limit);
std::vector<std::string_view> split_from_right(std::string_view text, std::string_view separator,
                                               int64_t limit);
std::vector<std::string_view> split_whitespace(std::string_view text, int64_t limit);

// `limit` < 0 replaces every occurrence. An empty `from` matches around every character.
std::string replace(std::string_view text, std::string_view from, std::string_view to, int64_t limit);
// Size of replace()'s result without a limit, in bytes.
size_t replaced_size(std::string_view text, std::string_view from, std::string_view to);

// Lower case, padded with zeros to `digits`.
std::string hex_digits(uint32_t value, int digits);

}  // namespace outrider::jinja
