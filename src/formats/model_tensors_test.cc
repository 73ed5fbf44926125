// SPDX-License-Identifier: Apache-2.0
#include "formats/model_tensors.h"

#include <gtest/gtest.h>

#include "formats/test_outcome.h"

namespace outrider {
namespace {

class NoRows final : public RowSource {
 public:
  void read_row(int64_t /*row*/, std::byte* /*out*/) const override {}
  std::span<const std::byte> stored(int64_t /*first_row*/, int64_t /*rows*/) const override { return {}; }
};

constexpr const char* kNorm = "model.layers.0.input_layernorm.weight";

// Attaches the tensors of a model of one layer, kNorm among them as `norm` says.
Result<ModelFile> attach_with(TensorView norm) {
  ModelFile model;
  ModelConfig& config = model.config;
  config.vocab_size = 4;
  config.layer_count = config.head_count = config.kv_head_count = 1;
  config.hidden_size = config.head_dim = config.ffn_size = 32;
  const Buffer zeros(32 * 32 * sizeof(float));
  norm.shape = {32};
  norm.data = norm.source != nullptr ? nullptr : zeros.data();
  const TensorLookup lookup = [&](const std::string& name) -> Result<TensorView> {
    if (name == kNorm) return norm;
    for (const ExpectedTensor& expected : expected_tensors(config)) {
      if (expected.name == name) return TensorView{DType::kF32, expected.shape, zeros.data()};
    }
    return input_error("no tensor " + name);
  };
  ModelStorage storage;
  OUTRIDER_RETURN_IF_ERROR(attach_tensors(lookup, &storage, &model));
  return model;
}

TEST(ModelTensors, VectorsMustBeNumbersInPlace) {
  const NoRows rows;
  EXPECT_TRUE(attach_with({DType::kF32, {}}).ok());
  EXPECT_TRUE(attach_with({DType::kBF16, {}}).ok());
  expect_refused(attach_with({DType::kQ8_0, {}}), "must be f32, f16 or bf16, found q8_0");
  expect_refused(attach_with({DType::kF32, {}, nullptr, &rows}),
                 "must be f32, f16 or bf16, found a quantised matrix");
}

}  // namespace
}  // namespace outrider
