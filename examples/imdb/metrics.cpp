#include "imdb/metrics.h"

#include <sched.h>
#include <sys/resource.h>

#include <norma/norma.h>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "imdb/git_revision.h"

namespace imdb {
namespace {

// JSON has no NaN; a value that could not be measured is null.
nlohmann::ordered_json number(double value) {
  return std::isfinite(value) ? nlohmann::ordered_json(value) : nlohmann::ordered_json(nullptr);
}

}  // namespace

std::string to_json(const Metrics& m) {
  auto epochs = nlohmann::ordered_json::array();
  for (const auto& e : m.epochs)
    epochs.push_back({{"epoch", e.epoch},
                      {"step", e.step},
                      {"train_loss", number(e.train_loss)},
                      {"train_accuracy", number(e.train_accuracy)},
                      {"dev_loss", number(e.dev_loss)},
                      {"dev_accuracy", number(e.dev_accuracy)},
                      {"seconds", number(e.seconds)}});
  const nlohmann::ordered_json json = {{"preset", m.preset},
                                       {"data", m.data},
                                       {"seed", m.seed},
                                       {"device", m.device},
                                       {"threads", m.threads},
                                       {"bigram_buckets", m.bigram_buckets},
                                       {"dev_accuracy", number(m.dev_accuracy)},
                                       {"logit_shift", number(m.logit_shift)},
                                       {"test_accuracy", number(m.test_accuracy)},
                                       {"test_loss", number(m.test_loss)},
                                       {"train_seconds", number(m.train_seconds)},
                                       {"total_seconds", number(m.total_seconds)},
                                       {"tokens_per_second", number(m.tokens_per_second)},
                                       {"peak_memory_bytes", m.peak_memory_bytes},
                                       {"version", version()},
                                       {"git_revision", git_revision()},
                                       {"processor", processor_name()},
                                       {"parameters", m.parameters},
                                       {"train_reviews", m.train_reviews},
                                       {"dev_reviews", m.dev_reviews},
                                       {"dev_by_movie", m.dev_by_movie},
                                       {"test_reviews", m.test_reviews},
                                       {"vocabulary", m.vocabulary},
                                       {"steps", m.steps},
                                       {"epochs", epochs.size()},
                                       {"per_epoch", epochs}};
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

std::int64_t peak_memory_bytes() {
  rusage usage{};
  if (::getrusage(RUSAGE_SELF, &usage) != 0) return 0;
  return static_cast<std::int64_t>(usage.ru_maxrss) * 1024;  // Linux counts in KiB
}

const char* version() { return NORMA_VERSION; }

const char* git_revision() { return kGitRevision; }

std::string processor_name() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);)
    if (line.rfind("model name", 0) == 0)
      if (const auto colon = line.find(": "); colon != std::string::npos)
        return line.substr(colon + 2);
  return "unknown processor";
}

int available_processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
  return static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
}

}  // namespace imdb
