// SPDX-License-Identifier: Apache-2.0
// What --device cuda needs of the trainer, without a GPU: a device that keeps its tensors at addresses the
// host cannot read and refuses operations over tensors of two devices. Its numbers are those of the CPU's
// kernels, so that everything must come out in the same bits as on the CPU.
#include <ATen/ATen.h>
#include <ATen/EmptyTensor.h>
#include <ATen/native/CPUFallback.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/view_native.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <gtest/gtest.h>
#include <torch/library.h>

#include <cstdlib>
#include <utility>

#include "training/adamw.h"
#include "training/head_run_fixture.h"
#include "training/heads/frozen_target.h"
#include "training/heads/head_batches.h"
#include "training/heads/head_export.h"
#include "training/heads/held_out_agreement.h"
#include "training/safetensors_file.h"

namespace outrider::training {
namespace {

// A device type that this libtorch knows, but has no kernels for.
constexpr at::DeviceType kType = at::kXPU;
constexpr c10::DispatchKey kKey = c10::DispatchKey::XPU;
// No address of a process has this bit alone set: reading one of the device's ends the program.
constexpr uintptr_t kElsewhere = uintptr_t{1} << 62;

void* on_host(void* data) { return reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(data) ^ kElsewhere); }

struct FakeMemory final : c10::Allocator {
  c10::DataPtr allocate(size_t bytes) const override {
    void* memory = std::malloc(std::max<size_t>(bytes, 1));
    return {on_host(memory), memory, &std::free, at::Device(kType, 0)};
  }
};
FakeMemory memory;
REGISTER_ALLOCATOR(kType, &memory);
C10_REGISTER_GUARD_IMPL(XPU, c10::impl::NoOpDeviceGuardImpl<kType>);

bool is_fake(const at::Tensor& tensor) { return tensor.defined() && tensor.device().type() == kType; }

// The same memory as a tensor of the CPU.
at::Tensor host_view(const at::Tensor& tensor) {
  if (!is_fake(tensor)) return tensor;
  return at::from_blob(on_host(tensor.data_ptr()), tensor.sizes(), tensor.strides(),
                       at::TensorOptions().dtype(tensor.scalar_type()));
}

at::Tensor empty(at::IntArrayRef size, c10::optional<at::ScalarType> type, c10::optional<at::Layout>,
                 c10::optional<at::Device>, c10::optional<bool>, c10::optional<at::MemoryFormat> format) {
  return at::detail::empty_generic(size, &memory, c10::DispatchKeySet(kKey), type.value_or(at::kFloat),
                                   format);
}

at::Tensor empty_strided(at::IntArrayRef size, at::IntArrayRef stride, c10::optional<at::ScalarType> type,
                         c10::optional<at::Layout>, c10::optional<at::Device>, c10::optional<bool>) {
  return at::detail::empty_strided_generic(size, stride, &memory, c10::DispatchKeySet(kKey),
                                           type.value_or(at::kFloat));
}

at::Tensor copied(const at::Tensor& host) {
  at::Tensor tensor = empty_strided(host.sizes(), host.strides(), host.scalar_type(), {}, {}, {});
  host_view(tensor).copy_(host);
  return tensor;
}

at::Tensor copy_from(const at::Tensor& from, const at::Tensor& to, bool) {
  host_view(to).copy_(host_view(from));
  return to;
}

// Any other operation: over the CPU's views of its tensors, all of which must be the device's but for
// scalars.
class CpuCall {
 public:
  CpuCall(const c10::OperatorHandle& op, torch::jit::Stack* stack) : op_(op), stack_(*stack) {}

