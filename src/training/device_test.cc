// SPDX-License-Identifier: Apache-2.0
// Tests for --device cuda. Without a GPU, a fake device (fake_device.h) must give the bits of the CPU, and a
// libtorch with CUDA must have kernels for all operations it ran. A GPU must give the results up to rounding.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <utility>

#include "platform/cpu_features.h"
#include "training/core/autograd_ops.h"
#include "training/core/device.h"
#include "training/core/fake_device.h"
#include "training/core/optimizer.h"
#include "training/evaluation/held_out_agreement.h"
#include "training/head_data/frozen_target.h"
#include "training/head_data/generation_progress.h"
#include "training/head_data/head_batches.h"
#include "training/head_data/torch_writer.h"
#include "training/heads/head_export.h"
#include "training/heads/head_run_fixture.h"
#include "training/lm/llama.h"

namespace outrider::training {
namespace {

const at::Device kFake(fake_device::kType, 0), kGpu(at::kCUDA, 0);

class DeviceTest : public HeadRunTest {
 protected:
  void SetUp() override {
    auto target = FrozenTarget::open(target_path(), 1);
    ASSERT_TRUE(target.ok()) << target.error().message;
    target_ = std::move(*target);
    counts_ = data_.token_counts(target_->config().vocab_size);
    options_ = options("unused", 8);
    options_.products = at::kFloat;  // both devices compute f32 alike
    options_.hard_share = 0.25;
  }

  std::unique_ptr<DraftHead> make(const HeadRecipe& recipe, at::Device device) {
    auto head =
        recipe.make({.target = *target_, .options = options_, .token_counts = counts_, .device = device});
    EXPECT_TRUE(head.ok()) << head.error().message;
    EXPECT_TRUE(target_->want((*head)->needs()).ok());
    return std::move(*head);
  }

  // Runs two steps and a measurement and exports the head to `out`. Appends losses, gradients and agreement,
  // on the CPU, to `found`.
  void run(const HeadRecipe& recipe, at::Device device, const std::string& out, NamedTensors& found) {
    const std::unique_ptr<DraftHead> head = make(recipe, device);
    StateSource states = *StateSource::open(*target_, {});
    for (const uint64_t seed : {3, 4}) {
      std::vector<Window> windows = data_.batch(static_cast<int64_t>(seed));
      const std::vector<Document> rewritten = head->rewritten(windows, seed);
      for (size_t i = 0; i < rewritten.size(); ++i)
        windows[i] = {.tokens = rewritten[i].tokens, .counted = rewritten[i].counted, .id = Window::kNewText};
      HeadBatch batch = *make_head_batch(windows, states, device);
      batch.seed = seed;
      const at::Tensor loss = head->loss(batch).loss;
      EXPECT_EQ(loss.device().type(), device.type());
      loss.backward();
      found.emplace_back("loss", loss.detach().cpu());
      for (const auto& [name, tensor] : head->parameters()) {
        EXPECT_EQ(tensor.device().type(), device.type()) << name;
        ASSERT_TRUE(tensor.grad().defined()) << name;
        found.emplace_back(name, tensor.grad().cpu());
        at::Tensor(tensor).mutable_grad().reset();
      }
    }
    const HeldOutResult held_out =
        *measure_held_out([&](const HeadBatch& batch) { return head->loss(batch); }, data_, states, device);
    EXPECT_FALSE(held_out.agreement.empty());
    found.emplace_back("agreement", at::tensor(held_out.agreement).to(at::kFloat));
    ASSERT_TRUE(write_head(*head, *target_, nlohmann::json::object(), files_.path(out)).ok());
  }

  // Takes a few optimizer steps in bf16, after which the loss must be lower.
  void learn_in_bf16(const HeadRecipe& recipe, at::Device device) {
    options_.products = at::kBFloat16;
    const std::unique_ptr<DraftHead> head = make(recipe, device);
    StateSource states = *StateSource::open(*target_, {});
    Optimizer optimizer(head->parameters(), {});
    double first = 0.0, last = 0.0;
    for (int step = 0; step < 3; ++step) {
      const HeadBatch batch = *make_head_batch(data_.batch(0), states, device);
      const at::Tensor loss = head->loss(batch).loss;
      loss.backward();
      EXPECT_TRUE(std::isfinite(optimizer.step(1e-3)));
      (step == 0 ? first : last) = loss.item<double>();
    }
    EXPECT_LT(last, first);
  }

