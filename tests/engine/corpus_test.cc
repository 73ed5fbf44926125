// SPDX-License-Identifier: Apache-2.0
// Texts of others as a source of drafts leave every text as it is, whether they hold the answer or not.
#include <gtest/gtest.h>

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/lossless/lossless.h"

namespace outrider {
namespace {

namespace fs = std::filesystem;

class CorpusLossless : public ::testing::Test {
 protected:
  CorpusLossless() {
    std::string name = testing::TempDir() + "outrider_corpus_lossless_XXXXXX";
    folder_ = ::mkdtemp(name.data());
  }
  ~CorpusLossless() override { fs::remove_all(folder_); }

  void write(const std::string& name, const std::string& text) { std::ofstream(folder_ / name) << text; }

  // Answers with drafts from the corpus, which must equal plain decoding; returns the passes that they took.
  int64_t passes(const std::string& speculative, const Workload& workload,
                 const std::vector<Completion>& plain, int batch) {
    const Variant variant{.speculative = speculative, .batch = batch, .corpus = folder_};
    const std::vector<Completion> drafted = run_variant({}, variant, workload);
    expect_same(plain, drafted, describe(variant));
    int64_t steps = 0;
    for (const Completion& one : drafted) steps += one.speculation.steps;
    return steps;
  }

  fs::path folder_;
};

TEST_F(CorpusLossless, TextsStayWhateverTheCorpusHolds) {
  for (const double temperature : {0.0, 0.9}) {
    Workload workload{.prompts = mixed_prompts(4)};
    workload.sampling.temperature = temperature;
    workload.sampling.seed = 7;
    const std::vector<Completion> plain = run_variant({}, {}, workload);
    std::string answers;
    int64_t tokens = 0;
    for (size_t i = 0; i < plain.size(); ++i) {
      answers += workload.prompts[i] + plain[i].text + "\n";
      tokens += static_cast<int64_t>(plain[i].tokens.size());
    }
    std::string shuffled;  // the same words in another order
    for (size_t i = 0; i < answers.size(); i += 40) shuffled.insert(0, answers.substr(i, 40));
    for (const std::string& text : {answers, shuffled}) {
      write("texts.txt", text);
      int64_t fewest = tokens;
      for (const char* shape :
           {"suffix,max_draft_len=8", "suffix,max_draft_len=8,tree=dynamic,max_total_draft_tokens=24",
            "combine=[suffix,ngram],tree=dynamic", "auto,policy=auto"}) {
        fewest = std::min(fewest, passes(shape, workload, plain, 1));
        fewest = std::min(fewest, passes(shape, workload, plain, 4));
        if (HasFatalFailure()) return;
      }
      if (text == answers) {
        EXPECT_LT(fewest * 2, tokens) << "the corpus has the answers";
      }
    }
  }
}

}  // namespace
}  // namespace outrider
