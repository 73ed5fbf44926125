// SPDX-License-Identifier: Apache-2.0
#include "chat_template/abilities.h"

#include <algorithm>
#include <initializer_list>

namespace outrider {
namespace {

// Words that no template contains.
constexpr std::string_view kSystemMark = "outrider-probe-system";
constexpr std::string_view kLateMark = "outrider-probe-late";
constexpr std::string_view kFirstMark = "outrider-probe-first";
constexpr std::string_view kSecondMark = "outrider-probe-second";
constexpr std::string_view kThirdMark = "outrider-probe-third";
constexpr std::string_view kFourthMark = "outrider-probe-fourth";
constexpr std::string_view kThinkingMark = "outrider-probe-thinking";
constexpr std::string_view kToolMark = "outrider_probe_tool";
constexpr std::string_view kArgumentMark = "outrider-probe-argument";
constexpr std::string_view kResultMark = "outrider-probe-result";
constexpr std::string_view kTools =
    R"([{"type":"function","function":{"name":"outrider_probe_tool","description":"d",)"
    R"("parameters":{"type":"object","properties":{"a":{"type":"string","description":"d"}}}}}])";
constexpr std::string_view kNoTools = "[]";
// The only kind of id that Mistral's templates accept, and the kind of other servers.
constexpr const char* kCallId = "abcdefghi";
constexpr const char* kOtherCallId = "jklmnopqr";
constexpr const char* kLongCallId = "call_AbCdEfGhIjKlMnOpQrStUvWx";

bool contains(std::string_view text, std::string_view word) {
  return text.find(word) != std::string_view::npos;
}

class AbilityProbe {
 public:
  AbilityProbe(const ChatTemplate& chat_template, const std::string& bos_token, const std::string& eos_token)
      : template_(chat_template), bos_(bos_token), eos_(eos_token) {
    const std::vector<ChatMessage> question = {{.role = "user", .content = "x"}};
    needs_tools_ = render(question).empty() && !render(question, kNoTools).empty();
  }

  bool needs_tools() const { return needs_tools_; }

  // The prompt; empty if the template refuses the conversation.
  std::string render(std::vector<ChatMessage> messages, std::string_view tools = "",
                     bool thinks_in_parts = false) const {
    ChatContext context;
    context.messages = std::move(messages);
    context.bos_token = bos_;
    context.eos_token = eos_;
    context.tools_json = tools.empty() && needs_tools_ ? kNoTools : tools;
    context.thinking_in_parts = thinks_in_parts;
    Result<std::string> rendered = template_.render(context);
    return rendered.ok() ? std::move(rendered).value() : std::string();
  }

  bool shows(const std::vector<ChatMessage>& messages, std::initializer_list<std::string_view> marks,
             std::string_view tools = "") const {
    const std::string prompt = render(messages, tools);
    return std::all_of(marks.begin(), marks.end(),
                       [&](std::string_view mark) { return contains(prompt, mark); });
  }

