// SPDX-License-Identifier: Apache-2.0
// Compares masks with the definition: a token is allowed if its bytes are.
#include <algorithm>
#include <chrono>
#include <random>

#include "base/counter_rng.h"
#include "grammar/grammar_builder.h"
#include "grammar/grammar_constraint.h"
#include "grammar/test_grammars.h"

namespace outrider {
namespace {

constexpr TokenId kEnd = 0;

// A vocabulary of all bytes, pieces of JSON and words, parts of characters, a control token and an empty
// token.
std::vector<std::string> vocabulary() {
  std::vector<std::string> tokens = {control_token_bytes("<|end|>"), "", control_token_bytes("<|call|>")};
  for (int byte = 0; byte < 255; ++byte) tokens.emplace_back(1, static_cast<char>(byte));
  for (const char* text :
       {"{\"",     "\"}",   "\":",  "\": ",     "\",",   "\", \"",  "}}",   "]}",     "},{",      "[{\"",
        "{}",      " {",    "\n  ", "\n    \"", "null",  "true",    "fal",  "se",     "nu",       "ll}",
        "12",      "120",   "0.",   "-1",       "1,2",   ".5",      "e10",  "a\"",    "a\": ",    "name",
        "ab",      "abc\"", "\\n",  "\\\"",     "\\u00", "\\ud83d", "\xC3", "\xA9\"", "\xE6\xBC", "\xF0\x9F",
        "é",       "漢字",  "aaaa", "aaaaaaaa", "bb",    "xy",      "x{",   "<t",     "t>",       "<t>{",
        "<t>{\"a", "></",   "</t>", "</t> ok",  "id",    "\"id\":", "\"na"}) {
    tokens.emplace_back(text);
  }
  std::mt19937 random(3);
  const std::string letters = "ab1{}[]\":, \n\\";
  for (int i = 0; i < 300; ++i) {
    std::string token;
    for (size_t size = 2 + random() % 4; token.size() < size;) token += letters[random() % letters.size()];
    tokens.push_back(token);
  }
  return tokens;
}

SharedGrammar triggered_grammar(bool is_repeated) {
  GrammarBuilder builder;
  const GrammarExpr body = builder.sequence({json_object_expression(builder), builder.literal("</t>")});
  const auto root = triggered_expression(builder, {{"<t>", body}, {control_token_bytes("<|call|>"), body}},
                                         {.is_required = false, .is_repeated = is_repeated});
  return must(builder.build(*root));
}

std::vector<SharedGrammar> grammars() {
  std::vector<SharedGrammar> all = {json_object_grammar(), triggered_grammar(true), triggered_grammar(false)};
  for (const char* text :
       {R"(root ::= "a" root "b" | "a" root "a" | "")", R"(root ::= ("ab" | "a" | "b"){2,9} "xy"*)",
        R"(root ::= item{3,40} "x" item{0,3}
item ::= [a-c]{1,2} ws
ws ::= [ \n]*)",
        R"(root ::= [^"]{5,300} ["] | value
value ::= "[" (value ("," value)*)? "]" | "12" | "1" "2"? "0")"}) {
    all.push_back(must(parse_gbnf(text)));
  }
  for (const char* pattern : {"(a|ab|b){0,30}(12)?", "\\w+(, \\w+){0,5}", "[^a]*a.{3,20}", "(a*b*){5}|x?"}) {
    all.push_back(must(grammar_of_regex(pattern)));
  }
  for (
      const char* schema :
      {R"({"properties":{"id":{"type":"integer","minimum":5},"name":{"type":"string","maxLength":30},"ab":{}},"required":["name"]})",
       R"({"type":"array","items":{"type":"string","minLength":20,"maxLength":25},"minItems":2,"maxItems":60})",
       R"({"properties":{"ab":{"type":"number"}},"additionalProperties":{"enum":["aaaa","ab","b",null,12]}})"}) {
    all.push_back(must(grammar_of_json_schema(schema)));
  }
  return all;
}

bool bit(std::span<const uint64_t> mask, TokenId token) { return mask[token / 64] >> (token % 64) & 1; }

TEST(TokenMasks, AreWhatAdvanceSays) {
  const std::vector<std::string> tokens = vocabulary();
  const auto trie = TokenTrie::create(tokens);
  int number = 0;
  for (const SharedGrammar& grammar : grammars()) {
    const auto constraint = make_constraint(grammar, trie, {kEnd});
    ByteAutomaton plain(grammar, 1);
    for (uint64_t walk = 0; walk < 12; ++walk) {
      TokenConstraint::State state = constraint->start();
      ByteAutomaton::State truth = plain.start();
      for (uint64_t draw = mix64(walk), step = 0; step < 40; draw = mix64(draw), ++step) {
        const std::span<const uint64_t> mask = constraint->allowed(state);
        std::vector<TokenId> allowed;
        for (TokenId token = 1; token < trie->vocab_size(); ++token) {
          ByteAutomaton::State next = truth;
          for (const char c : tokens[token]) next = plain.advance(next, static_cast<uint8_t>(c));
          const bool expected = !tokens[token].empty() && next != ByteAutomaton::kDead;
          ASSERT_EQ(bit(mask, token), expected) << "grammar " << number << ", token " << tokens[token];
          ASSERT_EQ(constraint->advance(state, token) != TokenConstraint::kDead, expected);
          if (expected) allowed.push_back(token);
        }
        ASSERT_EQ(bit(mask, kEnd), plain.may_end(truth));
        ASSERT_EQ(constraint->is_complete(state), allowed.empty());
        ASSERT_EQ(constraint->advance(state, kEnd), TokenConstraint::kDead);
        if (allowed.empty()) break;
        const TokenId token = allowed[(draw >> 8) % allowed.size()];
        for (const char c : tokens[token]) truth = plain.advance(truth, static_cast<uint8_t>(c));
        state = constraint->advance(state, token);
      }
    }
    ++number;
  }
}

TEST(TokenMasks, DoNotDependOnWhatWasAskedBefore) {
  const auto trie = TokenTrie::create(vocabulary());
  for (const SharedGrammar& grammar : grammars()) {
    const auto matcher = GrammarMatcher::create(grammar, trie, {kEnd});
    for (uint64_t walk = 0; walk < 4; ++walk) {
      const auto old = matcher->make_constraint();
      const auto fresh = make_constraint(grammar, trie, {kEnd});
      auto old_state = old->start();
      auto fresh_state = fresh->start();
      for (uint64_t draw = mix64(walk + 99), step = 0; step < 30; draw = mix64(draw), ++step) {
        const auto mask = fresh->allowed(fresh_state);
        ASSERT_TRUE(std::ranges::equal(mask, old->allowed(old_state)));
        std::vector<TokenId> allowed;
        for (TokenId token = 1; token < trie->vocab_size(); ++token) {
          if (bit(mask, token)) allowed.push_back(token);
        }
        if (allowed.empty()) break;
        const TokenId token = allowed[draw % allowed.size()];
        old_state = old->advance(old_state, token);
        fresh_state = fresh->advance(fresh_state, token);
      }
    }
  }
}

// A rejected drafted path has no effect: earlier states stay unchanged.
TEST(GrammarConstraint, EarlierStatesStay) {
  const auto trie = TokenTrie::create(vocabulary());
  const auto constraint = make_constraint(json_object_grammar(), trie, {kEnd});
  const auto start = constraint->start();
  const auto first = constraint->allowed(start);
  const std::vector<uint64_t> before(first.begin(), first.end());
  const auto open = constraint->advance(start, 3 + '{');
  const auto closed = constraint->advance(open, 3 + '}');
  EXPECT_TRUE(constraint->is_complete(closed));
  EXPECT_TRUE(bit(constraint->allowed(closed), kEnd));
  EXPECT_FALSE(bit(constraint->allowed(open), kEnd));
  EXPECT_TRUE(std::ranges::equal(before, constraint->allowed(start)));
  EXPECT_EQ(constraint->advance(start, 3 + '{'), open);
  EXPECT_EQ(constraint->advance(start, -1), TokenConstraint::kDead);
  EXPECT_EQ(constraint->advance(start, 1'000'000), TokenConstraint::kDead);
  EXPECT_TRUE(
      std::ranges::all_of(constraint->allowed(TokenConstraint::kDead), [](uint64_t w) { return w == 0; }));
}

// If a text has too many derivations, masks shrink to tokens of one byte or to none, within the time limit.
TEST(TokenMasks, HostileGrammarsTakeBoundedTime) {
  const auto trie = TokenTrie::create(vocabulary());
  for (const char* text :
       {"root ::= (\"a\" | \"ab\" | \"b\"){1,4096}{1,4096}", "root ::= [ab]* \"a\" [ab]{400} \"1\"",
        "root ::= s s s s s s s s\ns ::= (\"a\" s | \"aa\" s \"b\" | \"1\")*",
        "root ::= x{1,4000} | \"b\"\nx ::= \"a\" x{1,4000} | \"a\" | \"ab\""}) {
    const auto constraint = make_constraint(must(parse_gbnf(text)), trie, {kEnd});
    const auto begin = std::chrono::steady_clock::now();
    auto state = constraint->start();
    for (int step = 0; step < 200 && state != TokenConstraint::kDead; ++step) {
      (void)constraint->allowed(state);
      state = constraint->advance(state, 3 + "aab"[step % 3]);
    }
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - begin;
    EXPECT_LT(time.count(), 20.0) << text;
  }
}

}  // namespace
}  // namespace outrider
