// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>

namespace outrider::simt {

// A function on a separate stack, which gives way to its owner and is continued by it, all on one thread.
// It never returns. Sanitizers are told of every switch.
class Fiber {
 public:
  using Function = void (*)(void* context);
  Fiber(Function function, void* context);
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // Runs until the fiber yields.
  void resume();
  // Only from within the fiber.
  void yield();

 private:
  static constexpr size_t kStackBytes = size_t{4} << 20;  // pages that are never touched take no memory
  static void enter();
  void arrive();

  struct FreeStack {
    void operator()(std::byte* stack) const;
  };
  Function function_;
  void* context_;
  std::unique_ptr<std::byte, FreeStack> stack_;
  void* own_place_ = nullptr;    // where this fiber goes on
  void* owner_place_ = nullptr;  // where its owner goes on
  // Sanitizers know these.
  void* own_fake_stack_ = nullptr;
  void* owner_fake_stack_ = nullptr;
  const void* owner_stack_ = nullptr;
  size_t owner_stack_bytes_ = 0;
  void* own_thread_ = nullptr;
  void* owner_thread_ = nullptr;
};

}  // namespace outrider::simt
