// Times the norms' CUDA kernels on a GPU as a share of a copy of the same size, with a cold L2
// cache, and checks each against the CPU before.
//
//   gpu_norms [--json FILE] [--filter REGEX] [--quick] [--check] [--list]
//
// A case is kernel/direction/dtype/rowsxwidth; --filter takes those in which REGEX is found.
// --quick is a sweep of few shapes; --check checks and times nothing (on the emulator nothing can
// be timed). JSON: {gpu, cases: [{name, value, unit, microseconds, copy_microseconds, bytes,
// gate_rows} or {name, skipped} or {name, error}]}; value is the share of the copy.
#include <norma/core/device_start.h>
#include <norma/core/factory.h>
#include <norma/core/random.h>
#include <norma/norma.h>
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <regex>
#include <span>

#include "kernels.h"
#include "timer.h"

namespace norma::benchmarks {
namespace {

struct Options {
  std::string json, filter;
  bool quick = false, check = false, list = false;
};

constexpr std::int64_t all_widths[] = {64,   96,   127,  128,  256,   768,   1000,  1024,
                                       1600, 4096, 4097, 8192, 12288, 16384, 65536, 131072};
constexpr std::int64_t all_rows[] = {1, 7, 64, 1024, 8192, 65536, 1048576};
constexpr std::int64_t quick_widths[] = {128, 1024, 4097, 16384};
constexpr std::int64_t quick_rows[] = {7, 8192};
constexpr DType all_dtypes[] = {float32, float16, bfloat16};

struct Shaped {
  std::int64_t rows, width;
  DType dtype;
};

TensorList random_inputs(const Kernel& kernel, const Shaped& shape, const Device& device,
                         DType dtype) {
  TensorList inputs;
  for (const Shape& size : kernel.inputs(shape.rows, shape.width))
    inputs.push_back(randn(size, {.dtype = dtype, .device = device}));
  return inputs;
}

/// Rows that the gate compares: a million elements, that it does not take longer than the timing.
std::int64_t gate_rows(const Shaped& shape) {
  return std::clamp<std::int64_t>((1 << 20) / shape.width, 1, shape.rows);
}

/// FNV-1a of the bits of all tensors.
std::string digest_of(const TensorList& tensors) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const Tensor& tensor : tensors) {
    const Tensor on_cpu = tensor.to(cpu);
    const auto* bytes = static_cast<const unsigned char*>(on_cpu.raw_data());
    const auto count = static_cast<std::size_t>(on_cpu.numel()) * on_cpu.element_size();
    for (std::size_t i = 0; i < count; ++i) hash = (hash ^ bytes[i]) * 0x100000001b3;
  }
  return fmt::format("{:016x}", hash);
}

/// Throws unless the kernel's results are those of the CPU in float64 from the same inputs. Returns
/// the digest of its results, which is the same in every run.
std::string check_kernel(const Kernel& kernel, Shaped shape) {
  shape.rows = gate_rows(shape);
  manual_seed(1);
  TensorList exact, on_gpu;
  for (const Tensor& input : random_inputs(kernel, shape, cpu, float32)) {
    const Tensor rounded = input.to(shape.dtype);
    exact.push_back(rounded.to(float64));
    on_gpu.push_back(rounded.to(cuda(0)));
  }
  const Launch launch = kernel.prepare(on_gpu);
  launch.run(nullptr);
  synchronize();
  const TensorList expected = kernel.reference(exact);
  const double epsilon = shape.dtype == float32   ? 0x1p-17
                         : shape.dtype == float16 ? 0x1p-9
                                                  : 0x1p-6;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const Tensor actual = launch.outputs[i].to(cpu).to(float64).view(expected[i].shape());
    // The size of a random sum where an output is one: it may be small by chance.
    const double terms = static_cast<double>(shape.rows * shape.width) /
                         static_cast<double>(std::max<std::int64_t>(1, expected[i].numel()));
    const double scale = std::max(amax(abs(expected[i])).item(), std::sqrt(terms));
    const double error = amax(abs(actual - expected[i].detach())).item();
    check<ValueError>(error <= epsilon * scale, kernel.name.c_str(),
                      "output {} must be that of the CPU; got an error of {} at a scale of {}", i,
                      error, scale);
  }
  return digest_of(launch.outputs);
}

double bytes_of(const Kernel& kernel, const Shaped& shape) {
  return kernel.passes * static_cast<double>(shape.rows * shape.width) *
         static_cast<double>(element_size(shape.dtype));
}

