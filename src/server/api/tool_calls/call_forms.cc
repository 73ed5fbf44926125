// SPDX-License-Identifier: Apache-2.0
#include "server/api/tool_calls/call_forms.h"

#include <algorithm>

#include "tokenizer/tokenizer.h"

namespace outrider {
namespace {

using Order = CallSpelling::Order;

// A call of the shape kObject.
constexpr CallSpelling objects(Order order, bool is_closed = true) {
  return {.order = order,
          .before_name = "{\"name\": \"",
          .after_name = "\", \"arguments\": ",
          .after_arguments = "}",
          .is_closed = is_closed};
}

// DeepSeek V3.2 and V4: <parameter name="KEY" string="true">, with a token before each name of a tag.
constexpr CallForm dsml(std::string_view name, std::string_view and_sign, std::string_view open,
                        std::string_view close) {
  return {.name = name,
          .signs = {"｜DSML｜"},
          .and_sign = and_sign,
          .piece = "｜DSML｜",
          .shape = CallShape::kTagged,
          .open = {open},
          .close = close,
          .begin = "<｜DSML｜invoke name=\"",
          .tags = {.name_end = "\">",
                   .key_open = "<｜DSML｜parameter name=\"",
                   .key_close = "\">",
                   .kind = "\" string=\"",
                   .value_close = "</｜DSML｜parameter>",
                   .call_end = "</｜DSML｜invoke>"},
          .spelling = {.order = Order::kLines}};
}

// DeepSeek R1 to V3.1, which spell a call differently. Both spellings are read under either name.
constexpr CallForm deepseek(std::string_view name, std::string_view and_sign, CallSpelling spelling) {
  return {.name = name,
          .signs = {"<｜tool▁calls▁begin｜>"},
          .and_sign = and_sign,
          .shape = CallShape::kNamed,
          .open = {"<｜tool▁calls▁begin｜>"},
          .close = "<｜tool▁calls▁end｜>",
          .begin = "<｜tool▁call▁begin｜>",
          .separator = "<｜tool▁sep｜>",
          .after_call = {"```", "<｜tool▁call▁end｜>"},
          .spelling = spelling};
}

// The first row that fits is the form: the more special of two forms with one mark stands first.
constexpr CallForm kForms[] = {
    // gpt-oss: <|channel|>commentary to=functions.NAME <|constrain|>json<|message|>{...}<|call|>
    {.name = "harmony",
     .signs = {"<|channel|>"},
     .and_sign = "<|message|>",
     .shape = CallShape::kChannel,
     .open = {"<|channel|>"},
     .close = "<|call|>",
     .begin = "<|message|>",
     .after_call = {"<|end|>", "<|return|>"}},
    // MiniMax M2
    {.name = "minimax",
     .signs = {"<minimax:tool_call>"},
     .shape = CallShape::kTagged,
     .open = {"<minimax:tool_call>"},
     .close = "</minimax:tool_call>",
     .begin = "<invoke name=\"",
     .tags = {.name_end = "\">",
              .key_open = "<parameter name=\"",
              .key_close = "\">",
              .value_close = "</parameter>",
              .call_end = "</invoke>",
              .has_lines = true},
     .spelling = {.order = Order::kLines}},
    dsml("deepseek_v4", "tool_calls>", "<｜DSML｜tool_calls>", "</｜DSML｜tool_calls>"),
    dsml("deepseek_v32", "", "<｜DSML｜function_calls>", "</｜DSML｜function_calls>"),
    // Gemma 4: <|tool_call>call:NAME{key:<|"|>text<|"|>,n:3}<tool_call|>
    {.name = "gemma4",
     .signs = {"<|tool_call>"},
     .shape = CallShape::kLiteral,
     .open = {"<|tool_call>"},
     .close = "<tool_call|>",
     .begin = "call:",
     .literal = {.open = '{', .close = '}', .assign = ':', .quote = "<|\"|>"},
     .spelling = {.before_name = "call:", .after_name = "{", .after_arguments = "}"}},
    // Kimi K2: functions.NAME:0<|tool_call_argument_begin|>{...}; the first templates show no calls
    {.name = "kimi_k2",
     .signs = {"<|tool_calls_section_begin|>", "<|tool_call_argument_begin|>", "<|im_middle|>"},
     .piece = "<|tool_calls_section_begin|>",
     .shape = CallShape::kNamed,
     .open = {"<|tool_calls_section_begin|>"},
     .close = "<|tool_calls_section_end|>",
     .begin = "<|tool_call_begin|>",
     .separator = "<|tool_call_argument_begin|>",
     .after_call = {"<|tool_call_end|>"},
     .spelling = {.order = Order::kLines,
                  .before_name = "<|tool_call_begin|>functions.",
                  .after_name = "<|tool_call_argument_begin|>",
                  .after_arguments = "<|tool_call_end|>",
                  .has_number = true}},
    // V3 and R1: function<sep>NAME and a fence
    deepseek("deepseek", "```json",
             {.order = Order::kLines,
              .before_name = "<｜tool▁call▁begin｜>function<｜tool▁sep｜>",
              .after_name = "\n```json\n",
              .after_arguments = "\n```<｜tool▁call▁end｜>"}),
    // V3.1: NAME<sep>{...}
    deepseek("deepseek_v31", "",
             {.order = Order::kLines,
              .before_name = "<｜tool▁call▁begin｜>",
              .after_name = "<｜tool▁sep｜>",
              .after_arguments = "<｜tool▁call▁end｜>"}),
    // LFM2: [NAME(key=value), ...]; templates show only the marks of the list of tools
    {.name = "lfm2",
     .signs = {"<|tool_call_start|>", "<|tool_list_start|>"},
     .piece = "<|tool_call_start|>",
     .shape = CallShape::kLiteral,
     .open = {"<|tool_call_start|>"},
     .close = "<|tool_call_end|>",
     .takes_objects = true,
     .spelling = {.order = Order::kList, .after_name = "(", .after_arguments = ")"}},
    // OLMo 3: a call of Python on each line
    {.name = "olmo3",
     .signs = {"<function_calls>"},
     .shape = CallShape::kLiteral,
     .open = {"<function_calls>"},
     .close = "</function_calls>",
     .spelling = {.order = Order::kLines, .after_name = "(", .after_arguments = ")"}},
    // Qwen3-Coder and Qwen 3.5
    {.name = "qwen3_coder",
     .signs = {"<parameter="},
     .shape = CallShape::kTagged,
     .open = {"<tool_call>"},
     .close = "</tool_call>",
     .may_skip_open = true,
     .begin = "<function=",
     .tags = {.name_end = ">",
              .key_open = "<parameter=",
              .key_close = ">",
              .value_close = "</parameter>",
              .call_end = "</function>",
              .has_lines = true}},
    // GLM-4.5 to 4.7
    {.name = "glm",
     .signs = {"<arg_key>"},
     .shape = CallShape::kTagged,
     .open = {"<tool_call>"},
     .tags = {.key_open = "<arg_key>",
              .key_close = "</arg_key>",
              .value_open = "<arg_value>",
              .value_close = "</arg_value>",
              .call_end = "</tool_call>"}},
    // Mistral since 2025: [TOOL_CALLS]NAME[ARGS]{...}, perhaps with [CALL_ID]ID before [ARGS]
    {.name = "mistral_args",
     .signs = {"[ARGS]"},
     .and_sign = "[TOOL_CALLS]",
     .shape = CallShape::kNamed,
     .open = {"[TOOL_CALLS]"},
     .takes_objects = true,
     .separator = "[ARGS]",
     .may_skip_separator = true,
     .spelling = {.after_name = "[ARGS]", .id_mark = "[CALL_ID]"}},
    {.name = "mistral",
     .signs = {"[TOOL_CALLS]"},
     .shape = CallShape::kNamed,
     .open = {"[TOOL_CALLS]"},
     .takes_objects = true,
     .separator = "[ARGS]",
     .may_skip_separator = true,
     .spelling = {.order = Order::kList,
                  .before_name = "{\"name\": \"",
                  .after_name = "\", \"arguments\": ",
                  .after_arguments = "}",
                  .may_have_id = true}},
    // MiniMax M1 and Hunyuan
    {.name = "tool_calls",
     .signs = {"<tool_calls>"},
     .open = {"<tool_calls>"},
     .close = "</tool_calls>",
     .spelling = objects(Order::kEither)},
    // Phi-4-mini and Granite 3: <|tool_call|>[{"name": ..., "arguments": ...}]
    {.name = "phi4_mini",
     .signs = {"<|tool|>"},
     .open = {"<|tool_call|>", "functools"},
     .close = "<|/tool_call|>",
     .spelling = objects(Order::kList)},
    {.name = "granite",
     .signs = {"<|tool_call|>", "available_tools<|end_of_role|>"},
     .open = {"<|tool_call|>", "<tool_call>"},
     .close = "</tool_call>",
     .spelling = objects(Order::kList, false)},
    // Hermes, Qwen 2.5 and 3, SmolLM3, Granite 4
    {.name = "hermes",
     .signs = {"<tool_call>"},
     .open = {"<tool_call>"},
     .close = "</tool_call>",
     .spelling = objects(Order::kMarked)},
    // Llama 4, and Llama 3.2 with a template that asks for Python: [NAME(key=value), ...]
    {.name = "pythonic",
     .signs = {"<|python_start|>", "<|header_start|>", "[func_name1("},
     .shape = CallShape::kLiteral,
     .open = {"<|python_start|>"},
     .close = "<|python_end|>",
     .may_be_bare = true,
     .takes_objects = true,
     .spelling = {.order = Order::kList, .after_name = "(", .after_arguments = ")"}},
    // Llama 3.1 to 3.3; the template of 3.2 does not name the mark
    {.name = "llama3",
     .signs = {"<|python_tag|>", "{\"name\": function name, \"parameters\":"},
     .piece = "<|python_tag|>",
     .open = {"<|python_tag|>"},
     .may_be_bare = true,
     .spelling = {.order = Order::kJoined,
                  .before_name = "{\"name\": \"",
                  .after_name = "\", \"parameters\": ",
                  .after_arguments = "}"}},
    // GLM-4 of 2024: NAME, a line break, and JSON as the whole message
    {.name = "glm4",
     .signs = {"<|observation|>"},
     .shape = CallShape::kNamed,
     .open = {"<|assistant|>"},
     .begins_with_name = true,
     .separator = "\n",
     .after_call = {"<|observation|>"},
     .spelling = {.after_name = "\n"}},
};
constexpr CallForm kPlain = {.name = "plain", .may_be_bare = true, .spelling = objects(Order::kLines)};

bool is_shown(const CallForm& form, std::string_view chat_template) {
  const auto contains = [&](std::string_view text) {
    return chat_template.find(text) != std::string_view::npos;
  };
  const bool has_sign = std::any_of(form.signs.begin(), form.signs.end(),
                                    [&](std::string_view sign) { return !sign.empty() && contains(sign); });
  return has_sign && contains(form.and_sign);
}

bool is_known_to(const Tokenizer& tokenizer, std::string_view piece) {
  const auto token = piece.empty() ? std::nullopt : tokenizer.find_piece(piece);
  return token && tokenizer.is_control(*token);
}

}  // namespace

std::vector<std::string_view> CallForm::marks() const {
  std::vector<std::string_view> all(open.begin(), open.end());
  all.insert(all.end(), after_call.begin(), after_call.end());
  all.insert(all.end(), {piece, close, begin, separator, tags.key_open, tags.key_close, tags.value_open,
                         tags.value_close, tags.call_end, literal.quote});
  std::erase_if(all, [](std::string_view mark) { return mark.empty(); });
  return all;
}

const CallForm* find_call_form(std::string_view chat_template, const Tokenizer* tokenizer) {
  for (const CallForm& form : kForms) {
    if (is_shown(form, chat_template)) return &form;
  }
  for (const CallForm& form : kForms) {
    if (tokenizer != nullptr && is_known_to(*tokenizer, form.piece)) return &form;
  }
  return nullptr;
}

const CallForm& plain_call_form() { return kPlain; }

}  // namespace outrider
