// SPDX-License-Identifier: Apache-2.0
// Python's str operations on UTF-8. A byte that is not part of valid UTF-8 counts as one character.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace outrider::jinja {

// Splits `text` into its characters, each a view into it.
std::vector<std::string_view> split_characters(std::string_view text);
int64_t count_characters(std::string_view text);
// The code point of one entry of split_characters(); -1 for an invalid byte.
int32_t code_point(std::string_view character);

bool is_whitespace(int32_t code_point);

enum class StripSide { kBoth, kLeft, kRight };
// Without `characters`, strips whitespace.
std::string_view strip(std::string_view text, StripSide side,
                       std::optional<std::string_view> characters = {});

std::string to_upper(std::string_view text);
std::string to_lower(std::string_view text);
// str.capitalize(): the first character in upper case, the rest in lower case.
std::string capitalize(std::string_view text);
// str.title(): every run of letters capitalized.
std::string title_words(std::string_view text);

bool is_letter(int32_t code_point);
bool is_decimal_digit(int32_t code_point);
bool is_upper(int32_t code_point);
bool is_lower(int32_t code_point);

std::vector<std::string_view> split_lines(std::string_view text);
// Splits at the first `limit` separators; `limit` < 0 splits at all.
std::vector<std::string_view> split(std::string_view text, std::string_view separator, int64_t limit);
std::vector<std::string_view> split_from_right(std::string_view text, std::string_view separator,
                                               int64_t limit);
std::vector<std::string_view> split_whitespace(std::string_view text, int64_t limit);

// Replaces the first `limit` occurrences; `limit` < 0 replaces all. An empty `from` matches around every
// character.
std::string replace(std::string_view text, std::string_view from, std::string_view to, int64_t limit);
// The size of the result of replace() without a limit, in bytes.
size_t replaced_size(std::string_view text, std::string_view from, std::string_view to);

// The number in lower-case hexadecimal, padded with zeros to `digits`.
std::string hex_digits(uint32_t value, int digits);

}  // namespace outrider::jinja
