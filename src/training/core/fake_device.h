// SPDX-License-Identifier: Apache-2.0
// A fake device that stands for a GPU in tests: it keeps its tensors at addresses the host cannot read and
// refuses operations over tensors of two devices. It computes with the CPU's kernels. Only one file of a
// program may include this header.
#pragma once

#include <ATen/ATen.h>
#include <ATen/EmptyTensor.h>
#include <ATen/native/CPUFallback.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/view_native.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/library.h>

#include <algorithm>
#include <cstdlib>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace outrider::training {
namespace fake_device {

// libtorch knows both devices but has no kernels for them. Tensors are dispatched as XPU tensors, because
// set_data() lets these replace a CPU tensor in a parameter, and lie on the IPU, because autograd does not
// ask it for streams.
constexpr at::DeviceType kType = at::kIPU;
constexpr c10::DispatchKey kKey = c10::DispatchKey::XPU;
// Flipping this bit of an address makes it invalid, so that a read by the host ends the program.
constexpr uintptr_t kElsewhere = uintptr_t{1} << 62;

inline void* on_host(void* data) {
  return reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(data) ^ kElsewhere);
}

// Fits libtorch 1.13 and also newer versions, in which allocate() is not const and copy_data() exists.
struct FakeMemory final : c10::Allocator {
  c10::DataPtr allocate(size_t bytes) const {
    void* memory = std::malloc(std::max<size_t>(bytes, 1));
    return {on_host(memory), memory, &std::free, at::Device(kType, 0)};
  }
  c10::DataPtr allocate(size_t bytes) { return std::as_const(*this).allocate(bytes); }
  void copy_data(void* to, const void* from, size_t bytes) const {
    std::memcpy(on_host(to), on_host(const_cast<void*>(from)), bytes);
  }
};
inline FakeMemory memory;
REGISTER_ALLOCATOR(kType, &memory);
C10_REGISTER_GUARD_IMPL(IPU, c10::impl::NoOpDeviceGuardImpl<kType>);

inline bool is_fake(const at::Tensor& tensor) { return tensor.defined() && tensor.device().type() == kType; }

// A CPU tensor over the memory of a fake one.
inline at::Tensor host_view(const at::Tensor& tensor) {
  if (!is_fake(tensor)) return tensor;
  return at::from_blob(on_host(tensor.data_ptr()), tensor.sizes(), tensor.strides(),
                       at::TensorOptions().dtype(tensor.scalar_type()));
}

inline at::Tensor empty(at::IntArrayRef size, c10::optional<at::ScalarType> type, c10::optional<at::Layout>,
                        c10::optional<at::Device>, c10::optional<bool>,
                        c10::optional<at::MemoryFormat> format) {
  return at::detail::empty_generic(size, &memory, c10::DispatchKeySet(kKey), type.value_or(at::kFloat),
                                   format);
}

inline at::Tensor empty_strided(at::IntArrayRef size, at::IntArrayRef stride,
                                c10::optional<at::ScalarType> type, c10::optional<at::Layout>,
                                c10::optional<at::Device>, c10::optional<bool>) {
  return at::detail::empty_strided_generic(size, stride, &memory, c10::DispatchKeySet(kKey),
                                           type.value_or(at::kFloat));
}

inline at::Tensor copied(const at::Tensor& host) {
  at::Tensor tensor = empty_strided(host.sizes(), host.strides(), host.scalar_type(), {}, {}, {});
  host_view(tensor).copy_(host);
  return tensor;
}

inline at::Tensor copy_from(const at::Tensor& from, const at::Tensor& to, bool) {
  host_view(to).copy_(host_view(from));
  return to;
}

// The operations that were run on the fake device; a GPU needs kernels for all of them.
struct ByName {
  bool operator()(const c10::OperatorName& a, const c10::OperatorName& b) const {
    return toString(a) < toString(b);
  }
};
inline std::set<c10::OperatorName, ByName> operations;

// Runs any other operation on CPU views of its tensors. All tensors but scalars must lie on the fake device.
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
    // The operation allocates an output tensor that is still empty.
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

inline void on_cpu(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  operations.insert(op.operator_name());
  CpuCall(op, stack).run();
}

TORCH_LIBRARY_IMPL(_, XPU, fake) { fake.fallback(torch::CppFunction::makeFromBoxedFunction<&on_cpu>()); }

TORCH_LIBRARY_IMPL(aten, XPU, fake) {
  fake.impl("_copy_from", &copy_from);
  fake.impl("as_strided", &at::native::as_strided_tensorimpl);
  fake.impl("view", &at::native::view);
  fake.impl("_reshape_alias", &at::native::_reshape_alias);
}

// Factories take no tensors, so they are dispatched only by the device.
TORCH_LIBRARY_IMPL(aten, IPU, fake) {
  fake.impl("empty.memory_format", &empty);
  fake.impl("empty_strided", &empty_strided);
}

}  // namespace fake_device
}  // namespace outrider::training
