// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "chat_template/chat_template.h"

namespace outrider {

// The parts of a conversation that a template can show to its model.
struct TemplateAbilities {
  bool shows_system = true;           // messages of the role "system"
  bool shows_tools = true;            // descriptions of tools
  bool shows_calls = true;            // the assistant's calls together with messages of the role "tool"
  bool needs_content = false;         // a message with calls and without content fails or shows the word None
  bool shows_late_system = true;      // messages of the role "system" after the first message
  bool shows_neighbours = true;       // messages of one role that follow one another
  bool shows_several_calls = true;    // several calls in one message
  bool shows_lone_results = true;     // results of calls that are not in the conversation
  bool takes_any_id = true;           // ids of calls of any form
  bool takes_call_text = true;        // a text beside thinking and a call
  bool shows_call_after_text = true;  // a call in a message that has a text, too
  bool needs_tools = false;           // a conversation without tools wants an empty list of them
  bool reads_thinking_parts = false;  // earlier thinking as a part of the content, and not as a member
};

// Finds the abilities by rendering short conversations. An ability is missing where its marker does not occur
// in the prompt, or the template refuses the conversation.
TemplateAbilities find_abilities(const ChatTemplate& chat_template, const std::string& bos_token,
                                 const std::string& eos_token);

}  // namespace outrider
