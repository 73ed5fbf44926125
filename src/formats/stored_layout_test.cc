// SPDX-License-Identifier: Apache-2.0
#include "formats/stored_layout.h"

#include <gtest/gtest.h>

#include "formats/test_outcome.h"

namespace outrider {
namespace {

// Every row of this matrix, of one byte a number, holds its own index.
class CountedRows final : public RowSource {
 public:
  void read_row(int64_t row, std::byte* out) const override { *out = static_cast<std::byte>(row); }
  std::span<const std::byte> stored(int64_t, int64_t) const override { return {}; }
};

constexpr TensorName kFusedNames[] = {{"self_attn.q_proj", "attn.qkv", Piece::kQueries},
                                      {"self_attn.k_proj", "attn.qkv", Piece::kKeys},
                                      {"self_attn.v_proj", "attn.qkv", Piece::kValues},
                                      {"mlp.gate_proj", "mlp.gate_up", Piece::kGate},
                                      {"mlp.up_proj", "mlp.gate_up", Piece::kUp}};

// The indices of the rows of an expected tensor in the fused matrix that holds them.
std::vector<int> rows_of(FusedRows order, const std::string& expected) {
  ModelConfig config;
  config.head_count = 4;
  config.kv_head_count = 2;
  config.head_dim = 3;
  config.ffn_size = 5;
  const CountedRows rows;
  const TensorSource source{.has = [](const std::string&) { return true; },
                            .find = [&](const std::string& name) -> Result<TensorView> {
                              const int64_t count = name == "h.7.attn.qkv.weight" ? 24 : 10;
                              return TensorView{.dtype = DType::kI8, .shape = {count, 1}, .source = &rows};
                            }};
  const StoredLayout layout{.layers = "h.", .names = kFusedNames, .fused_rows = order};
  ModelStorage storage;
  const auto view =
      expected_lookup(layout, source, config, &storage)("model.layers.7." + expected + ".weight");
  EXPECT_TRUE(view.ok());
  std::vector<int> indices;
  std::vector<std::byte> made;
  for (int64_t row = 0; view.ok() && row < view->rows(); ++row)
    indices.push_back(static_cast<int>(*view->row(row, made)));
  return indices;
}

TEST(StoredLayout, PartsOfQuantisedMatricesAreTheirRows) {
  const auto blocks = FusedRows::kBlocks;
  EXPECT_EQ(rows_of(blocks, "self_attn.q_proj"), (std::vector{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}));
  EXPECT_EQ(rows_of(blocks, "self_attn.k_proj"), (std::vector{12, 13, 14, 15, 16, 17}));
  EXPECT_EQ(rows_of(blocks, "self_attn.v_proj"), (std::vector{18, 19, 20, 21, 22, 23}));
  EXPECT_EQ(rows_of(blocks, "mlp.gate_proj"), (std::vector{0, 1, 2, 3, 4}));
  EXPECT_EQ(rows_of(blocks, "mlp.up_proj"), (std::vector{5, 6, 7, 8, 9}));
}

TEST(StoredLayout, GroupsHaveQueriesThenKeyAndValue) {
  const auto groups = FusedRows::kGroups;
  EXPECT_EQ(rows_of(groups, "self_attn.q_proj"), (std::vector{0, 1, 2, 3, 4, 5, 12, 13, 14, 15, 16, 17}));
  EXPECT_EQ(rows_of(groups, "self_attn.k_proj"), (std::vector{6, 7, 8, 18, 19, 20}));
  EXPECT_EQ(rows_of(groups, "self_attn.v_proj"), (std::vector{9, 10, 11, 21, 22, 23}));
}

constexpr StoredForm kStackedBare = {.is_stacked = true, .is_bare = true};

constexpr TensorName kExpertNames[] = {
    {"mlp.experts.gate_proj", "experts.gate_up", Piece::kGate, kStackedBare},
    {"mlp.experts.up_proj", "experts.gate_up", Piece::kUp, kStackedBare},
    {"mlp.experts.down_proj", "experts.#.w2"},
    {"mlp.gate", "mixed", Piece::kEvenRows, kStackedBare},
    {"mlp.other", "mixed", Piece::kOddRows, kStackedBare},
};

// The stored name of an expected tensor and, by CountedRows, the indices of its rows. Tensors have this
// shape.
std::pair<std::string, std::vector<int>> stored_rows(const std::string& expected, Shape shape) {
  ModelConfig config;
  config.experts = {.count = 3, .used = 1, .ffn_size = 2};
  const CountedRows rows;
  std::string stored;
  const TensorSource source{.has = [](const std::string&) { return true; },
                            .find = [&](const std::string& name) -> Result<TensorView> {
                              stored = name;
                              return TensorView{.dtype = DType::kI8, .shape = shape, .source = &rows};
                            }};
  const StoredLayout layout{.layers = "h.", .names = kExpertNames};
  ModelStorage storage;
  const auto view = expected_lookup(layout, source, config, &storage)("model.layers.7." + expected);
  EXPECT_TRUE(view.ok());
  std::vector<int> indices;
  std::vector<std::byte> made;
  for (int64_t row = 0; view.ok() && row < view->rows(); ++row)
    indices.push_back(static_cast<int>(*view->row(row, made)));
  return {stored, indices};
}

TEST(StoredLayout, ExpertsArePartsOfStackedTensors) {
  using Found = std::pair<std::string, std::vector<int>>;
  EXPECT_EQ(stored_rows("mlp.experts.gate_proj.2.weight", {3, 4, 1}), (Found{"h.7.experts.gate_up", {8, 9}}));
  EXPECT_EQ(stored_rows("mlp.experts.up_proj.2.weight", {3, 4, 1}), (Found{"h.7.experts.gate_up", {10, 11}}));
  EXPECT_EQ(stored_rows("mlp.experts.up_proj.0.weight", {3, 4, 1}), (Found{"h.7.experts.gate_up", {2, 3}}));
  EXPECT_EQ(stored_rows("mlp.gate.1.weight", {3, 4, 1}), (Found{"h.7.mixed", {4, 6}}));
  EXPECT_EQ(stored_rows("mlp.other.1.weight", {3, 4, 1}), (Found{"h.7.mixed", {5, 7}}));
}

TEST(StoredLayout, AnExpertsNumberMayStandWithinItsName) {
  EXPECT_EQ(stored_rows("mlp.experts.down_proj.12.weight", {1, 1}).first, "h.7.experts.12.w2.weight");
}

TEST(StoredLayout, BareNamesHaveBiasesWithoutADot) {
  ModelConfig config;
  config.experts = {.count = 2, .used = 1, .ffn_size = 2};
  const float numbers[] = {0, 1, 2, 3, 4, 5, 6, 7};
  std::string stored;
  const TensorSource source{
      .has = [](const std::string&) { return true; },
      .find = [&](const std::string& name) -> Result<TensorView> {
        stored = name;
        return TensorView{.shape = {2, 4}, .data = reinterpret_cast<const std::byte*>(numbers)};
      }};
  const StoredLayout layout{.layers = "h.", .names = kExpertNames};
  ModelStorage storage;
  const auto view = expected_lookup(layout, source, config, &storage)("model.layers.7.mlp.other.1.bias");
  ASSERT_TRUE(view.ok());
  EXPECT_EQ(stored, "h.7.mixed_bias");
  ASSERT_EQ(view->shape, Shape{2});
  EXPECT_EQ(reinterpret_cast<const float*>(view->data)[0], 5);
  EXPECT_EQ(reinterpret_cast<const float*>(view->data)[1], 7);
}

TEST(StoredLayout, AMissingPartOfAStackIsAnError) {
  ModelConfig config;
  config.experts = {.count = 4, .used = 1, .ffn_size = 2};
  const CountedRows rows;
  const TensorSource source{.has = [](const std::string&) { return true; },
                            .find = [&](const std::string&) -> Result<TensorView> {
                              return TensorView{.dtype = DType::kI8, .shape = {3, 4, 1}, .source = &rows};
                            }};
  const StoredLayout layout{.layers = "h.", .names = kExpertNames};
  ModelStorage storage;
  expect_refused(
      expected_lookup(layout, source, config, &storage)("model.layers.7.mlp.experts.up_proj.3.weight"),
      "expected more than 3 parts");
}

// Matrices of plain numbers that are stored by inputs are read by columns.
TEST(StoredLayout, TransposedMatricesAreReadByColumns) {
  constexpr TensorName kNames[] = {{"mlp.experts.down_proj",
                                    "down",
                                    Piece::kWhole,
                                    {.is_stacked = true, .is_bare = true, .is_transposed = true}}};
  ModelConfig config;
  const float numbers[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};  // [2 experts, 3 inputs, 2 outputs]
  const TensorSource source{
      .has = [](const std::string&) { return true; },
      .find = [&](const std::string&) -> Result<TensorView> {
        return TensorView{.shape = {2, 3, 2}, .data = reinterpret_cast<const std::byte*>(numbers)};
      }};
  const StoredLayout layout{.layers = "h.", .names = kNames};
  ModelStorage storage;
  const auto view =
      expected_lookup(layout, source, config, &storage)("model.layers.0.mlp.experts.down_proj.1.weight");
  ASSERT_TRUE(view.ok());
  ASSERT_EQ(view->shape, (Shape{2, 3}));
  std::vector<std::byte> made;
  const auto* row = reinterpret_cast<const float*>(view->row(1, made));
  EXPECT_EQ(std::vector<float>(row, row + 3), (std::vector<float>{7, 9, 11}));
}

}  // namespace
}  // namespace outrider
