#include "norma/cuda/emulator/grid.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <numeric>
#include <thread>

namespace norma::emulator {

namespace {

/// Logical threads below which a launch stays on the calling thread.
constexpr std::uint64_t parallel_grain = 4096;

int host_threads() {
  static const int count = [] {
    const char* const text = std::getenv("NORMA_EMULATOR_THREADS");
    const int wanted = text != nullptr ? std::atoi(text) : 0;
    return wanted > 0 ? wanted
                      : static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  }();
  return count;
}

/// Host threads that wait for work between launches: their stacks of fibers cost 2 ms to make.
class Pool {
 public:
  static Pool& instance() {
    static Pool pool(host_threads() - 1);
    return pool;
  }

  /// Runs `work` on the calling thread and on all others; false where another launch has them.
  bool run(const std::function<void()>& work) {
    const std::unique_lock busy(busy_, std::try_to_lock);
    if (!busy.owns_lock()) return false;
    {
      const std::lock_guard lock(mutex_);
      work_ = &work;
      ++generation_;
      pending_ = static_cast<int>(threads_.size());
    }
    start_.notify_all();
    work();
    std::unique_lock lock(mutex_);
    done_.wait(lock, [this] { return pending_ == 0; });
    work_ = nullptr;
    return true;
  }

 private:
  explicit Pool(int threads) {
    for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { serve(); });
  }
  ~Pool() {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    start_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

  void serve() {
    std::uint64_t seen = 0;
    std::unique_lock lock(mutex_);
    for (;;) {
      start_.wait(lock, [&] { return stop_ || generation_ != seen; });
      if (stop_) return;
      seen = generation_;
      const std::function<void()>* const work = work_;
      lock.unlock();
      (*work)();
      lock.lock();
      if (--pending_ == 0) done_.notify_one();
    }
  }

  std::mutex busy_;  // held by the launch that has the threads
  std::mutex mutex_;
  std::condition_variable start_, done_;
  const std::function<void()>* work_ = nullptr;
  std::uint64_t generation_ = 0;
  int pending_ = 0;
  bool stop_ = false;
  std::vector<std::thread> threads_;
};

/// The order of blocks: position -> number, a bijection that needs no table.
class BlockOrder {
 public:
  BlockOrder(std::uint64_t count, const Schedule& schedule)
      : count_(count), reversed_(schedule.order == Order::reverse) {
    if (schedule.order != Order::random || count < 3) return;
    // position * factor + shift modulo count; a small factor, so that nothing overflows.
    const std::uint64_t hash = (schedule.seed + 1) * 0x9e3779b97f4a7c15ull;
    factor_ = 1 + (hash >> 33) % std::min<std::uint64_t>(count - 1, 65521);
    while (std::gcd(factor_, count) != 1) ++factor_;
    shift_ = (hash >> 7) % count;
  }
  std::uint64_t operator[](std::uint64_t position) const {
    return reversed_ ? count_ - 1 - position : (position * factor_ + shift_) % count_;
  }

 private:
  std::uint64_t count_;
  bool reversed_;
  std::uint64_t factor_ = 1;
  std::uint64_t shift_ = 0;
};

void check_limits(const Launch& launch) {
  const Index3& grid = launch.grid;
  const Index3& block = launch.block;
  check<KernelError>(grid.count() > 0 && block.count() > 0, launch.name,
                     "a launch must have blocks and threads; got a grid of {} x {} x {} and blocks "
                     "of {} x {} x {}; skip it when there is nothing to do",
                     grid.x, grid.y, grid.z, block.x, block.y, block.z);
  check<KernelError>(grid.x <= 2147483647u && grid.y <= 65535 && grid.z <= 65535, launch.name,
                     "a grid has at most 2147483647 x 65535 x 65535 blocks; got {} x {} x {}",
                     grid.x, grid.y, grid.z);
  check<KernelError>(launch.shared_bytes <= max_shared_bytes, launch.name,
                     "a block has at most {} bytes of shared memory; got shared_bytes = {}",
                     max_shared_bytes, launch.shared_bytes);
  check<KernelError>(block.count() <= 1024 && block.z <= 64, launch.name,
                     "a block has at most 1024 threads, 64 in z; got {} x {} x {}", block.x,
                     block.y, block.z);
}

}  // namespace

void run_grid(const Launch& launch) {
  check_limits(launch);
  const Schedule schedule = current_schedule();
  const std::uint64_t blocks = launch.grid.count();
  const BlockOrder order(blocks, schedule);
  std::atomic<std::uint64_t> next{0};
  std::mutex failure_mutex;
  std::exception_ptr failure;
  const std::function<void()> work = [&] {
    // Kept for the next launch of this host thread, with its stacks.
    thread_local BlockExecutor executor;
    try {
      std::uint64_t position = next.fetch_add(1);
      if (position >= blocks) return;
      executor.begin(launch, schedule);
      for (; position < blocks; position = next.fetch_add(1)) executor.run(order[position]);
    } catch (...) {
      next.store(blocks);
      const std::lock_guard lock(failure_mutex);
      if (!failure) failure = std::current_exception();
    }
  };
  const bool parallel =
      blocks > 1 && blocks * launch.block.count() >= parallel_grain && host_threads() > 1;
  if (!parallel || !Pool::instance().run(work)) work();
  if (failure) std::rethrow_exception(failure);
  check_memory(launch.name);
}

}  // namespace norma::emulator
