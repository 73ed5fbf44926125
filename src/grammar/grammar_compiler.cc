// SPDX-License-Identifier: Apache-2.0
// Compiles expressions to procedures from back to front, so that the node after an expression is known.
#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "base/quote.h"
#include "grammar/byte_automaton.h"
#include "grammar/expression_analysis.h"
#include "grammar/grammar_builder.h"

namespace outrider {
namespace {

using Kind = GrammarBuilder::Kind;
using NodeKind = Grammar::NodeKind;

constexpr int32_t kMaxNullableRepeats = 64;  // bodies that may be empty are copied, not looped
constexpr int kMaxInlineParts = 24;

class Compiler {
 public:
  explicit Compiler(const GrammarBuilder& builder)
      : builder_(builder), facts_(analyse_expressions(builder)), grammar_(std::make_shared<Grammar>()) {}

  Result<SharedGrammar> run(GrammarExpr root) {
    if (!facts_.is_productive[root]) {
      return input_error("grammar: no finite text fits it; every way through the root must come to an end");
    }
    grammar_->nodes = {{.kind = NodeKind::kReturn}, {.kind = NodeKind::kAccept}, {.kind = NodeKind::kEscape}};
    rule_procedure_.assign(builder_.rules().size(), -1);
    rule_inline_.assign(builder_.rules().size(), -1);
    grammar_->root = add_procedure(root, "root");
    for (size_t i = 0; i < grammar_->procedures.size() && problem_.empty(); ++i) {
      const int32_t entry = compile(bodies_[i], Grammar::kReturnNode);
      grammar_->procedures[i].entry = entry;
    }
    if (!problem_.empty()) return input_error("grammar: " + problem_);
    OUTRIDER_RETURN_IF_ERROR(rank_procedures());
    classify_bytes();
    SharedGrammar grammar = std::move(grammar_);
    if (ByteAutomaton(grammar, 1).start() == ByteAutomaton::kDead) {
      return input_error("grammar: too many ways to begin a text");
    }
    if (const std::string problem = builder_.excess(); !problem.empty()) {
      return input_error("the grammar " + problem);
    }
    return grammar;
  }

 private:
  int32_t add_procedure(GrammarExpr body, std::string name) {
    grammar_->procedures.push_back({.is_nullable = facts_.is_nullable[body]});
    bodies_.push_back(body);
    names_.push_back(std::move(name));
    return static_cast<int32_t>(bodies_.size() - 1);
  }

  int32_t add_node(const Grammar::Node& node) {
    if (grammar_->nodes.size() >= GrammarLimits::kNodes) {
      fail("too large: more than " + std::to_string(GrammarLimits::kNodes) + " states");
      return Grammar::kReturnNode;
    }
    constexpr size_t kNodesPerLook = 256;
    if (grammar_->nodes.size() % kNodesPerLook == 0) {
      if (const std::string problem = builder_.excess(); !problem.empty()) fail("it " + problem);
    }
    grammar_->nodes.push_back(node);
    return static_cast<int32_t>(grammar_->nodes.size() - 1);
  }

  void fail(std::string problem) {
    if (problem_.empty()) problem_ = std::move(problem);
  }

  int32_t byte_node(const ByteSet& set, int32_t next) {
    std::string key = set.to_string();
    const auto [it, is_new] =
        set_index_.try_emplace(std::move(key), static_cast<int32_t>(grammar_->byte_sets.size()));
    if (is_new) grammar_->byte_sets.push_back(set);
    return add_node({.kind = NodeKind::kBytes, .index = it->second, .next = next});
  }

  int32_t split(const std::vector<int32_t>& targets) {
    if (targets.size() == 1) return targets.front();
    const auto index = static_cast<int32_t>(grammar_->targets.size());
    grammar_->targets.insert(grammar_->targets.end(), targets.begin(), targets.end());
    return add_node(
        {.kind = NodeKind::kSplit, .index = index, .count = static_cast<int32_t>(targets.size())});
  }

