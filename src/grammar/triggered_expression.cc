// SPDX-License-Identifier: Apache-2.0
// Free text up to the first trigger, built as rules from the automaton of Aho and Corasick (1975).
#include <array>
#include <map>
#include <queue>

#include "base/quote.h"
#include "grammar/grammar_builder.h"

namespace outrider {
namespace {

struct SearchState {
  std::array<int32_t, 256> next{};
  int32_t form = -1;  // form whose trigger ends in this state
};

std::vector<SearchState> search_states(const std::vector<TriggeredForm>& forms) {
  std::vector<SearchState> states(1);
  for (size_t form = 0; form < forms.size(); ++form) {
    int32_t state = 0;
    for (const char c : forms[form].trigger) {
      int32_t next = states[state].next[static_cast<uint8_t>(c)];
      if (next == 0) {
        next = static_cast<int32_t>(states.size());
        states[state].next[static_cast<uint8_t>(c)] = next;
        states.emplace_back();
      }
      state = next;
    }
    states[state].form = static_cast<int32_t>(form);
  }
  // In breadth-first order: a byte without transition leads where it leads from the longest proper suffix.
  std::vector<int32_t> fallback(states.size(), 0);
  std::queue<int32_t> open;
  for (const int32_t child : states[0].next) {
    if (child != 0) open.push(child);
  }
  while (!open.empty()) {
    const int32_t state = open.front();
    open.pop();
    for (int byte = 0; byte < 256; ++byte) {
      int32_t& next = states[state].next[byte];
      const int32_t other = states[fallback[state]].next[byte];
      if (next == 0) {
        next = other;
      } else {
        fallback[next] = other;
        open.push(next);
      }
    }
  }
  return states;
}

// Builds free text with one rule per search state. `after`: the expression that follows a form.
GrammarExpr free_text(GrammarBuilder& builder, const std::vector<SearchState>& states,
                      const std::vector<TriggeredForm>& forms, bool may_end, GrammarExpr after) {
  std::vector<int32_t> rules;
  for (size_t i = 0; i < states.size(); ++i) rules.push_back(builder.add_rule("free text"));
  if (after < 0) after = builder.reference(rules[0]);
  for (size_t i = 0; i < states.size(); ++i) {
    std::map<int32_t, ByteSet> ways;
    for (int byte = 0; byte < 256; ++byte) ways[states[i].next[byte]].set(byte);
    std::vector<GrammarExpr> choices;
    for (const auto& [next, bytes] : ways) {
      const int32_t form = states[next].form;
      choices.push_back(form < 0 ? builder.sequence({builder.bytes(bytes), builder.reference(rules[next])})
                                 : builder.sequence({builder.bytes(bytes), forms[form].body, after}));
    }
    if (may_end) choices.push_back(builder.empty());
    builder.define(rules[i], builder.choice(std::move(choices)));
  }
  return builder.reference(rules[0]);
}

}  // namespace

Result<GrammarExpr> triggered_expression(GrammarBuilder& builder, const std::vector<TriggeredForm>& forms,
                                         const TriggerOptions& options) {
  if (forms.empty()) return usage_error("a grammar with triggers needs a trigger");
  for (size_t i = 0; i < forms.size(); ++i) {
    if (forms[i].trigger.empty()) return usage_error("a trigger must not be empty");
    for (size_t j = 0; j < forms.size(); ++j) {
      if (i != j && forms[i].trigger.find(forms[j].trigger) != std::string::npos) {
        return usage_error("trigger " + quote(forms[i].trigger) + " contains trigger " +
                           quote(forms[j].trigger));
      }
    }
  }
  const std::vector<SearchState> states = search_states(forms);
  const GrammarExpr end = builder.empty();
  if (!options.is_required) {
    return free_text(builder, states, forms, true, options.is_repeated ? -1 : end);
  }
  const GrammarExpr after = options.is_repeated ? free_text(builder, states, forms, true, -1) : end;
  return free_text(builder, states, forms, false, after);
}

}  // namespace outrider
