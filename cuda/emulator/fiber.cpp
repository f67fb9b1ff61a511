#include "norma/cuda/emulator/fiber.h"

#include "norma/core/error.h"

#include <sys/mman.h>
#include <unistd.h>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

#ifndef NORMA_FIBER_UCONTEXT
// void norma_fiber_switch(void** save, void* load): keeps the registers that a callee must keep on
// the current stack, and goes on where `load` was saved.
extern "C" void norma_fiber_switch(void** save, void* load);
asm(R"(
.pushsection .text
.globl norma_fiber_switch
.hidden norma_fiber_switch
.type norma_fiber_switch, @function
norma_fiber_switch:
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
.size norma_fiber_switch, .-norma_fiber_switch
.popsection
)");
#endif

namespace norma::emulator {

namespace {

// Sanitizers pad the frames of a kernel.
#ifdef __SANITIZE_ADDRESS__
constexpr std::size_t stack_bytes = std::size_t{256} << 10;
#else
constexpr std::size_t stack_bytes = std::size_t{64} << 10;
#endif

/// The fiber that resume() just switched to: an entry has no other way to learn who it is.
thread_local Fiber* running = nullptr;

std::size_t page_bytes() {
  static const auto bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

}  // namespace

Fiber::Fiber() {
  // One page below the stack stays inaccessible: an overflow faults instead of writing elsewhere.
  void* const mapping = mmap(nullptr, stack_bytes + page_bytes(), PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  check<OutOfMemoryError>(mapping != MAP_FAILED, "emulator",
                          "a thread's stack must fit into memory; got a refusal of {} bytes",
                          stack_bytes);
  mapping_ = static_cast<char*>(mapping);
  mprotect(mapping_, page_bytes(), PROT_NONE);
  stack_ = mapping_ + page_bytes();
}

Fiber::~Fiber() { munmap(mapping_, stack_bytes + page_bytes()); }

void Fiber::start(Entry entry, void* argument) {
  entry_ = entry;
  argument_ = argument;
#ifdef __SANITIZE_ADDRESS__
  __asan_unpoison_memory_region(stack_, stack_bytes);
  own_fake_stack_ = nullptr;
#endif
#ifdef NORMA_FIBER_UCONTEXT
  getcontext(&own_);
  own_.uc_stack.ss_sp = stack_;
  own_.uc_stack.ss_size = stack_bytes;
  own_.uc_link = nullptr;
  makecontext(&own_, run, 0);
#else
  // What norma_fiber_switch pops: six registers, the address of run, and for run's own frame a
  // return address of 0, where stack walks end.
  void** const top = reinterpret_cast<void**>(stack_ + stack_bytes);
  top[-1] = nullptr;
  top[-2] = reinterpret_cast<void*>(&run);
  for (int i = 3; i <= 8; ++i) top[-i] = nullptr;
  own_ = top - 8;
#endif
}

void Fiber::run() {
  Fiber& self = *running;
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_finish_switch_fiber(nullptr, &self.caller_stack_, &self.caller_stack_bytes_);
#endif
  self.entry_(self.argument_);
  self.switch_out(true);
}

void Fiber::resume() {
  running = this;
#ifdef __SANITIZE_ADDRESS__
  void* fake_stack = nullptr;
  __sanitizer_start_switch_fiber(&fake_stack, stack_, stack_bytes);
#endif
#ifdef NORMA_FIBER_UCONTEXT
  swapcontext(&caller_, &own_);
#else
  norma_fiber_switch(&caller_, own_);
#endif
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_finish_switch_fiber(fake_stack, nullptr, nullptr);
#endif
}

void Fiber::suspend() { switch_out(false); }

void Fiber::switch_out([[maybe_unused]] bool last) {
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_start_switch_fiber(last ? nullptr : &own_fake_stack_, caller_stack_,
                                 caller_stack_bytes_);
#endif
#ifdef NORMA_FIBER_UCONTEXT
  swapcontext(&own_, &caller_);
#else
  norma_fiber_switch(&own_, caller_);
#endif
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_finish_switch_fiber(own_fake_stack_, &caller_stack_, &caller_stack_bytes_);
#endif
}

}  // namespace norma::emulator
