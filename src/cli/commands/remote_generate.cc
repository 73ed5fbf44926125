// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/remote_generate.h"

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "cli/commands/remote_text.h"
#include "cli/prompt_text.h"
#include "cli/reports/completion_json.h"
#include "cli/terminal.h"
#include "open/parts.h"

namespace outrider {
namespace {

Status check_remote_views(const Settings& settings) {
  const bool has_view =
      settings.generate.show_draft || settings.generate.show_tree || !settings.trace_file.empty();
  if (!settings.generate.prediction.empty())
    return usage_error(
        "expected --server or --prediction, found both: the drafter here drafts for the server");
  if (!has_view) return {};
  return usage_error("expected --server without --show-draft, --show-tree and --trace, found one of them");
}

Result<std::string> private_text(const RemoteTarget& remote) {
  if (!remote.private_text || remote.private_file.empty())
    return remote.private_text ? *remote.private_text : read_text_file(remote.private_file);
  return usage_error("expected --private or --private-file, found both");
}

// Everything in the rendered chat from the private end of the user's message on is private.
Result<DividedPrompt> chat_prompt(const Settings& settings, const DraftingParts& parts,
                                  std::string_view hidden) {
  OUTRIDER_TRY(const auto messages, chat_messages(settings));
  OUTRIDER_TRY(const DividedChat chat, render_private_chat(parts.chat, messages, hidden));
  // The template writes its own special tokens.
  const std::string_view text = chat.text;
  return divided(parts, text.substr(0, chat.safe), text.substr(chat.safe), false);
}

Result<DividedPrompt> text_prompt(const Settings& settings, const DraftingParts& parts,
                                  std::string_view hidden) {
  DividedPrompt prompt;
  if (settings.input.ids) {
    prompt = divided(parts, "", hidden, false);
    prompt.tokens.insert(prompt.tokens.begin(), settings.input.ids->begin(), settings.input.ids->end());
    prompt.safe = settings.input.ids->size();
    return prompt;
  }
  OUTRIDER_TRY(const std::string text, input_text(settings));
  prompt = divided(parts, text, hidden, true);
  if (prompt.tokens.empty())
    return input_error("the prompt is empty; expected text that gives at least one token");
  return prompt;
}

Result<DividedPrompt> prompt_of(const Settings& settings, const DraftingParts& parts) {
  const bool hides = settings.remote.private_text || !settings.remote.private_file.empty();
  std::string hidden;
  if (hides) {
    OUTRIDER_TRY(hidden, private_text(settings.remote));
    if (hidden.empty()) return usage_error("expected private text, found none");
  }
  OUTRIDER_TRY(DividedPrompt prompt, wants_chat(settings) ? chat_prompt(settings, parts, hidden)
                                                          : text_prompt(settings, parts, hidden));
  prompt.is_private = hides;
  return prompt;
}

nlohmann::ordered_json counts_json(const DraftingServer& server, const RemoteCounts& counts) {
  return {{"server", server.url()},
          {"verdicts", counts.verdicts},
          {"reconnects", counts.reconnects},
          {"ahead", counts.ahead},
          {"ahead_used", counts.ahead_used},
          {"bytes_sent", counts.bytes_sent},
          {"bytes_received", counts.bytes_received},
          {"network_ms", counts.network_ms},
          {"server_ms", counts.server_ms},
          {"offline_tokens", counts.lone},
          {"offline_confirmed", counts.lone_confirmed}};
}

nlohmann::ordered_json origins_json(const std::vector<TokenRun>& runs) {
  auto json = nlohmann::ordered_json::array();
  for (const TokenRun& run : runs)
    json.push_back({{"origin", run.is_offline ? "offline" : "server"}, {"tokens", run.tokens}});
  return json;
}

}  // namespace

Status run_remote_generate(const Settings& settings) {
  OUTRIDER_RETURN_IF_ERROR(check_remote_views(settings));
  OUTRIDER_TRY(DraftingServer server, server_of(settings.remote));
  OUTRIDER_TRY(Names names, names_of(settings, Unasked::kPlain));
  OUTRIDER_TRY(DraftingParts parts, open_drafting(std::move(names)));
  OUTRIDER_TRY(const DividedPrompt prompt, prompt_of(settings, parts));
  RemoteDecoder decoder(&parts, server);
  decoder.set_state_type(state_type_of(settings.remote));
  OUTRIDER_TRY(const TimedCompletion timed, write_remotely(settings, decoder, prompt));
  if (!settings.json) {
    write_output("\n");
    return {};
  }
  auto json = completion_json(parts.info, prompt.tokens, timed);
  json["remote"] = counts_json(server, decoder.counts());
  json["origins"] = origins_json(decoder.runs());
  write_output(json_line(json));
  return {};
}

}  // namespace outrider
