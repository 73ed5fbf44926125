// SPDX-License-Identifier: Apache-2.0
#include "server/api/tool_calls/call_grammar.h"

#include <utility>
#include <vector>

#include "grammar/grammar.h"
#include "server/api/tool_calls/tool_arguments.h"

namespace outrider {
namespace {

using Order = CallSpelling::Order;

class CallWriter {
 public:
  CallWriter(GrammarBuilder& builder, const CallInput& input, const CallForm& form)
      : builder_(builder), input_(input), form_(form) {
    const ToolUse& tools = input.tools;
    // tool_instructions() ask for one call.
    is_single_ = tools.choice == ToolChoice::kNamed || !tools.parallel || &form == &plain_call_form();
  }

  ApiResult<GrammarExpr> written() {
    OUTRIDER_RETURN_IF_ERROR(read_tools());
    std::vector<GrammarExpr> choices;
    if (!calls_.empty()) choices.push_back(own_calls(builder_.choice(calls_)));
    if (!input_.tools.must_call()) others_.clear();  // the plain object is no call then
    for (const Tool* tool : others_) {
      OUTRIDER_TRY(const auto call, CallWriter(builder_, input_, plain_call_form()).call_of(*tool));
      choices.push_back(*call);
    }
    return builder_.choice(std::move(choices));
  }

  ApiResult<std::optional<GrammarExpr>> after_mark() {
    using Found = std::optional<GrammarExpr>;
    if (form_.open[0].empty() || form_.may_be_bare || form_.begins_with_name) return Found(std::nullopt);
    OUTRIDER_RETURN_IF_ERROR(read_tools());
    if (!others_.empty()) return Found(std::nullopt);
    return Found(after_open(builder_.choice(calls_)));
  }

 private:
  // Makes a call of each tool that the form can hold.
  ApiStatus read_tools() {
    for (const Tool& tool : input_.tools.tools) {
      OUTRIDER_TRY(const auto call, call_of(tool));
      call ? calls_.push_back(*call) : others_.push_back(&tool);
    }
    return api_ok();
  }

  // A call of the tool, without the marks around calls; nullopt: the form cannot hold its schema.
  ApiResult<std::optional<GrammarExpr>> call_of(const Tool& tool) {
    using Found = std::optional<GrammarExpr>;
    const CallSpelling& spelling = form_.spelling;
    if (form_.shape == CallShape::kTagged) return tagged_call(tool);
    if (form_.shape == CallShape::kLiteral) {
      const auto arguments = arguments_in_notation(builder_, tool.parameters, literal_notation());
      return arguments ? Found(named(tool, *arguments)) : std::nullopt;
    }
    OUTRIDER_TRY(const GrammarExpr arguments, call_arguments(builder_, input_, tool));
    if (!spelling.may_have_id) return Found(named(tool, arguments));
    const GrammarExpr id =
        builder_.optional(builder_.sequence({literal(", \"id\": \""), id_letters(), literal("\"")}));
    return Found(named(tool, builder_.sequence({arguments, id})));
  }

  GrammarExpr id_letters() {
    constexpr int32_t kLetters = 9;
    return builder_.repeat(builder_.characters({{'0', '9'}, {'A', 'Z'}, {'a', 'z'}}), kLetters, kLetters);
  }

  GrammarExpr named(const Tool& tool, GrammarExpr arguments) {
    const CallSpelling& spelling = form_.spelling;
    std::vector<GrammarExpr> parts = {literal(spelling.before_name), builder_.literal(tool.name)};
    if (!spelling.id_mark.empty())
      parts.push_back(builder_.optional(builder_.sequence({literal(spelling.id_mark), id_letters()})));
    if (spelling.has_number) {
      const GrammarExpr digits = builder_.repeat(builder_.characters({{'0', '9'}}), 1, 3);
      parts.push_back(builder_.sequence({literal(":"), digits}));
    }
    parts.insert(parts.end(), {literal(spelling.after_name), arguments, literal(spelling.after_arguments)});
    return builder_.sequence(std::move(parts));
  }

  ArgumentNotation literal_notation() {
    const LiteralMarks& marks = form_.literal;
    const bool is_python = marks.quote.empty();
    const GrammarExpr none = builder_.empty();
    return {.values = {.is_python = is_python,
                       .quote = std::string(marks.quote),
                       .quote_bytes = spelled(marks.quote)},
            .before_name = none,
            .before_text = none,
            .before_value = literal(std::string_view(&marks.assign, 1)),
            .after_value = none,
            .separator = literal(is_python ? ", " : ",")};
  }

