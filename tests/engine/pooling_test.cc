// SPDX-License-Identifier: Apache-2.0
// Embeddings of an engine: the pooled states of a prompt, bit for bit the same whatever else runs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "config/methods.h"
#include "open/parts.h"
#include "outrider/engine.h"

namespace outrider {
namespace {

struct PoolingSetup {
  std::string drafter = "None";
  int prefill_chunk = 256;
  int preempt_every = 0;
};

std::unique_ptr<Engine> open_pooling(const PoolingSetup& setup) {
  const std::string models = std::string(OUTRIDER_SOURCE_DIR) + "/models/";
  EngineOptions options;
  options.model = models + "outrider-small";
  options.threads = 2;
  options.context = 512;
  options.prefill_chunk = setup.prefill_chunk;
  options.speculation.decoding_type = *find_method(setup.drafter);
  options.speculation.speculative_model =
      models + (setup.drafter == "Eagle3" ? "outrider-eagle3" : "outrider-draft");
  auto parts = open_parts(options);
  EXPECT_TRUE(parts.ok()) << parts.error().message;
  (*parts)->preempt_every = setup.preempt_every;
  return Engine::assemble(std::move(parts).value());
}

const std::string kText =
    "Once upon a time, Lily found a red ball. Lily and the red ball went to the park, where a dog was.";

Request pooled_request(const Engine& engine, Pooling pooling, const std::string& text = kText) {
  Request request;
  request.prompt = engine.tokenize(text);
  request.max_tokens = 1;
  request.pooling = pooling;
  return request;
}

std::vector<float> embedding_of(Engine& engine, Pooling pooling, const std::string& text = kText) {
  auto completion = engine.generate(pooled_request(engine, pooling, text));
  EXPECT_TRUE(completion.ok()) << completion.error().message;
  return completion.ok() ? completion->embedding : std::vector<float>();
}

// The states of every prompt row from one pass over the model, without an engine.
std::vector<std::vector<float>> states_of(const Engine& engine, const std::vector<TokenId>& tokens) {
  Model& model = *engine.parts().target;
  KvCache& cache = *engine.parts().cache;
  KvSequence sequence = cache.open({});
  auto transaction = cache.stage(sequence, static_cast<int>(tokens.size()));
  EXPECT_TRUE(transaction.ok());
  ForwardBatch batch;
  append_chain(batch, sequence, *transaction, tokens, LogitsWanted::kAll);
  for (int row = 0; row < batch.rows(); ++row) batch.hidden_state_rows.push_back(row);
  model.forward(batch, cache);
  const auto size = static_cast<size_t>(model.config().hidden_size);
  std::vector<std::vector<float>> rows;
  for (size_t i = 0; i < tokens.size(); ++i) {
    const auto row = model.hidden_states().subspan(i * size, size);
    rows.emplace_back(row.begin(), row.end());
  }
  return rows;
}

std::vector<float> mean_of(const std::vector<std::vector<float>>& rows) {
  std::vector<float> means;
  for (size_t i = 0; i < rows.front().size(); ++i) {
    double sum = 0;
    for (const std::vector<float>& row : rows) sum += row[i];
    means.push_back(static_cast<float>(sum / static_cast<double>(rows.size())));
  }
  return means;
}

TEST(Pooling, TakesTheLastStateOrTheMeanOfAll) {
  const auto engine = open_pooling({});
  const auto rows = states_of(*engine, engine->tokenize(kText));
  EXPECT_EQ(embedding_of(*engine, Pooling::kLast), rows.back());
  EXPECT_EQ(embedding_of(*engine, Pooling::kMean), mean_of(rows));
  EXPECT_EQ(embedding_of(*engine, Pooling::kMean, "A"), states_of(*engine, engine->tokenize("A")).front());
  EXPECT_TRUE(embedding_of(*engine, Pooling::kNone).empty());
}

TEST(Pooling, DependsOnNothingButTheText) {
  const auto plain = open_pooling({});
  const std::vector<float> last = embedding_of(*plain, Pooling::kLast);
  const std::vector<float> mean = embedding_of(*plain, Pooling::kMean);
  for (const PoolingSetup& setup :
       {PoolingSetup{.prefill_chunk = 5}, PoolingSetup{.prefill_chunk = 3, .preempt_every = 2},
        PoolingSetup{.drafter = "DraftTarget"}, PoolingSetup{.drafter = "Eagle3", .prefill_chunk = 7},
        PoolingSetup{.drafter = "EarlyExit"}}) {
    const auto engine = open_pooling(setup);
    for (int round = 0; round < 2; ++round) {  // the second one finds the prompt in the cache
      Request text;
      text.prompt = engine->tokenize("Once upon a time there");
      ASSERT_TRUE(engine->submit(text).ok());
      std::vector<std::vector<float>> found(2);
      for (size_t i = 0; i < 2; ++i) {
        const Pooling pooling = i == 0 ? Pooling::kLast : Pooling::kMean;
        ASSERT_TRUE(engine
                        ->submit(pooled_request(*engine, pooling),
                                 [&found, i](RequestId, const Progress& progress) {
                                   if (progress.completion != nullptr)
                                     found[i] = progress.completion->embedding;
                                 })
                        .ok());
      }
      while (engine->step()) {
      }
      EXPECT_EQ(found[0], last) << setup.drafter;
      EXPECT_EQ(found[1], mean) << setup.drafter;
    }
  }
}

TEST(Pooling, WantsOneTokenOfOutput) {
  const auto engine = open_pooling({});
  Request request = pooled_request(*engine, Pooling::kMean);
  request.max_tokens = 2;
  const auto id = engine->submit(request);
  ASSERT_FALSE(id.ok());
  EXPECT_THAT(id.error().message, testing::HasSubstr("must have max tokens 1, found 2"));
}

}  // namespace
}  // namespace outrider
