// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/remote_text.h"

#include <cstdio>
#include <string>

#include "base/white_space.h"
#include "cli/prompt_text.h"
#include "cli/reports/provisional_text.h"
#include "cli/terminal.h"

namespace outrider {
namespace {

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

}  // namespace

Result<DraftingServer> server_of(const RemoteTarget& remote) {
  OUTRIDER_TRY(DraftingServer server, DraftingServer::parse(remote.url));
  server.authority = remote.authority;
  server.model = remote.model;
  if (remote.api_key_file.empty()) return server;
  OUTRIDER_TRY(const std::string keys, read_text_file(remote.api_key_file));
  server.api_key = trimmed(keys.substr(0, keys.find('\n')));
  return server;
}

StateType state_type_of(const RemoteTarget& remote) {
  if (remote.states == "f16") return StateType::kF16;
  return remote.states == "q8" ? StateType::kQ8 : StateType::kBF16;
}

DividedPrompt divided(const DraftingParts& parts, std::string_view safe, std::string_view rest,
                      bool add_special) {
  DividedPrompt prompt{.tokens = parts.tokenizer->encode(safe, {.add_special = add_special})};
  prompt.safe = prompt.tokens.size();
  const std::vector<TokenId> hidden = parts.tokenizer->encode(rest, {.add_special = false});
  prompt.tokens.insert(prompt.tokens.end(), hidden.begin(), hidden.end());
  return prompt;
}

Result<TimedCompletion> write_remotely(const Settings& settings, RemoteDecoder& decoder,
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
  if (!prompt.is_private) {
    OUTRIDER_TRY(timed.completion, decoder.generate(request, on_text));
    return timed;
  }
  const auto on_private_text = [&](const LoneProgress& progress) {
    if (!settings.json) show(progress.text);
  };
  OUTRIDER_TRY(timed.completion, decoder.generate_privately(request, prompt.safe, on_private_text));
  return timed;
}

}  // namespace outrider
