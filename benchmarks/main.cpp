// Runs the cases under Google Benchmark and holds each against this machine's ceiling.
//
//   norma_benchmark [--json FILE] [--export FOLDER] [--ungated] [--benchmark_filter=REGEX ...]
//
// JSON: a list of {name, value, unit, goal, holds} and more; value is the fraction of the ceiling.
// Training steps --ungated are not checked first, which takes memory: then peak_mib is their own.
#include <benchmark/benchmark.h>
#include <norma/core/allocator.h>
#include <norma/ops/threads.h>
#include <spdlog/fmt/fmt.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "case.h"
#include "ceiling.h"

namespace norma::benchmarks {
namespace {

rusage usage() {
  rusage result{};
  getrusage(RUSAGE_SELF, &result);
  return result;
}

void time_case(benchmark::State& state, const Case& item, bool gated) {
  // Google Benchmark calls this more than once; the gate holds for all of them.
  static std::set<std::string> passed;
  static long resident_before = 0;  // KiB
  try {
    if (passed.insert(item.name).second) {
      resident_before = usage().ru_maxrss;
      if (gated || !item.prepare) item.gate();
      if (item.prepare) item.prepare();
    }
    // Warms up: first touch of memory, code generation of oneDNN.
    for (int i = 0; i < 2; ++i) item.run();
  } catch (const std::exception& error) {
    passed.erase(item.name);
    state.SkipWithError(error.what());
    return;
  }
  const bool by_memory = item.bytes > 0.0;
  const auto ceiling = [&] {
    return by_memory ? copy_bandwidth(static_cast<std::int64_t>(item.working_set))
                     : multiply_add_peak();
  };
  const double before = ceiling();
  std::vector<double> seconds;
  seconds.reserve(static_cast<std::size_t>(state.max_iterations));
  reset_peak_memory_stats();
  const long faults = usage().ru_minflt;
  for (auto _ : state) {
    const auto start = std::chrono::steady_clock::now();
    item.run();
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
    seconds.push_back(spent.count());
    state.SetIterationTime(spent.count());
  }
  const rusage after = usage();
  const auto runs = static_cast<double>(seconds.size());
  // A busy neighbour moves a mean; the median of PyTorch's runs is taken, too.
  std::nth_element(seconds.begin(), seconds.begin() + std::ssize(seconds) / 2, seconds.end());
  state.counters["seconds"] = seconds[seconds.size() / 2];
  state.counters["faults"] = static_cast<double>(after.ru_minflt - faults) / runs;
  state.counters["peak_mib"] = static_cast<double>(after.ru_maxrss - resident_before) / 1024.0;
  state.counters["tensors_mib"] = static_cast<double>(memory_stats().peak) / 1048576.0;
  state.counters["ceiling"] = std::max(before, ceiling());
  state.counters["work"] = by_memory ? item.bytes : item.flops;
}

/// Why a run was skipped; empty: it was not. Google Benchmark 1.8 renamed the members.
template <class Run>
std::string error_of(const Run& run) {
  if constexpr (requires { run.error_occurred; })
    return run.error_occurred ? run.error_message : "";
  else
    return run.skipped ? run.skip_message : "";
}

/// Prints what Google Benchmark prints and collects the fractions.
class Reporter : public benchmark::ConsoleReporter {
 public:
  explicit Reporter(std::map<std::string, double> goals)
      : ConsoleReporter(OO_None), goals_(std::move(goals)) {}

  void ReportRuns(const std::vector<Run>& runs) override {
    ConsoleReporter::ReportRuns(runs);
    for (const Run& run : runs) {
      const std::string name = run.run_name.function_name;
      const double goal = goals_.at(name);
      nlohmann::json row{{"name", name}, {"unit", "fraction of the ceiling"}, {"goal", goal}};
      if (const std::string error = error_of(run); !error.empty()) {
        row["value"] = nullptr;
        row["error"] = error;
        row["holds"] = false;
      } else {
        const double seconds = run.counters.at("seconds").value;
        const double fraction =
            run.counters.at("work").value / seconds / run.counters.at("ceiling").value;
        row["value"] = fraction;
        row["milliseconds"] = seconds * 1e3;
        row["holds"] = fraction >= goal;
        for (const char* counter : {"faults", "peak_mib", "tensors_mib"})
          row[counter] = run.counters.at(counter).value;
      }
      rows_.push_back(row);
    }
  }

  const nlohmann::json& rows() const { return rows_; }

 private:
  std::map<std::string, double> goals_;
  nlohmann::json rows_ = nlohmann::json::array();
};

void print_table(const nlohmann::json& rows) {
  fmt::print("\n{:<40} {:>10} {:>10} {:>8}\n", "", "ms", "of ceiling", "goal");
  for (const auto& row : rows) {
    if (row["value"].is_null()) {
      fmt::print("{:<40} {}\n", row["name"].get<std::string>(), row["error"].get<std::string>());
      continue;
    }
    fmt::print("{:<40} {:>10.4f} {:>9.0f}% {:>7.0f}%{}\n", row["name"].get<std::string>(),
               row["milliseconds"].get<double>(), 100.0 * row["value"].get<double>(),
               100.0 * row["goal"].get<double>(), row["holds"].get<bool>() ? "" : "  missed");
  }
}

}  // namespace
}  // namespace norma::benchmarks

int main(int argc, char** argv) {
  using namespace norma::benchmarks;
  norma::limit_thread_spinning(argv);
  std::string json_file;
  std::string export_folder;
  bool gated = true;
  std::vector<char*> rest{argv[0]};
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--json" && i + 1 < argc)
      json_file = argv[++i];
    else if (argument == "--export" && i + 1 < argc)
      export_folder = argv[++i];
    else if (argument == "--ungated")
      gated = false;
    else
      rest.push_back(argv[i]);
  }
  int count = static_cast<int>(rest.size());
  benchmark::Initialize(&count, rest.data());
  if (benchmark::ReportUnrecognizedArguments(count, rest.data())) return 2;
  if (!export_folder.empty()) {
    export_training(export_folder);
    return 0;
  }

  std::vector<Case> cases = operation_cases();
  for (Case& item : training_cases()) cases.push_back(std::move(item));
  std::map<std::string, double> goals;
  for (const Case& item : cases) {
    goals[item.name] = item.goal;
    benchmark::RegisterBenchmark(
        item.name.c_str(),
        [&item, gated](benchmark::State& state) { time_case(state, item, gated); })
        ->UseManualTime()
        ->Unit(benchmark::kMillisecond);
  }
  Reporter reporter(std::move(goals));
  benchmark::RunSpecifiedBenchmarks(&reporter);
  if (reporter.rows().empty()) {
    std::cerr << "norma_benchmark: no case has such a name; --benchmark_list_tests lists them\n";
    return 2;
  }
  print_table(reporter.rows());
  if (!json_file.empty()) {
    std::ofstream file(json_file);
    file << reporter.rows().dump(2) << '\n';
    if (!file) {
      std::cerr << "norma_benchmark: cannot write " << json_file << '\n';
      return 2;
    }
  }
  // A missed goal is a number to read; a wrong result is a failure.
  return std::ranges::any_of(reporter.rows(),
                             [](const auto& row) { return row["value"].is_null(); });
}
