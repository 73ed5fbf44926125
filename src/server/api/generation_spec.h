// SPDX-License-Identifier: Apache-2.0
// What a request asks for, read from its fields.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "server/api/generation_call.h"
#include "server/api/request_field.h"

namespace outrider {

// What the output must look like.
struct OutputForm {
  enum class Kind : uint8_t { kFree, kJsonObject, kJsonSchema, kRegex, kGrammar, kChoice };
  Kind kind = Kind::kFree;
  std::string text = {};                  // schema, expression or grammar
  std::vector<std::string> choices = {};  // kChoice
  std::string path = {};                  // of the field that says so
};

enum class SpeculationTrace : uint8_t { kNone, kSummary, kDetailed };

// What both endpoints have in common.
struct GenerationSpec {
  const ServedModel* model = nullptr;
  const ApiLimits* limits = nullptr;

  Request request;  // of every choice, but for prompt, stream and constraint
  std::optional<int64_t> max_tokens;
  std::optional<int64_t> longest_prompt;  // its last tokens are kept; -1: as many as the context lets
  std::optional<uint64_t> seed;
  int n = 1;
  int prompt_logprobs = -1;  // so many beside that of each token; -1: none
  bool streams = false;
  bool include_usage = false;
  bool continuous_usage = false;  // usage in every chunk
  bool include_stop = false;      // the stop string is part of the output
  bool return_token_ids = false;
  SpeculationTrace trace = SpeculationTrace::kNone;
  OutputForm form;
  std::vector<std::string> ignored;  // fields
};

template <typename Spec>
struct FieldRule {
  std::string_view name;
  ApiStatus (*read)(const RequestField& field, Spec& spec);
};

// A field that both endpoints know; what nobody knows is added to `ignored`.
ApiStatus read_common_field(const RequestField& field, GenerationSpec& spec);
// What only holds for all of them together.
ApiStatus check_common_fields(const RequestField& root, const GenerationSpec& spec);
// Drops the first tokens of a prompt that is longer than asked for; whether there were any.
bool truncate_prompt(const GenerationSpec& spec, std::vector<TokenId>& tokens);
// Of tools and forms: members that no rule names.
ApiError unknown_field(const RequestField& field);

// Every member of `root` that is not null, by `rules` or else as a common field.
template <typename Spec>
ApiStatus read_fields(const RequestField& root, std::span<const FieldRule<Spec>> rules, Spec& spec) {
  OUTRIDER_TRY(const std::vector<RequestField> members, root.members());
  for (const RequestField& member : members) {
    if (member.is_null()) continue;
    const FieldRule<Spec>* rule = nullptr;
    for (const FieldRule<Spec>& candidate : rules) {
      if (candidate.name == member.key()) rule = &candidate;
    }
    OUTRIDER_RETURN_IF_ERROR(rule != nullptr ? rule->read(member, spec) : read_common_field(member, spec));
  }
  return check_common_fields(root, spec);
}

// response_format, structured_outputs and their older names; see output_form.cc.
ApiStatus read_response_format(const RequestField& field, GenerationSpec& spec);
ApiStatus read_structured_outputs(const RequestField& field, GenerationSpec& spec);
ApiStatus read_guided_json(const RequestField& field, GenerationSpec& spec);
ApiStatus read_guided_regex(const RequestField& field, GenerationSpec& spec);
ApiStatus read_guided_choice(const RequestField& field, GenerationSpec& spec);
ApiStatus read_guided_grammar(const RequestField& field, GenerationSpec& spec);

// A schema, given as an object or as the text of one.
ApiResult<std::string> schema_text(const RequestField& field, const ApiLimits& limits);

// speculative: {...}
ApiStatus read_speculative(const RequestField& field, GenerationSpec& spec);

// JSON of another value than these, minified and separated by spaces: cannot be done here.
struct UnsupportedField {
  std::string_view name;
  std::string_view neutral;
};
ApiStatus check_unsupported(const RequestField& field, const UnsupportedField& rule);

}  // namespace outrider
