#include "imdb/report.h"

#include <algorithm>
#include <cmath>

#include "imdb/progress.h"
#include "imdb/report_style.h"
#include "imdb/svg_chart.h"
#include "norma/core/error.h"

namespace imdb {
namespace {

constexpr std::size_t kMaxCurvePoints = 800;
constexpr double kLearningRateScale = 1e3;  // the axis counts thousandths
constexpr std::size_t kExcerptBytes = 420;

// Length of the valid UTF-8 sequence at the start, 0 if it is not one (overlong, surrogate, cut
// off).
std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  const std::size_t length = first < 0x80                    ? 1
                             : first >= 0xC2 && first < 0xE0 ? 2
                             : first >= 0xE0 && first < 0xF0 ? 3
                             : first >= 0xF0 && first < 0xF5 ? 4
                                                             : 0;
  if (length == 0 || length > text.size()) return 0;
  for (std::size_t i = 1; i < length; ++i)
    if ((byte(i) & 0xC0) != 0x80) return 0;
  if (first == 0xE0 && byte(1) < 0xA0) return 0;
  if (first == 0xED && byte(1) >= 0xA0) return 0;
  if (first == 0xF0 && byte(1) < 0x90) return 0;
  if (first == 0xF4 && byte(1) >= 0x90) return 0;
  return length;
}

// Start and end of a long text: opinions stand there.
std::string excerpt(const std::string& text) {
  if (text.size() <= kExcerptBytes) return escape_html(text);
  std::size_t head = text.rfind(' ', kExcerptBytes * 2 / 5);
  std::size_t tail = text.find(' ', text.size() - kExcerptBytes * 3 / 5);
  if (head == std::string::npos) head = kExcerptBytes * 2 / 5;
  if (tail == std::string::npos) tail = text.size() - kExcerptBytes * 3 / 5;
  return escape_html(text.substr(0, head)) + " <span class=\"cut\">[…]</span>" +
         escape_html(text.substr(tail));
}

std::string percent(double fraction, int digits = 2) {
  if (!std::isfinite(fraction)) return "not measured";
  return fmt::format("{:.{}f} %", 100 * fraction, digits);
}

std::string thousands(std::int64_t value) {
  const std::string digits = std::to_string(value);
  std::string text;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) text += "\u202F";  // narrow no-break space
    text += digits[i];
  }
  return text;
}

std::string tile(const std::string& value, const std::string& name, const std::string& note = "") {
  return fmt::format("<div class=\"tile\"><b>{}</b><span>{}</span>{}</div>\n", value, name,
                     note.empty() ? "" : "<small>" + note + "</small>");
}

std::string render_tiles(const ReportData& data) {
  const Metrics& m = data.metrics;
  std::string html = "<div class=\"tiles\">\n";
  // Standard error of a proportion: how far chance alone moves the figure.
  const double n = static_cast<double>(data.confusion.total());
  const double error = n > 0 ? std::sqrt(m.test_accuracy * (1 - m.test_accuracy) / n) : 0;
  html += tile(percent(m.test_accuracy), "test accuracy",
               n > 0 ? fmt::format("± {:.2f} standard error, {} reviews", 100 * error,
                                   thousands(data.confusion.total()))
                     : "");
  html += tile(percent(m.dev_accuracy), "dev accuracy",
               fmt::format("{} reviews {}", thousands(m.dev_reviews),
                           m.dev_by_movie ? "of other movies" : "cut at random"));
  if (data.baseline.known)
    html += tile(percent(data.baseline.test_accuracy), "linear baseline",
                 "Naive-Bayes weighted bigrams");
  html += tile(format_duration(m.train_seconds), "training time",
               fmt::format("{} in all", format_duration(m.total_seconds)));
  html += tile(format_count(m.tokens_per_second), "tokens per second", "training, without padding");
  html += tile(format_count(static_cast<double>(m.parameters)), "parameters",
               fmt::format("vocabulary of {}", thousands(m.vocabulary)));
  return html + "</div>\n";
}

