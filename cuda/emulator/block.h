// BlockExecutor: runs the threads of one block at a time, each as a fiber, on the host thread that
// calls it.
//
// Fibers switch only where CUDA threads wait for each other: at block barriers and warp-wide calls.
// Between these a thread runs alone, and the Schedule decides who runs next.
#pragma once

#include "norma/cuda/emulator/fiber.h"
#include "norma/cuda/emulator/memory.h"
#include "norma/cuda/emulator/schedule.h"

#include <array>
#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <vector>

namespace norma::emulator {

inline constexpr int warp_size = 32;
/// Of one block on Hopper; more than 48 KiB must be dynamic.
inline constexpr std::size_t max_shared_bytes = std::size_t{227} << 10;

struct Index3 {
  unsigned x = 1, y = 1, z = 1;
  std::uint64_t count() const { return std::uint64_t{x} * y * z; }
};

/// Where in the source a thread waits.
struct Site {
  const char* file = "";
  int line = 0;
  friend bool operator==(const Site& a, const Site& b) {
    return a.line == b.line && std::string_view(a.file) == b.file;
  }
};

/// A launch as all blocks see it.
struct Launch {
  const char* name;
  Index3 grid;
  Index3 block;
  std::size_t shared_bytes;
  void (*run_thread)(const void* kernel_and_arguments);
  const void* kernel_and_arguments;
};

/// What a thread brings to a warp-wide call, and takes from it.
struct WarpCall {
  enum class Kind : std::uint8_t { sync, shuffle, vote };
  Kind kind = Kind::sync;
  std::uint32_t mask = 0;
  int source_lane = 0;      ///< shuffle: whose value to take
  std::uint64_t value = 0;  ///< vote: not zero is yes
  std::uint64_t result = 0;
  Site site = {};
};

class BlockExecutor {
 public:
  BlockExecutor() = default;
  BlockExecutor(const BlockExecutor&) = delete;
  BlockExecutor& operator=(const BlockExecutor&) = delete;

  /// Starts a launch: shared memory of the last one is given back.
  void begin(const Launch& launch, const Schedule& schedule);
  /// Runs one block to its end. Throws KernelError, or what the kernel threw.
  void run(std::uint64_t block);

  // -- what the running thread asks for -----------------------------------------------------------
  static BlockExecutor& current();
  void barrier(const Site& site);
  std::uint64_t warp_call(const WarpCall& call);
  /// The block's array for `key`, the same for all its threads; made on first use.
  void* shared_array(const void* key, const char* name, std::size_t bytes);
  void* dynamic_shared() const;
  int lane() const { return running_ % warp_size; }
  /// Throws KernelError with where the running thread is.
  [[noreturn]] void fail(const std::string& must, const std::string& got,
                         const std::string& remedy = {}) const;

 private:
  enum class State : std::uint8_t { runnable, at_barrier, in_warp_call, finished };
  struct Thread {
    State state = State::runnable;
    Index3 index;
    Site barrier;
    WarpCall call;
    std::unique_ptr<Fiber> fiber;
  };
  struct SharedArray {
    const void* key;
    std::string name;
    GuardedBlock memory;
  };

  static void thread_main(void* executor);
  void draw_order();
  bool run_warp_once(int warp);
  void run_phase();
  void resume(int thread);
  void wait(State state);
  bool complete_warp_call(int warp);
  void release_barrier();
  void check_guards() const;
  void prepare_shared();
  std::uint64_t random();

  Index3 index_in(const Index3& size, std::uint64_t number) const;
  std::string describe(int thread) const;
  std::string describe_wait(int thread) const;
  [[noreturn]] void report_deadlock() const;
  [[noreturn]] void fail_in_block(const std::string& must, const std::string& got,
                                  const std::string& remedy) const;

  const Launch* launch_ = nullptr;
  Schedule schedule_;
  int count_ = 0;  ///< threads of the block
  int warps_ = 0;
  int finished_ = 0;
  int running_ = 0;
  Index3 block_;
  std::vector<Thread> threads_;  ///< grows, never shrinks: stacks are kept
  std::vector<int> warp_order_;
  std::array<int, warp_size> lane_order_{};
  bool greedy_ = false;
  std::uint64_t random_state_ = 0;
  std::vector<SharedArray> shared_;  ///< the dynamic one, if any, is the first
  std::exception_ptr failure_;
};

}  // namespace norma::emulator
