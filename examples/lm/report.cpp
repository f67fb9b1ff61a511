#include "lm/report.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <numbers>

#include "imdb/metrics.h"
#include "imdb/progress.h"
#include "imdb/report.h"
#include "imdb/report_style.h"
#include "imdb/svg_chart.h"

namespace lm {
namespace {

using imdb::escape_html;
using Pairs = std::vector<std::pair<std::string, std::string>>;

constexpr std::size_t kMaxCurvePoints = 800;

std::string tile(const std::string& value, const char* name, const std::string& note) {
  return fmt::format("<div class=\"tile\"><b>{}</b><span>{}</span><small>{}</small></div>\n", value,
                     name, note);
}

std::string table(const char* title, const Pairs& pairs) {
  std::string html = fmt::format("<div><h3>{}</h3><table class=\"pairs\"><tbody>\n", title);
  for (const auto& [name, value] : pairs)
    html += fmt::format("<tr><th>{}</th><td>{}</td></tr>\n", escape_html(name), escape_html(value));
  return html + "</tbody></table></div>\n";
}

/// One quantity of every step, in at most kMaxCurvePoints points.
imdb::Series series(const Report& report, const char* name, const char* css,
                    double imdb::StepRecord::*member, double factor = 1) {
  imdb::Series s;
  s.name = name;
  s.css = css;
  for (const auto& record : report.state.steps) {
    s.x.push_back(static_cast<double>(record.step));
    s.y.push_back(record.*member * factor);
  }
  imdb::downsample(s.x, s.y, kMaxCurvePoints);
  return s;
}

std::string curves(const Report& report) {
  imdb::Series dev;
  dev.name = "dev";
  dev.css = "c2";
  dev.markers = true;
  for (const auto& epoch : report.state.epochs) {
    dev.x.push_back(static_cast<double>(epoch.step));
    dev.y.push_back(epoch.dev_loss);
  }
  const auto last = static_cast<double>(report.state.step);
  const imdb::Series unigram{.name = "single tokens",
                             .css = "c4",
                             .x = {0, last},
                             .y = {report.unigram_loss, report.unigram_loss}};
  using Step = imdb::StepRecord;
  return "<section><h2>Curves</h2><div class=\"charts\">\n" +
         imdb::render_chart(
             {.title = "Loss",
              .x_label = "step",
              .y_label = "cross-entropy (nats)",
              .series = {series(report, "train", "c1", &Step::loss), dev, unigram}}) +
         imdb::render_chart({.title = "Next token is the most probable one",
                             .x_label = "step",
                             .y_label = "accuracy (%)",
                             .series = {series(report, "train", "c1", &Step::accuracy)},
                             .percent = true}) +
         imdb::render_chart({.title = "Learning rate",
                             .x_label = "step",
                             .y_label = "learning rate (×10⁻³)",
                             .series = {series(report, "lr", "c3", &Step::lr, 1e3)},
                             .from_zero = true}) +
         imdb::render_chart({.title = "Gradient norm before clipping",
                             .x_label = "step",
                             .y_label = "L2 norm of all gradients",
                             .series = {series(report, "norm", "c4", &Step::grad_norm)},
                             .from_zero = true}) +
         "</div></section>\n";
}

}  // namespace

double bits_per_byte(double loss, std::size_t tokens, double bytes) {
  return loss * static_cast<double>(tokens) / bytes / std::numbers::ln2;
}

std::string metrics_json(const Report& report) {
  nlohmann::ordered_json json;
  json["preset"] = report.config.preset;
  json["data"] = report.state.data_name;
  json["seed"] = report.config.seed;
  json["device"] = report.config.device;
  json["threads"] = report.state.threads;
  json["parameters"] = report.parameters;
  json["vocabulary"] = report.state.vocabulary;
  json["steps"] = report.state.step;
  json["unigram_loss"] = report.unigram_loss;
  json["dev_loss"] = report.state.epochs.back().dev_loss;
  json["dev_perplexity"] = std::exp(report.state.epochs.back().dev_loss);
  json["dev_accuracy"] = report.state.epochs.back().dev_accuracy;
  json["bits_per_byte"] = report.bits_per_byte;
  json["train_seconds"] = report.state.train_seconds;
  json["total_seconds"] = report.total_seconds;
  json["tokens_per_second"] = report.tokens_per_second;
  json["peak_memory_bytes"] = imdb::peak_memory_bytes();
  json["version"] = imdb::version();
  json["git_revision"] = imdb::git_revision();
  json["processor"] = imdb::processor_name();
  for (const auto& e : report.state.epochs)
    json["per_epoch"].push_back({{"epoch", e.epoch},
                                 {"step", e.step},
                                 {"train_loss", e.train_loss},
                                 {"dev_loss", e.dev_loss},
                                 {"dev_accuracy", e.dev_accuracy},
                                 {"seconds", e.seconds}});
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

std::string render_report(const Report& report) {
  const std::string title = fmt::format("{}, seed {}", report.config.preset, report.config.seed);
  const double loss = report.state.epochs.back().dev_loss;
  std::string html = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n<meta name=\"viewport\" "
      "content=\"width=device-width, "
      "initial-scale=1\">\n<title>{0}</title>\n<style>{1}</style></head>"
      "<body><main>\n<header><p class=\"over\">A language model, from scratch</p><h1>{0}</h1>"
      "<p class=\"sub\">{2} · {3} steps</p></header>\n",
      escape_html(title), imdb::kReportStyle, escape_html(report.state.data_name),
      report.state.step);
  html += "<div class=\"tiles\">\n";
  html += tile(fmt::format("{:.3f}", loss), "dev loss",
               fmt::format("nats; {:.3f} for single tokens", report.unigram_loss));
  html += tile(fmt::format("{:.1f}", std::exp(loss)), "dev perplexity",
               fmt::format("{:.1f} for single tokens", std::exp(report.unigram_loss)));
  html +=
      tile(fmt::format("{:.3f}", report.bits_per_byte), "bits per byte", "whatever the vocabulary");
  html += tile(imdb::format_duration(report.state.train_seconds), "training time",
               imdb::format_count(report.tokens_per_second) + " tokens per second");
  html += tile(imdb::format_count(static_cast<double>(report.parameters)), "parameters",
               fmt::format("vocabulary of {}", report.state.vocabulary));
  html += "</div>\n" + curves(report);
  html += "<section><h2>What it writes</h2><article><p style=\"white-space:pre-wrap\">" +
          escape_html(report.sample) + "</p></article></section>\n";
  Pairs options;
  each_option(report.config, [&](const char* key, const auto& value, const char*, double, double) {
    options.emplace_back(key, fmt::format("{}", value));
  });
  html += "<section><h2>Configuration</h2><div class=\"columns\">" + table("options", options) +
          table("environment", report.facts) +
          "</div></section>\n<footer>Made by norma.</footer>\n";
  return html + "</main></body></html>\n";
}

}  // namespace lm
