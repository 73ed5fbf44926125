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

Result<GrammarExpr> form_expression(GrammarBuilder& builder, const OutputForm& form) {
  switch (form.kind) {
    case OutputForm::Kind::kJsonSchema:
      return json_schema_expression(builder, form.text);
    case OutputForm::Kind::kRegex:
      return regex_expression(builder, form.text);
    case OutputForm::Kind::kGrammar:
      return gbnf_expression(builder, form.text);
    case OutputForm::Kind::kChoice:
      return builder.one_of(form.choices);
    case OutputForm::Kind::kFree:
    case OutputForm::Kind::kJsonObject:
      break;
  }
  return json_object_expression(builder);
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

// The mark as it is spelled in grammars, with its control tokens.
std::string spelled(const Tokenizer& tokenizer, std::string_view mark) {
  std::string text;
  size_t done = 0;
  for (const TokenId token : tokenizer.encode(mark, {.add_special = false})) {
    if (!tokenizer.is_control(token)) continue;
    const std::string_view piece = tokenizer.token_piece(token);
    const size_t place = mark.find(piece, done);
    if (place == std::string_view::npos) continue;
    text.append(mark.substr(done, place - done)).append(control_token_bytes(piece));
    done = place + piece.size();
  }
  return text.append(mark.substr(done));
}

// The text after the mark of a form with calls that are objects. `is_single`: only one call.
GrammarExpr marked_calls(GrammarBuilder& builder, const ChatSpec& spec, const CallForm& form,
                         GrammarExpr call, bool is_single) {
  const GrammarExpr space = builder.repeat(builder.one_of({" ", "\n"}), 0, 2);
  if (!form.close.empty()) {
    return builder.sequence(
        {space, call, space, builder.literal(spelled(*spec.model->tokenizer, form.close))});
  }
  const GrammarExpr next = builder.sequence({builder.literal(", "), call});
  const GrammarExpr rest = is_single ? builder.empty() : builder.repeat(next, 0, GrammarBuilder::kUnbounded);
  return builder.sequence({space, builder.literal("["), call, rest, builder.literal("]")});
}

bool has_marked_objects(const CallForm& form) {
  return form.shape == CallShape::kObject && !form.open[0].empty() && !form.may_be_bare;
}

// Free text in which the mark that begins calls is followed by calls that obey their schemas.
ApiResult<Constraints> strict_constraints(ChatSpec& spec, const CallForm& form) {
  GrammarBuilder builder;
  OUTRIDER_TRY(const GrammarExpr call, any_call(builder, spec));
  const GrammarExpr body = marked_calls(builder, spec, form, call, false);
  const Result<GrammarExpr> root = triggered_expression(
      builder, {{.trigger = spelled(*spec.model->tokenizer, form.open[0]), .body = body}},
      {.is_required = false, .is_repeated = spec.prompt.tools.parallel && !form.close.empty()});
  if (!root.ok()) return field_error("tools", root.error().message);
  return make_constraints(builder.build(*root), spec, "tools", static_cast<size_t>(spec.n));
}

// One call on a channel of harmony, after any messages but the last one of an answer.
ApiResult<GrammarExpr> channel_call(GrammarBuilder& builder, ChatSpec& spec) {
  const Tokenizer& tokenizer = *spec.model->tokenizer;
  std::vector<GrammarExpr> calls;
  for (const Tool& tool : spec.prompt.tools.tools) {
    OUTRIDER_TRY(const GrammarExpr arguments,
                 tool_arguments(builder, tool, spec.prompt.tools.tools.size(), spec.ignored));
    const GrammarExpr kind = builder.literal(spelled(tokenizer, " <|constrain|>json"));
    calls.push_back(builder.sequence({builder.literal(tool.name), builder.optional(kind),
                                      builder.literal(spelled(tokenizer, "<|message|>")), arguments}));
  }
  const Result<GrammarExpr> root =
      triggered_expression(builder,
                           {{.trigger = spelled(tokenizer, "<|channel|>commentary to=functions."),
                             .body = builder.choice(std::move(calls))},
                            {.trigger = spelled(tokenizer, "<|channel|>final"), .body = builder.nothing()}},
                           {.is_required = true, .is_repeated = false});
  if (!root.ok()) return field_error("tools", root.error().message);
  return *root;
}

// `body` as the answer after its thinking.
ApiResult<GrammarExpr> after_thinking(GrammarBuilder& builder, const ChatSpec& spec, GrammarExpr body) {
  const OutputParts& output = spec.prompt.output;
  if (output.thinking == nullptr || output.begins == ThinkingState::kClosed) return body;
  const Tokenizer& tokenizer = *spec.model->tokenizer;
  const GrammarExpr space = builder.repeat(builder.one_of({" ", "\n"}), 0, 2);
  const Result<GrammarExpr> rest = triggered_expression(
      builder,
      {{.trigger = spelled(tokenizer, output.thinking->close), .body = builder.sequence({space, body})}},
      {.is_required = true, .is_repeated = false});
  if (!rest.ok()) return field_error(spec.form.path, rest.error().message);
  if (output.begins == ThinkingState::kOpen || output.thinking->is_channel) return *rest;
  const GrammarExpr open = builder.literal(spelled(tokenizer, output.thinking->open));
  return builder.choice({body, builder.sequence({open, *rest})});
}

// The call that the request demands, in the form of the template if its calls are objects, else as the plain
// object.
ApiResult<Constraints> forced_call(ChatSpec& spec) {
  GrammarBuilder builder;
  const CallForm& form = *spec.prompt.output.calls.front();
  if (form.shape == CallShape::kChannel) {
    OUTRIDER_TRY(const GrammarExpr root, channel_call(builder, spec));
    return make_constraints(builder.build(root), spec, "tool_choice", static_cast<size_t>(spec.n));
  }
  OUTRIDER_TRY(GrammarExpr call, any_call(builder, spec));
  if (has_marked_objects(form)) {
    const GrammarExpr open = builder.literal(spelled(*spec.model->tokenizer, form.open[0]));
    call = builder.sequence({open, marked_calls(builder, spec, form, call, true)});
  }
  OUTRIDER_TRY(const GrammarExpr root, after_thinking(builder, spec, call));
  return make_constraints(builder.build(root), spec, "tool_choice", static_cast<size_t>(spec.n));
}

ApiResult<Constraints> form_after_thinking(const ChatSpec& spec) {
  GrammarBuilder builder;
  const Result<GrammarExpr> form = form_expression(builder, spec.form);
  if (!form.ok()) return field_error(spec.form.path, form.error().message);
  OUTRIDER_TRY(const GrammarExpr root, after_thinking(builder, spec, *form));
  return make_constraints(builder.build(root), spec, spec.form.path, static_cast<size_t>(spec.n));
}

}  // namespace

