// SPDX-License-Identifier: Apache-2.0
// Drafters that propose only some of the target's tokens (speculative_token_map, d2t).
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <string>

#include "open/parts.h"
#include "tests/lossless/lossless.h"
#include "tests/lossless/test_heads.h"
#include "tests/support/tree_recorder.h"

namespace outrider {
namespace {

using testing::HasSubstr;

// The parameter is one of head_cases(), or "draft model": the target itself.
class DraftVocabulary : public testing::TestWithParam<std::string> {
 protected:
  DraftVocabulary() {
    const auto cases = head_cases();
    const auto found = std::ranges::find(cases, GetParam(), &HeadCase::name);
    if (found != cases.end()) head_ = found->make();
  }
  ~DraftVocabulary() override { std::filesystem::remove(map_); }

  // The drafter's own trees of a request; `map`: content of a token map, or empty.
  Result<Trees> trees(const std::string& map) {
    const std::string method = head_ ? "speculative_model=x" : "draft_target,speculative_model=x";
    std::ofstream(map_) << map;
    const Variant variant{.speculative = method + ",expansion=[3,2],policy=fixed" +
                                         (map.empty() ? "" : ",speculative_token_map=" + map_.string()),
                          .page_size = 4,
                          .batch = 1,
                          .head = head_ ? head_->write() : std::filesystem::path(small_target())};
    OUTRIDER_TRY(auto parts, open_variant({}, variant, small_target()));
    Trees found;
    parts->drafter = std::make_shared<TreeRecorder>(std::move(parts->drafter), found);
    OUTRIDER_TRY(const Completion done, Engine::assemble(std::move(parts))->generate(request()));
    EXPECT_EQ(done.tokens, plain());
    return found;
  }

  std::set<TokenId> drafted(const std::string& map) {
    const auto found = trees(map);
    EXPECT_TRUE(found.ok()) << found.error().message;
    std::set<TokenId> tokens;
    for (const auto& [question, tree] : *found) tokens.insert(tree.tokens.begin() + 1, tree.tokens.end());
    return tokens;
  }

 private:
  static Request request() {
    Request request{.prompt = {3, 9, 27}, .max_tokens = 40};
    request.ignore_eos = true;
    return request;
  }
  static std::vector<TokenId> plain() {
    auto parts = open_variant({}, {.speculative = "none", .batch = 1}, small_target());
    return Engine::assemble(std::move(*parts))->generate(request())->tokens;
  }

  std::unique_ptr<FakeHead> head_;
  std::filesystem::path map_ =
      std::filesystem::temp_directory_path() / ("outrider_token_map_" + std::to_string(getpid()));
};

TEST_P(DraftVocabulary, OtherTokensAreNeverDrafted) {
  const bool is_half = GetParam().ends_with("half_of_the_tokens");
  EXPECT_EQ(std::ranges::any_of(drafted(""), [](TokenId id) { return id % 2 == 1; }), !is_half);
  const std::set<TokenId> some = drafted("[30, 31, 32, 33, 34, 35]");
  EXPECT_GT(some.size(), 1u);
  EXPECT_GE(*some.begin(), 30);
  EXPECT_LE(*some.rbegin(), 35);
}

TEST_P(DraftVocabulary, AMapThatDoesNotFitEndsTheStart) {
  const auto found = trees("[30, 288]");
  ASSERT_FALSE(found.ok());
  EXPECT_THAT(found.error().message, HasSubstr("288 tokens"));
}

INSTANTIATE_TEST_SUITE_P(Drafters, DraftVocabulary,
                         testing::Values("draft model", "eagle", "mtp", "mtp_chained",
                                         "mtp_half_of_the_tokens", "moa", "moa_tli_1",
                                         "moa_tli_1_half_of_the_tokens", "dflash"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::ranges::replace(name, ' ', '_');
                           return name;
                         });

TEST(DraftVocabularyOfNothing, IsRefused) {
  EngineOptions options;
  options.model = small_target();
  options.speculation.decoding_type = Method::kAuto;
  options.speculation.speculative_token_map = "map.json";
  const auto parts = open_parts(options);
  ASSERT_FALSE(parts.ok());
  EXPECT_THAT(parts.error().message, HasSubstr("speculative_model"));
}

}  // namespace
}  // namespace outrider
