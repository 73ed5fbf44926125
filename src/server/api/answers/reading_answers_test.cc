// SPDX-License-Identifier: Apache-2.0
// The bodies of /v1/embeddings and /v1/rerank, with an engine's results made up.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "server/api/answers/test_model.h"

namespace outrider {
namespace {

using Json = nlohmann::json;

ApiResult<std::unique_ptr<GenerationCall>> embeddings_call(const TestServedModel& model,
                                                           const std::string& body) {
  return parse_call(parse_embeddings, body, model.context());
}

// Embeds texts as means of four numbers.
class EmbeddingModel : public TestServedModel {
 public:
  EmbeddingModel() {
    model().hidden_size = 4;
    model().pooling = Pooling::kMean;
  }
};

ChoiceDelta finished_delta(Completion completion) {
  ChoiceDelta delta;
  delta.completion = std::move(completion);
  return delta;
}

// The answer if every input had the state {0, 3, 0, -4}, times its number.
Json embeddings_answer(GenerationCall& call) {
  std::string events;
  const size_t inputs = call.requests().size();
  for (size_t i = inputs; i-- > 0;) {
    Completion completion;
    const auto factor = static_cast<float>(i + 1);
    completion.embedding = {0, 3 * factor, 0, -4 * factor};
    completion.prompt_tokens = 5;
    call.add(static_cast<int>(i), finished_delta(std::move(completion)), events);
  }
  return Json::parse(call.body());
}

TEST(Embeddings, HaveLengthOneAndTheOrderOfTheInputs) {
  const EmbeddingModel model;
  auto call = embeddings_call(model, R"({"input":["one","two"],"model":"small","user":"me"})");
  ASSERT_TRUE(call.ok()) << call.error().message;
  ASSERT_EQ((*call)->requests().size(), 2u);
  const Request& request = (*call)->requests()[1];
  EXPECT_EQ(request.pooling, Pooling::kMean);
  EXPECT_EQ(request.max_tokens, 1);
  EXPECT_EQ(request.cache_scope, 5u);
  EXPECT_EQ(request.prompt, model.tokens("two"));
  const Json answer = embeddings_answer(**call);
  EXPECT_EQ(answer["object"], "list");
  EXPECT_EQ(answer["model"], "small");
  EXPECT_EQ(answer["usage"]["prompt_tokens"], 10);
  EXPECT_EQ(answer["usage"]["total_tokens"], 10);
  ASSERT_EQ(answer["data"].size(), 2u);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(answer["data"][i]["index"], i);
    EXPECT_EQ(answer["data"][i]["object"], "embedding");
    const auto values = answer["data"][i]["embedding"].get<std::vector<float>>();
    EXPECT_THAT(values, testing::ElementsAre(0.0F, 0.6F, 0.0F, -0.8F));
  }
}

TEST(Embeddings, AreNumbersOrBase64AndMayBeCut) {
  const EmbeddingModel model;
  auto packed = embeddings_call(model, R"({"input":[1,2,3],"encoding_format":"base64"})");
  ASSERT_TRUE(packed.ok()) << packed.error().message;
  EXPECT_EQ((*packed)->requests()[0].prompt, (std::vector<TokenId>{1, 2, 3}));
  // The numbers 0, 0.6, 0 and -0.8 in 32 bits, as Python's struct and base64 write them.
  EXPECT_EQ(embeddings_answer(**packed)["data"][0]["embedding"], "AAAAAJqZGT8AAAAAzcxMvw==");
  auto cut = embeddings_call(model, R"({"input":[[1],[2]],"dimensions":2})");
  ASSERT_TRUE(cut.ok()) << cut.error().message;
  EXPECT_EQ(embeddings_answer(**cut)["data"][1]["embedding"], (std::vector<float>{0, 1}));
}

TEST(Embeddings, ErrorsNameTheField) {
  const EmbeddingModel model;
  const auto param = [&](const std::string& body) {
    const auto call = embeddings_call(model, body);
    return call.ok() ? "accepted" : call.error().param;
  };
  EXPECT_EQ(param("{}"), "input");
  EXPECT_EQ(param(R"({"input":[]})"), "input");
  EXPECT_EQ(param(R"({"input":""})"), "input");
  EXPECT_EQ(param(R"({"input":"x","dimensions":5})"), "dimensions");
  EXPECT_EQ(param(R"({"input":"x","encoding_format":"int8"})"), "encoding_format");
  EXPECT_EQ(param(R"({"input":"x","stream":true})"), "stream");
  EXPECT_EQ(param(R"({"input":"x","model":"other"})"), "model");
  const std::string words = [] {
    std::string text;
    for (int i = 0; i < 2000; ++i) text += " word";
    return text;
  }();
  EXPECT_EQ(param(R"({"input":")" + words + "\"}"), "input");
  EXPECT_EQ(param(R"({"input":")" + words + R"(","truncate_prompt_tokens":-1})"), "accepted");
}

