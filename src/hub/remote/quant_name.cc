// SPDX-License-Identifier: Apache-2.0
#include "hub/remote/quant_name.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

namespace outrider {
namespace {

constexpr std::string_view kGgufEnding = ".gguf";

bool is_ascii_digit(char c) { return c >= '0' && c <= '9'; }

// "Q4_K_M", "IQ4_XS", "TQ1_0": letters, a digit, and parts after "_"; or a plain number type.
bool is_quant_name(std::string_view word) {
  constexpr std::array<std::string_view, 6> kPlain = {"F32", "F16", "FP16", "BF16", "MXFP4", "NVFP4"};
  if (std::ranges::find(kPlain, word.substr(0, word.find('_'))) != kPlain.end()) return true;
  const size_t letters = word.starts_with("IQ") || word.starts_with("TQ") ? 2 : word.starts_with('Q') ? 1 : 0;
  return letters > 0 && word.size() >= letters + 3 && is_ascii_digit(word[letters]) &&
         word[letters + 1] == '_';
}

}  // namespace

std::string upper_case(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  return result;
}

std::optional<ShardPlace> shard_place(std::string_view name) {
  constexpr size_t kTail = std::string_view("-00001-of-00003.gguf").size();
  if (name.size() <= kTail || !name.ends_with(kGgufEnding)) return std::nullopt;
  const std::string_view tail = name.substr(name.size() - kTail);
  ShardPlace place{.stem = std::string(name.substr(0, name.size() - kTail))};
  const auto read = [&](size_t at, int& number) {
    const auto [end, error] = std::from_chars(tail.data() + at, tail.data() + at + 5, number);
    return error == std::errc() && end == tail.data() + at + 5;
  };
  const bool is_shard = tail[0] == '-' && tail.substr(6, 4) == "-of-" && read(1, place.index) &&
                        read(10, place.count) && place.index >= 1 && place.index <= place.count;
  return is_shard ? std::optional(place) : std::nullopt;
}

std::string quant_of_file_name(std::string_view name) {
  name = name.substr(name.rfind('/') + 1);
  const auto shard = shard_place(name);
  std::string_view stem = shard ? shard->stem : name;
  if (stem.ends_with(kGgufEnding)) stem.remove_suffix(kGgufEnding.size());
  const std::string capitals = upper_case(stem);
  // The last word that is one, words being parted by "-" and ".".
  for (size_t end = capitals.size(); end != std::string::npos && end > 0;) {
    const size_t gap = capitals.find_last_of("-.", end - 1);
    const size_t begin = gap == std::string::npos ? 0 : gap + 1;
    const std::string word = capitals.substr(begin, end - begin);
    if (is_quant_name(word)) {
      const bool is_dynamic = begin >= 3 && capitals.substr(0, begin).ends_with("UD-");
      return is_dynamic ? "UD-" + word : word;
    }
    end = gap;
  }
  return {};
}

bool is_model_file_name(std::string_view name) {
  const std::string file = upper_case(name.substr(name.rfind('/') + 1));
  return file.ends_with(".GGUF") && file.find("MMPROJ") == std::string::npos &&
         file.find("IMATRIX") == std::string::npos;
}

std::string size_text(int64_t bytes) {
  const auto size = static_cast<double>(bytes);
  if (size >= 1e9) return fmt::format("{:.2f} GB", size / 1e9);
  if (size >= 1e6) return fmt::format("{:.1f} MB", size / 1e6);
  return fmt::format("{:.0f} kB", bytes == 0 ? 0.0 : std::max(1.0, size / 1e3));
}

}  // namespace outrider