  // The moved target writes two texts.
  void write_texts() {
    const std::vector<TokenId> prompt = {1, 2, 3};
    const std::vector<WritingTask> tasks = {
        {.prompt = prompt, .max_tokens = 20},
        {.prompt = prompt, .max_tokens = 4, .temperature = 1.0, .top_p = 0.9}};
    GenerationProgress shown("writing", 2, 0);
    int texts = 0;
    const auto sink = [&texts](size_t, const std::vector<TokenId>&) { ++texts; };
    EXPECT_TRUE(TorchWriter(*target_, 1 << 20).write(tasks, sink, shown).ok());
    EXPECT_EQ(texts, 2);
  }

  std::unique_ptr<FrozenTarget> target_;
  HeadOptions options_;
  HeadData data_ = data();
  std::vector<int64_t> counts_;
};

// The work of `lm` in f32: a loss on text, a distillation loss, and a continuation by the teacher.
NamedTensors learn_language(at::Device device) {
  const LlamaConfig config{
      .vocab_size = 64, .hidden_size = 64, .layers = 2, .ffn_size = 96, .max_context = 32};
  const Llama model = Llama::initialized(config, 1, device), teacher = Llama::initialized(config, 2, device);
  const at::Tensor tokens = at::arange(3 * 24).mul(7).remainder(config.vocab_size).view({3, 24}).to(device);
  const LlamaWeights weights = model.compute_weights(at::kFloat);
  const LlamaWeights taught = teacher.compute_weights(at::kFloat);
  const at::Tensor hidden = model.forward(weights, tokens);
  const at::Tensor text = cross_entropy(hidden, weights.embedding, tokens.flatten());
  at::Tensor said;
  {
    const at::NoGradGuard no_grad;
    said = teacher.forward(taught, tokens);
  }
  const DistillationLoss lesson = distillation_loss(hidden, weights.embedding, said, taught.embedding, 0.25);
  (text + lesson.loss).backward();
  NamedTensors found = {{"text", text.detach().cpu()}, {"lesson", lesson.loss.detach().cpu()}};
  for (const auto& [name, tensor] : model.parameters()) found.emplace_back(name, tensor.grad().cpu());
  KvCache cache = teacher.make_cache(3, 24, at::kFloat);
  teacher.extend(taught, tokens.narrow(1, 0, 8), cache);
  found.emplace_back("continued", teacher.extend(taught, tokens.narrow(1, 8, 1), cache).cpu());
  return found;
}

struct NamedRecipe {
  std::string name;
  HeadRecipe recipe;
  bool draws_text = false;  // rounding may change the drawn text
};

std::vector<NamedRecipe> all_recipes() {
  std::vector<NamedRecipe> recipes;
  for (const auto& [command, arguments] :
       std::vector<std::pair<std::string, std::string>>{{"eagle3", ""},
                                                        {"eagle3", "--mlp 32"},
                                                        {"peagle", ""},
                                                        {"eagle", ""},
                                                        {"mtp", ""},
                                                        {"medusa", ""},
                                                        {"moa", "--tli 0"},
                                                        {"moa", "--tli 1"},
                                                        {"moa", "--no-lsa"},
                                                        {"dflash", ""},
                                                        {"dspark", ""},
                                                        {"draft", ""},
                                                        {"pard", ""},
                                                        {"draft", "--divergence reverse"}})
    recipes.push_back({command + std::to_string(recipes.size()), recipe_of(command, arguments)});
  recipes.push_back({"on-policy", recipe_of("draft", "--on-policy 1"), true});
  return recipes;
}

void expect_equal(const NamedTensors& found, const NamedTensors& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i)
    EXPECT_TRUE(found[i].second.equal(expected[i].second)) << found[i].first;
}

void expect_near(const NamedTensors& found, const NamedTensors& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    const auto& [what, values] = expected[i];
    const double share = what == "agreement" ? 0.05 : 1e-3;  // tokens of almost equal probability may swap
    const double scale = std::max(values.abs().max().item<double>(), 1e-3);
    EXPECT_LT((found[i].second - values).abs().max().item<double>(), share * scale) << what;
  }
}

TEST_F(DeviceTest, TheFakeRefusesTensorsOfTheHost) {
  const at::Tensor there = at::ones({3}, kFake);
  EXPECT_EQ((there + there).sum().item<float>(), 6.0f);
  EXPECT_EQ((there * at::scalar_tensor(2.0f)).cpu().sum().item<float>(), 6.0f);
  EXPECT_THROW(there + at::ones({3}), c10::Error);
  EXPECT_THROW(at::cat({there, at::ones({3})}), c10::Error);
  EXPECT_THROW(there.index_select(0, at::zeros({1}, at::kLong)), c10::Error);
}

