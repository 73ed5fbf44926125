// SPDX-License-Identifier: Apache-2.0
// The first byte says how to read the rest: GBNF, a regular expression or a JSON schema. Any bytes must be
// refused in one line, or give an automaton with masks that agree with its steps.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "grammar/grammar.h"
#include "grammar/grammar_constraint.h"

namespace {

using namespace outrider;

Result<SharedGrammar> grammar_of(uint8_t kind, std::string_view text) {
  switch (kind % 3) {
    case 0:
      return parse_gbnf(text);
    case 1:
      return grammar_of_regex(text);
    default:
      return grammar_of_json_schema(text);
  }
}

std::shared_ptr<const TokenTrie> make_trie() {
  std::vector<std::string> tokens = {control_token_bytes("end")};
  for (int byte = 0; byte < 255; ++byte) tokens.emplace_back(1, static_cast<char>(byte));
  for (const char* text : {"{\"", "\":", "\"}", ", ", "ab", "null", "12", "\n  ", "\xC3\xA9", "]}"}) {
    tokens.emplace_back(text);
  }
  return TokenTrie::create(tokens);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const auto trie = make_trie();
  if (size == 0) return 0;
  const auto grammar = grammar_of(data[0], {reinterpret_cast<const char*>(data) + 1, size - 1});
  if (!grammar.ok()) {
    if (grammar.error().message.find('\n') != std::string::npos) std::abort();
    return 0;
  }
  const auto constraint = make_constraint(*grammar, trie, {0});
  TokenConstraint::State state = constraint->start();
  for (size_t step = 0; step < 24 && state != TokenConstraint::kDead; ++step) {
    const auto mask = constraint->allowed(state);
    std::vector<TokenId> allowed;
    for (TokenId token = 1; token < trie->vocab_size(); ++token) {
      const bool may_come = mask[token / 64] >> (token % 64) & 1;
      const bool is_alive = constraint->advance(state, token) != TokenConstraint::kDead;
      if (may_come && !is_alive) std::abort();
      if (is_alive && !may_come && trie->token_bytes(token).size() == 1) std::abort();
      if (may_come) allowed.push_back(token);
    }
    if (allowed.empty()) return 0;
    state = constraint->advance(state, allowed[data[step % size] % allowed.size()]);
  }
  return 0;
}
