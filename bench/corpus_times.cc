// SPDX-License-Identifier: Apache-2.0
// Times a corpus: how long its index takes to build or to open, and how long the Suffix drafter takes for
// each token of a text that it follows. Usage: corpus_times MODEL CACHE TEXT CORPUS...
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "corpus/open_corpus.h"
#include "drafters/suffix/suffix.h"
#include "formats/model_file.h"

namespace outrider {
namespace {

double milliseconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

// The time that this thread had a processor.
double cpu_milliseconds() {
  timespec time = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return 1e3 * static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_nsec);
}

Status print_times(int argc, char** argv) {
  constexpr size_t kFollowed = 20'000;  // tokens
  constexpr size_t kContext = 64;
  OUTRIDER_TRY(const ModelFile model, open_model(argv[1]));
  OUTRIDER_TRY(const auto tokenizer, Tokenizer::create(model.tokenizer));
  const CorpusOptions options{.texts = {argv + 4, argv + argc},
                              .cache = argv[2],
                              .threads = static_cast<int>(std::thread::hardware_concurrency())};
  auto start = std::chrono::steady_clock::now();
  OUTRIDER_TRY(std::shared_ptr<const Corpus> corpus, open_corpus(options, *tokenizer));
  std::printf("first opening   %10.1f ms\n", milliseconds_since(start));
  start = std::chrono::steady_clock::now();
  OUTRIDER_TRY(corpus, open_corpus(options, *tokenizer));
  std::printf("second opening  %10.1f ms\n", milliseconds_since(start));
  std::printf("%lld tokens of %lld bytes of text, index of %lld bytes\n",
              static_cast<long long>(corpus->facts().tokens),
              static_cast<long long>(corpus->facts().text_bytes),
              static_cast<long long>(corpus->index_bytes()));

  std::ifstream file(argv[3]);
  std::vector<TokenId> text = tokenizer->encode(std::string(std::istreambuf_iterator<char>(file), {}));
  text.resize(std::min(text.size(), kFollowed));
  SpeculativeOptions speculation;
  speculation.tree.kind = TreeKind::kDynamic;
  DrafterContext context;
  context.vocab_size = tokenizer->vocab_size();
  // Twice: the first time brings the pages of the index into memory.
  for (const char* pass : {"pages not yet read", "pages in memory"}) {
    for (const bool has_corpus : {false, true}) {
      context.corpus = has_corpus ? corpus : nullptr;
      OUTRIDER_TRY(const auto drafter, make_suffix_drafter(speculation, context));
      size_t drafted = 0;
      const double cpu_start = cpu_milliseconds();
      start = std::chrono::steady_clock::now();
      for (size_t size = kContext; size < text.size(); ++size) {
        TokenTree tree(text[size - 1]);
        const DraftRequest request{.tokens = std::span(text).first(size),
                                   .prompt_length = static_cast<int>(kContext),
                                   .max_draft_len = 8,
                                   .max_nodes = 24};
        OUTRIDER_RETURN_IF_ERROR(drafter->draft({&request, 1}, {&tree, 1}));
        drafted += static_cast<size_t>(tree.drafted());
      }
      const double tokens = static_cast<double>(text.size() - kContext);
      std::printf("%-18s %-7s %8.2f us a token, %8.2f us of the processor, %.2f nodes a token\n", pass,
                  has_corpus ? "corpus" : "without", 1e3 * milliseconds_since(start) / tokens,
                  1e3 * (cpu_milliseconds() - cpu_start) / tokens, static_cast<double>(drafted) / tokens);
    }
  }
  return {};
}

}  // namespace
}  // namespace outrider

int main(int argc, char** argv) {
  if (argc < 5) {
    std::fprintf(stderr, "usage: corpus_times MODEL CACHE TEXT CORPUS...\n");
    return 2;
  }
  const outrider::Status status = outrider::print_times(argc, argv);
  if (!status.ok()) std::fprintf(stderr, "corpus_times: %s\n", status.error().message.c_str());
  return status.ok() ? 0 : 1;
}
