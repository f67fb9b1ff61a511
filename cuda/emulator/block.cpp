#include "norma/cuda/emulator/block.h"

#include "norma/cuda/emulator/device.h"

#include <algorithm>
#include <numeric>
#include <utility>

// What kernels see of themselves (device.h).
constinit thread_local norma::emulator::Index3 threadIdx{0, 0, 0};
constinit thread_local norma::emulator::Index3 blockIdx{0, 0, 0};
constinit thread_local norma::emulator::Index3 blockDim{1, 1, 1};
constinit thread_local norma::emulator::Index3 gridDim{1, 1, 1};

namespace norma::emulator {

namespace {

thread_local BlockExecutor* active = nullptr;
const char dynamic_key = 0;

constexpr std::size_t max_static_shared = std::size_t{48} << 10;

std::string format_index(const Index3& index) {
  return fmt::format("({}, {}, {})", index.x, index.y, index.z);
}
std::string format_site(const Site& site) {
  std::string_view file = site.file;
  if (const auto slash = file.rfind('/'); slash != std::string_view::npos)
    file.remove_prefix(slash + 1);
  return fmt::format("{}:{}", file, site.line);
}

}  // namespace

void BlockExecutor::begin(const Launch& launch, const Schedule& schedule) {
  launch_ = &launch;
  schedule_ = schedule;
  count_ = static_cast<int>(launch.block.count());
  warps_ = (count_ + warp_size - 1) / warp_size;
  while (static_cast<int>(threads_.size()) < count_)
    threads_.push_back({.state = State::runnable,
                        .index = {},
                        .barrier = {},
                        .call = {},
                        .fiber = std::make_unique<Fiber>()});
  for (int i = 0; i < count_; ++i)
    threads_[static_cast<std::size_t>(i)].index =
        index_in(launch.block, static_cast<std::uint64_t>(i));
  shared_.clear();
  if (launch.shared_bytes > 0)
    shared_.push_back({&dynamic_key, "dynamic shared memory", GuardedBlock(launch.shared_bytes)});
  blockDim = launch.block;
  gridDim = launch.grid;
}

void BlockExecutor::run(std::uint64_t block) {
  active = this;
  block_ = index_in(launch_->grid, block);
  blockIdx = block_;
  random_state_ = schedule_.seed * 0x9e3779b97f4a7c15ull + block;
  finished_ = 0;
  failure_ = nullptr;
  prepare_shared();
  for (int i = 0; i < count_; ++i) {
    Thread& thread = threads_[static_cast<std::size_t>(i)];
    thread.state = State::runnable;
    thread.fiber->start(thread_main, this);
  }
  while (finished_ < count_) {
    draw_order();
    run_phase();
    if (failure_) std::rethrow_exception(failure_);
    if (finished_ < count_) release_barrier();
  }
  check_guards();
}

/// Shared memory is new for every block: a value left by another block is a value nobody wrote.
void BlockExecutor::prepare_shared() {
  for (const SharedArray& array : shared_) array.memory.poison();
}

void BlockExecutor::thread_main(void* executor) {
  auto& self = *static_cast<BlockExecutor*>(executor);
  try {
    self.launch_->run_thread(self.launch_->kernel_and_arguments);
  } catch (...) {  // must not leave the fiber: run() throws it again
    if (!self.failure_) self.failure_ = std::current_exception();
  }
  self.threads_[static_cast<std::size_t>(self.running_)].state = State::finished;
  ++self.finished_;
}

// -- order ----------------------------------------------------------------------------------------

std::uint64_t BlockExecutor::random() {  // SplitMix64
  std::uint64_t z = (random_state_ += 0x9e3779b97f4a7c15ull);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

void BlockExecutor::draw_order() {
  warp_order_.resize(static_cast<std::size_t>(warps_));
  std::iota(warp_order_.begin(), warp_order_.end(), 0);
  std::iota(lane_order_.begin(), lane_order_.end(), 0);
  greedy_ = schedule_.order == Order::greedy;
  if (schedule_.order == Order::reverse) {
    std::reverse(warp_order_.begin(), warp_order_.end());
    std::reverse(lane_order_.begin(), lane_order_.end());
  } else if (schedule_.order == Order::random) {
    const auto shuffle = [this](auto& order) {
      for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random() % i]);
    };
    shuffle(warp_order_);
    shuffle(lane_order_);
    greedy_ = random() % 2 == 0;
  }
}

