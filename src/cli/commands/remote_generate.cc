// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/remote_generate.h"

#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "base/white_space.h"
#include "chat_template/plain_chat.h"
#include "cli/prompt_text.h"
#include "cli/reports/completion_json.h"
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

Result<std::vector<TokenId>> chat_prompt(const Settings& settings, const DraftingParts& parts) {
  const ChatFormat format{.chat_template = parts.chat_template ? &*parts.chat_template : nullptr,
                          .bos_token = parts.bos_token,
                          .eos_token = parts.eos_token};
  OUTRIDER_TRY(const auto messages, chat_messages(settings));
  OUTRIDER_TRY(const std::string prompt, render_plain_chat(format, messages, true));
  return parts.tokenizer->encode(prompt,
                                 {.add_special = false});  // the template writes its own special tokens
}

Result<std::vector<TokenId>> prompt_of(const Settings& settings, const DraftingParts& parts) {
  if (settings.asks_chat) return chat_prompt(settings, parts);
  if (settings.prompt_ids) return *settings.prompt_ids;
  OUTRIDER_TRY(const std::string text, input_text(settings));
  std::vector<TokenId> tokens = parts.tokenizer->encode(text);
  if (tokens.empty()) return input_error("the prompt is empty; expected text that gives at least one token");
  return tokens;
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
          {"server_ms", counts.server_ms}};
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
  Request request = settings.request;
  OUTRIDER_TRY(request.prompt, prompt_of(settings, parts));
  RemoteDecoder decoder(&parts, server);
  decoder.set_state_type(state_type_of(settings.remote));
  TimedCompletion timed;
  const auto show = [&](RequestId, const Progress& progress) {
    if (timed.prompt_pass_tokens == 0) timed.prompt_pass_tokens = std::ssize(progress.tokens);
    if (settings.json) return;
    write_output(std::string(progress.text));
    std::fflush(stdout);
  };
  OUTRIDER_TRY(timed.completion, decoder.generate(request, show));
  if (!settings.json) {
    write_output("\n");
    return {};
  }
  auto json = completion_json(parts.info, request.prompt, timed);
  json["remote"] = counts_json(server, decoder.counts());
  write_output(json_line(json));
  return {};
}

}  // namespace outrider
