// SPDX-License-Identifier: Apache-2.0
// Time per token of the Suffix drafter: learn one token, draft after it.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "base/counter_rng.h"
#include "drafters/suffix/suffix.h"
#include "formats/model_file.h"

namespace outrider {
namespace {

constexpr size_t kPrompt = 512;
constexpr size_t kTokens = 8192;

// This project's own text, in the tokens of its default model.
std::vector<TokenId> source_text() {
  const std::filesystem::path root = OUTRIDER_SOURCE_DIR;
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root / "src" / "engine")) {
    if (entry.is_regular_file()) paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  std::string text;
  for (const auto& path : paths) {
    std::ifstream file(path);
    text.append(std::istreambuf_iterator<char>(file), {});
  }
  const auto model = open_model(root / "models" / "outrider-small");
  const auto tokenizer = Tokenizer::create(model->tokenizer);
  std::vector<TokenId> tokens = (*tokenizer)->encode(text);
  tokens.resize(std::min(tokens.size(), kTokens));
  return tokens;
}

std::vector<TokenId> random_text(uint64_t letters) {
  std::vector<TokenId> tokens;
  for (uint64_t i = 0; i < kTokens; ++i) tokens.push_back(static_cast<TokenId>(mix64(i) % letters));
  return tokens;
}

std::vector<TokenId> repeated_text(size_t period) {
  std::vector<TokenId> tokens = random_text(1000);
  for (size_t i = period; i < tokens.size(); ++i) tokens[i] = tokens[i - period];
  return tokens;
}

void time_suffix(benchmark::State& state, const std::vector<TokenId>& text,
                 const SpeculativeOptions& options) {
  size_t tokens = 0;
  for ([[maybe_unused]] auto iteration : state) {
    auto drafter = *make_suffix_drafter(options, {});
    // Other outputs to look into: the same text in pieces.
    if (options.suffix.max_cached_requests > 0) {
      state.PauseTiming();
      for (size_t i = 0; i + kPrompt <= text.size(); i += kPrompt) {
        TokenTree tree(text[i + kPrompt - 1]);
        const DraftRequest request{.sequence = 1 + i,
                                   .tokens = std::span(text).subspan(i, kPrompt),
                                   .max_draft_len = 1,
                                   .max_nodes = 1};
        (void)drafter->draft({&request, 1}, {&tree, 1});
        drafter->end(request.sequence);
      }
      state.ResumeTiming();
    }
    for (size_t size = kPrompt; size <= text.size(); ++size) {
      TokenTree tree(text[size - 1]);
      const DraftRequest request{.sequence = 0,
                                 .tokens = std::span(text).first(size),
                                 .prompt_length = kPrompt,
                                 .max_draft_len = 16,
                                 .max_nodes = 16};
      (void)drafter->draft({&request, 1}, {&tree, 1});
      benchmark::DoNotOptimize(tree.size());
    }
    tokens += text.size();
  }
  state.counters["per_token"] = benchmark::Counter(static_cast<double>(tokens),
                                                   benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

void register_all() {
  struct Text {
    const char* name;
    std::vector<TokenId> tokens;
  };
  static const std::vector<Text> kTexts = {{"sources", source_text()},
                                           {"random_of_4", random_text(4)},
                                           {"random_of_32000", random_text(32000)},
                                           {"period_of_8", repeated_text(8)},
                                           {"period_of_500", repeated_text(500)}};
  for (const Text& text : kTexts) {
    for (const bool is_tree : {false, true}) {
      for (const int64_t cached : {0, 1000}) {
        SpeculativeOptions options;
        options.tree.kind = is_tree ? TreeKind::kDynamic : TreeKind::kChain;
        options.suffix.max_cached_requests = cached;
        const std::string name =
            std::string(text.name) + (is_tree ? "/tree" : "/chain") + (cached > 0 ? "/cache" : "");
        benchmark::RegisterBenchmark(name.c_str(), [&tokens = text.tokens, options](benchmark::State& state) {
          time_suffix(state, tokens, options);
        })->Unit(benchmark::kMillisecond);
      }
    }
  }
}

}  // namespace
}  // namespace outrider

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  outrider::register_all();
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
