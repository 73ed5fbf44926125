// SPDX-License-Identifier: Apache-2.0
#include "tests/serving/serving_calls.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

namespace outrider {
namespace {

using Json = nlohmann::json;

constexpr std::chrono::milliseconds kSlowStep(5);

}  // namespace

std::string long_call(bool streams, int tokens) {
  return fmt::format(
      R"({{"prompt": "hello", "max_tokens": {}, "temperature": 0, "ignore_eos": true, "stream": {}}})",
      tokens, streams ? "true" : "false");
}

std::string text_of(const TestAnswer& answer) {
  const Json json = Json::parse(answer.body, nullptr, false);
  return json.is_object() && json.contains("choices") ? json["choices"][0]["text"].get<std::string>() : "";
}

std::string streamed_text(const std::string& events) {
  std::string text;
  std::istringstream lines(events);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("data: {")) continue;
    const Json chunk = Json::parse(line.substr(6));
    if (chunk.contains("choices") && !chunk["choices"].empty())
      text += chunk["choices"][0]["text"].get<std::string>();
  }
  return text;
}

std::string error_type(const TestAnswer& answer) {
  const Json json = Json::parse(answer.body, nullptr, false);
  if (!json.is_object() || !json.contains("error") || !json["error"].contains("message")) return {};
  return json["error"].value("type", "");
}

void with_chats(ServerParts& parts) { parts.chat_template.emplace(ChatTemplate::parse(kPlainTurns).value()); }

void with_slow_engine(ServerParts& parts) {
  parts.open = [] { return Engine::open(slow_engine(kSlowStep)); };
}

void with_narrow_engine(ServerParts& parts) {
  parts.max_batch = 1;
  parts.open = [] {
    EngineOptions options = slow_engine(kSlowStep);
    options.max_batch = 1;
    return Engine::open(options);
  };
}

KeyFile::KeyFile(const std::string& keys)
    : path_(std::filesystem::temp_directory_path() / fmt::format("outrider_keys_{}", ::getpid())) {
  write(keys);
}

KeyFile::~KeyFile() { std::filesystem::remove(path_); }

void KeyFile::write(const std::string& keys) const {
  std::ofstream(path_) << keys;
  std::filesystem::permissions(path_,
                               std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
}

}  // namespace outrider
