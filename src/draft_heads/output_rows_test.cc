// SPDX-License-Identifier: Apache-2.0
// Heads that draft with some rows of the target's output head.
#include "draft_heads/vocabulary/output_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "draft_heads/eagle.h"
#include "draft_heads/mtp/mtp.h"
#include "draft_heads/recurrent_test_data.h"
#include "draft_heads/vocabulary/token_map.h"
#include "formats/torch/test_torch.h"
#include "models/model_test_data.h"

namespace outrider::output_rows_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr int64_t kVocab = 288;

std::vector<TokenId> every_third_token() {
  std::vector<TokenId> ids;
  for (TokenId id = 1; id < kVocab; id += 3) ids.push_back(id);
  return ids;
}

class OutputRows : public testing::TestWithParam<std::string> {
 protected:
  // The logits after a short text.
  std::vector<float> logits_of(const HeadFile& head, TestModel& target, const std::string& kernels) {
    const ModelOptions options{.kernels = *select_kernels(kernels), .pool = &pool_, .weights = {}};
    auto loaded = head.method == Method::kEagle ? load_eagle(head, &*target, options)
                                                : load_mtp(head, &*target, options);
    EXPECT_TRUE(loaded.ok()) << loaded.error().message;
    KvShape shape = (*loaded)->kv_shape();
    shape.page_count = 4;
    KvCache cache(shape);
    KvSequence sequence = cache.open({});
    const std::vector<TokenId> tokens = {5, 17, 40};
    auto stage = cache.stage(sequence, 3);
    ForwardBatch batch;
    append_chain(batch, sequence, *stage, tokens, LogitsWanted::kLast);
    const auto features = fake_tensor("features", {3, (*loaded)->feature_size()});
    const PlacedRows inputs(target->backend(), features);
    const auto output = (*loaded)->forward({.batch = &batch, .cache = &cache, .inputs = inputs});
    return {output.logits.begin(), output.logits.end()};
  }

  ModelFile target_file(const std::string& name) { return open_model(model_data(name)).value(); }

  ThreadPool pool_{2};
};

TEST_P(OutputRows, GiveTheLogitsOfTheWholeForTheirTokens) {
  for (const char* target_name : {"llama", "llama_tied"}) {
    TestModel target({.name = target_name, .kernels = GetParam()});
    const ModelFile file = target_file(target_name);
    for (const char* name : {"eagle", "mtp", "mtp_qwen"}) {
      SCOPED_TRACE(std::string(target_name) + " " + name);
      FakeHead made;
      fill_head(made, head_golden(name));
      auto head = open_head(made.write());
      ASSERT_TRUE(head.ok()) << head.error().message;
      const std::vector<float> whole = logits_of(*head, target, GetParam());
      ASSERT_TRUE(take_output_rows(*head, file, every_third_token()).ok());
      const std::vector<float> rows = logits_of(*head, target, GetParam());
      ASSERT_EQ(rows.size(), whole.size());
      for (size_t id = 0; id < whole.size(); ++id)
        EXPECT_EQ(rows[id], id % 3 == 1 ? whole[id] : -INFINITY) << id;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kernels, OutputRows, testing::ValuesIn([] {
                           std::vector<std::string> names;
                           for (const auto name : available_kernels()) names.emplace_back(name);
                           return names;
                         }()),
                         [](const auto& info) { return info.param; });

TEST_F(OutputRows, AreThoseOfTheHeadsOwnMapUnlessAnotherIsGiven) {
  const ModelFile target = target_file("llama");
  FakeHead made;
  fill_head(made, head_golden("mtp"));
  for (int64_t row = 0; row < 40; ++row) made.integers["d2t"].push_back(2 * row);  // ids 3 * row
  auto head = open_head(made.write());
  ASSERT_TRUE(head.ok()) << head.error().message;
  ASSERT_TRUE(take_output_rows(*head, target, {}).ok());
  ASSERT_EQ(head->output_rows.size(), 40u);
  EXPECT_EQ(head->output_rows[7], 21);
  TestModel model({.name = "llama"});
  const std::vector<float> logits = logits_of(*head, model, "reference");
  EXPECT_TRUE(std::isfinite(logits[21]));
  EXPECT_EQ(logits[22], -INFINITY);
  ASSERT_TRUE(take_output_rows(*head, target, every_third_token()).ok());
  EXPECT_EQ(head->output_rows, every_third_token());
}

TEST_F(OutputRows, RefuseWhatDoesNotFit) {
  const ModelFile target = target_file("llama");
  FakeHead mtp, eagle3;
  fill_head(mtp, head_golden("mtp"));
  fill_head(eagle3, head_golden("eagle3"));
  auto own = open_head(eagle3.write());
  EXPECT_TRUE(take_output_rows(*own, target, {}).ok());
  EXPECT_THAT(take_output_rows(*own, target, every_third_token()).error().message,
              AllOf(HasSubstr("output head of its own"), HasSubstr("speculative_token_map")));
  auto head = open_head(mtp.write());
  EXPECT_THAT(take_output_rows(*head, target, std::vector<TokenId>{1, 288}).error().message,
              AllOf(HasSubstr("288 tokens"), HasSubstr("found 288")));
  EXPECT_THAT(take_output_rows(*head, target, std::vector<TokenId>{-2, 8}).error().message,
              HasSubstr("found -2"));
  mtp.integers["d2t"] = {5, 0};
  head = open_head(mtp.write());
  EXPECT_THAT(take_output_rows(*head, target, {}).error().message, HasSubstr("tensor d2t"));
}

class TokenMap : public testing::Test {
 protected:
  ~TokenMap() override { std::filesystem::remove(path_); }
  Result<std::vector<TokenId>> read(const std::string& content) {
    std::ofstream(path_, std::ios::binary) << content;
    return read_token_map(path_);
  }
  std::filesystem::path path_ =
      std::filesystem::temp_directory_path() / ("outrider_map_" + std::to_string(getpid()));
};

TEST_F(TokenMap, IsAListInJsonOrOfTorch) {
  const std::vector<TokenId> sorted = {2, 40, 70000};
  EXPECT_EQ(read("[40, 2, 70000]\n").value(), sorted);
  const std::string list = "](" + pickled_number(40) + "K\x02" + pickled_number(70000) + "e.";
  EXPECT_EQ(read(torch_file_of(kPickleStart + list)).value(), sorted);
  EXPECT_TRUE(read_token_map({}).value().empty());
}

TEST_F(TokenMap, AnythingElseIsRefused) {
  EXPECT_THAT(read("[]").error().message, HasSubstr("found none"));
  EXPECT_THAT(read("[1, 1]").error().message, HasSubstr("token 1 is there twice"));
  EXPECT_THAT(read("[3, -1]").error().message, HasSubstr("found -1"));
  EXPECT_THAT(read("[4294967296]").error().message, HasSubstr("found 4294967296"));
  for (const std::string content : {"{\"a\": 1}", "[1.5]", "[\"x\"]", "1 2 3"})
    EXPECT_THAT(read(content).error().message, HasSubstr("expected a JSON array of token ids")) << content;
  for (const std::string& list :
       {std::string("}."), "]" + pickled_text("a") + "a.", "](" + pickled_number(1) + "Ne."})
    EXPECT_THAT(read(torch_file_of(kPickleStart + list)).error().message, HasSubstr("list of whole numbers"));
  EXPECT_FALSE(read_token_map("/nowhere/map.json").ok());
}

}  // namespace
}  // namespace outrider::output_rows_test
