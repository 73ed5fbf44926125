// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/remote_generate.h"

#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/white_space.h"
#include "chat_template/plain_chat.h"
#include "cli/prompt_text.h"
#include "cli/reports/completion_json.h"
#include "cli/reports/provisional_text.h"
#include "cli/terminal.h"
#include "cli/timed_completion.h"
#include "remote/client/remote_decoder.h"
#include "setup/open_engine.h"

namespace outrider {
namespace {

Status check_remote_views(const Settings& settings) {
  const bool has_view = settings.show_draft || settings.show_tree || !settings.trace_file.empty();
  if (!has_view) return {};
  return usage_error("expected --server without --show-draft, --show-tree and --trace, found one of them");
}

// A prompt whose tokens from `safe` on stay here.
struct DividedPrompt {
  std::vector<TokenId> tokens;
  size_t safe = 0;
};

Result<std::string> private_text(const RemoteTarget& remote) {
  if (!remote.private_text || remote.private_file.empty())
    return remote.private_text ? *remote.private_text : read_text_file(remote.private_file);
  return usage_error("expected --private or --private-file, found both");
}

bool is_private(const RemoteTarget& remote) { return remote.private_text || !remote.private_file.empty(); }

// The two parts become tokens one by one, so that those of the first do not depend on the second.
DividedPrompt divided(const DraftingParts& parts, std::string_view safe, std::string_view rest,
                      bool add_special) {
  DividedPrompt prompt{.tokens = parts.tokenizer->encode(safe, {.add_special = add_special})};
  prompt.safe = prompt.tokens.size();
  const std::vector<TokenId> hidden = parts.tokenizer->encode(rest, {.add_special = false});
  prompt.tokens.insert(prompt.tokens.end(), hidden.begin(), hidden.end());
  return prompt;
}

// Everything in the rendered chat from the private end of the user's message on is private.
Result<DividedPrompt> chat_prompt(const Settings& settings, const DraftingParts& parts,
                                  std::string_view hidden) {
  const ChatFormat format{.chat_template = parts.chat_template ? &*parts.chat_template : nullptr,
                          .bos_token = parts.bos_token,
                          .eos_token = parts.eos_token};
  OUTRIDER_TRY(auto messages, chat_messages(settings));
  messages.back().second += hidden;
  OUTRIDER_TRY(const std::string prompt, render_plain_chat(format, messages, true));
  const size_t end = hidden.empty() ? prompt.size() : prompt.rfind(hidden);
  if (end == std::string::npos)
    return input_error(
        "expected a chat template that keeps private text as it is, found one that changes it");
  // The template writes its own special tokens.
  return divided(parts, std::string_view(prompt).substr(0, end), std::string_view(prompt).substr(end), false);
}

Result<DividedPrompt> prompt_of(const Settings& settings, const DraftingParts& parts) {
  std::string hidden;
  if (is_private(settings.remote)) {
    OUTRIDER_TRY(hidden, private_text(settings.remote));
    if (hidden.empty()) return usage_error("expected private text, found none");
  }
  if (settings.asks_chat) return chat_prompt(settings, parts, hidden);
  DividedPrompt prompt;
  if (settings.prompt_ids) {
    prompt = divided(parts, "", hidden, false);
    prompt.tokens.insert(prompt.tokens.begin(), settings.prompt_ids->begin(), settings.prompt_ids->end());
    prompt.safe = settings.prompt_ids->size();
    return prompt;
  }
  OUTRIDER_TRY(const std::string text, input_text(settings));
  prompt = divided(parts, text, hidden, true);
  if (prompt.tokens.empty())
    return input_error("the prompt is empty; expected text that gives at least one token");
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

OfflineRules offline_rules(const RemoteTarget& remote) {
  using Choice = OfflineRules::Choice;
  return {.choice = remote.offline == "never" ? Choice::kNever
                                              : (remote.offline == "keep" ? Choice::kKeep : Choice::kCorrect),
          .after_ms = remote.offline_after * 1e3};
}

void show(std::string_view text) {
  write_output(text);
  std::fflush(stdout);
}

// Decodes, and shows the text on the way unless the result is shown as JSON. Text that is written alone is
// shown at once where it can be coloured, and otherwise when it stays.
Result<TimedCompletion> decode(const Settings& settings, RemoteDecoder& decoder,
                               const DividedPrompt& prompt) {
  TimedCompletion timed;
  ProvisionalText text(output_takes_colour());
  const bool is_plain = settings.json || !output_is_terminal();
  const auto on_text = [&](RequestId, const Progress& progress) {
    if (timed.prompt_pass_tokens == 0) timed.prompt_pass_tokens = std::ssize(progress.tokens);
    if (!settings.json) show(text.push(progress.text));
  };
  decoder.set_offline(offline_rules(settings.remote), [&](const LoneProgress& progress) {
    if (!is_plain) show(text.push_alone(progress.text));
  });
  Request request = settings.request;
  request.prompt = prompt.tokens;
  if (!is_private(settings.remote)) {
    OUTRIDER_TRY(timed.completion, decoder.generate(request, on_text));
    return timed;
  }
  const auto on_private_text = [&](const LoneProgress& progress) {
    if (!settings.json) show(progress.text);
  };
  OUTRIDER_TRY(timed.completion, decoder.generate_privately(request, prompt.safe, on_private_text));
  return timed;
}

}  // namespace

Result<DraftingServer> server_of(const RemoteTarget& remote) {
  OUTRIDER_TRY(DraftingServer server, DraftingServer::parse(remote.url));
  server.authority = remote.authority;
  if (remote.api_key_file.empty()) return server;
  OUTRIDER_TRY(const std::string keys, read_text_file(remote.api_key_file));
  server.api_key = trimmed(keys.substr(0, keys.find('\n')));
  return server;
}

StateType state_type_of(const RemoteTarget& remote) {
  if (remote.states == "f16") return StateType::kF16;
  return remote.states == "q8" ? StateType::kQ8 : StateType::kBF16;
}

Status run_remote_generate(const Settings& settings) {
  OUTRIDER_RETURN_IF_ERROR(check_remote_views(settings));
  OUTRIDER_TRY(DraftingServer server, server_of(settings.remote));
  OUTRIDER_TRY(const EngineOptions options, complete_engine_options(settings));
  OUTRIDER_TRY(DraftingParts parts, open_drafting(options));
  OUTRIDER_TRY(const DividedPrompt prompt, prompt_of(settings, parts));
  RemoteDecoder decoder(&parts, server);
  decoder.set_state_type(state_type_of(settings.remote));
  OUTRIDER_TRY(const TimedCompletion timed, decode(settings, decoder, prompt));
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
