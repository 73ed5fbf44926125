// SPDX-License-Identifier: Apache-2.0
#include "cli/conversation.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/prompt_text.h"
#include "platform/durable_file.h"

namespace outrider {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr std::string_view kRoles[] = {"system", "user", "assistant"};

bool is_message(const OrderedJson& json) {
  return json.is_object() && json.contains("role") && json["role"].is_string() &&
         std::ranges::find(kRoles, json["role"].get<std::string>()) != std::end(kRoles) &&
         json.contains("content") && json["content"].is_string();
}

}  // namespace

void Conversation::clear() {
  const bool has_system = !messages_.empty() && messages_.front().first == "system";
  messages_.resize(has_system ? 1 : 0);
}

void Conversation::set_system(std::string text) {
  if (!messages_.empty() && messages_.front().first == "system") messages_.erase(messages_.begin());
  if (!text.empty()) messages_.insert(messages_.begin(), {"system", std::move(text)});
}

Status Conversation::save(const std::filesystem::path& file) const {
  OrderedJson list = OrderedJson::array();
  for (const auto& [role, content] : messages_) list.push_back({{"role", role}, {"content", content}});
  return write_durably(
      file,
      OrderedJson{{"messages", list}}.dump(2, ' ', false, OrderedJson::error_handler_t::replace) + "\n");
}

Status Conversation::load(const std::filesystem::path& file) {
  OUTRIDER_TRY(const std::string text, read_text_file(file));
  const OrderedJson json = OrderedJson::parse(text, nullptr, /*allow_exceptions=*/false);
  const OrderedJson list = json.is_object() && json.contains("messages") ? json["messages"] : json;
  if (!list.is_array() || !std::ranges::all_of(list, is_message)) {
    return input_error(
        file.string() +
        ": expected messages with role (system, user or assistant) and content, as /save writes them");
  }
  messages_.clear();
  for (const OrderedJson& message : list)
    add(message["role"].get<std::string>(), message["content"].get<std::string>());
  return {};
}

}  // namespace outrider
