// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "grammar/byte_automaton.h"
#include "grammar/grammar.h"

namespace outrider {

inline SharedGrammar must(const Result<SharedGrammar>& grammar) {
  EXPECT_TRUE(grammar.ok()) << (grammar.ok() ? "" : grammar.error().message);
  return grammar.ok() ? *grammar : json_object_grammar();
}

inline bool accepts(const SharedGrammar& grammar, std::string_view text) {
  ByteAutomaton automaton(grammar, 1);
  ByteAutomaton::State state = automaton.start();
  for (const char c : text) state = automaton.advance(state, static_cast<uint8_t>(c));
  return state != ByteAutomaton::kDead && automaton.may_end(state);
}

}  // namespace outrider
