// SPDX-License-Identifier: Apache-2.0
// Requests of the server tests, and functions that read the answers.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "tests/serving/serving.h"

namespace outrider {

inline const std::string kShort =
    R"({"prompt": "hello", "max_tokens": 8, "temperature": 0, "ignore_eos": true})";

std::string long_call(bool streams, int tokens = 200);

// The text of a completion, streamed or not; empty: there is none.
std::string text_of(const TestAnswer& answer);
std::string streamed_text(const std::string& events);

// The type of the error object; empty: the body is none.
std::string error_type(const TestAnswer& answer);

// A server with this chat template; the tiny model has none.
inline constexpr std::string_view kPlainTurns =
    "{% for m in messages %}[{{ m.role }}:{{ m.content }}]{% endfor %}{% if add_generation_prompt %}>{% "
    "endif %}";
void with_chats(ServerParts& parts);

// A server with steps that take a while.
void with_slow_engine(ServerParts& parts);
// Such a server with one request at a time.
void with_narrow_engine(ServerParts& parts);

// A file of keys that exists as long as this object.
class KeyFile {
 public:
  explicit KeyFile(const std::string& keys);
  ~KeyFile();
  KeyFile(const KeyFile&) = delete;
  KeyFile& operator=(const KeyFile&) = delete;

  void write(const std::string& keys) const;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace outrider