ApiResult<Constraints> form_constraints(const GenerationSpec& spec, size_t choices) {
  if (spec.form.kind == OutputForm::Kind::kFree) return Constraints();
  GrammarBuilder builder;
  const Result<GrammarExpr> form = form_expression(builder, spec.form);
  if (!form.ok()) return field_error(spec.form.path, form.error().message);
  return make_constraints(builder.build(*form), spec, spec.form.path, choices);
}

ApiResult<Constraints> chat_constraints(ChatSpec& spec) {
  const ToolUse& tools = spec.prompt.tools;
  const bool is_free = spec.form.kind == OutputForm::Kind::kFree;
  if (tools.must_call()) {
    if (!is_free) return field_error("tool_choice", "expected auto or none beside " + spec.form.path);
    return forced_call(spec);
  }
  if (!is_free) return form_after_thinking(spec);
  const bool is_strict =
      std::any_of(tools.tools.begin(), tools.tools.end(), [](const Tool& t) { return t.strict; });
  if (tools.choice != ToolChoice::kAuto || !is_strict) return Constraints();
  const CallForm& form = *spec.prompt.output.calls.front();
  return has_marked_objects(form) ? strict_constraints(spec, form) : Constraints();
}

void prepare_output(ChatSpec& spec) {
  OutputParts& output = spec.prompt.output;
  if (!spec.splits_reasoning && output.thinking != nullptr && !output.thinking->is_channel)
    output.thinking = nullptr;
  std::vector<std::string_view> marks;
  const auto add = [&](const auto& more) { marks.insert(marks.end(), more.begin(), more.end()); };
  if (output.thinking != nullptr) add(output.thinking->marks());
  for (const CallForm* form : output.calls) add(form->marks());
  if (output.thinking != nullptr && output.thinking->is_channel) add(channel_marks());
  const Tokenizer& tokenizer = *spec.model->tokenizer;
  for (const std::string_view mark : marks) {
    const auto token = tokenizer.find_piece(mark);
    if (token && tokenizer.is_control(*token)) spec.shown_control.push_back(*token);
  }
  if (spec.shown_control.empty() || !spec.request.skip_special) return;
  spec.request.skip_special = false;
  spec.hides_control = true;
}

}  // namespace outrider