  void run() {
    const auto& arguments = op_.schema().arguments();
    const size_t first = stack_.size() - arguments.size();
    for (size_t i = 0; i < arguments.size(); ++i) {
      const bool is_written = arguments[i].alias_info() != nullptr && arguments[i].alias_info()->isWrite();
      stack_[first + i] = lend(stack_[first + i], is_written);
    }
    op_.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), &stack_);
    for (size_t i = stack_.size() - op_.schema().returns().size(); i < stack_.size(); ++i)
      stack_[i] = given_back(stack_[i]);
  }

 private:
  at::Tensor lend(const at::Tensor& tensor, bool is_written) {
    if (!tensor.defined()) return tensor;
    if (!is_fake(tensor)) {
      TORCH_CHECK(tensor.dim() == 0, op_.schema().name(), ": tensors of two devices");
      return tensor;
    }
    // What is still empty is given its size by the operation.
    const bool is_open = is_written && tensor.numel() == 0;
    at::Tensor lent = is_open ? at::empty({0}, tensor.scalar_type()) : host_view(tensor);
    lent_.emplace_back(tensor, lent);
    return lent;
  }

  c10::IValue lend(const c10::IValue& value, bool is_written) {
    if (value.isTensor()) return lend(value.toTensor(), is_written);
    if (value.isDevice()) return at::Device(at::kCPU);
    if (value.isTensorList()) {
      c10::List<at::Tensor> list;
      for (const at::Tensor& tensor : value.toTensorVector()) list.push_back(lend(tensor, is_written));
      return list;
    }
    if (!value.isOptionalTensorList()) return value;
    c10::List<c10::optional<at::Tensor>> list;
    for (const c10::optional<at::Tensor>& tensor : value.toOptionalTensorList())
      list.push_back(tensor ? c10::make_optional(lend(*tensor, false)) : c10::nullopt);
    return list;
  }

  c10::IValue given_back(const c10::IValue& value) {
    if (value.isTensorList()) {
      c10::List<at::Tensor> list;
      for (const at::Tensor& tensor : value.toTensorVector()) list.push_back(given_back(tensor).toTensor());
      return list;
    }
    if (!value.isTensor() || !value.toTensor().defined()) return value;
    const at::Tensor& result = value.toTensor();
    for (const auto& [tensor, lent] : lent_) {
      if (!lent.is_same(result)) continue;
      if (tensor.sizes() != result.sizes())
        tensor.unsafeGetTensorImpl()->shallow_copy_from(copied(result).getIntrusivePtr());
      return tensor;
    }
    return copied(result);
  }

  const c10::OperatorHandle& op_;
  torch::jit::Stack& stack_;
  std::vector<std::pair<at::Tensor, at::Tensor>> lent_;
};

void on_cpu(const c10::OperatorHandle& op, torch::jit::Stack* stack) { CpuCall(op, stack).run(); }

TORCH_LIBRARY_IMPL(_, XPU, fake) { fake.fallback(torch::CppFunction::makeFromBoxedFunction<&on_cpu>()); }

TORCH_LIBRARY_IMPL(aten, XPU, fake) {
  fake.impl("empty.memory_format", &empty);
  fake.impl("empty_strided", &empty_strided);
  fake.impl("_copy_from", &copy_from);
  fake.impl("as_strided", &at::native::as_strided_tensorimpl);
  fake.impl("view", &at::native::view);
  fake.impl("_reshape_alias", &at::native::_reshape_alias);
}

class DeviceTest : public HeadRunTest {
 protected:
  void SetUp() override {
    auto target = FrozenTarget::open(target_path(), 1);
    ASSERT_TRUE(target.ok()) << target.error().message;
    target_ = std::move(*target);
    counts_ = data_.token_counts(target_->config().vocab_size);
    options_ = options("unused", 8);
    options_.products = at::kFloat;  // of which both devices compute all alike
    options_.hard_share = 0.25;
  }

  std::unique_ptr<DraftHead> make(const HeadKind& kind, at::Device device) {
    auto head =
        kind.make({.target = *target_, .options = options_, .token_counts = counts_, .device = device});
    EXPECT_TRUE(head.ok()) << head.error().message;
    EXPECT_TRUE(target_->want((*head)->needs()).ok());
    return std::move(*head);
  }