  ApiResult<std::optional<GrammarExpr>> tagged_call(const Tool& tool) {
    using Found = std::optional<GrammarExpr>;
    const TagMarks& tags = form_.tags;
    const GrammarExpr line = builder_.optional(literal("\n"));
    const GrammarExpr edge = tags.has_lines ? line : builder_.empty();
    const GrammarExpr open =
        tags.value_open.empty() ? builder_.empty() : builder_.sequence({line, literal(tags.value_open)});
    const auto before = [&](std::string_view kind) {
      const std::string mark =
          (tags.kind.empty() ? "" : std::string(tags.kind) + std::string(kind)) + std::string(tags.key_close);
      return builder_.sequence({literal(mark), open, edge});
    };
    const auto arguments =
        arguments_in_notation(builder_, tool.parameters,
                              {.before_name = literal(tags.key_open),
                               .before_text = before("true"),
                               .before_value = before("false"),
                               .after_value = builder_.sequence({edge, literal(tags.value_close), line}),
                               .separator = builder_.empty(),
                               .tells_texts = !tags.kind.empty(),
                               .text_end = std::string(tags.value_close),
                               .is_one_line = tags.has_lines});
    if (!arguments) return Found(std::nullopt);
    return Found(
        builder_.sequence({literal(form_.begin), builder_.literal(tool.name), literal(tags.name_end),
                           builder_.repeat(literal("\n"), 0, 2), *arguments, literal(tags.call_end)}));
  }

  // `call`, and more calls after the separator if there may be several.
  GrammarExpr joined(GrammarExpr call, GrammarExpr separator) {
    if (is_single_) return call;
    const GrammarExpr next = builder_.sequence({separator, call});
    return builder_.sequence({call, builder_.repeat(next, 0, GrammarBuilder::kUnbounded)});
  }

  GrammarExpr between_marks(GrammarExpr call) {
    const auto list = [&] {
      return builder_.sequence({literal("["), joined(call, literal(", ")), literal("]")});
    };
    switch (form_.spelling.order) {
      case Order::kMarked:
        return call;
      case Order::kLines:
        return joined(call, space());
      case Order::kList:
        return list();
      case Order::kEither:
        return builder_.choice({joined(call, space()), list()});
      case Order::kJoined:
        return joined(call, literal("; "));
    }
    return call;
  }

  GrammarExpr after_open(GrammarExpr call) {
    const std::string_view close = form_.spelling.is_closed ? form_.close : "";
    const GrammarExpr end = close.empty() ? builder_.empty() : builder_.sequence({space(), literal(close)});
    return builder_.sequence({space(), between_marks(call), end});
  }

  GrammarExpr own_calls(GrammarExpr call) {
    const GrammarExpr open = literal(form_.open[0]);
    if (form_.begins_with_name) return joined(call, open);
    if (form_.open[0].empty()) return between_marks(call);
    const GrammarExpr marked = builder_.sequence({open, after_open(call)});
    if (form_.may_be_bare) return builder_.choice({between_marks(call), marked});
    return form_.spelling.order == Order::kMarked ? joined(marked, space()) : marked;
  }

  GrammarExpr space() { return builder_.repeat(builder_.one_of({" ", "\n"}), 0, 2); }
  std::string spelled(std::string_view mark) { return spelled_mark(input_.tokenizer, mark); }
  GrammarExpr literal(std::string_view mark) { return builder_.literal(spelled(mark)); }

  GrammarBuilder& builder_;
  const CallInput& input_;
  const CallForm& form_;
  bool is_single_ = false;
  std::vector<GrammarExpr> calls_;
  std::vector<const Tool*> others_;  // tools whose schema the form cannot hold
};

}  // namespace

std::string spelled_mark(const Tokenizer& tokenizer, std::string_view mark) {
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

ApiResult<GrammarExpr> call_arguments(GrammarBuilder& builder, const CallInput& input, const Tool& tool) {
  const bool is_held = input.tools.must_call() || tool.strict;
  return tool_arguments(builder, tool, input.tools.tools.size() + (is_held ? 0 : 1), input.notes);
}

ApiResult<GrammarExpr> written_calls(GrammarBuilder& builder, const CallInput& input, const CallForm& form) {
  return CallWriter(builder, input, form).written();
}

ApiResult<std::optional<GrammarExpr>> calls_after_mark(GrammarBuilder& builder, const CallInput& input,
                                                       const CallForm& form) {
  return CallWriter(builder, input, form).after_mark();
}

}  // namespace outrider
