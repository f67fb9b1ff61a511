#include "imdb/command_support.h"

#include <algorithm>
#include <cstdio>
#include <ctime>

#include "imdb/checkpoint.h"
#include "imdb/files.h"
#include "imdb/memory_limit.h"
#include "imdb/metrics.h"
#include "imdb/model.h"
#include "norma/core/error.h"
#include "norma/core/factory.h"
#include "norma/ops/threads.h"

namespace imdb {
namespace {

// More threads than processors only repeat the bits of a run on a larger machine, at a price. The
// runtime library ends the process where the system gives no more threads.
constexpr int kMostThreads = 64;

}  // namespace

int set_threads(std::int64_t threads) {
  const int processors = available_processors();
  const int most = std::max(kMostThreads, processors);
  norma::check(threads >= 0 && threads <= most, "threads",
               "--threads must lie in [0, {}] on a machine with {} processors; got {}", most,
               processors, threads);
  const int count = threads > 0 ? static_cast<int>(threads) : processors;
  norma::set_num_threads(count);
  return count;
}

norma::Device make_device(const std::string& name) {
  const auto device = norma::Device::parse(name);
  if (device.is_cpu())
    limit_memory();
  else
    norma::zeros({1}, {.device = device});  // a device that is missing throws here
  return device;
}

namespace {
std::string& program() {
  static std::string name = "imdb";
  return name;
}
}  // namespace
void set_program_name(const std::string& name) { program() = name; }
const std::string& program_name() { return program(); }

void say(const std::string& line) { std::fprintf(stderr, "%s\n", line.c_str()); }

std::vector<std::pair<std::string, std::string>> environment_facts(std::int64_t threads) {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  ::gmtime_r(&now, &utc);
  char date[32];
  std::strftime(date, sizeof date, "%Y-%m-%d %H:%M UTC", &utc);
  return {{"date", date},
          {"processor", processor_name()},
          {"processors", std::to_string(available_processors())},
          {"threads", std::to_string(threads)},
          {"compiler", "GCC-compatible " __VERSION__},
          {"git revision", git_revision()}};
}

LoadedModel load_model(const std::string& model, const norma::Device& device) {
  LoadedModel loaded;
  loaded.checkpoint = find_checkpoint(model);
  loaded.config = read_complete_config(loaded.checkpoint / kConfigFile);
  loaded.state = load_state(loaded.checkpoint);
  loaded.tokenizer = load_tokenizer_file(loaded.checkpoint, loaded.state);
  loaded.model = make_model(loaded.config, loaded.tokenizer->vocab_size(), device);
  const auto weights =
      loaded.checkpoint / (loaded.config.ema_decay > 0 ? kAverageFile : kModelFile);
  load_into(*loaded.model, load_tensors(weights), weights);
  loaded.model->eval();
  return loaded;
}

}  // namespace imdb
