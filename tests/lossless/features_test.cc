// SPDX-License-Identifier: Apache-2.0
// Drafters get the features of every committed token once and in order, with the bits of one pass over the
// whole text; requests that are drafted elsewhere get them as states.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "kernels/kernel_table.h"
#include "open/parts.h"

namespace outrider::features_test {
namespace {

const FeatureTaps kTaps{.layers = {0, 1, 2}, .final_norm = true};
constexpr int64_t kHidden = 64;

std::string target_path() { return OUTRIDER_SOURCE_DIR "/tests/data/models/llama"; }

// The record of one sequence from begin() to end().
struct Record {
  int64_t first = 0;                         // largest number of first tokens without features
  int64_t begin = -1;                        // first token with features
  std::vector<TokenId> tokens;               // as given last
  std::vector<std::vector<float>> features;  // from token `begin` on
};

// Drafts the output of plain decoding with wrong siblings before and after the right nodes, so that trees are
// accepted in part and on paths of every kind. Records the features that it gets.
class Recorder final : public Drafter {
 public:
  enum class Knows : uint8_t { kNothing, kSome };

  Recorder(std::vector<std::vector<TokenId>> texts, Knows knows) : texts_(std::move(texts)), knows_(knows) {
    traits_.name = "Recorder";
    traits_.features = kTaps;
    traits_.states = {.size = kTaps.count() * kHidden, .head = "recorder"};
  }

  const DrafterTraits& traits() const override { return traits_; }

  int64_t known_tokens(std::span<const TokenId> tokens, uint64_t) override {
    const int64_t known = knows_ == Knows::kSome ? std::ssize(tokens) / 2 : 0;
    known_[{tokens.begin(), tokens.end()}] = known;
    return known;
  }

  void begin(uint64_t sequence, std::span<const TokenId> prompt, uint64_t) override {
    EXPECT_FALSE(running_.contains(sequence));
    const auto known = known_.find({prompt.begin(), prompt.end()});
    EXPECT_NE(known, known_.end()) << "known_tokens() comes before begin()";
    running_[sequence].first = known == known_.end() ? 0 : known->second;
  }

  Status draft(std::span<const DraftRequest> requests, std::span<TokenTree> trees) override {
    for (size_t i = 0; i < requests.size(); ++i) grow(requests[i], trees[i]);
    return {};
  }

  void absorb(std::span<const CommittedFeatures> committed) override {
    std::set<uint64_t> told;
    for (const CommittedFeatures& one : committed) {
      EXPECT_TRUE(told.insert(one.sequence).second);
      const auto found = running_.find(one.sequence);
      if (found == running_.end()) {
        ADD_FAILURE() << "sequence " << one.sequence << " does not run";
        continue;
      }
      take(one, found->second);
    }
    steps_ += 1;
  }

  void end(uint64_t sequence) override {
    const auto found = running_.find(sequence);
    ASSERT_NE(found, running_.end());
    records.push_back(std::move(found->second));
    running_.erase(found);
  }

  std::vector<Record> records;

 private:
  void grow(const DraftRequest& request, TokenTree& tree) {
    const auto text = std::ranges::find_if(texts_, [&](const std::vector<TokenId>& one) {
      return one.size() >= request.tokens.size() &&
             std::equal(request.tokens.begin(), request.tokens.end(), one.begin());
    });
    int node = 0;
    for (int depth = 0; depth < request.max_draft_len && tree.drafted() + 3 <= request.max_nodes; ++depth) {
      const size_t position = request.tokens.size() + static_cast<size_t>(depth);
      const TokenId wrong = static_cast<TokenId>((position * 7 + static_cast<size_t>(steps_)) % 280);
      tree.add(node, wrong);
      // Some drafts leave the text, so that whole trees are rejected, too.
      const bool leaves = (position + static_cast<size_t>(steps_)) % 5 == 0;
      const bool is_known = text != texts_.end() && position < text->size() && !leaves;
      const int next = tree.add(node, is_known ? (*text)[position] : (wrong + 1) % 280);
      tree.add(node, (wrong + 2) % 280);
      node = next;
    }
  }

  static void take(const CommittedFeatures& one, Record& record) {
    if (one.rows.empty()) return;
    if (record.begin < 0) {
      record.begin = one.first;
      EXPECT_LE(record.begin, record.first) << "features that the drafter does not know are missing";
    }
    EXPECT_EQ(one.first, record.begin + std::ssize(record.features)) << "not once and in order";
    EXPECT_LE(one.first + std::ssize(one.rows), std::ssize(one.tokens) - 1);
    EXPECT_TRUE(record.tokens.size() <= one.tokens.size() &&
                std::equal(record.tokens.begin(), record.tokens.end(), one.tokens.begin()));
    record.tokens.assign(one.tokens.begin(), one.tokens.end());
    for (size_t i = 0; i < one.rows.size(); ++i) {
      const auto features = one.at(i);
      record.features.emplace_back(features.begin(), features.end());
    }
  }

