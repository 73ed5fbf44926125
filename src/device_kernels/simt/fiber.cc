// SPDX-License-Identifier: Apache-2.0
#include "device_kernels/simt/fiber.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <new>

#include "base/check.h"

// Saves the registers that a function keeps, and the stack, in *save; goes on where `to` was saved.
extern "C" void outrider_switch_stack(void** save, void* to);

#if defined(__aarch64__)
asm(R"(
.text
.globl outrider_switch_stack
.hidden outrider_switch_stack
.type outrider_switch_stack, %function
outrider_switch_stack:
  sub sp, sp, #160
  stp x19, x20, [sp, #0]
  stp x21, x22, [sp, #16]
  stp x23, x24, [sp, #32]
  stp x25, x26, [sp, #48]
  stp x27, x28, [sp, #64]
  stp x29, x30, [sp, #80]
  stp d8, d9, [sp, #96]
  stp d10, d11, [sp, #112]
  stp d12, d13, [sp, #128]
  stp d14, d15, [sp, #144]
  mov x2, sp
  str x2, [x0]
  mov sp, x1
  ldp x19, x20, [sp, #0]
  ldp x21, x22, [sp, #16]
  ldp x23, x24, [sp, #32]
  ldp x25, x26, [sp, #48]
  ldp x27, x28, [sp, #64]
  ldp x29, x30, [sp, #80]
  ldp d8, d9, [sp, #96]
  ldp d10, d11, [sp, #112]
  ldp d12, d13, [sp, #128]
  ldp d14, d15, [sp, #144]
  add sp, sp, #160
  ret
.size outrider_switch_stack, .-outrider_switch_stack
)");
#else
asm(R"(
.text
.globl outrider_switch_stack
.hidden outrider_switch_stack
.type outrider_switch_stack, @function
outrider_switch_stack:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size outrider_switch_stack, .-outrider_switch_stack
)");
#endif

// Programs without a sanitizer have none of these.
extern "C" {
[[gnu::weak]] void __sanitizer_start_switch_fiber(void** fake_stack_save, const void* bottom, size_t size);
[[gnu::weak]] void __sanitizer_finish_switch_fiber(void* fake_stack_save, const void** bottom_old,
                                                   size_t* size_old);
[[gnu::weak]] void __asan_unpoison_memory_region(const volatile void* address, size_t size);
[[gnu::weak]] void* __tsan_get_current_fiber();
[[gnu::weak]] void* __tsan_create_fiber(unsigned flags);
[[gnu::weak]] void __tsan_destroy_fiber(void* fiber);
[[gnu::weak]] void __tsan_switch_to_fiber(void* fiber, unsigned flags);
}

namespace outrider::simt {
namespace {

constinit thread_local Fiber* entered = nullptr;

// Zeros for the registers, then where the fiber begins, at the end of its stack.
void* first_place(std::byte* stack, size_t bytes, void (*entry)()) {
  auto* top = reinterpret_cast<uint64_t*>(stack + bytes);
#if defined(__aarch64__)
  uint64_t* place = top - 20;
  place[11] = reinterpret_cast<uint64_t>(entry);  // x30
#else
  uint64_t* place = top - 8;  // the entry sees a stack as after a call
  place[6] = reinterpret_cast<uint64_t>(entry);
#endif
  return place;
}

}  // namespace

void Fiber::FreeStack::operator()(std::byte* stack) const { munmap(stack, kStackBytes); }

// A page at the low end faults where a stack is too small.
Fiber::Fiber(Function function, void* context) : function_(function), context_(context) {
  void* memory =
      mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  stack_.reset(static_cast<std::byte*>(memory));
  OUTRIDER_CHECK(mprotect(memory, static_cast<size_t>(sysconf(_SC_PAGESIZE)), PROT_NONE) == 0);
  own_place_ = first_place(stack_.get(), kStackBytes, enter);
  if (__tsan_create_fiber != nullptr) own_thread_ = __tsan_create_fiber(0);
}

Fiber::~Fiber() {
  if (own_thread_ != nullptr) __tsan_destroy_fiber(own_thread_);
  if (__asan_unpoison_memory_region != nullptr) __asan_unpoison_memory_region(stack_.get(), kStackBytes);
}

void Fiber::enter() {
  Fiber& self = *entered;
  self.arrive();
  self.function_(self.context_);
  OUTRIDER_CHECK(false);  // the function never returns
}

// Runs in the fiber after each switch to it.
void Fiber::arrive() {
  if (__sanitizer_finish_switch_fiber != nullptr)
    __sanitizer_finish_switch_fiber(own_fake_stack_, &owner_stack_, &owner_stack_bytes_);
}

void Fiber::resume() {
  entered = this;
  if (__sanitizer_start_switch_fiber != nullptr)
    __sanitizer_start_switch_fiber(&owner_fake_stack_, stack_.get(), kStackBytes);
  if (own_thread_ != nullptr) {
    owner_thread_ = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(own_thread_, 0);
  }
  outrider_switch_stack(&owner_place_, own_place_);
  if (__sanitizer_finish_switch_fiber != nullptr)
    __sanitizer_finish_switch_fiber(owner_fake_stack_, nullptr, nullptr);
}

void Fiber::yield() {
  if (__sanitizer_start_switch_fiber != nullptr)
    __sanitizer_start_switch_fiber(&own_fake_stack_, owner_stack_, owner_stack_bytes_);
  if (own_thread_ != nullptr) __tsan_switch_to_fiber(owner_thread_, 0);
  outrider_switch_stack(&own_place_, owner_place_);
  arrive();
}

}  // namespace outrider::simt
