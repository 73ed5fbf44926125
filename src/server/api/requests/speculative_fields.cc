// SPDX-License-Identifier: Apache-2.0
#include "server/api/requests/speculative_fields.h"

#include <string>
#include <vector>

#include "server/api/field_rules.h"

namespace outrider {
namespace {

constexpr size_t kMaxMethods = 32;

// A field of "speculative" that the option table has.
ApiStatus read_row(const RequestField& field, GenerationSpec& spec) {
  const std::string name = "speculative." + std::string(field.key());
  return read_parameter(field, *find_http_field(name), spec.request);
}

ApiStatus read_mode(const RequestField& field, GenerationSpec& spec) {
  constexpr std::string_view kModes[] = {"off", "fixed", "auto"};
  OUTRIDER_TRY(const int mode, field.one_of(kModes));
  RequestSpeculation& speculation = spec.request.speculation;
  speculation.enabled = mode != 0;
  if (mode != 0) speculation.is_auto = mode == 2;
  return api_ok();
}

// A name or a list of names; the engine knows which it was opened with.
ApiStatus read_method(const RequestField& field, GenerationSpec& spec) {
  std::vector<std::string>& methods = spec.request.speculation.methods;
  if (field.is_string()) {
    OUTRIDER_TRY(methods.emplace_back(), field.string());
    return api_ok();
  }
  if (!field.is_array() || field.size() == 0)
    return field.expected("the name of a method, or a list of names");
  OUTRIDER_TRY(const std::vector<RequestField> items, field.items(kMaxMethods));
  for (const RequestField& item : items) {
    OUTRIDER_TRY(methods.emplace_back(), item.string());
  }
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

constexpr FieldRule<GenerationSpec> kSpeculativeRules[] = {
    {"enabled", read_row},           {"mode", read_mode},        {"budget", read_row},
    {"max_draft_len", read_row},     {"max_children", read_row}, {"method", read_method},
    {"acceptance", read_acceptance}, {"trace", read_trace}};

}  // namespace

ApiStatus read_speculative(const RequestField& field, GenerationSpec& spec) {
  if (!field.is_object()) return field.expected("an object");
  if (field.find("enabled") && field.find("mode")) {
    return field.error("expected \"mode\" or \"enabled\", found both");
  }
  return read_members<GenerationSpec>(field, kSpeculativeRules, spec);
}

}  // namespace outrider
