// Fiber: a stack of its own that runs until it suspends itself.
//
// On x86-64 a switch saves six registers (about 10 ns); elsewhere it is ucontext's, which also asks
// the system to save the signal mask (about 200 ns). AddressSanitizer is told about every switch.
#pragma once

#include <cstddef>

#if !defined(__x86_64__) && !defined(NORMA_FIBER_UCONTEXT)
#define NORMA_FIBER_UCONTEXT
#endif
#ifdef NORMA_FIBER_UCONTEXT
#include <ucontext.h>
#endif

namespace norma::emulator {

class Fiber {
 public:
  using Entry = void (*)(void* argument);

  Fiber();
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  /// Makes the next resume() call `entry(argument)` on an empty stack. What was suspended before is
  /// dropped without running its destructors.
  void start(Entry entry, void* argument);
  /// Runs the fiber until it suspends or its entry returns. `entry` must not throw.
  void resume();
  /// Goes back to the resume() that runs this fiber. Called on the fiber only.
  void suspend();

 private:
#ifdef NORMA_FIBER_UCONTEXT
  using Context = ucontext_t;
#else
  using Context = void*;  // the stack pointer; everything else is on the stack
#endif
  static void run();
  void switch_out(bool last);

  char* mapping_;
  char* stack_;
  Entry entry_ = nullptr;
  void* argument_ = nullptr;
  Context own_{};
  Context caller_{};
  void* own_fake_stack_ = nullptr;
  const void* caller_stack_ = nullptr;
  std::size_t caller_stack_bytes_ = 0;
};

}  // namespace norma::emulator
