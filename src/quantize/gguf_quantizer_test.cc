// SPDX-License-Identifier: Apache-2.0
#include "quantize/gguf_quantizer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <limits>
#include <map>
#include <sstream>

#include "kernels/kernel_table.h"

namespace outrider {
namespace {

namespace fs = std::filesystem;

constexpr DType kTypes[] = {DType::kQ8_0, DType::kQ6_K, DType::kQ5_0,   DType::kQ5_1, DType::kQ4_K,
                            DType::kQ4_0, DType::kQ4_1, DType::kIQ4_NL, DType::kMXFP4};

std::string contents(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

// A model that computes nothing sensible: the quantizer reads only names, shapes and numbers.
struct FakeModel {
  GgufModel model;
  std::map<std::string, std::vector<float>> numbers;

  void add(const std::string& name, const Shape& shape) {
    int64_t count = 1;
    for (const int64_t dimension : shape) count *= dimension;
    std::vector<float>& values = numbers[name];
    for (int64_t i = 0; i < count; ++i) values.push_back(std::sin(static_cast<float>(i * i % 1009)));
    model.tensors.push_back({name, {DType::kF32, shape, reinterpret_cast<const std::byte*>(values.data())}});
  }
};

class GgufQuantizerTest : public testing::Test {
 protected:
  GgufQuantizerTest() {
    made_.add("token_embd.weight", {300, 256});
    made_.add("output.weight", {300, 256});
    made_.add("blk.0.attn_norm.weight", {256});
    made_.add("blk.0.attn_q.weight", {512, 256});
    made_.add("blk.0.ffn_down.weight", {8, 96});
    made_.add("blk.0.ffn_up.weight", {8, 40});
    made_.add("blk.0.other.weight", {2, 4, 256});
    made_.add("blk.0.ffn_up_exps.weight", {3, 4, 256});
    made_.add("blk.0.ffn_gate_inp.weight", {3, 256});
    made_.model.metadata.set_string("general.architecture", "llama");
    folder_ = fs::path(testing::TempDir()) / testing::UnitTest::GetInstance()->current_test_info()->name();
    fs::create_directories(folder_);
  }
  ~GgufQuantizerTest() override { fs::remove_all(folder_); }

  std::map<std::string, DType> types(DType wanted) {
    std::map<std::string, DType> types;
    for (const QuantizedTensor& tensor : plan_quantization(made_.model, wanted))
      types[tensor.name] = tensor.to;
    return types;
  }

  Result<std::vector<QuantizedTensor>> write(const fs::path& path, DType type, int threads) {
    ThreadPool pool(threads);
    return write_quantized(made_.model, path, {.type = type, .pool = &pool, .on_tensor = nullptr});
  }

  FakeModel made_;
  fs::path folder_;
};

TEST_F(GgufQuantizerTest, ChoosesTypes) {
  auto chosen = types(DType::kQ4_K);
  EXPECT_EQ(chosen["token_embd.weight"], DType::kQ4_K);
  EXPECT_EQ(chosen["output.weight"], DType::kQ6_K);
  EXPECT_EQ(chosen["blk.0.attn_norm.weight"], DType::kF32);
  EXPECT_EQ(chosen["blk.0.ffn_up_exps.weight"], DType::kQ4_K);
  EXPECT_EQ(chosen["blk.0.ffn_gate_inp.weight"], DType::kF32);
  EXPECT_EQ(chosen["blk.0.attn_q.weight"], DType::kQ4_K);
  EXPECT_EQ(chosen["blk.0.ffn_down.weight"], DType::kQ4_0);  // 96 is no multiple of 256
  EXPECT_EQ(chosen["blk.0.ffn_up.weight"], DType::kF32);     // 40 is no multiple of 32
  EXPECT_EQ(chosen["blk.0.other.weight"], DType::kF32);
  EXPECT_EQ(types(DType::kQ6_K)["blk.0.ffn_down.weight"], DType::kQ8_0);
  EXPECT_EQ(types(DType::kQ8_0)["output.weight"], DType::kQ8_0);
  EXPECT_EQ(types(DType::kQ5_1)["output.weight"], DType::kQ6_K);
  EXPECT_EQ(types(DType::kQ5_1)["blk.0.ffn_down.weight"], DType::kQ5_1);
  made_.model.tied_embeddings = true;
  EXPECT_EQ(types(DType::kQ4_0)["token_embd.weight"], DType::kQ6_K);
}

TEST_F(GgufQuantizerTest, WritesWhatItReports) {
  const auto report = write(folder_ / "model.gguf", DType::kQ4_K, 1);
  ASSERT_TRUE(report.ok()) << report.error().message;
  const std::string file = contents(folder_ / "model.gguf");
  const auto parsed = parse_gguf({reinterpret_cast<const std::byte*>(file.data()), file.size()}, "file");
  ASSERT_TRUE(parsed.ok()) << parsed.error().message;
  EXPECT_EQ(parsed->find("general.file_type")->integer(), 14);
  ASSERT_EQ(parsed->tensors.size(), report->size());
  for (const QuantizedTensor& tensor : *report) {
    SCOPED_TRACE(tensor.name);
    const TensorView& view = parsed->tensors.at(tensor.name);
    ASSERT_EQ(view.dtype, tensor.to);
    const std::vector<float>& numbers = made_.numbers[tensor.name];
    std::vector<float> restored(numbers.size());
    dequantize_row(view.dtype, view.data, restored.data(), static_cast<int64_t>(restored.size()));
    double squares = 0, errors = 0, largest = 0;
    for (size_t i = 0; i < numbers.size(); ++i) {
      const double difference = std::fabs(static_cast<double>(numbers[i]) - restored[i]);
      squares += static_cast<double>(numbers[i]) * numbers[i];
      errors += difference * difference;
      largest = std::max(largest, difference);
    }
    EXPECT_NEAR(tensor.rmse, std::sqrt(errors / static_cast<double>(numbers.size())), 1e-12);
    EXPECT_NEAR(tensor.relative_rmse, std::sqrt(errors / squares), 1e-12);
    EXPECT_EQ(tensor.max_error, largest);
    EXPECT_EQ(tensor.bytes, view.bytes());
    EXPECT_LT(tensor.relative_rmse, 0.12);
  }
}

TEST_F(GgufQuantizerTest, ThreadsChangeNothing) {
  for (const DType type : kTypes) {
    const auto one = write(folder_ / "one.gguf", type, 1);
    const auto three = write(folder_ / "three.gguf", type, 3);
    ASSERT_TRUE(one.ok() && three.ok());
    EXPECT_TRUE(contents(folder_ / "one.gguf") == contents(folder_ / "three.gguf"));
    for (size_t i = 0; i < one->size(); ++i) EXPECT_EQ((*one)[i].rmse, (*three)[i].rmse);
  }
}

TEST_F(GgufQuantizerTest, FailureLeavesTheOldFile) {
  const fs::path path = folder_ / "model.gguf";
  std::ofstream(path) << "old";
  made_.numbers["blk.0.attn_q.weight"][300] = std::numeric_limits<float>::quiet_NaN();
  for (const DType type : kTypes) {
    const auto refused = write(path, type, 2);
    ASSERT_FALSE(refused.ok());
    EXPECT_NE(refused.error().message.find("blk.0.attn_q.weight holds numbers that are not finite"),
              std::string::npos)
        << refused.error().message;
  }
  EXPECT_EQ(contents(path), "old");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 1);
}

}  // namespace
}  // namespace outrider