  // Two steps, a measurement and what is written.
  void run(const HeadKind& kind, at::Device device, const std::string& out) {
    const std::unique_ptr<DraftHead> head = make(kind, device);
    StateSource states = *StateSource::open(*target_, {});
    NamedTensors found;
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
      found.emplace_back("loss", loss.detach().reshape({1}));
      for (const auto& [name, tensor] : head->parameters()) {
        EXPECT_EQ(tensor.device().type(), device.type()) << name;
        ASSERT_TRUE(tensor.grad().defined()) << name;
        found.emplace_back(name, tensor.grad().clone());
        at::Tensor(tensor).mutable_grad().reset();
      }
    }
    const HeldOutResult held_out = *measure_held_out(*head, data_, states, device);
    EXPECT_FALSE(held_out.agreement.empty());
    found.emplace_back("held out", at::tensor(held_out.agreement).to(at::kFloat));
    ASSERT_TRUE(write_head(*head, *target_, nlohmann::json::object(), files_.path(out)).ok());
    // Duplicate names do not matter: the file is compared, not read.
    for (size_t i = 0; i < found.size(); ++i) found[i].first = std::to_string(i) + found[i].first;
    ASSERT_TRUE(write_safetensors(files_.path(out + "/found.safetensors"), found).ok());
  }

  std::unique_ptr<FrozenTarget> target_;
  HeadOptions options_;
  HeadData data_ = data();
  std::vector<int64_t> counts_;
};

TEST_F(DeviceTest, TheDeviceRefusesTensorsOfTheHost) {
  const at::Tensor there = at::ones({3}, at::Device(kType, 0));
  EXPECT_EQ((there + there).sum().item<float>(), 6.0f);
  EXPECT_EQ((there * at::scalar_tensor(2.0f)).cpu().sum().item<float>(), 6.0f);
  EXPECT_THROW(there + at::ones({3}), c10::Error);
  EXPECT_THROW(at::cat({there, at::ones({3})}), c10::Error);
  EXPECT_THROW(there.index_select(0, at::zeros({1}, at::kLong)), c10::Error);
}

TEST_F(DeviceTest, EveryKindLearnsInTheBitsOfTheCpu) {
  const std::pair<std::string, std::string> all[] = {{"eagle3", ""},
                                                     {"eagle3", "--mlp 32"},
                                                     {"eagle", ""},
                                                     {"mtp", ""},
                                                     {"medusa", ""},
                                                     {"moa", "--tli 0"},
                                                     {"moa", "--tli 1"},
                                                     {"moa", "--no-lsa"},
                                                     {"dflash", ""},
                                                     {"draft", ""},
                                                     {"draft", "--on-policy 1 --divergence reverse"}};
  for (const auto& [command, arguments] : all) {
    SCOPED_TRACE(command + " " + arguments);
    const HeadKind kind = kind_of(command, arguments);
    const std::string name = command + std::to_string(std::hash<std::string>()(arguments));
    run(kind, at::kCPU, name + "-cpu");
    run(kind, at::Device(kType, 0), name + "-fake");
    if (HasFatalFailure()) return;
    for (const char* file : {"/found.safetensors", "/model.safetensors", "/config.json"})
      EXPECT_EQ(files_.read(name + "-cpu" + file), files_.read(name + "-fake" + file)) << file;
  }
}

// bf16, which the CPU has kernels of its own for, and the optimizer.
TEST_F(DeviceTest, ARunGoesThroughInBf16) {
  options_.products = at::kBFloat16;
  const at::Device device(kType, 0);
  for (const HeadKind& kind : head_kinds()) {
    SCOPED_TRACE(kind.command);
    const std::unique_ptr<DraftHead> head = make(kind, device);
    StateSource states = *StateSource::open(*target_, {});
    AdamW optimizer(head->parameters(), {});
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
}

}  // namespace
}  // namespace outrider::training
