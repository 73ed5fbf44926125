// SPDX-License-Identifier: Apache-2.0
#include "formats/fused_tensors.h"

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

ModelConfig fused_config() {
  ModelConfig config;
  config.head_count = 4;
  config.kv_head_count = 2;
  config.head_dim = 3;
  config.ffn_size = 5;
  return config;
}

TEST(FusedTensors, PartsOfQuantisedMatricesAreTheirRows) {
  const CountedRows source;
  const ModelConfig config = fused_config();
  const TensorLookup lookup = split_fused(config, [&](const std::string& name) -> Result<TensorView> {
    const int64_t rows = name == "l.self_attn.qkv_proj.weight" ? 24 : 10;
    return TensorView{.dtype = DType::kI8, .shape = {rows, 1}, .source = &source};
  });
  const struct {
    const char* name;
    int64_t first, count;
  } kParts[] = {{"l.self_attn.q_proj.weight", 0, 12},
                {"l.self_attn.k_proj.weight", 12, 6},
                {"l.self_attn.v_proj.weight", 18, 6},
                {"l.mlp.gate_proj.weight", 0, 5},
                {"l.mlp.up_proj.weight", 5, 5}};
  for (const auto& part : kParts) {
    SCOPED_TRACE(part.name);
    const auto view = lookup(part.name);
    ASSERT_TRUE(view.ok()) << view.error().message;
    EXPECT_EQ(view->rows(), part.count);
    std::vector<std::byte> made;
    EXPECT_EQ(*view->row(0, made), static_cast<std::byte>(part.first));
    EXPECT_EQ(*view->row(part.count - 1, made), static_cast<std::byte>(part.first + part.count - 1));
  }
}

}  // namespace
}  // namespace outrider
