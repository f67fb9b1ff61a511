// The grid of norms: its table, what it leaves when interrupted, and groups that diverge.
#include <cmath>
#include <nlohmann/json.hpp>

#include "../support/catch.h"
#include "imdb/ablate_grid.h"
#include "imdb/ablate_table.h"
#include "imdb/model.h"
#include "norma/core/error.h"
#include "norma/nn/placement.h"
#include "norma/ops/elementwise.h"
#include "norma/ops/reduction.h"
#include "program.h"

using namespace imdb;
using Catch::Contains;
namespace fs = std::filesystem;

namespace {

// 6 steps an epoch, 12 a run.
constexpr char kTinyGrid[] =
    " --layers 1 --d-model 16 --heads 2 --d-ff 32 --max-length 32 --head-length 8 --vocab-size 1000"
    " --train-limit 96 --epochs 2 --threads 1 --test-limit 50 --out grid";

nlohmann::json results(const TemporaryFolder& folder) {
  return nlohmann::json::parse(read_file(folder.path / "grid" / "results.json"));
}

double largest(const norma::Tensor& x) { return norma::amax(norma::abs(x)).item(); }

}  // namespace

TEST_CASE("an interrupted grid goes on where it was, and runs nothing twice") {
  TemporaryFolder whole, parts;
  const std::string ask = std::string("ablate --groups A,C1 --seeds 1,2") + kTinyGrid;
  const auto table = run_imdb(whole, ask);
  INFO(table.err);
  REQUIRE(table.code == 0);
  CHECK_THAT(table.out, Contains("| A | layer_norm, pre |") && Contains("| 89.3 % |") &&
                            Contains("| C1 | batch_norm_naive, pre |") &&
                            Contains("- runs: 4 of 4 done") &&
                            Contains("d_model 16 instead of 256"));
  CHECK(table.out == read_file(whole.path / "grid" / "results.md"));

  const auto stopped = run_imdb(parts, ask + " --stop-after 20");  // in the second epoch of C1
  REQUIRE(stopped.code == 0);
  CHECK(stopped.out.empty());
  CHECK_THAT(stopped.err, Contains("4 runs, 0 of them finished") && Contains("1/4 A seed 1") &&
                              Contains("the same command continues"));
  const auto finished = parts.path / "grid" / "A-seed1" / "result.json";
  const auto written = fs::last_write_time(finished);
  const auto resumed = run_imdb(parts, ask);
  REQUIRE(resumed.code == 0);
  CHECK_THAT(resumed.err, Contains("1 of them finished") && !Contains("A seed 1") &&
                              !Contains("C1 seed 1  epoch 1/2: "));
  CHECK(fs::last_write_time(finished) == written);
  CHECK_FALSE(fs::exists(parts.path / "grid" / "C1-seed1" / "checkpoints"));

  auto a = results(whole), b = results(parts);
  for (auto* json : {&a, &b})
    for (auto& run : (*json)["runs"]) {
      run.erase("seconds");
      for (auto& epoch : run["epochs"]) epoch.erase("seconds");
    }
  CHECK(a["runs"] == b["runs"]);
  CHECK(a["runs"][0]["epochs"][1]["test_accuracy"].is_number());

  const auto again = run_imdb(parts, ask);
  CHECK(again.code == 0);
  CHECK_THAT(again.err, Contains("4 of them finished") && !Contains("tokens"));
  const auto other = run_imdb(parts, ask + " --lr 0.1");
  CHECK(other.code == 2);
  CHECK_THAT(other.err, Contains("must hold a run with lr = 0.1; got 0.0005"));
}

TEST_CASE("a group that diverges is a result, and the grid goes on") {
  TemporaryFolder folder;
  const auto table = run_imdb(
      folder, std::string("ablate --groups B1,D --seeds 1 --lr 10") + kTinyGrid + " --layers 8");
  INFO(table.err);
  REQUIRE(table.code == 0);
  CHECK_THAT(table.out, Contains("| B1 | no norm, default start | 0 of 1 |") &&
                            Contains("| B1 seed 1 | not finite after step ") &&
                            Contains("| D seed 1 | loss "));
  const auto runs = results(folder)["runs"];
  CHECK(runs[0]["steps"] < 12);
  CHECK(runs[1]["steps"] == 12);
  CHECK(results(folder)["groups"][0]["test_last"].is_null());
}

TEST_CASE("groups have names, or are a norm, a placement and a start") {
  CHECK(parse_group("C2").norm == "batch_norm");
  const AblationGroup own = parse_group("dyt/sandwich/xavier");
  CHECK((own.norm == "dyt" && own.placement == "sandwich" && own.init == "xavier"));
  CHECK_THROWS_WITH(parse_group("F"), Contains("A, A2, B1, B2, C1, C2, D, E, or a norm"));
  CHECK_THROWS_WITH(parse_group("dyt/middle"), Contains("--groups dyt/middle: must be one of"));
  AblateArguments twice;
  twice.groups = {"A", "A"};
  CHECK_THROWS_WITH(plan_ablation(twice), Contains("must not repeat; got A-seed1 twice"));
}

TEST_CASE("the article's setting is the default, and all groups share it") {
  const AblationGrid grid = plan_ablation({});
  CHECK(grid.runs.size() == 24);
  TrainConfig config = grid.runs[0].config;
  CHECK(config == make_preset("imdb-seed"));
  config.norm = "layer_norm";
  config.placement = "deep_norm";
  config.init = "xavier";
  CHECK(grid.runs[7].config == config);
}

TEST_CASE("intervals are Student's t, with the error of the reviews") {
  const Estimate three = mean_of({1.0, 2.0, 4.5});  // standard deviation 1.802776
  CHECK(three.mean == Approx(2.5));
  CHECK(three.half_width == Approx(4.303 * 1.802776 / std::sqrt(3.0)));
  CHECK(mean_of({}).count == 0);
  const Estimate one = accuracy_of({0.9}, 2500);
  CHECK(one.half_width == Approx(1.959964 * 0.006));
  CHECK(accuracy_of({0.89, 0.90, 0.91}, 2500).half_width ==
        Approx(std::hypot(4.303 * 0.01 / std::sqrt(3.0), 1.959964 * 0.006)));
}

TEST_CASE("Xavier's start is in Glorot's limits, and DeepNorm scales it") {
  TrainConfig config = make_preset("imdb-seed");
  config.layers = 2;
  config.d_model = 32;
  config.d_ff = 96;
  config.init = "xavier";
  config.placement = "deep_norm";
  const auto model = make_model(config, 300, norma::Device());
  const double limit = std::sqrt(6.0 / (32 + 96)), beta = std::pow(8.0 * 2, -0.25);
  const auto state = model->state_dict();
  CHECK(largest(state.at("encoder.layers.1.mlp.fc1.weight")) == Approx(limit * beta).epsilon(0.01));
  CHECK(largest(state.at("encoder.layers.0.self_attn.q_proj.weight")) ==
        Approx(std::sqrt(6.0 / 64)).epsilon(0.02));
  CHECK(largest(state.at("encoder.layers.0.mlp.fc2.bias")) == 0.0);
  CHECK(largest(state.at("encoder.layers.0.norm1.weight")) == 1.0);
}