 private:
  const ChatTemplate& template_;
  const std::string& bos_;
  const std::string& eos_;
  bool needs_tools_ = false;
};

ChatMessage probe_message(std::string_view role, std::string_view text) {
  return {.role = std::string(role), .content = std::string(text)};
}

ChatToolCall probe_call(const char* id, std::string_view argument) {
  const std::string arguments = R"({"a": ")" + std::string(argument) + "\"}";
  return {.id = id, .name = std::string(kToolMark), .arguments = arguments};
}

ChatMessage probe_result(const char* id, std::string_view text) {
  ChatMessage result = probe_message("tool", text);
  result.tool_call_id = id;
  result.name = kToolMark;
  return result;
}

// A question, a call and its result. `content` belongs to the message with the call.
std::vector<ChatMessage> probe_calls(std::optional<std::string> content, const char* id = kCallId) {
  ChatMessage call{.role = "assistant", .content = std::move(content)};
  call.tool_calls.push_back(probe_call(id, kArgumentMark));
  return {probe_message("user", "x"), std::move(call), probe_result(id, kResultMark)};
}

bool has_call(std::string_view prompt) {
  return contains(prompt, kArgumentMark) && contains(prompt, kResultMark);
}

// Finds the abilities that concern calls, of a template that shows them.
void find_call_abilities(const AbilityProbe& probe, TemplateAbilities& abilities) {
  const std::optional<std::string> content =
      abilities.needs_content ? std::optional<std::string>("") : std::nullopt;
  abilities.takes_any_id = has_call(probe.render(probe_calls(content, kLongCallId), kTools));
  std::vector<ChatMessage> several = probe_calls(content);
  several[1].tool_calls.push_back(probe_call(kOtherCallId, kFirstMark));
  several.push_back(probe_result(kOtherCallId, kSecondMark));
  abilities.shows_several_calls =
      probe.shows(several, {kArgumentMark, kResultMark, kFirstMark, kSecondMark}, kTools);
  const std::vector<ChatMessage> lone = {probe_message("user", "x"), probe_message("assistant", "y"),
                                         probe_result(kCallId, kResultMark), probe_message("user", "z")};
  abilities.shows_lone_results = probe.shows(lone, {kResultMark}, kTools);
  std::vector<ChatMessage> thoughtful = probe_calls(std::string(kFirstMark));
  abilities.shows_call_after_text = has_call(probe.render(thoughtful, kTools));
  abilities.takes_call_text = !probe.render(thoughtful, kTools).empty();
  thoughtful[1].reasoning_content = kThinkingMark;
  abilities.takes_call_text = !abilities.takes_call_text || !probe.render(thoughtful, kTools).empty();
}

// Whether earlier thinking is shown only as a part of the content. A template that knows no parts prints the
// list itself.
bool needs_thinking_parts(const AbilityProbe& probe) {
  ChatMessage thought = probe_message("assistant", "y");
  thought.reasoning_content = kThinkingMark;
  const std::vector<ChatMessage> messages = {probe_message("user", "x"), thought, probe_message("user", "z")};
  const std::string with_parts = probe.render(messages, "", true);
  const bool is_printed = contains(with_parts, "'type'") || contains(with_parts, "\"type\"");
  return contains(with_parts, kThinkingMark) && !is_printed &&
         !contains(probe.render(messages), kThinkingMark);
}

}  // namespace

TemplateAbilities find_abilities(const ChatTemplate& chat_template, const std::string& bos_token,
                                 const std::string& eos_token) {
  const AbilityProbe probe(chat_template, bos_token, eos_token);
  const ChatMessage system = probe_message("system", kSystemMark), late = probe_message("system", kLateMark),
                    user = probe_message("user", "x"), assistant = probe_message("assistant", "y");
  TemplateAbilities abilities;
  abilities.needs_tools = probe.needs_tools();
  abilities.shows_system = probe.shows({system, user}, {kSystemMark});
  abilities.shows_tools = contains(probe.render({user}, kTools), kToolMark);
  const std::string without_content = probe.render(probe_calls(std::nullopt), kTools);
  abilities.needs_content = !has_call(without_content) || contains(without_content, "None");
  abilities.shows_calls =
      has_call(abilities.needs_content ? probe.render(probe_calls(""), kTools) : without_content);
  abilities.shows_late_system = abilities.shows_system &&
                                probe.shows({user, assistant, late, user}, {kLateMark}) &&
                                probe.shows({system, user, assistant, late, user}, {kSystemMark, kLateMark});
  abilities.shows_neighbours =
      probe.shows({probe_message("user", kFirstMark), probe_message("user", kSecondMark),
                   probe_message("assistant", kThirdMark), probe_message("assistant", kFourthMark), user},
                  {kFirstMark, kSecondMark, kThirdMark, kFourthMark});
  if (abilities.shows_calls) find_call_abilities(probe, abilities);
  abilities.reads_thinking_parts = needs_thinking_parts(probe);
  return abilities;
}

}  // namespace outrider
