// SPDX-License-Identifier: Apache-2.0
// The syntax tree of a template. Operators of one precedence are one node with many operands, so the nesting
// of the source bounds the height of the tree, not its length.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "chat_template/jinja/operators.h"
#include "chat_template/jinja/value.h"

namespace outrider::jinja {

struct Expression;
using ExpressionPtr = std::unique_ptr<Expression>;

struct Literal {
  Value value;
};

struct Name {
  std::string name;
};

struct Sequence {
  std::vector<ExpressionPtr> items;
  bool is_tuple = false;
};

struct DictLiteral {
  std::vector<std::pair<ExpressionPtr, ExpressionPtr>> entries;
};

enum class UnaryOperator { kNot, kMinus, kPlus };
struct Unary {
  UnaryOperator op = UnaryOperator::kNot;
  ExpressionPtr operand;
};

struct Arithmetic {
  ExpressionPtr first;
  std::vector<std::pair<ArithmeticOperator, ExpressionPtr>> rest;  // applied from left to right
};

struct Concatenation {  // a ~ b ~ c
  std::vector<ExpressionPtr> parts;
};

enum class ComparisonOperator { kEqual, kNotEqual, kLess, kLessEqual, kGreater, kGreaterEqual, kIn, kNotIn };
struct Comparison {  // a < b < c, as in Python
  ExpressionPtr first;
  std::vector<std::pair<ComparisonOperator, ExpressionPtr>> rest;
};

struct Junction {
  bool is_and = false;
  std::vector<ExpressionPtr> operands;
};

struct Conditional {
  ExpressionPtr condition;
  ExpressionPtr value;
  ExpressionPtr otherwise;  // null: undefined
};

struct CallArguments {
  std::vector<ExpressionPtr> positional;
  std::vector<std::pair<std::string, ExpressionPtr>> named;
};

struct AttributeSuffix {
  std::string name;
};
struct ItemSuffix {
  ExpressionPtr key;
};
struct SliceSuffix {
  ExpressionPtr start, stop, step;  // null where left out
};
struct CallSuffix {
  CallArguments arguments;
};
struct FilterSuffix {
  std::string name;
  CallArguments arguments;
};
struct TestSuffix {
  std::string name;
  CallArguments arguments;
  bool negated = false;
};

struct Suffix {
  int line = 0;
  std::variant<AttributeSuffix, ItemSuffix, SliceSuffix, CallSuffix, FilterSuffix, TestSuffix> node;
};

struct Postfix {
  ExpressionPtr base;
  std::vector<Suffix> suffixes;
};

struct Expression {
  int line = 0;
  std::variant<Literal, Name, Sequence, DictLiteral, Unary, Arithmetic, Concatenation, Comparison, Junction,
               Conditional, Postfix>
      node;
};

struct Statement;
using Body = std::vector<Statement>;

// The target of an assignment: a name, an attribute of a namespace, or several targets that unpack a
// sequence.
struct Target {
  std::string name;
  std::string attribute;      // attribute of the namespace `name`; empty for a plain name
  std::vector<Target> parts;  // not empty: unpacking; `name` and `attribute` are unused
};

struct Text {
  std::string text;
};

struct Output {
  ExpressionPtr value;
};

struct If {
  struct Branch {
    ExpressionPtr condition;
    Body body;
  };
  std::vector<Branch> branches;  // if and its elifs
  Body otherwise;
};

struct For {
  Target target;
  ExpressionPtr iterable;
  ExpressionPtr condition;  // null: every item
  Body body;
  Body otherwise;  // runs when there are no items
};

struct Set {
  Target target;
  ExpressionPtr value;
};

struct SetBlock {
  Target target;
  std::vector<Suffix> filters;
  Body body;
};

struct MacroDefinition {
  struct Parameter {
    std::string name;
    ExpressionPtr default_value;  // null: required, undefined when missing
  };
  std::string name;
  std::vector<Parameter> parameters;
  Body body;
};

// Calls `call` with the body as the macro `caller`.
struct CallBlock {
  ExpressionPtr call;  // a Postfix whose last suffix is a call
  MacroDefinition caller;
};

struct FilterBlock {
  std::vector<Suffix> filters;
  Body body;
};

struct With {
  std::vector<std::pair<Target, ExpressionPtr>> assignments;
  Body body;
};

// {% generation %}: marks the assistant's text for training; renders as its body.
struct Generation {
  Body body;
};

struct Break {};
struct Continue {};

struct Statement {
  int line = 0;
  std::variant<Text, Output, If, For, Set, SetBlock, MacroDefinition, CallBlock, FilterBlock, With,
               Generation, Break, Continue>
      node;
};

}  // namespace outrider::jinja
