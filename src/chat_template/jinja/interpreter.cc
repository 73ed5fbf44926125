// SPDX-License-Identifier: Apache-2.0
#include "chat_template/jinja/interpreter.h"

#include <algorithm>

#include "chat_template/jinja/evaluator.h"
#include "chat_template/jinja/lexer.h"
#include "chat_template/jinja/print.h"
#include "chat_template/jinja/scope.h"

namespace outrider::jinja {

namespace {

// The way a body ended.
enum class Flow { kNormal, kBreak, kContinue };

class Interpreter final : public MacroCaller {
 public:
  explicit Interpreter(Runtime& runtime) : runtime_(runtime), evaluator_(runtime, *this) {}

  Result<Flow> run(const Body& body, const std::shared_ptr<Scope>& scope);
  std::string take_output() { return std::move(output_); }
  Result<Value> call_macro(const Macro& macro, const Arguments& arguments) override;

 private:
  using ScopePtr = std::shared_ptr<Scope>;
  struct Captured {
    std::string text;
    Flow flow = Flow::kNormal;
  };

  Result<Flow> execute(const Text& node, const ScopePtr& scope);
  Result<Flow> execute(const Output& node, const ScopePtr& scope);
  Result<Flow> execute(const If& node, const ScopePtr& scope);
  Result<Flow> execute(const For& node, const ScopePtr& scope);
  Result<Flow> execute(const Set& node, const ScopePtr& scope);
  Result<Flow> execute(const SetBlock& node, const ScopePtr& scope);
  Result<Flow> execute(const MacroDefinition& node, const ScopePtr& scope);
  Result<Flow> execute(const CallBlock& node, const ScopePtr& scope);
  Result<Flow> execute(const FilterBlock& node, const ScopePtr& scope);
  Result<Flow> execute(const With& node, const ScopePtr& scope);
  Result<Flow> execute(const Generation& node, const ScopePtr& scope);
  Result<Flow> execute(const Break& node, const ScopePtr& scope);
  Result<Flow> execute(const Continue& node, const ScopePtr& scope);

  // The items of a loop that pass its condition.
  Result<std::shared_ptr<const List>> select_items(const For& node, const ScopePtr& scope);
  // Runs the body and returns its output as a separate text.
  Result<Captured> capture(const Body& body, const ScopePtr& scope);
  Status assign(const Target& target, Value value, Scope& scope);
  Status print(const Value& value);
  Status append(std::string_view text);
  Status bind_parameters(const Macro& macro, const Arguments& arguments, Scope& scope);
  Value make_macro(const MacroDefinition& definition, const ScopePtr& scope);

