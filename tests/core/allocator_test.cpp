#include "norma/core/allocator.h"

#include "norma/core/cpu_allocator.h"
#include "norma/core/device_start.h"
#include "norma/core/factory.h"
#include "norma/core/random.h"
#include "support/catch.h"

#include <cstring>
#include <limits>
#include <random>
#include <thread>
#include <vector>

namespace norma {
namespace {

constexpr std::size_t mebibyte = std::size_t{1} << 20;

TEST_CASE("allocate gives aligned, writable, disjoint blocks of every size", "[allocator]") {
  const bool cached = GENERATE(true, false);
  CpuAllocator allocator(cached);
  std::vector<std::pair<unsigned char*, std::size_t>> blocks;
  for (std::size_t bytes = 1; bytes < 24 * mebibyte; bytes = bytes * 5 / 4 + 1) {
    auto* block = static_cast<unsigned char*>(allocator.allocate(bytes));
    REQUIRE(reinterpret_cast<std::uintptr_t>(block) % 64 == 0);
    if (cached && bytes >= 2 * mebibyte)
      REQUIRE(reinterpret_cast<std::uintptr_t>(block) % (2 * mebibyte) == 0);
    std::memset(block, static_cast<int>(blocks.size() % 251), bytes);
    blocks.emplace_back(block, bytes);
  }
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const auto [block, bytes] = blocks[i];
    REQUIRE(block[0] == i % 251);
    REQUIRE(block[bytes - 1] == i % 251);
    allocator.deallocate(block, bytes);
  }
  CHECK(allocator.stats().current == 0);
}

TEST_CASE("nothing is allocated for nothing", "[allocator]") {
  CpuAllocator allocator(true);
  CHECK(allocator.allocate(0) == nullptr);
  allocator.deallocate(nullptr, 0);
  CHECK(allocator.stats().allocations == 0);
}

TEST_CASE("a freed block serves the next request of its class", "[allocator]") {
  CpuAllocator allocator(true);
  const std::size_t bytes = GENERATE(as<std::size_t>{}, 1, 64, 1000, 100000, 5 * mebibyte);
  void* first = allocator.allocate(bytes);
  allocator.deallocate(first, bytes);
  CHECK(allocator.allocate(bytes) == first);
  const MemoryStats stats = allocator.stats();
  CHECK(stats.allocations == 2);
  CHECK(stats.cache_hits == 1);
  allocator.deallocate(first, bytes);
}

TEST_CASE("the statistics say what is in use, what was, and what is kept", "[allocator]") {
  CpuAllocator allocator(true);
  void* a = allocator.allocate(1000);  // class of 1024 bytes
  void* b = allocator.allocate(4 * mebibyte);
  const std::int64_t both = 1024 + static_cast<std::int64_t>(4 * mebibyte);
  CHECK(allocator.stats().current == both);
  allocator.deallocate(b, 4 * mebibyte);
  CHECK(allocator.stats().current == 1024);
  CHECK(allocator.stats().peak == both);
  CHECK(allocator.stats().reserved == both);
  allocator.reset_peak();
  CHECK(allocator.stats().peak == 1024);
  allocator.empty_cache();
  CHECK(allocator.stats().reserved == 1024);
  allocator.deallocate(a, 1000);
  allocator.empty_cache();
  CHECK(allocator.stats().reserved == 0);
}

TEST_CASE("a large block serves smaller requests, and comes back whole", "[allocator]") {
  CpuAllocator allocator(true);
  void* block = allocator.allocate(10 * mebibyte);
  allocator.deallocate(block, 10 * mebibyte);
  CHECK(allocator.allocate(7 * mebibyte) == block);
  CHECK(allocator.stats().current == static_cast<std::int64_t>(10 * mebibyte));
  allocator.deallocate(block, 7 * mebibyte);
  CHECK(allocator.stats().current == 0);
  void* small = allocator.allocate(3 * mebibyte);  // less than half: a block of its own
  CHECK(small != block);
  allocator.deallocate(small, 3 * mebibyte);
  CHECK(allocator.allocate(10 * mebibyte) == block);
  allocator.deallocate(block, 10 * mebibyte);
}

TEST_CASE("requests of changing size do not make the cache grow without end", "[allocator]") {
  CpuAllocator allocator(true);
  std::mt19937 random(1);
  for (int step = 0; step < 2000; ++step) {
    const std::size_t bytes = 4 * mebibyte + random() % (4 * mebibyte);
    allocator.deallocate(allocator.allocate(bytes), bytes);
  }
  CHECK(allocator.stats().reserved <= static_cast<std::int64_t>(32 * mebibyte));
}

TEST_CASE("without the cache every block goes back at once", "[allocator]") {
  CpuAllocator allocator(false);
  for (const std::size_t bytes : {std::size_t{100}, 3 * mebibyte}) {
    void* block = allocator.allocate(bytes);
    CHECK(allocator.stats().reserved > 0);
    allocator.deallocate(block, bytes);
    CHECK(allocator.stats().reserved == 0);
  }
  CHECK(allocator.stats().cache_hits == 0);
}

TEST_CASE("impossible requests throw OutOfMemoryError and leave the allocator as it was",
          "[allocator]") {
  CpuAllocator allocator(true);
  void* held = allocator.allocate(3 * mebibyte);
  const std::size_t bytes =
      GENERATE(as<std::size_t>{}, std::numeric_limits<std::size_t>::max(),
               std::numeric_limits<std::size_t>::max() / 2, std::size_t{1} << 50);
  REQUIRE_THROWS_AS(allocator.allocate(bytes), OutOfMemoryError);
  REQUIRE_THROWS_WITH(allocator.allocate(bytes), Catch::Contains("[allocate]") &&
                                                     Catch::Contains("3.00 MiB in use") &&
                                                     Catch::Contains("smaller batches"));
  CHECK(allocator.stats().current == static_cast<std::int64_t>(3 * mebibyte));
  allocator.deallocate(held, 3 * mebibyte);
}

TEST_CASE("threads share one allocator", "[allocator]") {
  CpuAllocator allocator(true);
  std::vector<std::thread> threads;
  std::atomic<int> damaged{0};
  for (unsigned char id = 1; id <= 4; ++id) {
    threads.emplace_back([&allocator, &damaged, id] {
      std::mt19937 random(id);
      for (int i = 0; i < 3000; ++i) {
        const std::size_t bytes = 1 + random() % 5000;
        auto* block = static_cast<unsigned char*>(allocator.allocate(bytes));
        std::memset(block, id, bytes);
        for (std::size_t k = 0; k < bytes; ++k)
          if (block[k] != id) ++damaged;
        allocator.deallocate(block, bytes);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(damaged == 0);
  CHECK(allocator.stats().current == 0);
  CHECK(allocator.stats().allocations == 12000);
}

TEST_CASE("the process has one allocator for the cpu and none for a missing device",
          "[allocator]") {
  CHECK(&allocator(cpu) == &allocator(cpu));
  const MemoryStats before = memory_stats();
  void* block = allocator(cpu).allocate(5000);
  CHECK(memory_stats().current == before.current + 5120);
  allocator(cpu).deallocate(block, 5000);
  CHECK(memory_stats().current == before.current);
  for (const Device& missing : {cuda(0), cuda(99)}) {
    if (is_available(missing)) continue;
    CHECK_THROWS_AS(allocator(missing), DeviceError);
    CHECK_THROWS_WITH(zeros({2}, {.device = missing}), Catch::Contains("NORMA_CUDA"));
    CHECK_THROWS_AS(ones({2}).to(missing), DeviceError);
  }
  CHECK_THROWS_AS(default_generator(cuda(-1)), DeviceError);
}

}  // namespace
}  // namespace norma
