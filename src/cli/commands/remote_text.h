// SPDX-License-Identifier: Apache-2.0
// The parts that `generate --server` and `chat --server` share: the address of the server, prompts with a
// private end, and the output as it comes.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "chat_template/plain_chat.h"
#include "cli/timed_completion.h"
#include "config/settings.h"
#include "outrider/result.h"
#include "remote/client/drafting_parts.h"
#include "remote/client/remote_decoder.h"
#include "remote/client/server_address.h"
#include "remote/protocol/messages.h"

namespace outrider {

// The server that options name, with its key. Error: no address, a file that cannot be read.
Result<DraftingServer> server_of(const RemoteTarget& remote);
// The type of states that options ask for.
StateType state_type_of(const RemoteTarget& remote);

// A prompt; its tokens from `safe` on stay on this machine if it is private; else the server gets all.
struct DividedPrompt {
  std::vector<TokenId> tokens;
  size_t safe = 0;
  bool is_private = false;
};

// The two parts become tokens one by one, so that the first's do not depend on the second.
DividedPrompt divided(const DraftingParts& parts, std::string_view safe, std::string_view rest,
                      bool add_special);

// Decodes, and writes the text to the output on the way unless the result is shown as JSON. Text that is
// written offline is shown at once where it can be coloured, and otherwise when it stays.
Result<TimedCompletion> write_remotely(const Settings& settings, RemoteDecoder& decoder,
                                       const DividedPrompt& prompt);

}  // namespace outrider