TEST_F(DeviceTest, EveryKindLearnsInTheBitsOfTheCpu) {
  for (const auto& [name, recipe, draws_text] : all_recipes()) {
    SCOPED_TRACE(name);
    NamedTensors here, there;
    run(recipe, at::kCPU, name + "-cpu", here);
    run(recipe, kFake, name + "-fake", there);
    if (HasFatalFailure()) return;
    expect_equal(there, here);
    for (const char* file : {"/model.safetensors", "/config.json"})
      EXPECT_EQ(files_.read(name + "-cpu" + file), files_.read(name + "-fake" + file)) << file;
  }
}

TEST_F(DeviceTest, ALanguageModelLearnsInTheBitsOfTheCpu) {
  expect_equal(learn_language(kFake), learn_language(at::kCPU));
}

TEST_F(DeviceTest, EveryKindLearnsInBf16) {
  for (const HeadRecipe& recipe : head_recipes()) {
    SCOPED_TRACE(recipe.command);
    learn_in_bf16(recipe, kFake);
  }
}

// The target's states are computed on the fake device, too.
TEST_F(DeviceTest, AGpuHasKernelsForWhatIsAskedOfIt) {
  if (!at::Context::hasCUDART()) GTEST_SKIP() << "this libtorch was built without CUDA";
  fake_device::operations.clear();
  NamedTensors found;
  target_->move_to(kFake, at::kFloat);
  for (const auto& [name, recipe, draws_text] : all_recipes()) run(recipe, kFake, name, found);
  target_->move_to(kFake, at::kBFloat16);
  for (const HeadRecipe& recipe : head_recipes()) learn_in_bf16(recipe, kFake);
  learn_language(kFake);
  write_texts();
  EXPECT_GT(fake_device::operations.size(), 50u);
  const auto has_kernel = [](const c10::OperatorName& name) {
    const auto op = c10::Dispatcher::singleton().findSchema(name);
    return op && op->hasKernelForDispatchKey(c10::DispatchKey::CUDA);
  };
  EXPECT_FALSE(has_kernel({"aten::mkldnn_linear", ""}));
  for (const c10::OperatorName& name : fake_device::operations) EXPECT_TRUE(has_kernel(name)) << name;
}

class GpuTest : public DeviceTest {
 protected:
  void SetUp() override {
    if (!at::hasCUDA()) GTEST_SKIP() << "no GPU, or a libtorch without CUDA";
    DeviceTest::SetUp();
  }
};

TEST_F(GpuTest, EveryKindLearnsAsOnTheCpu) {
  for (const auto& [name, recipe, draws_text] : all_recipes()) {
    if (draws_text) continue;
    SCOPED_TRACE(name);
    NamedTensors here, there;
    run(recipe, at::kCPU, name + "-cpu", here);
    run(recipe, kGpu, name + "-gpu", there);
    if (HasFatalFailure()) return;
    expect_near(there, here);
  }
}

TEST_F(GpuTest, ALanguageModelLearnsAsOnTheCpu) {
  expect_near(learn_language(kGpu), learn_language(at::kCPU));
}

TEST_F(GpuTest, EveryKindLearnsInBf16) {
  for (const HeadRecipe& recipe : head_recipes()) {
    SCOPED_TRACE(recipe.command);
    learn_in_bf16(recipe, kGpu);
  }
}

// On a processor without bf16 instructions, libtorch's bf16 is 60 times as slow as f32.
TEST(ProductType, AutoIsBf16WhereTheDeviceHasIt) {
  EXPECT_EQ(product_type("bf16", "cpu"), at::kBFloat16);
  EXPECT_EQ(product_type("f32", "cuda"), at::kFloat);
  EXPECT_EQ(product_type("auto", "cuda"), at::kBFloat16);
  const bool has_bf16 = cpu_features().avx512_bf16_refusal.empty();
  EXPECT_EQ(product_type("auto", "cpu"), has_bf16 ? at::kBFloat16 : at::kFloat);
}

TEST(OpenDevice, NamesAreCheckedAndWhatIsMissingIsSaid) {
  EXPECT_TRUE(open_device("--device", "cpu")->is_cpu());
  EXPECT_EQ(open_device("--target-device", "tpu").error().message,
            "--target-device: cpu or cuda is expected, found tpu");
  const Result<at::Device> gpu = open_device("--device", "cuda");
  ASSERT_EQ(gpu.ok(), at::hasCUDA());
  if (gpu.ok()) return;
  const bool has_cuda = at::Context::hasCUDART();
  EXPECT_NE(gpu.error().message.find(has_cuda ? "no GPU was found" : "built without CUDA"),
            std::string::npos);
}

}  // namespace
}  // namespace outrider::training
