// SPDX-License-Identifier: Apache-2.0
#include "server/api/requests/speculative_fields.h"

#include "server/api/field_rules.h"

namespace outrider {
namespace {

constexpr int64_t kMaxDraftTokens = 1024;

ApiStatus read_enabled(const RequestField& field, GenerationSpec& spec) {
  OUTRIDER_TRY(spec.request.speculation.enabled, field.boolean());
  return api_ok();
}

ApiStatus read_mode(const RequestField& field, GenerationSpec& spec) {
  constexpr std::string_view kModes[] = {"off", "fixed", "auto"};
  OUTRIDER_TRY(const int mode, field.one_of(kModes));
  RequestSpeculation& speculation = spec.request.speculation;
  speculation.enabled = mode != 0;
  if (mode != 0) speculation.is_auto = mode == 2;
  return api_ok();
}

ApiStatus read_budget(const RequestField& field, GenerationSpec& spec) {
  OUTRIDER_TRY(const int64_t budget, field.integer(1, kMaxDraftTokens));
  spec.request.speculation.max_draft_tokens = static_cast<int>(budget);
  return api_ok();
}

ApiStatus read_acceptance(const RequestField& field, GenerationSpec& spec) {
  OUTRIDER_TRY(const int rule, field.one_of(kAcceptanceRuleNames));
  spec.request.speculation.acceptance = static_cast<AcceptanceRule>(rule);
  return api_ok();
}

ApiStatus read_trace(const RequestField& field, GenerationSpec& spec) {
  constexpr std::string_view kNames[] = {"none", "summary", "detailed"};
  OUTRIDER_TRY(const int trace, field.one_of(kNames));
  spec.trace = static_cast<SpeculationTrace>(trace);
  return api_ok();
}

constexpr FieldRule<GenerationSpec> kSpeculativeRules[] = {{"enabled", read_enabled},
                                                           {"mode", read_mode},
                                                           {"budget", read_budget},
                                                           {"acceptance", read_acceptance},
                                                           {"trace", read_trace}};

}  // namespace

ApiStatus read_speculative(const RequestField& field, GenerationSpec& spec) {
  if (!field.is_object()) return field.expected("an object");
  if (field.find("enabled") && field.find("mode")) {
    return field.error("expected \"mode\" or \"enabled\", found both");
  }
  return read_members<GenerationSpec>(field, kSpeculativeRules, spec);
}

}  // namespace outrider
