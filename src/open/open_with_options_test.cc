// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "outrider/open.h"

namespace outrider {
namespace {

const std::string kTinyModel = OUTRIDER_SOURCE_DIR "/tests/data/models/llama";

// Proposes one token again and again.
class OneTokenDrafter final : public Drafter {
 public:
  const DrafterTraits& traits() const override { return traits_; }
  Status draft(std::span<const DraftRequest> requests, std::span<TokenTree> trees) override {
    for (size_t i = 0; i < requests.size(); ++i) {
      for (int node = 0; trees[i].depth(node) < requests[i].max_draft_len;) node = trees[i].add(node, 7);
    }
    return {};
  }

 private:
  DrafterTraits traits_{.name = "OneToken"};
};

std::string error_of_options(std::vector<NamedOption> options, std::shared_ptr<Drafter> drafter = nullptr) {
  options.push_back({"model", kTinyModel});
  const auto opened = open_with_options(options, std::move(drafter));
  return opened.ok() ? "opened" : opened.error().message;
}

std::string error_of_parameter(const std::string& name, const std::vector<std::string>& values) {
  Request request;
  const Status status = set_parameter(request, name, values);
  return status.ok() ? "taken" : status.error().message;
}

TEST(OpenWithOptions, TakesOurNamesAndThoseOfOthers) {
  const std::vector<NamedOption> options = {{"model", kTinyModel},
                                            {"max_tokens", "5"},
                                            {"stop", "a"},
                                            {"stop", "b: {c}"},
                                            {"kv_cache_config.dtype", "float16"},
                                            {"disable_overlap_scheduler", "true"},
                                            {"speculative_config.decoding_type", "NGram"},
                                            {"speculative_config.max_draft_len", "3"}};
  const auto opened = open_with_options(options);
  ASSERT_TRUE(opened.ok()) << opened.error().message;
  EXPECT_EQ(opened->request.max_tokens, 5);
  EXPECT_EQ(opened->request.stop, (std::vector<std::string>{"a", "b: {c}"}));
  EXPECT_EQ(opened->engine->info().kv_cache_type, "f16");
  EXPECT_EQ(opened->engine->info().drafter, "NGram");
  ASSERT_EQ(opened->warnings.size(), 1u);
  EXPECT_EQ(
      opened->warnings[0],
      "options: disable_overlap_scheduler has no effect here: drafting and verification take turns in one "
      "loop");
}

TEST(OpenWithOptions, OptionsAreCheckedWithoutAModel) {
  const auto error_of = [](const std::vector<NamedOption>& options, bool drafts_itself = false) {
    const Status status = check_options(options, drafts_itself);
    return status.ok() ? "taken" : status.error().message;
  };
  EXPECT_EQ(error_of({{"model", "nowhere"}, {"speculative_config.decoding_type", "NGram"}}), "taken");
  EXPECT_EQ(error_of({{"max_batch", "0"}}),
            "options: max_batch: expected a whole number from 1 to 1024, found '0'");
  EXPECT_NE(error_of({{"speculative_config.max_draft_len", "65"}}).find("0 to 64"), std::string::npos);
  EXPECT_EQ(error_of({{"speculative_config.max_draft_len", "3"}}, true), "taken");
}

TEST(OpenWithOptions, ErrorsNameTheOption) {
  EXPECT_EQ(error_of_options({{"max_bach", "4"}}),
            "options: unknown key 'max_bach'; did you mean 'max_batch'?");
  EXPECT_EQ(error_of_options({{"max_batch", "0"}}),
            "options: max_batch: expected a whole number from 1 to 1024, found '0'");
  EXPECT_NE(error_of_options({{"speculative_config.max_drft_len", "4"}}).find("did you mean 'max_draft_len'"),
            std::string::npos);
  EXPECT_NE(error_of_options({{"model", "elsewhere"}}).find("expected a single value, found a list"),
            std::string::npos);
}

TEST(OpenWithOptions, AProgramMayDraftItself) {
  const std::vector<NamedOption> options = {{"model", kTinyModel}, {"speculative_config.max_draft_len", "2"}};
  const auto opened = open_with_options(options, std::make_shared<OneTokenDrafter>());
  ASSERT_TRUE(opened.ok()) << opened.error().message;
  const auto done = opened->engine->generate({.prompt = {5, 6}, .max_tokens = 8, .ignore_eos = true});
  ASSERT_TRUE(done.ok()) << done.error().message;
  EXPECT_EQ(done->speculation.method, "OneToken");
  EXPECT_EQ(done->speculation.drafted_per_position.size(), 2u);
  EXPECT_NE(error_of_options({{"speculative", "ngram"}}, std::make_shared<OneTokenDrafter>())
                .find("expected a method or a drafter of the program's own, found both (NGram)"),
            std::string::npos);
}

TEST(SetParameter, SetsWhatItNames) {
  Request request;
  const auto set = [&](const std::string& name, const std::vector<std::string>& values) {
    const Status status = set_parameter(request, name, values);
    EXPECT_TRUE(status.ok()) << status.error().message;
  };
  set("temperature", {"0.5"});
  set("stop", {"x", "y"});
  set("logprobs", {"3"});
  set("min_tokens", {"2"});
  set("stop_token_ids", {"4,5"});
  set("forbidden_token_ids", {"1,2", "3"});
  set("speculation", {"false"});
  set("policy", {"auto"});
  EXPECT_EQ(request.sampling.temperature, 0.5);
  EXPECT_EQ(request.stop, (std::vector<std::string>{"x", "y"}));
  EXPECT_EQ(request.logprobs, 3);
  EXPECT_EQ(request.rules.min_tokens, 2);
  EXPECT_EQ(request.stop_tokens, (std::vector<TokenId>{4, 5}));
  EXPECT_EQ(request.rules.forbidden, (std::vector<std::vector<TokenId>>{{1, 2}, {3}}));
  EXPECT_FALSE(request.speculation.enabled);
  EXPECT_EQ(request.speculation.is_auto, true);
}

TEST(SetParameter, ErrorsNameTheParameter) {
  EXPECT_EQ(error_of_parameter("temprature", {"1"}),
            "temprature: no such parameter; did you mean 'temperature'?");
  EXPECT_EQ(error_of_parameter("top_p", {"2"}), "top_p: expected a number from 1e-06 to 1, found '2'");
  EXPECT_EQ(error_of_parameter("min_tokens", {"1", "2"}), "min_tokens: expected one value, found 2");
  EXPECT_NE(error_of_parameter("max_batch", {"4"}).find("no such parameter"), std::string::npos);
}

}  // namespace
}  // namespace outrider
