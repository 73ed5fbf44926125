// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cli/commands/commands.h"
#include "cli/prompt_set.h"
#include "cli/proof/compare_kernels.h"
#include "cli/proof/lossless_proof.h"
#include "cli/proof/verified_requests.h"
#include "cli/reports/completion_json.h"
#include "cli/terminal.h"
#include "open/parts.h"

namespace outrider {
namespace {

Result<Proof> prove(const Settings& settings, Engine& engine, const PreparedPrompts& prepared) {
  const std::vector<Mode> modes = modes_for(settings);
  const SamplingParams& sampling = settings.request.sampling;
  const bool by_distribution =
      sampling.temperature > 0 && compares_distributions(acceptance_rule(settings.engine));
  const size_t rounds = modes.size() * 4 + (by_distribution ? 2 : 0);
  ProgressBar progress("verify", static_cast<int64_t>(rounds * prepared.records.size()));
  std::vector<std::string> names;
  for (const PromptRecord& record : prepared.records) names.push_back(record.id);
  LosslessProver prover(engine, std::move(names), [&progress] { progress.advance(); });
  for (const Mode& mode : modes)
    OUTRIDER_RETURN_IF_ERROR(prover.run(mode, requests_for(settings, prepared, mode.sampling)));
  if (by_distribution)
    OUTRIDER_RETURN_IF_ERROR(prover.run_by_distribution(requests_for(settings, prepared, sampling)));
  return prover.proof();
}

}  // namespace

Status run_verify_lossless(const Settings& settings) {
  if (!is_lossless(acceptance_rule(settings.engine))) {
    return usage_error(
        "verify-lossless expects acceptance coupled, rejection or block, found a lossy rule; leave it out");
  }
  if (settings.verify.compares_kernels) return compare_kernels(settings);
  OUTRIDER_TRY(std::vector<PromptRecord> records, load_prompts(settings));
  OUTRIDER_TRY(const Names names, names_of(settings, Unasked::kAuto));
  if (names.options.speculation.decoding_type == Method::kNone)
    return usage_error(
        "verify-lossless compares speculative output: expected a method in --speculative, found none");
  OUTRIDER_TRY(const std::unique_ptr<Engine> engine, open_engine(names));
  OUTRIDER_TRY(const PreparedPrompts prepared, prepare_prompts(std::move(records), *engine, settings));
  OUTRIDER_TRY(const Proof proof, prove(settings, *engine, prepared));
  if (settings.json) write_output(json_line(proof_json(proof, engine->info())));
  OUTRIDER_RETURN_IF_ERROR(verdict(proof));
  if (!settings.json) write_output(proof_text(proof, engine->info(), names.options.max_batch));
  return {};
}

}  // namespace outrider
