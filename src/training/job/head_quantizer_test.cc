// SPDX-License-Identifier: Apache-2.0
#include "training/job/head_quantizer.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "training/core/decoder_layers.h"
#include "training/core/safetensors_file.h"
#include "training/core/test_files.h"

namespace outrider::training {
namespace {

// Rows of several magnitudes, one of zeros.
at::Tensor matrix(int64_t rows, int64_t columns) {
  at::Generator generator = seeded_generator(7);
  at::Tensor values = normal_weight({rows, columns}, 1.0, generator);
  values *= at::pow(at::full({}, 10.0), at::arange(rows) % 7 - 3).unsqueeze(1).to(at::kFloat);
  values[1].zero_();
  return values;
}

TEST(HeadQuantizer, EightBitsAreTheNearestCodesOfARow) {
  const at::Tensor values = matrix(9, 40);
  const NamedTensors parts = in_8_bits(values);
  for (int64_t r = 0; r < 9; ++r) {
    float largest = 0;
    for (int64_t c = 0; c < 40; ++c) largest = std::max(largest, std::abs(values[r][c].item<float>()));
    const float scale = largest / 127;
    EXPECT_EQ(parts[1].second[r][0].item<float>(), scale);
    for (int64_t c = 0; c < 40; ++c) {
      const float code = scale == 0 ? 0 : std::nearbyint(values[r][c].item<float>() / scale);
      EXPECT_EQ(parts[0].second[r][c].item<int8_t>(), static_cast<int8_t>(code));
    }
  }
}

float half(float value) { return static_cast<float>(static_cast<at::Half>(value)); }

// The least sum of squares that one of the scales leaves, and the codes.
struct Group {
  float scale = 0;
  std::array<int, 32> codes{};
};
Group best_group(const at::Tensor& numbers) {
  const float* x = numbers.data_ptr<float>();
  const float largest =
      *std::max_element(x, x + 32, [](float a, float b) { return std::abs(a) < std::abs(b); });
  Group best;
  float least = std::numeric_limits<float>::infinity();
  for (int step = 0; step <= 12; ++step) {
    Group group{.scale = half(largest / (-9.5f + 0.25f * static_cast<float>(step)))};
    at::Tensor errors = at::zeros({32});
    for (int i = 0; i < 32; ++i) {
      const float code = group.scale == 0 ? 0 : std::nearbyint(x[i] / group.scale);
      group.codes[static_cast<size_t>(i)] = static_cast<int>(std::clamp(code, -8.0f, 7.0f));
      errors[i] = static_cast<float>(group.codes[static_cast<size_t>(i)]) * group.scale - x[i];
    }
    const float sum = errors.square().sum().item<float>();
    if (sum >= least) continue;
    least = sum;
    best = group;
  }
  return best;
}

TEST(HeadQuantizer, FourBitsTakeTheBestScaleOfAGroup) {
  const at::Tensor values = matrix(8, 96);
  const NamedTensors parts = in_4_bits(values);
  ASSERT_EQ(parts[0].first, "_packed");
  for (int64_t r = 0; r < 8; ++r) {
    for (int64_t g = 0; g < 3; ++g) {
      const Group wanted = best_group(values[r].narrow(0, 32 * g, 32).contiguous());
      EXPECT_EQ(parts[1].second[r][g].item<float>(), wanted.scale) << r << " " << g;
      for (int i = 0; i < 32; ++i) {
        const auto word = static_cast<uint32_t>(parts[0].second[r][4 * g + i / 8].item<int32_t>());
        const int code = static_cast<int>(word >> (4 * (i % 8)) & 15) - 8;
        EXPECT_EQ(code, wanted.codes[static_cast<size_t>(i)]) << r << " " << g << " " << i;
      }
    }
  }
  EXPECT_EQ(parts[2].second[1].item<int64_t>(), 96);
}

TEST(HeadQuantizer, LeavesVectorsAndSmallMatricesAlone) {
  const TestFiles files;
  const at::Tensor large = matrix(64, 96).to(at::kBFloat16), small = matrix(8, 32).to(at::kBFloat16);
  files.write_bytes("head/config.json", "{\"hidden_size\": 96}");
  ASSERT_TRUE(write_safetensors(files.path("head/model.safetensors"), {{"a.weight", large},
                                                                       {"b.weight", small},
                                                                       {"norm.weight", small[0].clone()},
                                                                       {"d2t", at::arange(4)}})
                  .ok());
  for (const int bits : {8, 4}) {
    const auto count = quantize_head(files.path("head"), files.path("out"), bits);
    ASSERT_TRUE(count.ok()) << count.error().message;
    EXPECT_EQ(*count, 1);
    const auto written = read_safetensors(files.path("out/model.safetensors"));
    ASSERT_TRUE(written.ok()) << written.error().message;
    EXPECT_EQ(written->size(), bits == 8 ? 5u : 6u);
    for (const auto& [name, tensor] : *written) {
      EXPECT_TRUE(name != "b.weight" || tensor.equal(small));
    }
    EXPECT_NE(files.read("out/config.json").find("quantization_config"), std::string::npos);
  }
}

}  // namespace
}  // namespace outrider::training