  DrafterTraits traits_;
  std::vector<std::vector<TokenId>> texts_;
  Knows knows_;
  std::map<std::vector<TokenId>, int64_t> known_;
  std::map<uint64_t, Record> running_;
  int64_t steps_ = 0;
};

// The features of a whole text, by one pass of another instance of the model.
class Reference {
 public:
  explicit Reference(const std::string& kernels) {
    auto file = open_model(target_path());
    auto model =
        Model::load(*file, {.kernels = *select_kernels(kernels), .pool = &pool_, .weights = std::nullopt});
    model_ = std::move(*model);
    model_->tap(kTaps);
  }

  std::vector<std::vector<float>> features(std::span<const TokenId> tokens) {
    KvShape shape = model_->kv_shape();
    shape.type = DType::kBF16;
    shape.page_size = 16;
    shape.page_count = 32;
    KvCache cache(shape);
    KvSequence sequence = cache.open({});
    auto staged = cache.stage(sequence, static_cast<int>(tokens.size()));
    ForwardBatch batch;
    append_chain(batch, sequence, *staged, tokens, LogitsWanted::kNone);
    model_->forward(batch, cache);
    std::vector<std::vector<float>> rows;
    const auto size = static_cast<size_t>(model_->feature_size());
    for (size_t i = 0; i < tokens.size(); ++i) {
      const auto row = model_->features().subspan(i * size, size);
      rows.emplace_back(row.begin(), row.end());
    }
    return rows;
  }

 private:
  ThreadPool pool_{2};
  std::unique_ptr<Model> model_;
};

struct Serving {
  int page_size = 16;
  int batch = 4;
  int prefill_chunk = 256;
  int preempt_every = 0;
  double temperature = 0.0;
};

std::vector<Request> requests(double temperature) {
  std::vector<Request> all(7);
  for (size_t i = 0; i < all.size(); ++i) {
    // The last ones begin like earlier ones; one is a single token.
    const size_t length = i == 1 ? 1 : 9 + 21 * (i % 4);
    for (size_t j = 0; j < length; ++j)
      all[i].prompt.push_back(static_cast<TokenId>((j * j + 3 * j + (i < 3 ? i : 3)) % 280));
    all[i].max_tokens = 25 + static_cast<int64_t>(i);
    all[i].ignore_eos = true;
    all[i].sampling.temperature = temperature;
    all[i].sampling.seed = i;
  }
  return all;
}

std::unique_ptr<Engine> open_engine(const Serving& serving, const std::shared_ptr<Drafter>& drafter,
                                    const std::string& kernels) {
  EngineOptions options;
  options.model = target_path();
  options.threads = 2;
  options.kernels = kernels;
  options.page_size = serving.page_size;
  options.max_batch = serving.batch;
  options.prefill_chunk = serving.prefill_chunk;
  options.speculation.decoding_type = drafter == nullptr ? Method::kNone : Method::kUserProvided;
  options.speculation.max_draft_len = 5;
  options.user_drafter = drafter;
  options.offered_nodes = 9;
  auto parts = open_parts(std::move(options));
  if (!parts.ok()) {
    ADD_FAILURE() << parts.error().message;
    std::abort();
  }
  (*parts)->preempt_every = serving.preempt_every;
  return Engine::assemble(std::move(*parts));
}

// The texts of all requests, prompts included.
std::vector<std::vector<TokenId>> serve(const Serving& serving, const std::shared_ptr<Drafter>& drafter,
                                        const std::string& kernels) {
  const auto engine = open_engine(serving, drafter, kernels);
  const std::vector<Request> all = requests(serving.temperature);
  std::vector<std::vector<TokenId>> texts(all.size());
  for (size_t i = 0; i < all.size(); ++i) {
    texts[i] = all[i].prompt;
    const auto id = engine->submit(all[i], [&texts, i](RequestId, const Progress& progress) {
      texts[i].insert(texts[i].end(), progress.tokens.begin(), progress.tokens.end());
    });
    EXPECT_TRUE(id.ok());
    if (i % 2 == 1) engine->step();
  }
  while (engine->step()) {
  }
  return texts;
}

// A request with offered trees, as far as its sink knows.
struct Offered {
  RequestId id = 0;
  std::vector<TokenId> text;
  std::vector<float> states;
  bool is_finished = false;

