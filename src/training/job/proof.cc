// SPDX-License-Identifier: Apache-2.0
#include "training/job/proof.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>

#include "config/speculative_config.h"
#include "open/parts.h"

namespace outrider::training {
namespace {

enum class Drafting { kNone, kAlways, kAuto };

// All prompts, one after the other.
struct Round {
  std::vector<std::vector<TokenId>> texts;
  int64_t tokens = 0;
  double seconds = 0.0;
  SpeculationStats drafts;

  double rate() const { return static_cast<double>(tokens) / std::max(1e-9, seconds); }
};

class Prover {
 public:
  Prover(Engine& engine, const std::vector<std::vector<TokenId>>& prompts, int64_t max_tokens)
      : engine_(engine), prompts_(prompts), max_tokens_(max_tokens) {}

  Result<Round> run(Drafting drafting, double temperature) {
    Round round;
    const auto start = std::chrono::steady_clock::now();
    for (size_t i = 0; i < prompts_.size(); ++i) {
      Request request{.prompt = prompts_[i], .max_tokens = max_tokens_, .sample_index = i};
      request.sampling.temperature = static_cast<float>(temperature);
      request.speculation.enabled = drafting != Drafting::kNone;
      if (drafting == Drafting::kAlways) request.speculation.is_auto = false;
      OUTRIDER_TRY(Completion completion, engine_.generate(std::move(request)));
      round.tokens += std::ssize(completion.tokens);
      round.drafts.steps += completion.speculation.steps;
      round.drafts.committed += completion.speculation.committed;
      round.texts.push_back(std::move(completion.tokens));
    }
    round.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return round;
  }

 private:
  Engine& engine_;
  const std::vector<std::vector<TokenId>>& prompts_;
  int64_t max_tokens_;
};

Status check_same(const Round& plain, const Round& drafted) {
  for (size_t i = 0; i < plain.texts.size(); ++i) {
    if (plain.texts[i] != drafted.texts[i])
      return input_error(fmt::format("the text of prompt {} differs from the plain one", i + 1));
  }
  return {};
}

}  // namespace

Result<Proof> prove_drafter(const EngineOptions& options, const std::filesystem::path& head,
                            const std::vector<std::vector<TokenId>>& prompts, int64_t max_tokens) {
  Names names(options);
  OUTRIDER_TRY(SpeculativeConfig automatic, parse_speculative("auto"));
  names.options.speculation = std::move(automatic.options);
  names.options.speculation.speculative_model = head;
  names.finds_drafter = true;
  OUTRIDER_TRY(const std::unique_ptr<Engine> engine, open_engine(std::move(names)));
  Prover prover(*engine, prompts, max_tokens);
  OUTRIDER_TRY(const Round always, prover.run(Drafting::kAlways, 0.0));
  // The next two find the prompts in the cache, so that their times compare.
  OUTRIDER_TRY(const Round plain, prover.run(Drafting::kNone, 0.0));
  OUTRIDER_TRY(const Round as_it_pays, prover.run(Drafting::kAuto, 0.0));
  OUTRIDER_RETURN_IF_ERROR(check_same(plain, always));
  OUTRIDER_RETURN_IF_ERROR(check_same(plain, as_it_pays));
  OUTRIDER_TRY(const Round plain_sampled, prover.run(Drafting::kNone, 0.8));
  OUTRIDER_TRY(const Round sampled, prover.run(Drafting::kAlways, 0.8));
  OUTRIDER_RETURN_IF_ERROR(check_same(plain_sampled, sampled));
  return Proof{.tokens = 2 * plain.tokens + plain_sampled.tokens,
               .length = always.drafts.acceptance_length(),
               .plain_rate = plain.rate(),
               .auto_rate = as_it_pays.rate()};
}

}  // namespace outrider::training
