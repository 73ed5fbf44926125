// SPDX-License-Identifier: Apache-2.0
// What the output must look like, in OpenAI's words (response_format) and vLLM's (structured_outputs,
// guided_*).
#include "server/api/generation_spec.h"

namespace outrider {
namespace {

using Kind = OutputForm::Kind;

ApiStatus set_form(const RequestField& field, GenerationSpec& spec, OutputForm form) {
  if (spec.form.kind != Kind::kFree) {
    return field.error("expected one form of output, found " + spec.form.path + " too");
  }
  form.path = field.path();
  spec.form = std::move(form);
  return api_ok();
}

ApiResult<std::string> bounded_text(const RequestField& field, const ApiLimits& limits) {
  OUTRIDER_TRY(std::string text, field.string());
  if (text.size() > static_cast<size_t>(limits.grammar_bytes)) {
    return field.error("expected at most " + std::to_string(limits.grammar_bytes) + " bytes, found " +
                       std::to_string(text.size()));
  }
  return text;
}

ApiStatus read_json_schema(const RequestField& field, GenerationSpec& spec) {
  OUTRIDER_TRY(const RequestField name, field.at("name"));
  OUTRIDER_TRY([[maybe_unused]] const std::string name_text, name.string());
  if (const auto strict = field.find("strict")) {
    OUTRIDER_TRY([[maybe_unused]] const bool is_strict, strict->boolean());
  }
  const auto schema = field.find("schema");
  if (!schema) return set_form(field, spec, {.kind = Kind::kJsonObject});
  OUTRIDER_TRY(std::string text, schema_text(*schema, *spec.limits));
  return set_form(*schema, spec, {.kind = Kind::kJsonSchema, .text = std::move(text)});
}

ApiStatus read_json_object(const RequestField& field, GenerationSpec& spec) {
  OUTRIDER_TRY(const bool wanted, field.boolean());
  return wanted ? set_form(field, spec, {.kind = Kind::kJsonObject}) : api_ok();
}

ApiStatus read_ignored(const RequestField& field, GenerationSpec& spec) {
  spec.ignored.push_back(field.path());
  return api_ok();
}

constexpr FieldRule<GenerationSpec> kStructured[] = {
    {"json", read_guided_json},        {"regex", read_guided_regex},
    {"choice", read_guided_choice},    {"grammar", read_guided_grammar},
    {"json_object", read_json_object}, {"disable_any_whitespace", read_ignored}};

}  // namespace

ApiResult<std::string> schema_text(const RequestField& field, const ApiLimits& limits) {
  if (field.is_string()) return bounded_text(field, limits);
  if (!field.is_object() && !field.is_bool()) return field.expected("a JSON schema");
  std::string text = field.json();
  if (text.size() > static_cast<size_t>(limits.grammar_bytes)) {
    return field.error("expected at most " + std::to_string(limits.grammar_bytes) + " bytes, found " +
                       std::to_string(text.size()));
  }
  return text;
}

ApiStatus read_response_format(const RequestField& field, GenerationSpec& spec) {
  constexpr std::string_view kTypes[] = {"text", "json_object", "json_schema"};
  OUTRIDER_TRY(const RequestField type, field.at("type"));
  OUTRIDER_TRY(const int kind, type.one_of(kTypes));
  if (kind == 0) return api_ok();
  if (kind == 1) return set_form(field, spec, {.kind = Kind::kJsonObject});
  OUTRIDER_TRY(const RequestField schema, field.at("json_schema"));
  return read_json_schema(schema, spec);
}

ApiStatus read_structured_outputs(const RequestField& field, GenerationSpec& spec) {
  OUTRIDER_TRY(const auto members, field.members());
  for (const RequestField& member : members) {
    if (member.is_null()) continue;
    const FieldRule<GenerationSpec>* rule = nullptr;
    for (const auto& candidate : kStructured) {
      if (candidate.name == member.key()) rule = &candidate;
    }
    if (rule == nullptr) return unknown_field(member);
    OUTRIDER_RETURN_IF_ERROR(rule->read(member, spec));
  }
  return api_ok();
}

ApiStatus read_guided_json(const RequestField& field, GenerationSpec& spec) {
  OUTRIDER_TRY(std::string text, schema_text(field, *spec.limits));
  return set_form(field, spec, {.kind = Kind::kJsonSchema, .text = std::move(text)});
}

ApiStatus read_guided_regex(const RequestField& field, GenerationSpec& spec) {
  OUTRIDER_TRY(std::string text, bounded_text(field, *spec.limits));
  return set_form(field, spec, {.kind = Kind::kRegex, .text = std::move(text)});
}

ApiStatus read_guided_grammar(const RequestField& field, GenerationSpec& spec) {
  OUTRIDER_TRY(std::string text, bounded_text(field, *spec.limits));
  return set_form(field, spec, {.kind = Kind::kGrammar, .text = std::move(text)});
}

ApiStatus read_guided_choice(const RequestField& field, GenerationSpec& spec) {
  constexpr size_t kMax = 1024;
  OUTRIDER_TRY(const auto items, field.items(kMax));
  if (items.empty()) return field.error("expected at least one choice, found none");
  OutputForm form{.kind = Kind::kChoice};
  size_t bytes = 0;
  for (const RequestField& item : items) {
    OUTRIDER_TRY(std::string text, bounded_text(item, *spec.limits));
    bytes += text.size();
    form.choices.push_back(std::move(text));
  }
  if (bytes > static_cast<size_t>(spec.limits->grammar_bytes)) {
    return field.error("expected at most " + std::to_string(spec.limits->grammar_bytes) + " bytes, found " +
                       std::to_string(bytes));
  }
  return set_form(field, spec, std::move(form));
}

}  // namespace outrider
