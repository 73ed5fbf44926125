// SPDX-License-Identifier: Apache-2.0
// Says what our grammars accept, for tools/compare_grammars.py: one JSON object per line in, one per line
// out.
//   {"kind": "gbnf" | "regex" | "schema", "grammar": text, "texts": [text, ...], "walks": n, "seed": n}
//   {"error": text} or {"accepts": [bool, ...], "walks": [text, ...]}
// A walk takes random bytes that may come until the text may end.
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

#include "base/counter_rng.h"
#include "grammar/byte_automaton.h"
#include "grammar/grammar.h"

namespace {

using namespace outrider;
using Json = nlohmann::json;

constexpr size_t kLongestWalk = 4000;

Result<SharedGrammar> grammar_of(const std::string& kind, const std::string& text) {
  if (kind == "gbnf") return parse_gbnf(text);
  if (kind == "regex") return grammar_of_regex(text);
  return grammar_of_json_schema(text);
}

bool accepts(ByteAutomaton& automaton, const std::string& text) {
  ByteAutomaton::State state = automaton.start();
  for (const char c : text) {
    if (state == ByteAutomaton::kDead) return false;
    state = automaton.advance(state, static_cast<uint8_t>(c));
  }
  return state != ByteAutomaton::kDead && automaton.may_end(state);
}

// Empty where the walk became too long.
Json walk(ByteAutomaton& automaton, uint64_t seed) {
  std::string text;
  ByteAutomaton::State state = automaton.start();
  for (uint64_t draw = mix64(seed); text.size() < kLongestWalk; draw = mix64(draw)) {
    if (automaton.may_end(state) && (automaton.items(state).empty() || draw % 4 == 0)) return text;
    // Towards the end, the byte that closes what is open.
    std::string bytes;
    for (int byte = 0; byte < 256; ++byte) {
      if (automaton.advance(state, static_cast<uint8_t>(byte)) != ByteAutomaton::kDead) {
        bytes += static_cast<char>(byte);
      }
    }
    if (bytes.empty()) return Json{{"stuck", text}};
    char byte = bytes[(draw >> 8) % bytes.size()];
    if (text.size() > 300 || draw % 3 == 0) {
      for (const char close : {'"', '}', ']'}) {
        if (bytes.find(close) != std::string::npos) byte = close;
      }
    }
    text += byte;
    state = automaton.advance(state, static_cast<uint8_t>(byte));
  }
  return nullptr;
}

Json answer(const Json& question) {
  const auto grammar = grammar_of(question.at("kind"), question.at("grammar"));
  if (!grammar.ok()) return {{"error", grammar.error().message}};
  ByteAutomaton automaton(*grammar, 1);
  Json accepted = Json::array();
  for (const Json& text : question.at("texts")) accepted.push_back(accepts(automaton, text));
  Json walks = Json::array();
  const auto seed = question.value("seed", uint64_t{0});
  for (int i = 0; i < question.value("walks", 0); ++i) walks.push_back(walk(automaton, seed + i));
  return {{"accepts", accepted}, {"walks", walks}};
}

}  // namespace

int main() {
  std::string line;
  while (std::getline(std::cin, line)) {
    std::cout << answer(Json::parse(line)).dump() << std::endl;
  }
  return 0;
}
