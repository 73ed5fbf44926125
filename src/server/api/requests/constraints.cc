// SPDX-License-Identifier: Apache-2.0
#include "server/api/requests/constraints.h"

#include <algorithm>

#include "grammar/grammar.h"
#include "grammar/grammar_builder.h"
#include "grammar/grammar_constraint.h"
#include "server/api/json_text.h"
#include "server/api/tool_calls/tool_arguments.h"

namespace outrider {
namespace {

ApiResult<Constraints> make_constraints(const Result<SharedGrammar>& grammar, const GenerationSpec& spec,
                                        const std::string& path, size_t choices) {
  if (!grammar.ok()) return field_error(path, grammar.error().message);
  if (spec.model->token_trie == nullptr) {
    return field_error(path, "is not supported by this server", "unsupported_parameter");
  }
  std::vector<TokenId> ending = spec.model->stop_tokens;
  ending.insert(ending.end(), spec.request.stop_tokens.begin(), spec.request.stop_tokens.end());
  const auto matcher = GrammarMatcher::create(*grammar, spec.model->token_trie, std::move(ending));
  Constraints constraints;
  for (size_t i = 0; i < choices; ++i) constraints.push_back(matcher->make_constraint());
  return constraints;
}

Result<SharedGrammar> form_grammar(const OutputForm& form) {
  switch (form.kind) {
    case OutputForm::Kind::kJsonSchema:
      return grammar_of_json_schema(form.text);
    case OutputForm::Kind::kRegex:
      return grammar_of_regex(form.text);
    case OutputForm::Kind::kGrammar:
      return parse_gbnf(form.text);
    case OutputForm::Kind::kChoice: {
      GrammarBuilder builder;
      const GrammarExpr choice = builder.one_of(form.choices);
      return builder.build(choice);
    }
    case OutputForm::Kind::kFree:
    case OutputForm::Kind::kJsonObject:
      break;
  }
  return json_object_grammar();
}

// {"name": "f", "arguments": ...}
ApiResult<GrammarExpr> call_expression(GrammarBuilder& builder, const Tool& tool, ChatSpec& spec) {
  OUTRIDER_TRY(const GrammarExpr arguments,
               tool_arguments(builder, tool, spec.prompt.tools.tools.size(), spec.ignored));
  std::string prefix = "{\"name\": ";
  append_json_string(prefix, tool.name);
  prefix += ", \"arguments\": ";
  return builder.sequence({builder.literal(prefix), arguments, builder.literal("}")});
}

ApiResult<GrammarExpr> any_call(GrammarBuilder& builder, ChatSpec& spec) {
  std::vector<GrammarExpr> calls;
  for (const Tool& tool : spec.prompt.tools.tools) {
    OUTRIDER_TRY(const GrammarExpr call, call_expression(builder, tool, spec));
    calls.push_back(call);
  }
  return builder.choice(std::move(calls));
}

// Constrains the text after the mark that begins calls, in formats with such a mark.
ApiResult<Constraints> strict_constraints(ChatSpec& spec, const ToolFormat& format) {
  GrammarBuilder builder;
  OUTRIDER_TRY(const GrammarExpr call, any_call(builder, spec));
  const GrammarExpr space = builder.repeat(builder.one_of({" ", "\n"}), 0, 2);
  const bool is_array = format.close.empty();
  std::vector<GrammarExpr> parts = {space, call, space};
  if (is_array) {
    const GrammarExpr next = builder.sequence({builder.literal(", "), call});
    parts = {space, builder.literal("["), call, builder.repeat(next, 0, GrammarBuilder::kUnbounded),
             builder.literal("]")};
  } else {
    parts.push_back(builder.literal(format.close));
  }
  const GrammarExpr body = builder.sequence(std::move(parts));
  const auto marker = spec.model->tokenizer->find_piece(format.open);
  const bool is_control = marker && spec.model->tokenizer->is_control(*marker);
  const std::string trigger = is_control ? control_token_bytes(format.open) : std::string(format.open);
  const Result<GrammarExpr> root =
      triggered_expression(builder, {{.trigger = trigger, .body = body}},
                           {.is_required = false, .is_repeated = spec.prompt.tools.parallel && !is_array});
  if (!root.ok()) return field_error("tools", root.error().message);
  return make_constraints(builder.build(*root), spec, "tools", static_cast<size_t>(spec.n));
}

}  // namespace

ApiResult<Constraints> form_constraints(const GenerationSpec& spec, size_t choices) {
  if (spec.form.kind == OutputForm::Kind::kFree) return Constraints();
  return make_constraints(form_grammar(spec.form), spec, spec.form.path, choices);
}

ApiResult<Constraints> chat_constraints(ChatSpec& spec) {
  const ToolUse& tools = spec.prompt.tools;
  const auto choices = static_cast<size_t>(spec.n);
  if (tools.must_call()) {
    if (spec.form.kind != OutputForm::Kind::kFree) {
      return field_error("tool_choice", "expected auto or none beside " + spec.form.path);
    }
    GrammarBuilder builder;
    OUTRIDER_TRY(const GrammarExpr call, any_call(builder, spec));
    return make_constraints(builder.build(call), spec, "tool_choice", choices);
  }
  if (spec.form.kind != OutputForm::Kind::kFree) return form_constraints(spec, choices);
  const bool is_strict =
      std::any_of(tools.tools.begin(), tools.tools.end(), [](const Tool& t) { return t.strict; });
  if (tools.choice != ToolChoice::kAuto || !is_strict) return Constraints();
  const ToolFormat& format = tool_format(spec.model->chat_template->source());
  const bool is_marked_object = !format.only_at_start && format.form == CallForm::kObject;
  return is_marked_object ? strict_constraints(spec, format) : Constraints();
}

void prepare_output(ChatSpec& spec) {
  const ToolUse& tools = spec.prompt.tools;
  const bool has_form = tools.must_call() || spec.form.kind != OutputForm::Kind::kFree;
  if (has_form || !spec.splits_reasoning) spec.prompt.reasoning = nullptr;
  const auto show = [&](std::string_view mark) {
    const auto token = spec.model->tokenizer->find_piece(mark);
    if (token && spec.model->tokenizer->is_control(*token)) spec.request.skip_special = false;
  };
  if (spec.prompt.reasoning != nullptr) show(spec.prompt.reasoning->close);
  if (tools.choice == ToolChoice::kAuto) show(tool_format(spec.model->chat_template->source()).open);
}

}  // namespace outrider
