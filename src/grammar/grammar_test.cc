// SPDX-License-Identifier: Apache-2.0
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

#include "base/utf8.h"
#include "grammar/code_points.h"
#include "grammar/grammar_builder.h"
#include "grammar/test_grammars.h"

namespace outrider {
namespace {

TEST(CodePoints, SequencesEncodeExactlyTheMembers) {
  std::mt19937 random(5);
  for (int round = 0; round < 60; ++round) {
    CodePointSet set;
    for (int i = 0; i < 4; ++i) {
      const uint32_t first = random() % (round % 2 == 0 ? 0x1000 : 0x110000);
      set.add(first, std::min<uint32_t>(CodePointSet::kLast, first + random() % 0x3000));
    }
    if (round % 3 == 0) set = set.negated();
    const std::vector<Utf8Sequence> sequences = utf8_sequences(set);
    for (uint32_t value = 0; value <= CodePointSet::kLast; value += 1 + value / 500) {
      if (value >= 0xD800 && value <= 0xDFFF) continue;
      std::string bytes;
      utf8::append(value, bytes);
      int found = 0;
      for (const Utf8Sequence& sequence : sequences) {
        bool fits = sequence.length == static_cast<int>(bytes.size());
        for (int i = 0; fits && i < sequence.length; ++i) {
          const auto byte = static_cast<uint8_t>(bytes[i]);
          fits = sequence.bytes[i].first <= byte && byte <= sequence.bytes[i].last;
        }
        found += fits ? 1 : 0;
      }
      ASSERT_EQ(found, set.contains(value) ? 1 : 0) << value;
    }
  }
}

TEST(CodePoints, NeverHasSurrogates) {
  const CodePointSet all = CodePointSet().negated();
  EXPECT_FALSE(all.contains(0xD800));
  EXPECT_FALSE(all.contains(0xDFFF));
  EXPECT_TRUE(all.contains(0xD7FF) && all.contains(0xE000) && all.contains(0x10FFFF));
  EXPECT_TRUE(all.negated().is_empty());
}

TEST(Gbnf, ReadsLlamaCppsSyntax) {
  const SharedGrammar grammar = must(parse_gbnf(R"gbnf(# arithmetic
root   ::= expr "=" ws term "\n"
expr   ::= term ([-+*/] term)*   # several
term   ::= ident | num | ("(" ws expr
  ")" ws)
ident  ::= [a-z] [a-z0-9_]{0,3} ws
num    ::= [0-9]+ ws
  | "\x41\u00e9" .
ws     ::= [ \t\n]*
)gbnf"));
  EXPECT_TRUE(accepts(grammar, "x=1\n"));
  EXPECT_TRUE(accepts(grammar, "(x1+y)*3 = Aé漢\n"));
  EXPECT_FALSE(accepts(grammar, "abcde=1\n"));
  EXPECT_FALSE(accepts(grammar, "(x=1\n"));
}

TEST(Gbnf, CountsWithoutCopying) {
  const SharedGrammar grammar = must(parse_gbnf(R"(root ::= ("ab" | "a"){3,4096} "c"{2}{3} [^x]{1,})"));
  EXPECT_LT(grammar->nodes.size(), 60U);
  std::string text;
  for (int i = 0; i < 2000; ++i) text += i % 3 == 0 ? "ab" : "a";
  EXPECT_TRUE(accepts(grammar, text + "ccccccd"));
  EXPECT_FALSE(accepts(grammar, text + "cccccd"));
  EXPECT_FALSE(accepts(grammar, "aaccccccd"));
  EXPECT_FALSE(accepts(grammar, std::string(4097, 'a') + "ccccccd"));
}

// Two derivations per byte give 2^n stacks, which are stored as one set.
TEST(Grammar, WaysThatMeetAreOne) {
  const SharedGrammar grammar = must(parse_gbnf(R"(root ::= "a" root "b" | "a" root "c" | "d")"));
  std::string text(2000, 'a');
  text += 'd';
  for (int i = 0; i < 2000; ++i) text += i % 3 == 0 ? 'b' : 'c';
  EXPECT_TRUE(accepts(grammar, text));
  EXPECT_FALSE(accepts(grammar, text + "b"));
  EXPECT_FALSE(accepts(grammar, text.substr(0, text.size() - 1)));
}

TEST(Grammar, PrunesWhatNeverEnds) {
  const SharedGrammar grammar = must(parse_gbnf("root ::= \"a\" dead | \"b\"\ndead ::= \"c\" dead"));
  ByteAutomaton automaton(grammar, 1);
  EXPECT_EQ(automaton.advance(automaton.start(), 'a'), ByteAutomaton::kDead);
  EXPECT_TRUE(accepts(grammar, "b"));
}

TEST(JsonObject, AnyObjectAndNothingElse) {
  const SharedGrammar grammar = json_object_grammar();
  for (const char* text :
       {"{}", "{ }", R"({"a": {"b": [1, -2.5e+10, "\ud83d\ude00"]}})", "{\n  \"a\": null\n}"}) {
    EXPECT_TRUE(accepts(grammar, text)) << text;
  }
  for (const char* text :
       {"[]", "1", "{\"a\":01}", "{\"a\"}", R"({"a":"\ud83d"})", "{\"a\":1,}", "{}  ", "{\n\n}"}) {
    EXPECT_FALSE(accepts(grammar, text)) << text;
  }
}

TEST(Triggered, FreeTextThenTheForm) {
  for (const bool is_required : {false, true}) {
    for (const bool is_repeated : {false, true}) {
      GrammarBuilder builder;
      const GrammarExpr body = builder.sequence({json_object_expression(builder), builder.literal("</t>")});
      const auto root = triggered_expression(builder, {{"<t>", body}, {"<u>", builder.literal("!")}},
                                             {.is_required = is_required, .is_repeated = is_repeated});
      ASSERT_TRUE(root.ok());
      const SharedGrammar grammar = must(builder.build(*root));
      EXPECT_EQ(accepts(grammar, "any <<t text \xFF"), !is_required);
      EXPECT_TRUE(accepts(grammar, "so: <<t>{}</t>"));
      EXPECT_TRUE(accepts(grammar, "<u>!"));
      EXPECT_FALSE(accepts(grammar, "<t>{]</t>"));
      EXPECT_FALSE(accepts(grammar, "<t>{}"));
      EXPECT_EQ(accepts(grammar, "<t>{}</t> and <u>!<t>{\"a\":1}</t>."), is_repeated);
      EXPECT_FALSE(accepts(grammar, "<t>{}</t> <u>?"));
    }
  }
}

// The expected verdicts come from Python's re and jsonschema (tools/compare_grammars.py).
TEST(Grammar, AgreesWithTheReferencePackages) {
  std::ifstream file(OUTRIDER_SOURCE_DIR "/tests/data/grammar/verdicts.jsonl");
  ASSERT_TRUE(file);
  int lines = 0;
  for (std::string line; std::getline(file, line); ++lines) {
    const auto golden = nlohmann::json::parse(line);
    const std::string kind = golden["kind"];
    const std::string text = golden["grammar"];
    const SharedGrammar grammar = must(kind == "regex"  ? grammar_of_regex(text)
                                       : kind == "gbnf" ? parse_gbnf(text)
                                                        : grammar_of_json_schema(text));
    for (const auto& [candidate, verdict] : golden["verdicts"].items()) {
      EXPECT_EQ(accepts(grammar, candidate), verdict.get<bool>()) << kind << " " << text << ": " << candidate;
    }
  }
  EXPECT_GE(lines, 300);
}

// All strings of up to four of the letters and many of five, against the search of std::string.
TEST(GrammarBuilder, TextWithoutAcceptsEveryOtherText) {
  for (const char* word : {"a", "ab", "aa", "aab", "aba", "abab", "</a>", "aé"}) {
    GrammarBuilder builder;
    const SharedGrammar grammar = must(builder.build(builder.text_without(word)));
    const std::vector<std::string> letters = {"a", "b", "<", "/", ">", "é"};
    std::vector<std::string> texts = {""};
    for (size_t i = 0; i < texts.size(); ++i) {
      const bool has_word = texts[i].find(word) != std::string::npos;
      ASSERT_EQ(accepts(grammar, texts[i]), !has_word) << word << " in " << texts[i];
      if (has_word || texts.size() > 4000) continue;
      for (const std::string& letter : letters) texts.push_back(texts[i] + letter);
    }
  }
}

}  // namespace
}  // namespace outrider
