#include "imdb/memory_limit.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>

namespace imdb {
namespace {

constexpr rlim_t kKiB = 1024;

// The number behind a word ("MemAvailable:") in a file of such lines; 0 where there is none.
rlim_t number_after(const char* file, const std::string& word) {
  std::ifstream stream(file);
  for (std::string key; stream >> key;)
    if (rlim_t number = 0; key == word && stream >> number) return number;
  return 0;
}

rlim_t available_memory() {
  const rlim_t machine =
      number_after("/proc/meminfo", "MemAvailable:") + number_after("/proc/meminfo", "SwapFree:");
  rlim_t bytes = machine * kKiB;
  // A container's share; the files are absent, or say "max", where there is none.
  for (const char* file :
       {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"})
    if (rlim_t share = 0; std::ifstream(file) >> share) bytes = std::min(bytes, share);
  return bytes;
}

}  // namespace

void limit_memory() {
  const rlim_t used = number_after("/proc/self/status", "VmData:") * kKiB;
  const rlim_t available = available_memory();
  rlimit limit{};
  if (available == 0 || ::getrlimit(RLIMIT_DATA, &limit) != 0) return;
  limit.rlim_cur = std::min(limit.rlim_cur, used + available);
  ::setrlimit(RLIMIT_DATA, &limit);
}

}  // namespace imdb
