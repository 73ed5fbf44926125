// SPDX-License-Identifier: Apache-2.0
#include "engine/step/statistics.h"

#include "config/methods.h"

namespace outrider {
namespace {

// The method of requests with offered trees.
constexpr std::string_view kOffered = "Offered";

void add_sequence(const StepReport& report, const SequenceStep& step, const std::string& drafter,
                  SpeculationStats& all) {
  const Request& request = step.plan.sequence->request();
  SpeculationStats& stats = step.plan.sequence->completion().speculation;
  const int failures = report.draft_failed && step.asks_drafter() ? 1 : 0;
  stats.method = request.speculation.is_offered ? kOffered
                 : request.speculation.enabled  ? std::string_view(drafter)
                                                : method_name(Method::kNone);
  stats.lossless = is_lossless(step.rule) || stats.method == method_name(Method::kNone);
  stats.draft_ms += report.times.drafting();
  stats.verify_ms += report.times.verifying();
  stats.draft_failures += failures;
  add_tree(step.tree, step.verdict, stats);
  all.lossless &= stats.lossless;
  all.draft_failures += failures;
  add_tree(step.tree, step.verdict, all);
}

}  // namespace

void add_tree(const TokenTree& tree, const Verdict& verdict, SpeculationStats& stats) {
  stats.steps += verdict.tokens.empty() ? 0 : 1;
  stats.drafts += tree.drafted() == 0 ? 0 : 1;
  stats.committed += std::ssize(verdict.tokens);
  stats.drafted += tree.drafted();
  for (int node = 1; node < tree.size(); ++node) {
    const auto level = static_cast<size_t>(tree.depth(node) - 1);
    if (stats.drafted_per_position.size() <= level) {
      stats.drafted_per_position.resize(level + 1);
      stats.accepted_per_position.resize(level + 1);
    }
    const bool is_accepted = verdict.fates[static_cast<size_t>(node)] == NodeFate::kAccepted;
    ++stats.drafted_per_position[level];
    stats.accepted_per_position[level] += is_accepted ? 1 : 0;
    stats.accepted += is_accepted ? 1 : 0;
  }
}

void reserve_statistics(SpeculationStats& stats, int64_t max_draft_len) {
  stats.drafted_per_position.reserve(static_cast<size_t>(max_draft_len));
  stats.accepted_per_position.reserve(static_cast<size_t>(max_draft_len));
}

void add_step(const StepReport& report, const std::string& drafter, StepTotals& totals) {
  const double ms = report.times.drafting() + report.times.verifying();
  for (const SequenceStep& step : report.sequences) {
    Completion& completion = step.plan.sequence->completion();
    const bool is_prompt = !step.plan.decodes || step.plan.prefill_tokens > 0;
    (is_prompt ? completion.prompt_ms : completion.decode_ms) += ms;
    if (step.plan.decodes) add_sequence(report, step, drafter, totals.speculation);
  }
  totals.steps += 1;
  totals.rows += report.rows;
  totals.speculation.draft_ms += report.times.drafting();
  totals.speculation.verify_ms += report.times.verifying();
}

}  // namespace outrider
