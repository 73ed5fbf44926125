// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "outrider/result.h"

namespace outrider {

// The messages of a chat: a system message, if there is one, and then the user and the model in turn.
class Conversation {
 public:
  using Message = std::pair<std::string, std::string>;  // role, content

  const std::vector<Message>& messages() const { return messages_; }
  // Starts again; the system message stays.
  void clear();
  // Replaces the system message; empty: none.
  void set_system(std::string text);
  void add(std::string_view role, std::string text) { messages_.emplace_back(role, std::move(text)); }
  // Takes the last message back.
  void drop_last() { messages_.pop_back(); }
  bool ends_with(std::string_view role) const { return !messages_.empty() && messages_.back().first == role; }

  // As a JSON file, {"messages": [{"role", "content"}, ...]}, which only its owner may read. Errors: the file
  // cannot be written; it cannot be read, or holds something else. A bare list is read, too.
  Status save(const std::filesystem::path& file) const;
  Status load(const std::filesystem::path& file);

 private:
  std::vector<Message> messages_;
};

}  // namespace outrider
