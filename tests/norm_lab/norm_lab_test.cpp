// The lab itself: verdicts, the report, the program, and experiments that are quick enough to run.
#include "norm_lab/cli.h"
#include "norm_lab/experiment.h"
#include "norm_lab/lab.h"
#include "norm_lab/report.h"
#include "support/catch.h"
#include "support/temporary_folder.h"

#include <cmath>
#include <fstream>
#include <iterator>
#include <set>

using namespace norm_lab;

namespace {

const Experiment& find(const std::string& name) {
  for (const Experiment& one : experiments())
    if (one.name == name) return one;
  throw std::runtime_error("no experiment " + name);
}

Result with_rows(std::vector<Row> rows, const std::string& depends_on = "") {
  Result result;
  result.rows = std::move(rows);
  result.depends_on = depends_on;
  return result;
}

std::string read(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Empty where every element of the page is closed in order, else what is wrong.
std::string markup_error(const std::string& html) {
  const std::set<std::string> empty_elements = {"meta", "!doctype"};
  std::vector<std::string> open;
  for (std::size_t at = html.find('<'); at != std::string::npos; at = html.find('<', at + 1)) {
    const std::size_t end = html.find('>', at);
    if (end == std::string::npos) return "a tag without end";
    const std::string tag = html.substr(at + 1, end - at - 1);
    const std::string name =
        tag.substr(tag[0] == '/' ? 1 : 0, tag.find_first_of(" \n/", 1) - (tag[0] == '/'));
    if (tag[0] == '/') {
      if (open.empty() || open.back() != tag.substr(1))
        return "unexpected </" + tag.substr(1) + ">";
      open.pop_back();
    } else if (tag.back() != '/' && !empty_elements.contains(name)) {
      open.push_back(name);
    }
  }
  return open.empty() ? "" : "<" + open.back() + "> is not closed";
}

}  // namespace

TEST_CASE("a verdict comes from the rows that test the claim") {
  const Row right{"a", about(2.0, 0.1), 2.1}, wrong{"b", about(2.0, 0.1), 2.3};
  const Row other{"c", about(2.0, 0.1), 9.0, Tests::reference};
  CHECK(judge(with_rows({right, other})) == Verdict::confirmed);
  CHECK(judge(with_rows({right, wrong})) == Verdict::refuted);
  CHECK(judge(with_rows({right, wrong}, "the weather")) == Verdict::depends);
  CHECK(judge(with_rows({wrong, wrong}, "the weather")) == Verdict::refuted);
  CHECK(judge(with_rows({other})) == Verdict::refuted);
  CHECK(judge(with_rows({{"NaN", at_least(0), std::nan("")}})) == Verdict::refuted);
  CHECK(judge(with_rows({{"truth", is(true), 1.0}})) == Verdict::confirmed);
}

TEST_CASE("experiments have names of their own, and quick ones the verdicts that they should") {
  std::set<std::string> names;
  for (const Experiment& one : experiments()) CHECK(names.insert(one.name).second);
  const Settings settings;
  for (const auto& [name, verdict] :
       {std::pair("golden", Verdict::confirmed), std::pair("invariances", Verdict::confirmed),
        std::pair("variance", Verdict::depends), std::pair("identity", Verdict::refuted)}) {
    INFO(name);
    Result result = find(name).run(settings);
    CHECK(judge(result) == verdict);
    REQUIRE_FALSE(result.charts.empty());
    // With another expectation the same run is refuted.
    for (Row& row : result.rows) row.expected = near(row.measured + 1.0, 0.5);
    CHECK(judge(result) == Verdict::refuted);
  }
}

TEST_CASE("the report is one well-formed page with a chart and a command for each experiment") {
  const norma::test::TemporaryFolder folder;
  const auto path = folder.path() / "new" / "report.html";
  Experiment strange{"strange", "Group", "a < b & \"c\"", [](const Settings& settings) {
                       Result result = find("epsilon").run(settings);
                       result.claim = "1 < 2 & 3";
                       result.charts.push_back({.kind = ChartKind::heat,
                                                .title = "heat",
                                                .series = {{"row", {}, {1.0, std::nan("")}}},
                                                .categories = {"a", "b"}});
                       result.charts.push_back({.kind = ChartKind::bars,
                                                .title = "bars",
                                                .series = {{"one", {}, {1.0, -2.0}}},
                                                .categories = {"a", "b"}});
                       return result;
                     }};
  run_lab({find("golden"), strange}, {.settings = {.seed = 7}, .out = path, .print = false});
  const std::string html = read(path);
  CHECK(markup_error(html) == "");
  CHECK(html.find("1 &lt; 2 &amp; 3") != std::string::npos);
  CHECK(html.find("norm_lab golden --seed 7") != std::string::npos);
  CHECK(html.find("diverged") != std::string::npos);
  CHECK(html.find("prefers-color-scheme:dark") != std::string::npos);
  for (const char* outside : {"http://", "https://", "<script", "<link", "nan", "inf"}) {
    INFO(outside);
    CHECK(html.find(outside) == std::string::npos);
  }
}

TEST_CASE("the program says what is wrong with its arguments") {
  const auto code = [](std::vector<const char*> arguments) {
    arguments.insert(arguments.begin(), "norm_lab");
    return run_cli(static_cast<int>(arguments.size()), arguments.data());
  };
  CHECK(code({}) == 2);
  CHECK(code({"nonsense"}) == 2);
  CHECK(code({"golden", "--seed", "-1"}) == 2);
  CHECK(code({"golden", "--gpu"}) == 2);
  CHECK(code({"golden", "--out", "/proc/no/report.html"}) == 3);
}

// Each of these trains models: three steps show that it runs from end to end.
TEST_CASE("experiments that train run") {
  const auto name = GENERATE("effective-depth", "batch-norm-text");
  const Result result = find(name).run({.quick = true});
  for (const Row& row : result.rows) {
    INFO(row.quantity);
    CHECK(std::isfinite(row.measured));
  }
}
