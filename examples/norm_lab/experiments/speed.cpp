// R29, R30: LayerNorm against RMSNorm, naive against fused.
#include "norm_lab/experiments/list.h"
#include "norm_lab/measure.h"
#include "norma/core/autograd.h"
#include "norma/core/factory.h"
#include "norma/core/grad_mode.h"
#include "norma/core/random.h"
#include "norma/ops/norm.h"
#include "norma/ops/reduction.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <chrono>
#include <functional>

namespace norm_lab {

using namespace norma;

namespace {

constexpr std::int64_t kWidth = 1024;

/// A contender: its forward, and its backward where `gradient` is given.
struct Contender {
  std::string name;
  double passes;  // reads and writes of a whole tensor that it cannot do without
  std::function<void()> call;
  double seconds = std::numeric_limits<double>::infinity();
};

/// Shortest of some rounds, which are taken in turn, so that a busy neighbour meets all alike.
void time_all(std::vector<Contender>& contenders, const Tensor& fence, int rounds) {
  using Clock = std::chrono::steady_clock;
  for (int round = 0; round <= rounds; ++round)
    for (Contender& one : contenders) {
      const auto start = Clock::now();
      one.call();
      fence.item();  // waits for the device
      const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
      if (round > 0) one.seconds = std::min(one.seconds, seconds);
    }
}

}  // namespace

Result speed(const Settings& settings) {
  const std::int64_t rows = settings.large() ? 65536 : 4096;
  const Device device = settings.device;
  manual_seed(settings.seed);
  const Tensor x = randn({rows, kWidth}, {.device = device}), dy = randn_like(x);
  const Tensor target = empty_like(x), fence = zeros({1}, {.device = device});
  const Tensor gain = ones({kWidth}, {.device = device, .requires_grad = true});
  const Tensor bias = zeros({kWidth}, {.device = device, .requires_grad = true});
  const Tensor leaf = x.clone().requires_grad_();

  using Norm = std::function<Tensor(const Tensor&)>;
  const std::vector<std::pair<std::string, Norm>> norms = {
      {"LayerNorm, naive",
       [&](const Tensor& t) { return composite::layer_norm(t, {kWidth}, gain, bias); }},
      {"RMSNorm, naive",
       [&](const Tensor& t) { return composite::rms_norm(t, {kWidth}, gain, 1e-6); }},
      {"LayerNorm, fused", [&](const Tensor& t) { return layer_norm(t, {kWidth}, gain, bias); }},
      {"RMSNorm, fused", [&](const Tensor& t) { return rms_norm(t, {kWidth}, gain, 1e-6); }}};
  std::vector<Contender> contenders = {{"copy", 2, [&] { target.copy_(x); }}};
  for (const auto& [name, norm] : norms)
    contenders.push_back({name + ", forward", 2, [&, norm = norm] {
                            const NoGradGuard no_grad;
                            norm(x);
                          }});
  // The graph is made once, so that its backward alone is timed.
  for (const auto& [name, norm] : norms) {
    const bool layer = name.starts_with("Layer");
    const TensorList inputs = layer ? TensorList{leaf, gain, bias} : TensorList{leaf, gain};
    contenders.push_back({name + ", backward", 3, [&, inputs, y = norm(leaf)] {
                            grad({y}, inputs, {.grad_outputs = {dy}, .retain_graph = true});
                          }});
  }
  time_all(contenders, fence, settings.quick ? 1 : 15);

  const double bytes = static_cast<double>(x.nbytes());
  const auto rate = [&](const Contender& one) { return one.passes * bytes / one.seconds; };
  const auto ratio = [&](std::size_t slow, std::size_t fast) {
    return contenders[slow].seconds / contenders[fast].seconds;
  };
  Table table{
      .title = fmt::format("{} rows of {} float32 values on {}", rows, kWidth, device.str()),
      .columns = {"", "µs", "GB/s", "of copy"}};
  Chart chart{.kind = ChartKind::bars,
              .title = "Share of the bandwidth of a copy",
              .x_label = "norm",
              .y_label = "effective GB/s / GB/s of a copy",
              .categories = {"LN naive", "RMS naive", "LN fused", "RMS fused"}};
  for (const Contender& one : contenders)
    table.rows.push_back({one.name, fmt::format("{:.0f}", 1e6 * one.seconds),
                          fmt::format("{:.1f}", rate(one) / 1e9),
                          fmt::format("{:.0f} %", 100 * rate(one) / rate(contenders[0]))});
  Series forward{"forward", {}, {}}, backward{"backward", {}, {}};
  for (std::size_t i = 1; i <= 4; ++i) {
    forward.y.push_back(rate(contenders[i]) / rate(contenders[0]));
    backward.y.push_back(rate(contenders[i + 4]) / rate(contenders[0]));
  }
  chart.series = {forward, backward};
  return {
      .claim =
          "RMSNorm is 7.8 times as fast as LayerNorm (or 10 to 40 %, or 15 % faster, in the "
          "other articles).",
      .source = "R29, R30; the first, third and fourth article",
      .setting =
          fmt::format("{} rows of width {}, float32, shortest of 15 rounds in turn; naive: "
                      "elementary operations; effective bytes: 2 tensors forward, 3 backward",
                      rows, kWidth),
      .rows = {{"forward, fused: LayerNorm / RMSNorm, claimed by the first", about(7.8, 0.2),
                ratio(3, 4)},
               {"forward, fused: claimed by the third, 10 to 40 %", between(1.1, 1.4), ratio(3, 4)},
               {"forward, naive: the same", between(1.1, 1.4), ratio(1, 2)},
               {"forward, fused, as expected", between(0.9, 1.2), ratio(3, 4), Tests::reference},
               {"backward, fused, as expected", between(0.9, 1.25), ratio(7, 8), Tests::reference},
               {"forward, naive, as expected", between(1.2, 2), ratio(1, 2), Tests::reference},
               {"RMSNorm forward: naive / fused", between(2, 9), ratio(2, 4), Tests::reference}},
      .depends_on =
          "what is compared with what: naive code pays for each pass over memory, and "
          "LayerNorm has more of them; fused kernels read and write each tensor once, "
          "whichever norm it is",
      .finding =
          "These are ratios of one machine in one run. Compare naive with fused, and then the two "
          "fused norms in rows that a cache holds and in rows that none does.",
      .charts = {chart},
      .tables = {table}};
}

}  // namespace norm_lab