// A model that ranks texts. Its tokenizer has bytes, and words that are merged from them.
class RankingModel : public TestServedModel {
 public:
  RankingModel() {
    TokenizerSpec spec;
    spec.kind = TokenizerKind::kSentencePiece;
    spec.pieces = {"<unk>", "y", "e", "s", "n", "o", "ye", "yes", "no", "\xE2\x96\x81"};
    spec.attributes.assign(spec.pieces.size(), TokenAttribute::kNormal);
    spec.attributes[0] = TokenAttribute::kUnknown;
    for (int byte = 0; byte < 256; ++byte) {
      spec.pieces.push_back(fmt::format("<0x{:02X}>", byte));
      spec.attributes.push_back(TokenAttribute::kByte);
    }
    spec.scores.assign(spec.pieces.size(), 0);
    spec.unknown = 0;
    model().tokenizer = Tokenizer::create(std::move(spec)).value();
    model().pooling = std::nullopt;
  }
};

ApiResult<std::unique_ptr<GenerationCall>> rerank_call(const TestServedModel& model,
                                                       const std::string& body) {
  return parse_call(parse_rerank, body, model.context());
}

TEST(Rerank, OrdersDocumentsByTheProbabilityOfYes) {
  RankingModel model;
  auto call = rerank_call(model, R"({"query":"a red ball","documents":["cars",{"text":"balls"},"dogs"],
                                     "top_n":2,"return_documents":true})");
  ASSERT_TRUE(call.ok()) << call.error().message;
  const std::vector<Request>& requests = (*call)->requests();
  ASSERT_EQ(requests.size(), 6u);
  EXPECT_EQ(requests[2].rules.allowed, model.tokens("yes"));
  EXPECT_EQ(requests[3].rules.allowed, model.tokens("no"));
  EXPECT_EQ(requests[2].prompt, requests[3].prompt);
  const std::string prompt = model.model().tokenizer->decode(requests[2].prompt, false);
  EXPECT_THAT(prompt, testing::HasSubstr("answer the query\n<Query>: a red ball\n<Document>: balls"));
  EXPECT_THAT(prompt, testing::EndsWith("<|im_start|>assistant\n"));
  std::string events;
  const float logprobs[] = {-3, -1, -1, -2, -2, -2};
  for (int i = 0; i < 6; ++i) {
    Completion completion;
    completion.logprobs.push_back({.logprob = logprobs[i], .top = {}});
    completion.prompt_tokens = 7;
    (*call)->add(i, finished_delta(std::move(completion)), events);
  }
  const Json answer = Json::parse((*call)->body());
  EXPECT_EQ(answer["usage"]["prompt_tokens"], 21);
  ASSERT_EQ(answer["results"].size(), 2u);
  EXPECT_EQ(answer["results"][0]["index"], 1);
  EXPECT_EQ(answer["results"][0]["document"]["text"], "balls");
  EXPECT_NEAR(answer["results"][0]["relevance_score"], 0.731058, 1e-6);
  EXPECT_EQ(answer["results"][1]["index"], 2);
  EXPECT_NEAR(answer["results"][1]["relevance_score"], 0.5, 1e-6);
}

TEST(Rerank, ErrorsNameTheField) {
  const RankingModel model;
  const auto param = [&](const std::string& body) {
    const auto call = rerank_call(model, body);
    return call.ok() ? "accepted" : call.error().param;
  };
  EXPECT_EQ(param(R"({"documents":["a"]})"), "query");
  EXPECT_EQ(param(R"({"query":"a"})"), "documents");
  EXPECT_EQ(param(R"({"query":"a","documents":[]})"), "documents");
  EXPECT_EQ(param(R"({"query":"a","documents":[1]})"), "documents[0]");
  EXPECT_EQ(param(R"({"query":"a","documents":[{"texts":"b"}]})"), "documents[0].text");
  EXPECT_EQ(param(R"({"query":"a","documents":["b"],"top_n":0})"), "top_n");
  EXPECT_EQ(param(R"({"query":"a","documents":["b"],"texts":[]})"), "texts");
}

TEST(Rerank, IsAnsweredByRerankersAndEmbeddingsByOtherModels) {
  TestServedModel model;
  const auto ranks = parse_call(parse_rerank, R"({"query":"a","documents":["b"]})", model.context());
  ASSERT_FALSE(ranks.ok());
  EXPECT_EQ(ranks.error().status, 501);
  EXPECT_THAT(ranks.error().message, testing::HasSubstr("--pooling rank"));
  model.model().pooling = std::nullopt;
  const auto embeddings = embeddings_call(model, R"({"input":"x"})");
  ASSERT_FALSE(embeddings.ok());
  EXPECT_EQ(embeddings.error().status, 501);
}

}  // namespace
}  // namespace outrider
