#include "imdb/report.h"

#include <cmath>
#include <cstdlib>

#include "../support/catch.h"
#include "imdb/files.h"
#include "imdb/svg_chart.h"

using namespace imdb;
using Catch::Contains;

namespace {

ReportData made_up_run() {
  ReportData data;
  data.metrics.preset = "imdb-tiny";
  data.metrics.data = "aclImdb_v1.tar.gz";
  data.metrics.seed = 1;
  data.metrics.dev_accuracy = 0.868;
  data.metrics.test_accuracy = 0.8803;
  data.metrics.train_seconds = 247;
  data.metrics.total_seconds = 291;
  data.metrics.tokens_per_second = 48230;
  data.metrics.parameters = 2912345;
  data.metrics.train_reviews = 22514;
  data.metrics.dev_reviews = 2486;
  data.metrics.vocabulary = 20000;
  data.metrics.steps = 1408;
  for (int step = 1; step <= 1408; ++step) {
    const double t = step / 1408.0;
    data.steps.push_back({step, 0.25 + 0.45 * std::exp(-4 * t) + 0.05 * std::sin(step * 12.9898),
                          0.9, 1e-3 * std::min(step / 150.0, 0.5 + 0.5 * std::cos(3.14159 * t)),
                          0.8 + 0.4 * std::sin(step * 78.233)});
  }
  for (int e = 1; e <= 4; ++e)
    data.metrics.epochs.push_back(
        {e, 352 * e, 0.6 - 0.08 * e, 0.7 + 0.05 * e, 0.36 - 0.01 * e, 0.84 + 0.007 * e, 61.5});
  data.confusion.counts[0][0] = 11012;
  data.confusion.counts[0][1] = 1488;
  data.confusion.counts[1][0] = 1505;
  data.confusion.counts[1][1] = 10995;
  data.mistakes.push_back({"test/neg/42_1.txt",
                           "<script>alert('x')</script> & \"quoted\" \xff broken UTF-8", 0,
                           0.9912});
  std::string review = "This film is wonderful if you have never seen one before. ";
  while (review.size() < 1500) review += "It goes on for two hours and every minute is an hour. ";
  data.mistakes.push_back({"test/pos/7_9.txt", review, 1, 0.013});
  data.baseline = {true, 0.9131, 21.0};
  data.facts = {{"processor", "a fast one"}, {"program", "norma 0.1.0"}};
  return data;
}

int count(const std::string& text, const std::string& part) {
  int n = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

}  // namespace

TEST_CASE("the report shows everything about a run in one file") {
  const auto html = render_report(made_up_run());
  for (const char* part : {"88.03 %", "86.80 %", "91.31 %", "4:07", "48.2k", "2.9M",
                           "imdb-tiny, seed 1", "prefers-color-scheme:dark", "cross-entropy (nats)",
                           "predicted positive", "11\u202F012", "aclImdb_v1.tar.gz", "a fast one"})
    CHECK_THAT(html, Contains(part));
  for (const auto& field : config_fields())
    CHECK_THAT(html, Contains("<th>" + std::string(field.key)));
  CHECK(count(html, "<svg") == 4);
  CHECK(count(html, "<article>") == 2);
  // Nothing is loaded from elsewhere.
  for (const char* part : {"http://", "https://", "<link", "<script", "@import", "url("})
    CHECK_THAT(html, !Contains(part));
}

TEST_CASE("the report says when the dev accuracy is of reviews that something was fitted on") {
  ReportData data = made_up_run();
  const char* note = "measured after one shift of the logits was fitted on the same reviews";
  data.config.fit_shift = false;
  CHECK_THAT(render_report(data), !Contains(note));
  data.config.fit_shift = true;
  CHECK_THAT(render_report(data), Contains(note));
}

TEST_CASE("texts of reviews cannot become markup") {
  const auto html = render_report(made_up_run());
  CHECK_THAT(html,
             Contains("&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt; &amp; &quot;quoted&quot;"));
  CHECK_THAT(html, Contains("\xEF\xBF\xBD broken"));
  CHECK(escape_html(std::string("a\0b\x1b", 4)) ==
        "a\xEF\xBF\xBD"
        "b\xEF\xBF\xBD");
  CHECK(escape_html("\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80") ==
        "\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80");
  CHECK(escape_html("\xED\xA0\x80") == "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");  // a surrogate
}

TEST_CASE("a run without steps or with a NaN still makes a page") {
  ReportData data = made_up_run();
  data.steps.clear();
  data.metrics.epochs.clear();
  data.mistakes.clear();
  CHECK_NOTHROW(render_report(data));
  data = made_up_run();
  data.steps[3].loss = std::nan("");
  CHECK_THAT(render_report(data), !Contains("nan "));
}

TEST_CASE("ticks are round and inside") {
  const auto ticks = nice_ticks(0.21, 0.74, 5);
  REQUIRE(ticks.size() >= 3);
  CHECK(ticks.front() == Approx(0.3));
  CHECK(ticks.back() == Approx(0.7));
  CHECK(nice_ticks(0, 1408, 6).front() == 0);
  CHECK(nice_ticks(5, 5, 6).size() == 1);
}

TEST_CASE("downsampling keeps the mean, smoothing a constant") {
  std::vector<double> x, y;
  for (int i = 0; i < 1000; ++i) {
    x.push_back(i);
    y.push_back(i % 7);
  }
  double before = 0, after = 0;
  for (double v : y) before += v / 1000;
  downsample(x, y, 100);
  REQUIRE(x.size() == 100);
  for (double v : y) after += v / 100;
  CHECK(after == Approx(before));
  for (double v : smooth(std::vector<double>(50, 2.5), 10)) CHECK(v == Approx(2.5));
}

// Leaves the page for a look at it; does nothing unless asked for by name.
TEST_CASE("write a report to look at", "[.report]") {
  const char* path = std::getenv("IMDB_REPORT");
  REQUIRE(path != nullptr);
  write_file_atomic(path, render_report(made_up_run()));
}
