// SPDX-License-Identifier: Apache-2.0
#include "server/api/requests/output_form.h"

#include "server/api/field_rules.h"

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

ApiStatus read_json_schema(const RequestField& field, GenerationSpec& spec) {
  if (const auto name = field.find("name")) OUTRIDER_RETURN_IF_ERROR(name->string());
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

// {"type": "json_object" or "json_schema"}; beside either, "schema" is a schema, as in llama-server.
ApiStatus read_response_format(const RequestField& field, GenerationSpec& spec) {
  constexpr std::string_view kTypes[] = {"text", "json_object", "json_schema"};
  OUTRIDER_TRY(const RequestField type, field.at("type"));
  OUTRIDER_TRY(const int kind, type.one_of(kTypes));
  if (kind == 0) return api_ok();
  if (const auto schema = field.find("schema")) {
    OUTRIDER_TRY(std::string text, schema_text(*schema, *spec.limits));
    return set_form(*schema, spec, {.kind = Kind::kJsonSchema, .text = std::move(text)});
  }
  if (kind == 1) return set_form(field, spec, {.kind = Kind::kJsonObject});
  OUTRIDER_TRY(const RequestField schema, field.at("json_schema"));
  return read_json_schema(schema, spec);
}

ApiStatus read_structured_outputs(const RequestField& field, GenerationSpec& spec) {
  return read_members<GenerationSpec>(field, kStructured, spec);
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
