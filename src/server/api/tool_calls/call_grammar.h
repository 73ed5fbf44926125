// SPDX-License-Identifier: Apache-2.0
// Grammars of calls in the forms of the table (tool_calls/call_forms.h).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/grammar_builder.h"
#include "server/api/tool_calls/call_forms.h"
#include "server/api/tools/tool_use.h"
#include "tokenizer/tokenizer.h"

namespace outrider {

struct CallInput {
  const Tokenizer& tokenizer;
  const ToolUse& tools;
  std::vector<std::string>& notes;  // for the log
};

// The mark as it is spelled in grammars, with its control tokens.
std::string spelled_mark(const Tokenizer& tokenizer, std::string_view mark);

// The arguments of a call as JSON. A call that nothing demands may have any where no automaton holds the
// schema.
ApiResult<GrammarExpr> call_arguments(GrammarBuilder& builder, const CallInput& input, const Tool& tool);

// One call or more in the form. Where a call is demanded, tools whose schema the form cannot hold are called
// by the plain object. Errors: of a tool's schema.
ApiResult<GrammarExpr> written_calls(GrammarBuilder& builder, const CallInput& input, const CallForm& form);

// The text after the form's first mark; nullopt: the form has none, or cannot hold a schema.
ApiResult<std::optional<GrammarExpr>> calls_after_mark(GrammarBuilder& builder, const CallInput& input,
                                                       const CallForm& form);

}  // namespace outrider
