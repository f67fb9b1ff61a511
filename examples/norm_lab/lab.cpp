#include "norm_lab/lab.h"

#include "norm_lab/report.h"
#include "norma/core/atomic_file.h"
#include "norma/core/random.h"
#include "norma/ops/threads.h"

#include <spdlog/fmt/fmt.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <ctime>
#include <fstream>

namespace norm_lab {

namespace {

std::string processor() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  return "unknown processor";
}

std::string today() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[16];
  std::strftime(text, sizeof text, "%Y-%m-%d", &parts);
  return text;
}

Facts facts(const Settings& settings) {
  return {{"date", today()},
          {"machine", fmt::format("{}, threads: {}", processor(), norma::get_num_threads())},
          {"device", settings.device.str()},
          {"seed", std::to_string(settings.seed)}};
}

/// "3/18 variance": on a terminal one line that is overwritten, elsewhere one line each.
void show_progress(std::size_t number, std::size_t count, const char* name) {
  const bool terminal = isatty(STDERR_FILENO) != 0;
  std::fprintf(stderr, terminal ? "\r\033[K%zu/%zu %s …" : "%zu/%zu %s\n", number, count, name);
}
void clear_progress() {
  if (isatty(STDERR_FILENO) != 0) std::fputs("\r\033[K", stderr);
}

void write(const std::filesystem::path& path, const std::string& text) {
  if (path.has_parent_path()) {
    std::error_code error;
    std::filesystem::create_directories(path.parent_path(), error);
    norma::check<norma::FileError>(!error, "norm_lab", "the folder of {} must be writable; got {}",
                                   path.string(), error.message());
  }
  norma::AtomicFile file(path);
  file.write(text);
  file.commit();
}

}  // namespace

void run_lab(const std::vector<Experiment>& chosen, const LabOptions& options) {
  using Clock = std::chrono::steady_clock;
  std::vector<Finished> finished;
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    if (options.print) show_progress(i + 1, chosen.size(), chosen[i].name);
    norma::manual_seed(options.settings.seed);
    const auto start = Clock::now();
    Finished one{chosen[i], chosen[i].run(options.settings)};
    one.seconds = std::chrono::duration<double>(Clock::now() - start).count();
    finished.push_back(std::move(one));
    write(options.out, render_report(finished, options.settings, facts(options.settings)));
    if (!options.print) continue;
    clear_progress();
    std::fputs(render_text(finished.back()).c_str(), stdout);
    std::fflush(stdout);
  }
  if (options.print) fmt::print("report: {}\n", options.out.string());
}

}  // namespace norm_lab
