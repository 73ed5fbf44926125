// SPDX-License-Identifier: Apache-2.0
#include "open/drafters/normal_name.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "hub/remote/quant_name.h"

namespace outrider {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// A point between digits is a part of a number.
bool is_separator(std::string_view text, size_t i) {
  constexpr std::string_view kSeparators = "-_. :";
  const bool is_point =
      text[i] == '.' && i > 0 && i + 1 < text.size() && is_digit(text[i - 1]) && is_digit(text[i + 1]);
  return !is_point && kSeparators.find(text[i]) != std::string_view::npos;
}

bool is_container_word(const std::string& word) {
  constexpr std::array<std::string_view, 22> kWords = {
      "gguf", "hf",   "safetensors", "bf16", "f16",   "fp16", "f32",   "fp8",   "fp4",   "int4", "int8",
      "awq",  "gptq", "4bit",        "8bit", "w4a16", "w8a8", "w8a16", "nvfp4", "mxfp4", "mlx",  "quantized"};
  return std::ranges::find(kWords, word) != kWords.end();
}

// "8b", "1.7b", "135m"
bool is_size_word(const std::string& word) {
  const auto is_part = [](char c) { return is_digit(c) || c == '.'; };
  return word.size() > 1 && (word.back() == 'b' || word.back() == 'm') && is_digit(word.front()) &&
         std::all_of(word.begin(), word.end() - 1, is_part);
}

}  // namespace

std::vector<std::string> words_of_name(std::string_view name) {
  std::vector<std::string> words;
  std::string word;
  for (size_t i = 0; i <= name.size(); ++i) {
    if (i < name.size() && !is_separator(name, i)) {
      word += name[i] >= 'A' && name[i] <= 'Z' ? static_cast<char>(name[i] - 'A' + 'a') : name[i];
    } else if (!word.empty()) {
      words.push_back(std::exchange(word, {}));
    }
  }
  return words;
}

std::string joined_words(const std::vector<std::string>& words) {
  return fmt::format("{}", fmt::join(words, "-"));
}

std::string normal_name(std::string_view name) {
  constexpr std::string_view kAround = " \"'/[],";
  const size_t begin = std::min(name.find_first_not_of(kAround), name.size());
  name = name.substr(begin, name.find_last_not_of(kAround) + 1 - begin);
  name.remove_prefix(name.rfind('/') + 1);
  if (const auto shard = shard_place(name)) name = name.substr(0, shard->stem.size());
  if (name.ends_with(".gguf")) name.remove_suffix(5);
  const std::string quant = quant_of_file_name(name);
  const size_t at = quant.empty() ? std::string::npos : upper_case(name).rfind(quant);
  if (at != std::string::npos && at + quant.size() == name.size()) name = name.substr(0, at);
  std::vector<std::string> words = words_of_name(name);
  while (words.size() > 1 && is_container_word(words.back())) words.pop_back();
  if (words.size() > 1 && words[0] == "meta" && words[1].starts_with("llama")) words.erase(words.begin());
  return joined_words(words);
}

std::string series_of(std::string_view normal) {
  const std::vector<std::string> words = words_of_name(normal);
  const auto size = std::ranges::find_if(words, is_size_word);
  return size == words.end() ? std::string() : joined_words({words.begin(), size});
}

bool is_same_name(std::string_view a, std::string_view b) {
  const auto spelling = [](char c) { return c == '.' ? '-' : c; };
  return std::ranges::equal(a, b, {}, spelling, spelling);
}

}  // namespace outrider