  Runtime& runtime_;
  Evaluator evaluator_;
  std::string output_;  // output of the innermost capture
  std::vector<std::unique_ptr<Macro>> macros_;
};

Result<Flow> Interpreter::run(const Body& body, const ScopePtr& scope) {
  OUTRIDER_RETURN_IF_ERROR(runtime_.enter());
  Result<Flow> flow = Flow::kNormal;
  for (const Statement& statement : body) {
    flow = std::visit([&](const auto& node) { return execute(node, scope); }, statement.node);
    if (!flow.ok()) flow = at_line(statement.line, flow.error());
    if (!flow.ok() || *flow != Flow::kNormal) break;
  }
  runtime_.leave();
  return flow;
}

Status Interpreter::append(std::string_view text) {
  if (text.size() > runtime_.limits().output - std::min(output_.size(), runtime_.limits().output)) {
    return resource_error("the template prints more than " + std::to_string(runtime_.limits().output) +
                          " bytes");
  }
  output_ += text;
  return runtime_.spend_bytes(text.size());
}

Status Interpreter::print(const Value& value) {
  if (value.is(Kind::kString)) return append(value.string());
  Result<std::string> text = to_text(runtime_, value);
  if (!text.ok()) return text.error();
  return append(*text);
}

Result<Flow> Interpreter::execute(const Text& node, const ScopePtr&) {
  OUTRIDER_RETURN_IF_ERROR(append(node.text));
  return Flow::kNormal;
}

Result<Flow> Interpreter::execute(const Output& node, const ScopePtr& scope) {
  OUTRIDER_TRY(const Value value, evaluator_.evaluate(*node.value, *scope));
  OUTRIDER_RETURN_IF_ERROR(print(value));
  return Flow::kNormal;
}

Result<Flow> Interpreter::execute(const If& node, const ScopePtr& scope) {
  for (const If::Branch& branch : node.branches) {
    OUTRIDER_TRY(const bool holds, evaluator_.test(*branch.condition, *scope));
    if (holds) return run(branch.body, scope);
  }
  return run(node.otherwise, scope);
}

Result<std::shared_ptr<const List>> Interpreter::select_items(const For& node, const ScopePtr& scope) {
  OUTRIDER_TRY(const Value iterable, evaluator_.evaluate(*node.iterable, *scope));
  OUTRIDER_TRY(auto items, iterate(runtime_, iterable));
  if (!node.condition) return items;
  std::vector<Value> selected;
  for (const Value& item : items->items) {
    Scope inner(scope);
    inner.set("loop", Value::undefined("'loop' is undefined in the condition of a loop"));
    OUTRIDER_RETURN_IF_ERROR(assign(node.target, item, inner));
    OUTRIDER_TRY(const bool passes, evaluator_.test(*node.condition, inner));
    if (passes) selected.push_back(item);
  }
  OUTRIDER_TRY(const Value list, make_list(std::move(selected)));
  return list.shared_list();
}

Result<Flow> Interpreter::execute(const For& node, const ScopePtr& scope) {
  OUTRIDER_TRY(const auto items, select_items(node, scope));
  if (items->items.empty()) return run(node.otherwise, scope);
  for (size_t i = 0; i < items->items.size(); ++i) {
    const auto inner = std::make_shared<Scope>(scope);
    inner->set("loop", Value(std::make_shared<const Loop>(Loop{items, static_cast<int64_t>(i)})));
    OUTRIDER_RETURN_IF_ERROR(assign(node.target, items->items[i], *inner));
    OUTRIDER_TRY(const Flow flow, run(node.body, inner));
    if (flow == Flow::kBreak) break;
  }
  return Flow::kNormal;
}

Status Interpreter::assign(const Target& target, Value value, Scope& scope) {
  OUTRIDER_RETURN_IF_ERROR(runtime_.spend_steps(1));
  if (!target.parts.empty()) {
    auto items = iterate(runtime_, value);
    if (!items.ok()) return items.error();
    if ((*items)->items.size() != target.parts.size()) {
      return input_error("expected " + std::to_string(target.parts.size()) + " values to unpack, found " +
                         std::to_string((*items)->items.size()));
    }
    for (size_t i = 0; i < target.parts.size(); ++i) {
      OUTRIDER_RETURN_IF_ERROR(assign(target.parts[i], (*items)->items[i], scope));
    }
    return {};
  }
  if (target.attribute.empty()) {
    scope.set(target.name, std::move(value));
    return {};
  }
  const Value* owner = scope.find(target.name);
  if (owner == nullptr || !owner->is(Kind::kNamespace)) {
    return input_error("'" + target.name + "' must be a namespace to set '" + target.attribute + "' of it");
  }
  OUTRIDER_RETURN_IF_ERROR(runtime_.spend_bytes(target.attribute.size()));
  owner->name_space()->set(target.attribute, std::move(value));
  return {};
}

Result<Flow> Interpreter::execute(const Set& node, const ScopePtr& scope) {
  OUTRIDER_TRY(Value value, evaluator_.evaluate(*node.value, *scope));
  OUTRIDER_RETURN_IF_ERROR(assign(node.target, std::move(value), *scope));
  return Flow::kNormal;
}

Result<Interpreter::Captured> Interpreter::capture(const Body& body, const ScopePtr& scope) {
  std::string around = std::exchange(output_, std::string());
  Result<Flow> flow = run(body, scope);
  Captured captured;
  captured.text = std::exchange(output_, std::move(around));
  OUTRIDER_TRY(captured.flow, std::move(flow));
  return captured;
}

Result<Flow> Interpreter::execute(const SetBlock& node, const ScopePtr& scope) {
  OUTRIDER_TRY(Captured captured, capture(node.body, std::make_shared<Scope>(scope)));
  if (captured.flow != Flow::kNormal) return captured.flow;
  OUTRIDER_TRY(Value value, evaluator_.apply_filters(Value(std::move(captured.text)), node.filters, *scope));
  OUTRIDER_RETURN_IF_ERROR(assign(node.target, std::move(value), *scope));
  return Flow::kNormal;
}

Result<Flow> Interpreter::execute(const FilterBlock& node, const ScopePtr& scope) {
  OUTRIDER_TRY(Captured captured, capture(node.body, std::make_shared<Scope>(scope)));
  if (captured.flow != Flow::kNormal) return captured.flow;
  OUTRIDER_TRY(const Value value,
               evaluator_.apply_filters(Value(std::move(captured.text)), node.filters, *scope));
  OUTRIDER_RETURN_IF_ERROR(print(value));
  return Flow::kNormal;
}

Value Interpreter::make_macro(const MacroDefinition& definition, const ScopePtr& scope) {
  macros_.push_back(std::make_unique<Macro>(Macro{&definition, scope}));
  return Value(static_cast<const Macro*>(macros_.back().get()));
}

Result<Flow> Interpreter::execute(const MacroDefinition& node, const ScopePtr& scope) {
  OUTRIDER_RETURN_IF_ERROR(runtime_.spend_bytes(sizeof(Macro) + sizeof(Scope)));
  scope->set(node.name, make_macro(node, scope));
  return Flow::kNormal;
}

Result<Flow> Interpreter::execute(const CallBlock& node, const ScopePtr& scope) {
  OUTRIDER_RETURN_IF_ERROR(runtime_.spend_bytes(sizeof(Macro) + sizeof(Scope)));
  OUTRIDER_TRY(const Value value,
               evaluator_.call_with_caller(*node.call, make_macro(node.caller, scope), *scope));
  OUTRIDER_RETURN_IF_ERROR(print(value));
  return Flow::kNormal;
}

Result<Flow> Interpreter::execute(const With& node, const ScopePtr& scope) {
  const auto inner = std::make_shared<Scope>(scope);
  for (const auto& [target, expression] : node.assignments) {
    OUTRIDER_TRY(Value value, evaluator_.evaluate(*expression, *scope));
    OUTRIDER_RETURN_IF_ERROR(assign(target, std::move(value), *inner));
  }
  return run(node.body, inner);
}

Result<Flow> Interpreter::execute(const Generation& node, const ScopePtr& scope) {
  return run(node.body, std::make_shared<Scope>(scope));
}

Result<Flow> Interpreter::execute(const Break&, const ScopePtr&) { return Flow::kBreak; }

Result<Flow> Interpreter::execute(const Continue&, const ScopePtr&) { return Flow::kContinue; }

Status Interpreter::bind_parameters(const Macro& macro, const Arguments& arguments, Scope& scope) {
  const auto& parameters = macro.definition->parameters;
  if (arguments.positional.size() > parameters.size()) {
    return input_error("the macro '" + macro.definition->name + "' takes at most " +
                       std::to_string(parameters.size()) + " arguments, found " +
                       std::to_string(arguments.positional.size()));
  }
  std::vector<bool> is_given(parameters.size());
  for (size_t i = 0; i < arguments.positional.size(); ++i) {
    scope.set(parameters[i].name, arguments.positional[i]);
    is_given[i] = true;
  }
  for (const auto& [name, value] : arguments.named) {
    const auto place =
        std::find_if(parameters.begin(), parameters.end(),
                     [&, &wanted = name](const auto& parameter) { return parameter.name == wanted; });
    if (place != parameters.end()) {
      const auto index = static_cast<size_t>(place - parameters.begin());
      if (is_given[index]) return input_error("the argument '" + name + "' is given twice");
      is_given[index] = true;
    } else if (name != "caller") {
      return input_error("the macro '" + macro.definition->name + "' takes no argument '" + name + "'");
    }
    scope.set(name, value);
  }
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (is_given[i]) continue;
    Result<Value> value = Value::undefined("the parameter '" + parameters[i].name + "' was not provided");
    if (parameters[i].default_value) value = evaluator_.evaluate(*parameters[i].default_value, scope);
    if (!value.ok()) return value.error();
    scope.set(parameters[i].name, std::move(value).value());
  }
  return {};
}

Result<Value> Interpreter::call_macro(const Macro& macro, const Arguments& arguments) {
  const auto scope = std::make_shared<Scope>(macro.scope);
  OUTRIDER_RETURN_IF_ERROR(bind_parameters(macro, arguments, *scope));
  Result<Captured> captured = capture(macro.definition->body, scope);
  if (!captured.ok()) return captured.error();
  return Value(std::move(captured->text));
}

}  // namespace

Result<std::string> render(const Body& body, const Dict& variables, const Limits& limits,
                           const std::tm& now) {
  Runtime runtime(limits, now);
  const auto globals = std::make_shared<Scope>(nullptr);
  for (const Dict::Entry& entry : variables.entries()) globals->set(entry.key.string(), entry.value);
  Interpreter interpreter(runtime);
  OUTRIDER_TRY(const Flow flow, interpreter.run(body, globals));
  static_cast<void>(flow);
  return interpreter.take_output();
}

}  // namespace outrider::jinja
