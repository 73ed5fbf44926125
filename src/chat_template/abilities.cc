// SPDX-License-Identifier: Apache-2.0
#include "chat_template/abilities.h"

namespace outrider {
namespace {

// Words that no template contains.
constexpr std::string_view kSystemMark = "outrider-probe-system";
constexpr std::string_view kToolMark = "outrider_probe_tool";
constexpr std::string_view kArgumentMark = "outrider-probe-argument";
constexpr std::string_view kResultMark = "outrider-probe-result";
constexpr std::string_view kTools =
    R"([{"type":"function","function":{"name":"outrider_probe_tool","description":"d",)"
    R"("parameters":{"type":"object","properties":{"a":{"type":"string","description":"d"}}}}}])";
constexpr const char* kCallId = "abcdefghi";  // the only kind of id that Mistral's templates accept

class AbilityProbe {
 public:
  AbilityProbe(const ChatTemplate& chat_template, const std::string& bos_token, const std::string& eos_token)
      : template_(chat_template), bos_(bos_token), eos_(eos_token) {}

  // The prompt; empty if the template refuses the conversation.
  std::string render(std::vector<ChatMessage> messages, std::string_view tools = "") const {
    ChatContext context;
    context.messages = std::move(messages);
    context.bos_token = bos_;
    context.eos_token = eos_;
    context.tools_json = tools;
    Result<std::string> rendered = template_.render(context);
    return rendered.ok() ? std::move(rendered).value() : std::string();
  }

 private:
  const ChatTemplate& template_;
  const std::string& bos_;
  const std::string& eos_;
};

ChatMessage probe_message(std::string_view role, std::string_view text) {
  return {.role = std::string(role), .content = std::string(text)};
}

// A question, a call and its result. `content` belongs to the message with the call.
std::vector<ChatMessage> probe_calls(std::optional<std::string> content) {
  ChatMessage call{.role = "assistant", .content = std::move(content)};
  const std::string arguments = R"({"a": ")" + std::string(kArgumentMark) + "\"}";
  call.tool_calls.push_back({.id = kCallId, .name = std::string(kToolMark), .arguments = arguments});
  ChatMessage result = probe_message("tool", kResultMark);
  result.tool_call_id = kCallId;
  result.name = kToolMark;
  return {probe_message("user", "x"), std::move(call), std::move(result)};
}

bool contains(std::string_view text, std::string_view word) {
  return text.find(word) != std::string_view::npos;
}

bool has_call(std::string_view prompt) {
  return contains(prompt, kArgumentMark) && contains(prompt, kResultMark);
}

}  // namespace

TemplateAbilities find_abilities(const ChatTemplate& chat_template, const std::string& bos_token,
                                 const std::string& eos_token) {
  const AbilityProbe probe(chat_template, bos_token, eos_token);
  TemplateAbilities abilities;
  abilities.shows_system =
      contains(probe.render({probe_message("system", kSystemMark), probe_message("user", "x")}), kSystemMark);
  abilities.shows_tools = contains(probe.render({probe_message("user", "x")}, kTools), kToolMark);
  const std::string without_content = probe.render(probe_calls(std::nullopt), kTools);
  abilities.needs_content = !has_call(without_content) || contains(without_content, "None");
  abilities.shows_calls =
      has_call(abilities.needs_content ? probe.render(probe_calls(""), kTools) : without_content);
  return abilities;
}

}  // namespace outrider
