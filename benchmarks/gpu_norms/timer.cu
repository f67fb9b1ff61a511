#include "timer.h"

#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <stdexcept>
#include <utility>
#include <vector>

namespace norma::benchmarks {
namespace {

void succeed(cudaError_t error, const char* what) {
  if (error != cudaSuccess)
    throw std::runtime_error(std::string("[gpu_norms] ") + what +
                             " must succeed; got: " + cudaGetErrorString(error));
}

class DeviceBytes {
 public:
  explicit DeviceBytes(std::int64_t bytes) {
    succeed(cudaMalloc(&data_, static_cast<std::size_t>(bytes)), "memory for the copies");
  }
  ~DeviceBytes() { cudaFree(data_); }
  DeviceBytes(const DeviceBytes&) = delete;
  DeviceBytes& operator=(const DeviceBytes&) = delete;
  char* get() const { return static_cast<char*>(data_); }

 private:
  void* data_ = nullptr;
};

/// Made once; the driver takes it back at the end of the program.
struct Session {
  cudaStream_t stream = nullptr;
  cudaEvent_t start = nullptr, stop = nullptr;
  void* flush = nullptr;
  std::size_t flush_bytes = 0;
  Session() {
    succeed(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "a stream");
    succeed(cudaEventCreate(&start), "an event");
    succeed(cudaEventCreate(&stop), "an event");
    flush_bytes = static_cast<std::size_t>(2 * std::max<std::int64_t>(gpu().l2_bytes, 32 << 20));
    succeed(cudaMalloc(&flush, flush_bytes), "memory to flush L2 with");
  }
};
Session& session() {
  static Session made;
  return made;
}

std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

__global__ void copy_kernel(const uint4* from, uint4* to, std::int64_t count) {
  const std::int64_t step = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step)
    to[i] = from[i];
}

double milliseconds_of_replay(cudaGraphExec_t graph) {
  Session& s = session();
  // While this runs the host enqueues the rest, so that nothing waits for the host.
  succeed(cudaMemsetAsync(s.flush, 0, s.flush_bytes, s.stream), "the flush of L2");
  succeed(cudaEventRecord(s.start, s.stream), "an event");
  succeed(cudaGraphLaunch(graph, s.stream), "the replay");
  succeed(cudaEventRecord(s.stop, s.stream), "an event");
  succeed(cudaEventSynchronize(s.stop), "the kernels");
  float milliseconds = 0.0F;
  succeed(cudaEventElapsedTime(&milliseconds, s.start, s.stop), "an event");
  return milliseconds;
}

}  // namespace

Gpu gpu() {
  int device = 0, driver = 0, runtime = 0;
  cudaDeviceProp properties{};
  std::size_t free = 0, total = 0;
  succeed(cudaGetDevice(&device), "cudaGetDevice");
  succeed(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
  succeed(cudaDriverGetVersion(&driver), "cudaDriverGetVersion");
  succeed(cudaRuntimeGetVersion(&runtime), "cudaRuntimeGetVersion");
  succeed(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  return {.name = properties.name,
          .driver = version_text(driver),
          .runtime = version_text(runtime),
          .memory_bytes = static_cast<std::int64_t>(total),
          .free_bytes = static_cast<std::int64_t>(free),
          .l2_bytes = properties.l2CacheSize,
          .measures = true};
}

double seconds_of(int calls, const std::function<void(int, void*)>& launch) {
  Session& s = session();
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t replay = nullptr;
  succeed(cudaStreamBeginCapture(s.stream, cudaStreamCaptureModeThreadLocal), "the capture");
  for (int i = 0; i < calls; ++i) launch(i, s.stream);
  succeed(cudaStreamEndCapture(s.stream, &graph), "the capture");
  succeed(cudaGraphInstantiate(&replay, graph, 0), "the graph");

  // Until the clock of the GPU is up: 20 ms, and two replays at least.
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < 2 || std::chrono::steady_clock::now() - begin < std::chrono::milliseconds(20);
       ++i)
    milliseconds_of_replay(replay);
  std::vector<double> samples(9);
  for (double& sample : samples) sample = milliseconds_of_replay(replay);
  std::nth_element(samples.begin(), samples.begin() + samples.size() / 2, samples.end());

  cudaGraphExecDestroy(replay);
  cudaGraphDestroy(graph);
  return samples[samples.size() / 2] * 1e-3 / calls;
}

double copy_seconds(int calls, std::int64_t bytes) {
  static std::map<std::pair<int, std::int64_t>, double> known;
  const auto [at, is_new] = known.try_emplace({calls, bytes});
  if (!is_new) return at->second;
  // As whole accesses of 16 bytes.
  const std::int64_t half = std::max<std::int64_t>(16, bytes / 2 / 16 * 16);
  const DeviceBytes from(half * calls), to(half * calls);
  const auto by_driver = [&](int call, void* stream) {
    succeed(cudaMemcpyAsync(to.get() + call * half, from.get() + call * half,
                            static_cast<std::size_t>(half), cudaMemcpyDeviceToDevice,
                            static_cast<cudaStream_t>(stream)),
            "a copy");
  };
  const auto by_kernel = [&](int call, void* stream) {
    constexpr int threads = 256;
    const std::int64_t count = half / 16;
    // Four accesses a thread where there are enough.
    const auto blocks = static_cast<unsigned>(
        std::min<std::int64_t>((count + 4 * threads - 1) / (4 * threads), 1 << 20));
    copy_kernel<<<blocks, threads, 0, static_cast<cudaStream_t>(stream)>>>(
        reinterpret_cast<const uint4*>(from.get() + call * half),
        reinterpret_cast<uint4*>(to.get() + call * half), count);
    succeed(cudaGetLastError(), "the copy kernel");
  };
  at->second = std::min(seconds_of(calls, by_driver), seconds_of(calls, by_kernel));
  return at->second;
}

void synchronize() { succeed(cudaDeviceSynchronize(), "the kernels"); }

}  // namespace norma::benchmarks
