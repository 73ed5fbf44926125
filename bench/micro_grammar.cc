// SPDX-License-Identifier: Apache-2.0
// Measures token masks: the first mask of a grammar, one at a new place, one for a new stack, and a cached
// one. Usage: micro_grammar [directory with tokenizer.json, or .gguf]
#include <benchmark/benchmark.h>

#include <cstdio>
#include <filesystem>
#include <string>
#include <string_view>

#include "formats/gguf/gguf_tokenizer.h"
#include "grammar/grammar.h"
#include "grammar/grammar_constraint.h"

namespace outrider {
namespace {

constexpr std::string_view kSchema = R"({"type":"object","properties":{
  "name":{"type":"string"},"age":{"type":"integer","minimum":0,"maximum":130},"tags":{"type":"array","items":
  {"type":"string","maxLength":40}},"kind":{"enum":["person","company","other"]},"address":{"$ref":"#/$defs/address"}},
  "required":["name","age","tags","kind","address"],"additionalProperties":false,
  "$defs":{"address":{"type":"object","properties":{"street":{"type":"string"},"city":{"type":"string"},
  "parent":{"anyOf":[{"$ref":"#/$defs/address"},{"type":"null"}]}},"required":["street","city","parent"]}}})";
constexpr std::string_view kText =
    R"({"name": "Ada Lovelace", "age": 36, "tags": ["math", "poetry"], "kind": "person", "address": {"street": )"
    R"("St James's Square", "city": "London", "parent": {"street": "a", "city": "b", "parent": null}}})";

struct Vocabulary {
  std::shared_ptr<const Tokenizer> tokenizer;
  std::shared_ptr<const TokenTrie> trie;
};
Vocabulary vocabulary;

void time_trie(benchmark::State& state) {
  for ([[maybe_unused]] auto iteration : state) {
    benchmark::DoNotOptimize(TokenTrie::create(*vocabulary.tokenizer));
  }
  state.counters["tokens"] = vocabulary.trie->vocab_size();
  state.counters["nodes"] = vocabulary.trie->node_count();
}

void time_compile(benchmark::State& state) {
  for ([[maybe_unused]] auto iteration : state) benchmark::DoNotOptimize(grammar_of_json_schema(kSchema));
}

// Measures a whole answer: a mask and an advance per token. `is_shared`: the matcher has served another
// answer before.
void time_answer(benchmark::State& state, bool is_shared) {
  const SharedGrammar grammar = grammar_of_json_schema(kSchema).value();
  const std::vector<TokenId> tokens = vocabulary.tokenizer->encode(kText, {.add_special = false});
  auto matcher = GrammarMatcher::create(grammar, vocabulary.trie, {});
  for ([[maybe_unused]] auto iteration : state) {
    if (!is_shared) matcher = GrammarMatcher::create(grammar, vocabulary.trie, {});
    const auto constraint = matcher->make_constraint();
    auto at = constraint->start();
    for (const TokenId token : tokens) {
      benchmark::DoNotOptimize(constraint->allowed(at).data());
      at = constraint->advance(at, token);
      if (at == TokenConstraint::kDead) state.SkipWithError("the grammar refuses the text");
    }
  }
  state.counters["per_token"] =
      benchmark::Counter(static_cast<double>(tokens.size()),
                         benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

// A state inside a string, at an array depth for which no mask is cached.
void time_string(benchmark::State& state, bool is_first) {
  const TokenId open = vocabulary.tokenizer->encode("[", {.add_special = false}).back();
  const TokenId quote = vocabulary.tokenizer->encode("\"", {.add_special = false}).back();
  const SharedGrammar grammar = grammar_of_json_schema("{\"type\":\"array\"}").value();
  auto matcher = GrammarMatcher::create(grammar, vocabulary.trie, {});
  auto constraint = matcher->make_constraint();
  auto at = constraint->start();
  for ([[maybe_unused]] auto iteration : state) {
    state.PauseTiming();
    if (is_first) {
      matcher = GrammarMatcher::create(grammar, vocabulary.trie, {});
      constraint = matcher->make_constraint();
      at = constraint->start();
    }
    at = constraint->advance(at, open);
    const auto inside = constraint->advance(at, quote);
    state.ResumeTiming();
    benchmark::DoNotOptimize(constraint->allowed(inside).data());
  }
}

void register_all() {
  const auto add = [](const char* name, auto function) {
    benchmark::RegisterBenchmark(name, function)->Unit(benchmark::kMicrosecond);
  };
  add("trie", time_trie);
  add("compile_schema", time_compile);
  add("answer/new_grammar", [](benchmark::State& state) { time_answer(state, false); });
  add("answer/known_grammar", [](benchmark::State& state) { time_answer(state, true); });
  add("string_mask/first", [](benchmark::State& state) { time_string(state, true); });
  add("string_mask/new_stack", [](benchmark::State& state) { time_string(state, false); });
}

}  // namespace
}  // namespace outrider

int main(int argc, char** argv) {
  using namespace outrider;
  benchmark::Initialize(&argc, argv);
  const std::filesystem::path path =
      argc > 1 ? std::filesystem::path(argv[1])
               : std::filesystem::path(OUTRIDER_SOURCE_DIR) / "models" / "outrider-small";
  auto spec = path.extension() == ".gguf" ? read_gguf_tokenizer(path) : read_tokenizer_json(path);
  if (!spec.ok()) {
    std::fprintf(stderr, "%s\n", spec.error().message.c_str());
    return 1;
  }
  vocabulary.tokenizer = Tokenizer::create(std::move(*spec)).value();
  vocabulary.trie = TokenTrie::create(*vocabulary.tokenizer);
  register_all();
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
