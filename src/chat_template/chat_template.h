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
  std::string arguments;  // JSON object; its text for templates that cannot be rendered with an object
};

struct ChatMessage {
  std::string role;                    // "system", "user", "assistant", "tool"
  std::optional<std::string> content;  // none where there are but tool calls
  // What is empty is not there for the template:
  std::string reasoning_content = {};
  std::string name = {};
  std::vector<ChatToolCall> tool_calls = {};
  std::string tool_call_id = {};
};

// Inputs of a chat template, as Hugging Face's apply_chat_template passes them.
struct ChatContext {
  std::vector<ChatMessage> messages;
  bool add_generation_prompt = true;
  std::string bos_token;  // an empty token is undefined in the template, as for a tokenizer without it
  std::string eos_token;
  std::string tools_json;                           // JSON array, or empty for none
  std::vector<std::pair<std::string, bool>> flags;  // further variables, e.g. {"enable_thinking", false}
  // Where set, its control tokens inside of messages and tools are broken by marks (text/input_marks.h).
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

  // Errors: the template raised an exception, used something unsupported (named, with its line), or ran over
  // a limit.
  Result<std::string> render(const ChatContext& context) const;
  const std::string& source() const;

 private:
  struct Impl;
  explicit ChatTemplate(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace outrider