/// Runs until every thread has finished or waits at a block barrier.
void BlockExecutor::run_phase() {
  bool progress = true;
  while (progress && !failure_) {
    progress = false;
    for (const int warp : warp_order_) {
      while (run_warp_once(warp)) {
        progress = true;
        if (!greedy_) break;
      }
      if (failure_) return;
    }
  }
}

bool BlockExecutor::run_warp_once(int warp) {
  bool progress = false;
  for (const int lane : lane_order_) {
    const int thread = warp * warp_size + lane;
    if (thread >= count_ || threads_[static_cast<std::size_t>(thread)].state != State::runnable)
      continue;
    resume(thread);
    progress = true;
    if (failure_) return false;
  }
  return progress;
}

void BlockExecutor::resume(int thread) {
  running_ = thread;
  Thread& next = threads_[static_cast<std::size_t>(thread)];
  threadIdx = next.index;
  next.fiber->resume();
}

void BlockExecutor::wait(State state) {
  Thread& self = threads_[static_cast<std::size_t>(running_)];
  self.state = state;
  self.fiber->suspend();
}

// -- waiting --------------------------------------------------------------------------------------

BlockExecutor& BlockExecutor::current() { return *active; }

void BlockExecutor::barrier(const Site& site) {
  threads_[static_cast<std::size_t>(running_)].barrier = site;
  wait(State::at_barrier);
}

/// All threads wait, or the block hangs: on a GPU forever, here with an error.
void BlockExecutor::release_barrier() {
  const Site& site = threads_.front().barrier;
  for (int i = 0; i < count_; ++i) {
    const Thread& thread = threads_[static_cast<std::size_t>(i)];
    if (thread.state != State::at_barrier || !(thread.barrier == site)) report_deadlock();
  }
  for (int i = 0; i < count_; ++i) threads_[static_cast<std::size_t>(i)].state = State::runnable;
}

std::uint64_t BlockExecutor::warp_call(const WarpCall& call) {
  Thread& self = threads_[static_cast<std::size_t>(running_)];
  const int warp = running_ / warp_size;
  const int lanes = std::min(warp_size, count_ - warp * warp_size);
  if ((call.mask >> lane() & 1u) == 0)
    fail(
        "the mask of a warp-wide call must name the calling lane",
        fmt::format("mask {:#010x} from lane {} at {}", call.mask, lane(), format_site(call.site)));
  if (lanes < warp_size && (call.mask >> lanes) != 0)
    fail("the mask of a warp-wide call must name lanes that exist",
         fmt::format("mask {:#010x} in a warp of {} threads at {}", call.mask, lanes,
                     format_site(call.site)),
         "launch whole warps");
  self.call = call;
  self.state = State::in_warp_call;
  if (!complete_warp_call(warp)) self.fiber->suspend();
  return self.call.result;
}

/// If the running thread was the last of its mask, gives all of them their results.
bool BlockExecutor::complete_warp_call(int warp) {
  const std::size_t first = static_cast<std::size_t>(warp) * warp_size;
  const WarpCall& call = threads_[static_cast<std::size_t>(running_)].call;
  std::uint64_t votes = 0;
  for (std::size_t lane = 0; lane < warp_size; ++lane) {
    if ((call.mask >> lane & 1u) == 0) continue;
    const Thread& other = threads_[first + lane];
    if (other.state != State::in_warp_call || other.call.mask != call.mask ||
        other.call.kind != call.kind || !(other.call.site == call.site))
      return false;
    if (other.call.value != 0) votes |= std::uint64_t{1} << lane;
  }
  for (std::size_t lane = 0; lane < warp_size; ++lane) {
    if ((call.mask >> lane & 1u) == 0) continue;
    Thread& thread = threads_[first + lane];
    if (call.kind == WarpCall::Kind::vote) {
      thread.call.result = votes;
    } else if (call.kind == WarpCall::Kind::shuffle) {
      const int source = thread.call.source_lane;
      if ((call.mask >> source & 1u) == 0)
        fail("a shuffle must read from a lane that its mask names",
             fmt::format("lane {} reading from lane {} with mask {:#010x} at {}", lane, source,
                         call.mask, format_site(call.site)));
      thread.call.result = threads_[first + static_cast<std::size_t>(source)].call.value;
    }
    thread.state = State::runnable;
  }
  return true;
}

// -- shared memory --------------------------------------------------------------------------------

