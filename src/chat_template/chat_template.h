// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "outrider/result.h"

namespace outrider {

class Tokenizer;

struct ChatToolCall {
  std::string id;
  std::string name;
  std::string arguments;  // a JSON object; templates that cannot be rendered with an object get its text
};

struct ChatMessage {
  std::string role;                    // "system", "user", "assistant", "tool"
  std::optional<std::string> content;  // nullopt where there are only tool calls
  // Empty fields are undefined in the template.
  std::string reasoning_content = {};
  std::string name = {};
  std::vector<ChatToolCall> tool_calls = {};
  std::string tool_call_id = {};
};

// Variables of a template: names and JSON values, e.g. {"enable_thinking", "false"}. The last of a name
// counts.
using TemplateValues = std::vector<std::pair<std::string, std::string>>;

// Names of special tokens, such as "pad_token", and their spellings.
using TemplateTokens = std::vector<std::pair<std::string, std::string>>;

// The inputs of a chat template, as Hugging Face's apply_chat_template passes them.
struct ChatContext {
  std::vector<ChatMessage> messages;
  bool add_generation_prompt = true;
  std::string bos_token;  // empty: undefined in the template, as for a tokenizer without this token
  std::string eos_token;
  TemplateTokens other_tokens = {};
  std::string tools_json;  // a JSON array; empty for none
  TemplateValues values;   // more variables
  // `reasoning_content` is a part of the content, {"type": "thinking"}, and not a member of the message.
  bool thinking_in_parts = false;
  // Where set, the spellings of its control tokens in messages and tools are broken by marks
  // (tokenizer/input_marks.h).
  const Tokenizer* input_marker = nullptr;
};

// A model's Jinja chat template. Rendering is bounded in steps, depth and output, because templates come with
// model files from anywhere; trim_blocks and lstrip_blocks are on, as in transformers.
class ChatTemplate {
 public:
  static Result<ChatTemplate> parse(std::string_view source);
  ~ChatTemplate();
  ChatTemplate(ChatTemplate&&) noexcept;
  ChatTemplate& operator=(ChatTemplate&&) noexcept;

  // Errors: the template raised an exception, used an unsupported feature (named, with its line), or exceeded
  // a limit.
  Result<std::string> render(const ChatContext& context) const;
  const std::string& source() const;

 private:
  struct Impl;
  explicit ChatTemplate(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace outrider