std::string render_curves(const ReportData& data) {
  std::vector<double> step, loss, lr, norm;
  for (const auto& record : data.steps) {
    step.push_back(static_cast<double>(record.step));
    loss.push_back(record.loss);
    lr.push_back(record.lr * kLearningRateScale);
    norm.push_back(record.grad_norm);
  }
  const double horizon = std::max(10.0, static_cast<double>(step.size()) / 40);
  std::vector<double> smoothed = smooth(loss, horizon), step_loss = step, step_smooth = step,
                      step_lr = step, step_norm = step;
  downsample(step_loss, loss, kMaxCurvePoints);
  downsample(step_smooth, smoothed, kMaxCurvePoints);
  downsample(step_lr, lr, kMaxCurvePoints);
  downsample(step_norm, norm, kMaxCurvePoints);

  std::vector<double> at, dev_loss, dev_accuracy, train_accuracy;
  for (const auto& epoch : data.metrics.epochs) {
    at.push_back(static_cast<double>(epoch.step));
    dev_loss.push_back(epoch.dev_loss);
    dev_accuracy.push_back(epoch.dev_accuracy);
    train_accuracy.push_back(epoch.train_accuracy);
  }
  std::string html = "<section><h2>Curves</h2>\n<div class=\"charts\">\n";
  html += render_chart({"Loss",
                        "step",
                        "cross-entropy (nats)",
                        {{"train, each step", "c1", step_loss, loss, false, true},
                         {"train, smoothed", "c1", step_smooth, smoothed},
                         {"dev", "c2", at, dev_loss, true}}});
  html += render_chart({"Accuracy",
                        "step",
                        "accuracy (%)",
                        {{"train, mean of the epoch", "c1", at, train_accuracy, true},
                         {"dev", "c2", at, dev_accuracy, true}},
                        true});
  html += render_chart(
      {"Learning rate", "step", "learning rate (×10⁻³)", {{"lr", "c3", step_lr, lr}}, false, true});
  html += render_chart({"Gradient norm before clipping",
                        "step",
                        "L2 norm of all gradients",
                        {{"norm", "c4", step_norm, norm}},
                        false,
                        true});
  return html +
         "</div>\n<p class=\"note\">The training loss includes label smoothing and dropout, the "
         "dev loss neither; dev is the development set, " +
         (data.metrics.dev_by_movie
              ? "whose movies occur nowhere in training"
              : "cut at random, because the data do not say which movie a review is about") +
         (data.config.fit_shift ? ". Dev loss and accuracy are measured after one shift of the "
                                  "logits was fitted on the same reviews; the test set had no "
                                  "part in it"
                                : "") +
         ".</p></section>\n";
}

std::string render_epochs(const ReportData& data) {
  std::string html =
      "<table class=\"numbers\"><thead><tr><th>epoch</th><th>step</th><th>train loss</th>"
      "<th>train acc.</th><th>dev loss</th><th>dev acc.</th><th>time</th></tr></thead><tbody>\n";
  for (const auto& e : data.metrics.epochs)
    html += fmt::format(
        "<tr><td>{}</td><td>{}</td><td>{:.4f}</td><td>{}</td><td>{:.4f}</td><td>{}</td><td>{}</td>"
        "</tr>\n",
        e.epoch, thousands(e.step), e.train_loss, percent(e.train_accuracy), e.dev_loss,
        percent(e.dev_accuracy), format_duration(e.seconds));
  return html + "</tbody></table>\n";
}

std::string render_confusion(const ConfusionMatrix& matrix) {
  const auto cell = [&](int truth, int prediction) {
    const auto row = matrix.counts[truth][0] + matrix.counts[truth][1];
    const double share =
        row > 0 ? static_cast<double>(matrix.counts[truth][prediction]) / static_cast<double>(row)
                : 0;
    return fmt::format("<td class=\"{}\" style=\"--share:{:.3f}\"><b>{}</b><small>{}</small></td>",
                       truth == prediction ? "good" : "bad", share,
                       thousands(matrix.counts[truth][prediction]), percent(share, 1));
  };
  return "<table class=\"confusion\"><thead><tr><th></th><th>predicted negative</th>"
         "<th>predicted positive</th></tr></thead><tbody>\n"
         "<tr><th>is negative</th>" +
         cell(0, 0) + cell(0, 1) + "</tr>\n<tr><th>is positive</th>" + cell(1, 0) + cell(1, 1) +
         "</tr></tbody></table>\n<p class=\"note\">Counts, and shares of the row.</p>\n";
}

