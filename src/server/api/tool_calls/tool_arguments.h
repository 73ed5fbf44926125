// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "grammar/grammar_builder.h"
#include "server/api/tools/tool_use.h"

namespace outrider {

// The arguments that a call of `tool` may have. A schema that no automaton can hold is an error of the only
// tool; one of many tools takes any object instead, and `notes`, which go to the log, say so. Errors of any
// tool: a schema that makes no sense, or one under which no value is valid.
ApiResult<GrammarExpr> tool_arguments(GrammarBuilder& builder, const Tool& tool, size_t tool_count,
                                      std::vector<std::string>& notes);

}  // namespace outrider
