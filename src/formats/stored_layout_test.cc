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
  std::span<const std::byte> stored() const override { return {}; }
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

}  // namespace
}  // namespace outrider