std::string render_mistakes(const std::vector<Mistake>& mistakes) {
  std::string html = "<section><h2>Most confident mistakes</h2>\n";
  if (mistakes.empty()) return html + "<p class=\"note\">None.</p></section>\n";
  html +=
      "<p class=\"note\">Test reviews on which the model was surest and wrong. Irony, praise "
      "quoted to be refuted, and ratings that contradict the text are common here.</p>\n";
  for (const auto& m : mistakes) {
    const bool said_positive = m.probability >= 0.5;
    html += fmt::format(
        "<article><header><span class=\"tag {}\">is {}</span> <span class=\"tag {}\">model: {} "
        "{}</span> <code>{}</code></header><p>{}</p></article>\n",
        m.label == 1 ? "pos" : "neg", m.label == 1 ? "positive" : "negative",
        said_positive ? "pos" : "neg", said_positive ? "positive" : "negative",
        percent(said_positive ? m.probability : 1 - m.probability, 1), escape_html(m.id),
        excerpt(m.text));
  }
  return html + "</section>\n";
}

std::string render_pairs(const std::vector<std::pair<std::string, std::string>>& pairs) {
  std::string html = "<table class=\"pairs\"><tbody>\n";
  for (const auto& [name, value] : pairs)
    html += fmt::format("<tr><th>{}</th><td>{}</td></tr>\n", escape_html(name), escape_html(value));
  return html + "</tbody></table>\n";
}

std::string render_config(const ReportData& data) {
  std::string html = "<section><h2>Configuration</h2>\n<div class=\"columns\">\n";
  std::string section;
  std::vector<std::pair<std::string, std::string>> pairs;
  const auto flush = [&] {
    if (!pairs.empty()) html += "<div><h3>" + section + "</h3>" + render_pairs(pairs) + "</div>\n";
    pairs.clear();
  };
  for (const auto& field : config_fields()) {
    if (section != field.section) flush();
    section = field.section;
    auto value = get_field(data.config, field);
    if (value.empty()) value = "built-in sample";  // `data` is the only text that may be empty
    pairs.emplace_back(field.key, value);
  }
  flush();
  html += "<div><h3>environment</h3>" + render_pairs(data.facts) + "</div>\n";
  return html + "</div></section>\n";
}

}  // namespace

std::string escape_html(std::string_view text) {
  std::string escaped;
  escaped.reserve(text.size() + text.size() / 16);
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    const char c = text.front();
    const bool control =
        (static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t') || c == 0x7f;
    if (length == 0 || control) {
      escaped += "\xEF\xBF\xBD";
      text.remove_prefix(1);
      continue;
    }
    switch (c) {
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '&':
        escaped += "&amp;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      case '\'':
        escaped += "&#39;";
        break;
      default:
        escaped += text.substr(0, length);
    }
    text.remove_prefix(length);
  }
  return escaped;
}

std::string render_report(const ReportData& data) {
  const Metrics& m = data.metrics;
  const auto title =
      fmt::format("{}{}, seed {}", m.preset, m.bigram_buckets > 0 ? " + bigrams" : "", m.seed);
  std::string html =
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>";
  html += escape_html(title) + "</title>\n<style>" + kReportStyle + "</style></head><body><main>\n";
  html += fmt::format(
      "<header><p class=\"over\">Sentiment of movie reviews, a Transformer from "
      "scratch</p><h1>{}</h1>"
      "<p class=\"sub\">{} · {} training reviews · {} steps</p></header>\n",
      escape_html(title), escape_html(m.data), thousands(m.train_reviews), thousands(m.steps));
  html += render_tiles(data);
  html += render_curves(data);
  html += "<section><h2>Result</h2><div class=\"columns\"><div><h3>by epoch</h3>" +
          render_epochs(data) + "</div><div><h3>test set</h3>" + render_confusion(data.confusion) +
          "</div></div></section>\n";
  html += render_mistakes(data.mistakes);
  html += render_config(data);
  html +=
      "<footer>Data: Maas et al., <i>Learning Word Vectors for Sentiment Analysis</i>, ACL 2011. "
      "Made by norma.</footer>\n</main></body></html>\n";
  return html;
}

}  // namespace imdb