  void take(const Progress& progress, int64_t from) {
    EXPECT_EQ(progress.first_state, from + std::ssize(states) / (kTaps.count() * kHidden));
    text.insert(text.end(), progress.tokens.begin(), progress.tokens.end());
    states.insert(states.end(), progress.states.begin(), progress.states.end());
    is_finished = progress.completion != nullptr;
  }
  // Some tokens that follow, each beside a wrong one.
  TokenTree tree(const std::vector<TokenId>& right) const {
    TokenTree tree(text.back());
    int node = 0;
    for (size_t next = text.size(); next < std::min(text.size() + 3, right.size()); ++next) {
      tree.add(node, (right[next] + 1) % 280);
      node = tree.add(node, right[next]);
    }
    return tree;
  }
};

// Serves the requests with offered trees; states are wanted from token `from` on.
std::vector<Offered> serve_offered(const Serving& serving, int64_t from, const std::string& kernels,
                                   const std::vector<std::vector<TokenId>>& texts) {
  const auto engine =
      open_engine(serving, std::make_shared<Recorder>(texts, Recorder::Knows::kNothing), kernels);
  std::vector<Offered> all(texts.size());
  for (size_t i = 0; i < all.size(); ++i) {
    Request request = requests(serving.temperature)[i];
    all[i].text = request.prompt;
    request.speculation.is_offered = true;
    request.speculation.states_from = from;
    all[i].id = *engine->submit(std::move(request),
                                [&, i](RequestId, const Progress& progress) { all[i].take(progress, from); });
  }
  const auto is_running = [](const Offered& one) { return !one.is_finished; };
  while (std::ranges::any_of(all, is_running)) {
    for (size_t i = 0; i < all.size(); ++i) {
      if (is_running(all[i])) engine->offer(all[i].id, all[i].tree(texts[i]));
    }
    engine->step();
  }
  return all;
}

class Features : public testing::TestWithParam<std::string> {};

TEST_P(Features, EveryTokensComeOnceAndInOrderWithTheBitsOfOnePass) {
  Reference reference(GetParam());
  for (const double temperature : {0.0, 0.8}) {
    const auto texts = serve({.temperature = temperature}, nullptr, GetParam());
    for (Serving serving : {Serving{}, Serving{.page_size = 1, .batch = 1, .prefill_chunk = 4},
                            Serving{.page_size = 4, .batch = 3, .prefill_chunk = 7, .preempt_every = 4},
                            Serving{.page_size = 1, .batch = 7, .prefill_chunk = 16, .preempt_every = 5}}) {
      serving.temperature = temperature;
      for (const auto knows : {Recorder::Knows::kNothing, Recorder::Knows::kSome}) {
        const auto recorder = std::make_shared<Recorder>(texts, knows);
        EXPECT_EQ(serve(serving, recorder, GetParam()), texts);
        ASSERT_GE(recorder->records.size(), texts.size());
        EXPECT_EQ(serving.preempt_every > 0, recorder->records.size() > texts.size());
        size_t complete = 0, partial = 0;
        for (const Record& record : recorder->records) {
          if (record.features.empty()) continue;
          const auto expected = reference.features(record.tokens);
          for (size_t i = 0; i < record.features.size(); ++i)
            ASSERT_EQ(record.features[i], expected[static_cast<size_t>(record.begin) + i])
                << "token " << record.begin + static_cast<int64_t>(i);
          complete += record.begin + std::ssize(record.features) == std::ssize(record.tokens) - 1 ? 1 : 0;
          partial += record.begin > 0 ? 1 : 0;
        }
        EXPECT_GE(complete, texts.size());
        if (knows == Recorder::Knows::kNothing) {
          EXPECT_EQ(partial, 0u);
        } else {
          EXPECT_GT(partial, 0u) << "nothing was found in the cache";
        }
      }
    }
  }
}

TEST_P(Features, RequestsThatAreDraftedElsewhereGetTheStatesOfEveryToken) {
  Reference reference(GetParam());
  const auto texts = serve({}, nullptr, GetParam());
  for (const Serving& serving :
       {Serving{}, Serving{.page_size = 1, .batch = 1, .prefill_chunk = 4},
        Serving{.page_size = 4, .batch = 3, .prefill_chunk = 7, .preempt_every = 4}}) {
    for (const int64_t from : {0, 5}) {
      const std::vector<Offered> all = serve_offered(serving, from, GetParam(), texts);
      for (size_t i = 0; i < all.size(); ++i) {
        ASSERT_EQ(all[i].text, texts[i]);
        std::vector<float> expected;
        const auto rows = reference.features(texts[i]);
        for (size_t token = static_cast<size_t>(from); token + 1 < texts[i].size(); ++token)
          expected.insert(expected.end(), rows[token].begin(), rows[token].end());
        ASSERT_EQ(all[i].states, expected) << "request " << i;
      }
    }
  }
}

TEST(States, AreRefusedWhereThereAreNone) {
  const auto engine = open_engine({}, nullptr, "");
  Request request{.prompt = {1, 2}};
  request.speculation.is_offered = true;
  request.speculation.states_from = 0;
  EXPECT_FALSE(engine->submit(request).ok());
}

INSTANTIATE_TEST_SUITE_P(Kernels, Features, testing::ValuesIn([] {
                           std::vector<std::string> names;
                           for (const auto name : available_kernels()) names.emplace_back(name);
                           return names;
                         }()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace outrider::features_test
