// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "chat_template/chat_template.h"
#include "server/api/request_field.h"

namespace outrider {

struct ReadMessages {
  std::vector<ChatMessage> messages;
  std::vector<std::string> ignored;  // paths of fields
};

// Reads at most `max` messages of a request. The parts of a content are joined by line breaks, without
// images, which count as ignored. The role "developer" is read as "system". Arguments of calls that are not a
// JSON object become a JSON string.
ApiResult<ReadMessages> read_messages(const RequestField& field, int max);

// A part that a model of text does not see. Conversations go on without it.
bool is_image_part(const RequestField& part);
// A content: a string, or parts of these types, which are joined by line breaks. The paths of images go to
// `left_out`; without it they are refused.
ApiResult<std::string> read_text_parts(const RequestField& field, std::span<const std::string_view> types,
                                       std::vector<std::string>* left_out = nullptr);

// The text of a call's arguments as JSON: an object stays, and any other text becomes a JSON string.
std::string call_arguments_json(const std::string& text);
// The "arguments" of a call as a JSON object: they may be one, or the text of one, or absent.
ApiResult<std::string> read_arguments(const RequestField& function);

}  // namespace outrider