  // The node from which reading `expression` leads to `next`.
  int32_t compile(GrammarExpr expression, int32_t next) {
    const GrammarBuilder::Node& node = builder_.nodes()[expression];
    if (!problem_.empty()) return next;
    switch (node.kind) {
      case Kind::kBytes:
        return byte_node(builder_.byte_sets()[node.index], next);
      case Kind::kLiteral: {
        const std::string& text = builder_.literals()[node.index];
        for (size_t i = text.size(); i-- > 0;) {
          next = byte_node(ByteSet().set(static_cast<uint8_t>(text[i])), next);
        }
        return next;
      }
      case Kind::kCharacters:
        return compile_characters(builder_.character_sets()[node.index], next);
      case Kind::kSequence:
        for (size_t i = node.parts.size(); i-- > 0;) next = compile(node.parts[i], next);
        return next;
      case Kind::kChoice: {
        std::vector<int32_t> targets;
        for (const GrammarExpr part : node.parts) {
          if (facts_.is_productive[part]) targets.push_back(compile(part, next));
        }
        return split(targets);
      }
      case Kind::kRepeat:
        return compile_repeat(node, next);
      case Kind::kReference:
        return compile_reference(node.index, next);
    }
    return next;
  }

  int32_t compile_characters(const CodePointSet& set, int32_t next) {
    // Equal suffixes share their nodes.
    std::map<std::pair<Utf8Sequence::Bytes, int32_t>, int32_t> endings;
    std::map<int32_t, ByteSet> heads;  // by the node after the first byte
    for (const Utf8Sequence& sequence : utf8_sequences(set)) {
      int32_t node = next;
      for (int i = sequence.length - 1; i > 0; --i) {
        const auto [it, is_new] = endings.try_emplace({sequence.bytes[i], node}, 0);
        if (is_new) it->second = byte_node(range_set(sequence.bytes[i]), node);
        node = it->second;
      }
      heads[node] |= range_set(sequence.bytes[0]);
    }
    std::vector<int32_t> targets;
    for (const auto& [node, bytes] : heads) targets.push_back(byte_node(bytes, node));
    return split(targets);
  }

  static ByteSet range_set(const Utf8Sequence::Bytes& range) {
    ByteSet set;
    for (int byte = range.first; byte <= range.last; ++byte) set.set(byte);
    return set;
  }

  int32_t compile_repeat(const GrammarBuilder::Node& node, int32_t next) {
    const GrammarExpr body = node.parts.front();
    if (node.max == 0 || !facts_.is_productive[body]) return next;
    const bool is_nullable = facts_.is_nullable[body];
    const int32_t min = is_nullable ? 0 : node.min;
    if (node.max == GrammarBuilder::kUnbounded && min <= 1) return compile_star(body, min, next);
    if (node.max == 1) {
      const int32_t once = compile(body, next);
      return min == 1 ? once : split({once, next});
    }
    if (is_nullable) {
      if (node.max > kMaxNullableRepeats) {
        fail("what is repeated up to " + std::to_string(node.max) + " times may be empty; at most " +
             std::to_string(kMaxNullableRepeats) + " times then");
        return next;
      }
      for (int32_t i = 0; i < node.max; ++i) next = split({compile(body, next), next});
      return next;
    }
    const auto [it, is_new] = loop_procedure_.try_emplace(body, 0);
    if (is_new) it->second = add_procedure(body, "repetition");
    grammar_->loops.push_back({.body = it->second, .min = min, .max = node.max});
    return add_node(
        {.kind = NodeKind::kLoop, .index = static_cast<int32_t>(grammar_->loops.size() - 1), .next = next});
  }

  int32_t compile_star(GrammarExpr body, int32_t min, int32_t next) {
    const auto index = static_cast<int32_t>(grammar_->targets.size());
    grammar_->targets.resize(index + 2);
    const int32_t again = add_node({.kind = NodeKind::kSplit, .index = index, .count = 2});
    const int32_t first = compile(body, again);
    grammar_->targets[index] = first;
    grammar_->targets[index + 1] = next;
    return min == 0 ? again : first;
  }

  int32_t compile_reference(int32_t rule, int32_t next) {
    const GrammarExpr body = builder_.rules()[rule].body;
    if (rule_inline_[rule] < 0) {
      int budget = kMaxInlineParts;
      rule_inline_[rule] = is_small(body, budget) ? 1 : 0;
    }
    if (rule_inline_[rule] == 1) return compile(body, next);
    int32_t& procedure = rule_procedure_[rule];
    if (procedure < 0) procedure = add_procedure(body, builder_.rules()[rule].name);
    return add_node({.kind = NodeKind::kCall, .index = procedure, .next = next});
  }

  // A few characters without repetition are copied in place, which is cheaper than a call.
  bool is_small(GrammarExpr expression, int& budget) const {
    const GrammarBuilder::Node& node = builder_.nodes()[expression];
    if (--budget < 0 || node.kind == Kind::kReference || node.kind == Kind::kRepeat) return false;
    if (node.kind == Kind::kLiteral && builder_.literals()[node.index].size() > kMaxInlineParts) return false;
    return std::all_of(node.parts.begin(), node.parts.end(),
                       [&](GrammarExpr part) { return is_small(part, budget); });
  }

