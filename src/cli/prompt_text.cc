// SPDX-License-Identifier: Apache-2.0
#include "cli/prompt_text.h"

#include <fmt/format.h>

#include <array>
#include <cstdio>
#include <memory>
#include <system_error>
#include <utility>

namespace outrider {
namespace {

constexpr size_t kLargestText = size_t{64} << 20;

Result<std::string> read_stream(std::FILE* stream, const std::string& name) {
  std::string text;
  std::array<char, 65536> chunk;
  size_t count = 0;
  while ((count = std::fread(chunk.data(), 1, chunk.size(), stream)) > 0) {
    text.append(chunk.data(), count);
    if (text.size() > kLargestText)
      return input_error(fmt::format("{}: expected at most 64 MiB of text", name));
  }
  if (std::ferror(stream) != 0) return io_error(fmt::format("{}: cannot be read", name));
  return text;
}

}  // namespace

Result<std::string> read_text_file(const std::filesystem::path& path) {
  std::error_code code;
  if (std::filesystem::is_directory(path, code)) {
    return input_error(fmt::format("{}: expected a file, found a directory", path.string()));
  }
  const auto close = [](std::FILE* file) { std::fclose(file); };
  const std::unique_ptr<std::FILE, decltype(close)> file(std::fopen(path.c_str(), "rb"), close);
  if (file == nullptr) return io_error(fmt::format("{}: no such file, or not readable", path.string()));
  return read_stream(file.get(), path.string());
}

Result<std::string> read_standard_input() { return read_stream(stdin, "standard input"); }

Result<std::string> input_text(const Settings& settings) {
  if (!settings.input.text) return read_text_file(settings.input.file);
  if (*settings.input.text == "-") return read_standard_input();
  return *settings.input.text;
}

Status check_one_input(const Settings& settings, std::string_view choices) {
  const int given =
      (settings.input.text ? 1 : 0) + (settings.input.file.empty() ? 0 : 1) + (settings.input.ids ? 1 : 0);
  if (given == 1) return {};
  return usage_error(
      fmt::format("expected exactly one of {}, found {}", choices, given == 0 ? "none" : "several"));
}

Result<std::vector<TokenId>> input_tokens(const Settings& settings, const Engine& engine) {
  if (settings.input.ids) return *settings.input.ids;
  OUTRIDER_TRY(const std::string text, input_text(settings));
  std::vector<TokenId> tokens = engine.tokenize(text);
  if (tokens.empty()) return input_error("the prompt is empty; expected text that gives at least one token");
  return tokens;
}

bool wants_chat(const Settings& settings) {
  return settings.generate.asks_chat || settings.system_message.has_value();
}

Result<std::vector<std::pair<std::string, std::string>>> chat_messages(const Settings& settings) {
  std::vector<std::pair<std::string, std::string>> messages;
  const std::string system = settings.system_message.value_or("");
  if (!system.empty()) messages.emplace_back("system", system);
  OUTRIDER_TRY(std::string text, input_text(settings));
  messages.emplace_back("user", std::move(text));
  return messages;
}

}  // namespace outrider