/// The figures of a case, or why there are none.
nlohmann::json time_kernel(const Kernel& kernel, const Shaped& shape, std::int64_t budget) {
  const double bytes = bytes_of(kernel, shape);
  // Tensors of its own for each call, half a gigabyte together, so that L2 holds none of them.
  const int calls = static_cast<int>(std::clamp(0x1p29 / bytes, 2.0, 64.0));
  // The workspace of some backwards, and the copies beside it, are less than the tensors again.
  if (2.5 * calls * bytes > static_cast<double>(budget))
    return {{"skipped",
             fmt::format("{} calls of {:.1f} GB do not fit the memory", calls, bytes * 1e-9)}};
  double seconds = 0.0;
  {
    std::vector<TensorList> inputs;
    std::vector<Launch> launches;
    for (int i = 0; i < calls; ++i) {
      inputs.push_back(random_inputs(kernel, shape, cuda(0), shape.dtype));
      launches.push_back(kernel.prepare(inputs.back()));
    }
    synchronize();
    seconds = seconds_of(calls, [&](int call, void* stream) { launches[call].run(stream); });
  }
  const double copy = copy_seconds(calls, static_cast<std::int64_t>(bytes));
  return {{"value", copy / seconds},
          {"unit", "share of a copy of as many bytes"},
          {"microseconds", seconds * 1e6},
          {"copy_microseconds", copy * 1e6},
          {"bytes", bytes}};
}

nlohmann::json run_case(const Kernel& kernel, const Shaped& shape, const Options& options,
                        const Gpu& device) {
  const std::string digest = check_kernel(kernel, shape);
  nlohmann::json result = nlohmann::json::object();
  if (!options.check) result = time_kernel(kernel, shape, device.free_bytes);
  result["gate_rows"] = gate_rows(shape);
  result["digest"] = digest;
  return result;
}

void print(const nlohmann::json& row) {
  const auto name = row["name"].get<std::string>();
  if (row.contains("error"))
    fmt::print("{:<44} wrong: {}\n", name, row["error"].get<std::string>());
  else if (row.contains("skipped"))
    fmt::print("{:<44} skipped: {}\n", name, row["skipped"].get<std::string>());
  else if (row.contains("value"))
    fmt::print("{:<44} {:>10.2f} us {:>6.1f}% of copy\n", name, row["microseconds"].get<double>(),
               100.0 * row["value"].get<double>());
  else
    fmt::print("{:<44} right\n", name);
  std::cout.flush();
}

int run(const Options& options) {
  Gpu device;
  if (!options.list) {
    if (!is_available(cuda(0))) {
      std::cerr << "gpu_norms: this machine has no GPU that CUDA can use, so nothing was measured; "
                   "run it where `nvidia-smi` lists one\n";
      return 2;
    }
    device = gpu();
    if (!device.measures && !options.check) {
      std::cerr
          << "gpu_norms: the emulator has no speed to measure; --check checks the kernels in it\n";
      return 2;
    }
  }
  const auto widths = options.quick ? std::span<const std::int64_t>(quick_widths) : all_widths;
  const auto row_counts = options.quick ? std::span<const std::int64_t>(quick_rows) : all_rows;
  const std::regex wanted(options.filter);
  nlohmann::json cases = nlohmann::json::array();
  bool all_right = true;
  for (const Kernel& kernel : norm_kernels())
    for (const DType dtype : all_dtypes)
      for (const std::int64_t width : widths)
        for (const std::int64_t rows : row_counts) {
          const std::string name =
              fmt::format("{}/{}/{}x{}", kernel.name, dtype_name(dtype), rows, width);
          if (!std::regex_search(name, wanted)) continue;
          nlohmann::json row = nlohmann::json::object();
          if (!options.list) {
            try {
              row = run_case(kernel, {rows, width, dtype}, options, device);
            } catch (const OutOfMemoryError& error) {
              row["skipped"] = error.what();
            } catch (const Error& error) {
              row["error"] = error.what();
              all_right = false;
            }
          }
          row["name"] = name;
          if (options.list)
            std::cout << name << '\n';
          else
            print(row);
          cases.push_back(std::move(row));
        }
  if (cases.empty()) {
    std::cerr << "gpu_norms: no case has such a name; --list lists them\n";
    return 2;
  }
  if (!options.json.empty()) {
    const nlohmann::json report{{"gpu",
                                 {{"name", device.name},
                                  {"cuda_driver", device.driver},
                                  {"cuda_runtime", device.runtime},
                                  {"memory_bytes", device.memory_bytes},
                                  {"l2_bytes", device.l2_bytes}}},
                                {"cases", cases}};
    std::ofstream file(options.json);
    file << report.dump(2) << '\n';
    if (!file) {
      std::cerr << "gpu_norms: cannot write " << options.json << '\n';
      return 2;
    }
  }
  return all_right ? 0 : 1;
}

}  // namespace
}  // namespace norma::benchmarks

int main(int argc, char** argv) {
  norma::benchmarks::Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--json" && i + 1 < argc) {
      options.json = argv[++i];
    } else if (argument == "--filter" && i + 1 < argc) {
      options.filter = argv[++i];
    } else if (argument == "--quick") {
      options.quick = true;
    } else if (argument == "--check") {
      options.check = true;
    } else if (argument == "--list") {
      options.list = true;
    } else {
      std::cerr << "usage: gpu_norms [--json FILE] [--filter REGEX] [--quick] [--check] [--list]\n";
      return 2;
    }
  }
  try {
    return norma::benchmarks::run(options);
  } catch (const std::exception& error) {
    std::cerr << "gpu_norms: " << error.what() << '\n';
    return 2;
  }
}