void* BlockExecutor::shared_array(const void* key, const char* name, std::size_t bytes) {
  std::size_t total = bytes;
  std::size_t static_total = bytes;
  for (const SharedArray& array : shared_) {
    if (array.key == key) return array.memory.data();
    total += array.memory.bytes();
    if (array.key != &dynamic_key) static_total += array.memory.bytes();
  }
  if (static_total > max_static_shared || total > max_shared_bytes)
    fail(fmt::format("a block has {} bytes of shared memory in arrays of fixed size and {} in all",
                     max_static_shared, max_shared_bytes),
         fmt::format("{} and {} with \"{}\"", static_total, total, name));
  shared_.push_back({key, name, GuardedBlock(bytes)});
  return shared_.back().memory.data();
}

void* BlockExecutor::dynamic_shared() const {
  if (shared_.empty() || shared_.front().key != &dynamic_key)
    fail("dynamic shared memory needs a size in the launch", "shared_bytes = 0");
  return shared_.front().memory.data();
}

void BlockExecutor::check_guards() const {
  for (const SharedArray& array : shared_) {
    const char* const damage = array.memory.damage();
    if (damage == nullptr) continue;
    array.memory.repair();
    fail_in_block(
        "must stay inside of its arrays",
        fmt::format("a write {} of \"{}\" ({} bytes)", damage, array.name, array.memory.bytes()),
        "AddressSanitizer names the line (preset asan)");
  }
}

// -- errors ---------------------------------------------------------------------------------------

Index3 BlockExecutor::index_in(const Index3& size, std::uint64_t number) const {
  return {static_cast<unsigned>(number % size.x), static_cast<unsigned>(number / size.x % size.y),
          static_cast<unsigned>(number / size.x / size.y)};
}

std::string BlockExecutor::describe(int thread) const {
  return "thread " + format_index(threads_[static_cast<std::size_t>(thread)].index);
}

std::string BlockExecutor::describe_wait(int thread) const {
  const Thread& t = threads_[static_cast<std::size_t>(thread)];
  switch (t.state) {
    case State::at_barrier:
      return fmt::format("{} at the barrier {}", describe(thread), format_site(t.barrier));
    case State::in_warp_call:
      return fmt::format("{} in the warp-wide call {} with mask {:#010x}", describe(thread),
                         format_site(t.call.site), t.call.mask);
    case State::finished:
      return fmt::format("{} at its end", describe(thread));
    case State::runnable:
      break;
  }
  return describe(thread);
}

void BlockExecutor::report_deadlock() const {
  // A thread in a warp-wide call is the more telling one: barriers behind it wait for it.
  for (int i = 0; i < count_; ++i) {
    const Thread& waiting = threads_[static_cast<std::size_t>(i)];
    if (waiting.state != State::in_warp_call) continue;
    const int first = i / warp_size * warp_size;
    for (int lane = 0; lane < warp_size; ++lane) {
      if ((waiting.call.mask >> lane & 1u) == 0) continue;
      const Thread& other = threads_[static_cast<std::size_t>(first + lane)];
      if (other.state != State::in_warp_call || other.call.mask != waiting.call.mask ||
          !(other.call.site == waiting.call.site))
        fail_in_block("all lanes of a mask must make the same warp-wide call",
                      describe_wait(i) + " and " + describe_wait(first + lane),
                      "give the mask of the lanes that take this branch, or leave the branch");
    }
  }
  const auto differs = [this](int i) {
    const Thread& thread = threads_[static_cast<std::size_t>(i)];
    const auto first = std::find_if(threads_.begin(), threads_.begin() + count_,
                                    [](const Thread& t) { return t.state == State::at_barrier; });
    return thread.state != State::at_barrier || !(thread.barrier == first->barrier);
  };
  int waiting = 0;
  while (threads_[static_cast<std::size_t>(waiting)].state != State::at_barrier) ++waiting;
  int other = 0;
  while (!differs(other)) ++other;
  fail_in_block("every thread of a block must reach the same barrier",
                describe_wait(waiting) + " and " + describe_wait(other),
                "move the barrier out of the branch, and let no thread return before it");
}

void BlockExecutor::fail_in_block(const std::string& must, const std::string& got,
                                  const std::string& remedy) const {
  throw KernelError(launch_->name,
                    fmt::format("{}; got {} in block {}{}{}", must, got, format_index(block_),
                                remedy.empty() ? "" : "; ", remedy));
}

void BlockExecutor::fail(const std::string& must, const std::string& got,
                         const std::string& remedy) const {
  fail_in_block(must, got + " from " + describe(running_), remedy);
}

}  // namespace norma::emulator
