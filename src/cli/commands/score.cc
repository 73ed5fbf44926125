// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>
#include <utility>

#include "cli/commands/commands.h"
#include "cli/prompt_text.h"
#include "cli/reports/completion_json.h"
#include "cli/terminal.h"
#include "open/parts.h"

namespace outrider {

Status run_score(const Settings& settings) {
  OUTRIDER_RETURN_IF_ERROR(check_one_input(settings, "--text-file and --prompt-ids"));
  OUTRIDER_TRY(Names names, names_of(settings, Unasked::kPlain));
  OUTRIDER_TRY(const std::unique_ptr<Engine> engine, open_engine(std::move(names)));
  OUTRIDER_TRY(const std::vector<TokenId> tokens, input_tokens(settings, *engine));
  OUTRIDER_TRY(const std::vector<double> log_probabilities, engine->score(tokens));
  if (settings.json) {
    nlohmann::ordered_json json;
    json["token_ids"] = tokens;
    json["logprobs"] = log_probabilities;
    json["logprobs"][0] = nullptr;  // nothing comes before the first token
    write_output(json_line(json));
    return {};
  }
  const double total = std::accumulate(log_probabilities.begin() + 1, log_probabilities.end(), 0.0);
  const auto scored = static_cast<double>(tokens.size() - 1);
  const std::string perplexity = tokens.size() < 2 ? "-" : fmt::format("{:.4f}", std::exp(-total / scored));
  write_output(
      fmt::format("tokens {}  log-probability {:.4f}  perplexity {}\n", tokens.size(), total, perplexity));
  return {};
}

}  // namespace outrider