  // Procedures that `procedure` may call before it reads a byte.
  std::vector<int32_t> first_calls(int32_t procedure) {
    std::vector<int32_t> calls;
    std::vector<int32_t> open = {grammar_->procedures[procedure].entry};
    const auto push = [&](int32_t node) {
      if (seen_in_[node] == procedure + 1) return;
      seen_in_[node] = procedure + 1;
      open.push_back(node);
    };
    while (!open.empty()) {
      const Grammar::Node& node = grammar_->nodes[open.back()];
      open.pop_back();
      if (node.kind == NodeKind::kSplit) {
        for (int32_t i = 0; i < node.count; ++i) push(grammar_->targets[node.index + i]);
      } else if (node.kind == NodeKind::kCall) {
        calls.push_back(node.index);
        if (grammar_->procedures[node.index].is_nullable) push(node.next);
      } else if (node.kind == NodeKind::kLoop) {
        calls.push_back(grammar_->loops[node.index].body);
        if (grammar_->loops[node.index].min == 0) push(node.next);
      }
    }
    return calls;
  }

  // Ranks callers before callees. Error: a procedure that calls itself before it reads a byte.
  Status rank_procedures() {
    const size_t count = grammar_->procedures.size();
    seen_in_.assign(grammar_->nodes.size(), 0);
    std::vector<int8_t> color(count, 0);  // 1: on the path, 2: done
    struct Frame {
      int32_t procedure;
      std::vector<int32_t> calls;
    };
    std::vector<int32_t> order;
    for (size_t start = 0; start < count; ++start) {
      if (color[start] != 0) continue;
      std::vector<Frame> path;
      color[start] = 1;
      path.push_back({static_cast<int32_t>(start), first_calls(static_cast<int32_t>(start))});
      while (!path.empty()) {
        Frame& top = path.back();
        if (top.calls.empty()) {
          color[top.procedure] = 2;
          order.push_back(top.procedure);
          path.pop_back();
          continue;
        }
        const int32_t callee = top.calls.back();
        top.calls.pop_back();
        if (color[callee] == 1) {
          return input_error("grammar: rule " + quote(names_[callee]) +
                             " begins with itself (left recursion); put something before, or repeat with *");
        }
        if (color[callee] == 0) {
          color[callee] = 1;
          path.push_back({callee, first_calls(callee)});
        }
      }
    }
    grammar_->by_rank.assign(order.rbegin(), order.rend());
    for (size_t i = 0; i < count; ++i) {
      grammar_->procedures[grammar_->by_rank[i]].rank = static_cast<int32_t>(i);
    }
    return {};
  }

  void classify_bytes() {
    std::array<int, 256> classes{};
    int count = 1;
    for (const ByteSet& set : grammar_->byte_sets) {
      std::array<int, 512> renamed{};  // by class and membership: the new class, plus 1
      count = 0;
      for (int byte = 0; byte < 256; ++byte) {
        int& name = renamed[2 * classes[byte] + (set.test(byte) ? 1 : 0)];
        if (name == 0) name = ++count;
        classes[byte] = name - 1;
      }
      if (count == 256) break;
    }
    grammar_->class_byte.assign(count, 0);
    for (int byte = 0; byte < 256; ++byte) {
      grammar_->byte_class[byte] = static_cast<uint8_t>(classes[byte]);
      grammar_->class_byte[classes[byte]] = static_cast<uint8_t>(byte);
    }
  }

  const GrammarBuilder& builder_;
  const ExpressionFacts facts_;
  std::shared_ptr<Grammar> grammar_;
  std::string problem_;              // first problem found; empty: none
  std::vector<GrammarExpr> bodies_;  // by procedure, like names_
  std::vector<std::string> names_;
  std::vector<int32_t> rule_procedure_;
  std::vector<int8_t> rule_inline_;  // -1: not known
  std::unordered_map<GrammarExpr, int32_t> loop_procedure_;
  std::unordered_map<std::string, int32_t> set_index_;
  std::vector<int32_t> seen_in_;  // by node: 1 + the last procedure where it was found at the start
};

}  // namespace

Result<SharedGrammar> GrammarBuilder::build(GrammarExpr root) const {
  if (const std::string problem = excess(); !problem.empty()) return input_error("the grammar " + problem);
  for (const Rule& rule : rules_) {
    if (rule.body < 0) return input_error("grammar: rule " + quote(rule.name) + " is not defined");
  }
  return Compiler(*this).run(root);
}

}  // namespace outrider
