// SPDX-License-Identifier: Apache-2.0
#include "server/api/tool_calls/tool_arguments.h"

#include "grammar/grammar.h"

namespace outrider {

ApiResult<GrammarExpr> tool_arguments(GrammarBuilder& builder, const Tool& tool, size_t tool_count,
                                      std::vector<std::string>& notes) {
  const Result<ArgumentsExpression> arguments = arguments_expression(builder, tool.parameters);
  if (!arguments.ok()) return field_error(tool.path, arguments.error().message);
  if (arguments->problem.empty()) return arguments->expression;
  if (tool_count == 1) return field_error(tool.path, arguments->problem);
  notes.push_back(tool.path + ": calls are not held to this schema: " + arguments->problem);
  return arguments->expression;
}

}  // namespace outrider
