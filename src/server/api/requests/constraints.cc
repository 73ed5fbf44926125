// SPDX-License-Identifier: Apache-2.0
#include "server/api/requests/constraints.h"

#include <algorithm>

#include "grammar/grammar.h"
#include "grammar/grammar_builder.h"
#include "grammar/grammar_constraint.h"
#include "server/api/tool_calls/call_grammar.h"
#include "server/api/tool_calls/thinking_budget.h"

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

CallInput call_input(ChatSpec& spec) {
  return {.tokenizer = *spec.model->tokenizer, .tools = spec.prompt.tools, .notes = spec.ignored};
}

// Free text in which the mark that begins calls is followed by calls that obey their schemas.
ApiResult<Constraints> strict_constraints(ChatSpec& spec, const CallForm& form) {
  GrammarBuilder builder;
  OUTRIDER_TRY(const std::optional<GrammarExpr> body, calls_after_mark(builder, call_input(spec), form));
  if (!body) return Constraints();
  const bool is_marked = form.spelling.order == CallSpelling::Order::kMarked;
  const Result<GrammarExpr> root = triggered_expression(
      builder, {{.trigger = spelled_mark(*spec.model->tokenizer, form.open[0]), .body = *body}},
      {.is_required = false, .is_repeated = spec.prompt.tools.parallel && is_marked});
  if (!root.ok()) return field_error("tools", root.error().message);
  return make_constraints(builder.build(*root), spec, "tools", static_cast<size_t>(spec.n));
}

// One call on a channel of harmony, after any messages but the last one of an answer. `final`: what this
// message may say instead.
ApiResult<GrammarExpr> channel_answer(GrammarBuilder& builder, ChatSpec& spec, GrammarExpr final) {
  const Tokenizer& tokenizer = *spec.model->tokenizer;
  std::vector<GrammarExpr> calls;
  for (const Tool& tool : spec.prompt.tools.tools) {
    OUTRIDER_TRY(const GrammarExpr arguments, call_arguments(builder, call_input(spec), tool));
    const GrammarExpr kind = builder.literal(spelled_mark(tokenizer, " <|constrain|>json"));
    calls.push_back(builder.sequence({builder.literal(tool.name), builder.optional(kind),
                                      builder.literal(spelled_mark(tokenizer, "<|message|>")), arguments}));
  }
  const GrammarExpr message = builder.literal(spelled_mark(tokenizer, "<|message|>"));
  const Result<GrammarExpr> root = triggered_expression(
      builder,
      {{.trigger = spelled_mark(tokenizer, "<|channel|>commentary to=functions."),
        .body = builder.choice(std::move(calls))},
       {.trigger = spelled_mark(tokenizer, "<|channel|>final"), .body = builder.sequence({message, final})}},
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
      {{.trigger = spelled_mark(tokenizer, output.thinking->close), .body = builder.sequence({space, body})}},
      {.is_required = true, .is_repeated = false});
  if (!rest.ok()) return field_error(spec.form.path, rest.error().message);
  if (output.begins == ThinkingState::kOpen || output.thinking->is_channel) return *rest;
  const GrammarExpr open = builder.literal(spelled_mark(tokenizer, output.thinking->open));
  return builder.choice({body, builder.sequence({open, *rest})});
}

bool has_channels(const ChatSpec& spec) {
  return spec.prompt.output.calls.front()->shape == CallShape::kChannel;
}

// Calls in the form of the template. Where the server asks for the plain form, both forms are right.
ApiResult<GrammarExpr> possible_calls(GrammarBuilder& builder, ChatSpec& spec) {
  const CallForm& form = *spec.prompt.output.calls.front();
  OUTRIDER_TRY(const GrammarExpr calls, written_calls(builder, call_input(spec), form));
  if (spec.model->template_abilities.shows_tools || &form == &plain_call_form()) return calls;
  OUTRIDER_TRY(const GrammarExpr plain, written_calls(builder, call_input(spec), plain_call_form()));
  return builder.choice({calls, plain});
}

ApiResult<Constraints> forced_call(ChatSpec& spec) {
  GrammarBuilder builder;
  GrammarExpr root = 0;
  if (has_channels(spec)) {
    OUTRIDER_TRY(root, channel_answer(builder, spec, builder.nothing()));
  } else {
    OUTRIDER_TRY(const GrammarExpr calls, possible_calls(builder, spec));
    OUTRIDER_TRY(root, after_thinking(builder, spec, calls));
  }
  return make_constraints(builder.build(root), spec, "tool_choice", static_cast<size_t>(spec.n));
}

// The form that the request demands. Where it has tools, too, the model may call instead.
ApiResult<Constraints> form_after_thinking(ChatSpec& spec) {
  GrammarBuilder builder;
  const Result<GrammarExpr> form = form_expression(builder, spec.form);
  if (!form.ok()) return field_error(spec.form.path, form.error().message);
  GrammarExpr root = *form;
  const bool may_call = spec.prompt.tools.choice != ToolChoice::kNone;
  if (may_call && has_channels(spec)) {
    OUTRIDER_TRY(root, channel_answer(builder, spec, *form));
  } else {
    if (may_call) {
      OUTRIDER_TRY(const GrammarExpr calls, possible_calls(builder, spec));
      root = builder.choice({root, calls});
    }
    OUTRIDER_TRY(root, after_thinking(builder, spec, root));
  }
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

namespace {

ApiResult<Constraints> answer_constraints(ChatSpec& spec) {
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
  return form.shape == CallShape::kChannel ? Constraints() : strict_constraints(spec, form);
}

ThinkingTracker thinking_tracker(const OutputParts& output) {
  std::vector<std::string_view> call_marks;
  for (const CallForm* form : output.calls) {
    for (const std::string_view mark : form->open) {
      if (!mark.empty()) call_marks.push_back(mark);
    }
  }
  return ThinkingTracker(*output.thinking, output.begins, std::move(call_marks));
}

}  // namespace

ApiResult<Constraints> chat_constraints(ChatSpec& spec) {
  OUTRIDER_TRY(Constraints constraints, answer_constraints(spec));
  const OutputParts& output = spec.prompt.output;
  if (!spec.thinking_budget || output.thinking == nullptr) return constraints;
  constraints.resize(static_cast<size_t>(spec.n));
  for (std::shared_ptr<TokenConstraint>& constraint : constraints) {
    constraint = limit_thinking({.tokens = *spec.thinking_budget, .message = spec.model->thinking_message},
                                thinking_tracker(output), *output.thinking, spec.model->tokenizer,
                                spec.model->vocab_size, std::move(constraint));
  }
  return constraints;
}

void prepare_output(ChatSpec& spec) {
  OutputParts& output = spec.prompt.output;
  output.shows_thinking = !spec.splits_reasoning;
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
