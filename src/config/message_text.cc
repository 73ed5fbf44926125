// SPDX-License-Identifier: Apache-2.0
#include "config/message_text.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

namespace outrider {
namespace {

constexpr size_t kMaxNameLength = 64;  // bounds the work of the edit distance

char ascii_lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

std::string comparable(std::string_view name) {
  std::string result(name.substr(0, kMaxNameLength));
  for (char& c : result) c = c == '-' ? '_' : ascii_lower(c);
  return result;
}

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t substituted = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({substituted, row[j] + 1, diagonal + 1});
    }
  }
  return row[b.size()];
}

}  // namespace

std::string single_line(std::string_view text) {
  std::string result;
  for (char c : text) {
    if (c != '\n' && c != '\r') {
      result += c;
    } else if (!result.empty() && result.back() != ' ') {
      result += ' ';
    }
  }
  while (!result.empty() && result.back() == ' ') result.pop_back();
  return result;
}

std::string suggestion(std::string_view name, std::span<const std::string_view> candidates) {
  constexpr size_t kWrongLetters = 2, kCommonStart = 4;
  const std::string wanted = comparable(name);
  std::string_view nearest;
  size_t smallest = kWrongLetters + 1;
  for (const std::string_view candidate : candidates) {
    const std::string other = comparable(candidate);
    const bool is_start = std::min(wanted.size(), other.size()) >= kCommonStart &&
                          (other.starts_with(wanted) || wanted.starts_with(other));
    const size_t distance = std::min(edit_distance(wanted, other), is_start ? kWrongLetters : SIZE_MAX);
    // A name of a few letters is near to everything.
    if (distance >= smallest || distance >= wanted.size()) continue;
    smallest = distance;
    nearest = candidate;
  }
  return nearest.empty() ? "" : "; did you mean '" + std::string(nearest) + "'?";
}

std::string folded_name(std::string_view name) {
  std::string result;
  for (char c : name) {
    if (c != '-' && c != '_') result += ascii_lower(c);
  }
  return result;
}

std::string snake_name(std::string_view name) {
  const auto is_lower = [](char c) { return c >= 'a' && c <= 'z'; };
  std::string result;
  for (size_t i = 0; i < name.size(); ++i) {
    const bool upper = ascii_lower(name[i]) != name[i];
    const bool is_between_words =
        upper && i > 0 && is_lower(name[i - 1]) && i + 1 < name.size() && is_lower(name[i + 1]);
    if (is_between_words) result += '_';
    result += ascii_lower(name[i]);
  }
  return result;
}

std::string joined(std::span<const std::string_view> names) {
  std::string result;
  for (std::string_view name : names) {
    if (!result.empty()) result += ", ";
    result += name;
  }
  return result;
}

}  // namespace outrider
