#include "norm_lab/report.h"

#include "norm_lab/report_style.h"
#include "norm_lab/svg_chart.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>

namespace norm_lab {

namespace {

std::string verdict_tag(Verdict verdict) {
  return fmt::format("<span class=\"verdict {0}\">{0}</span>", to_string(verdict));
}

std::string expectations(const Result& result) {
  std::string html =
      "<div class=\"scroll\"><table "
      "class=\"rows\"><thead><tr><th>quantity</th><th>expected</th><th>measured</th>"
      "<th></th></tr></thead><tbody>\n";
  for (const Row& row : result.rows)
    html += fmt::format(
        "<tr class=\"{}\"><td>{}</td><td>{}</td><td>{}</td><td class=\"{}\">{}</td></tr>\n",
        row.tests == Tests::claim ? "claim" : "reference", escaped(row.quantity),
        escaped(row.expected.text), measured_text(row), row.agrees() ? "yes" : "no",
        row.agrees() ? "✓" : "✗");
  return html + "</tbody></table></div>\n";
}

std::string table(const Table& table) {
  std::string html =
      "<h4>" + escaped(table.title) + "</h4><div class=\"scroll\"><table><thead><tr>";
  for (const std::string& column : table.columns) html += "<th>" + escaped(column) + "</th>";
  html += "</tr></thead><tbody>\n";
  for (const auto& row : table.rows) {
    html += "<tr>";
    for (const std::string& cell : row) html += "<td>" + escaped(cell) + "</td>";
    html += "</tr>\n";
  }
  return html + "</tbody></table></div>\n";
}

std::string section(const Finished& one, const Settings& settings) {
  const Result& result = one.result;
  const Verdict verdict = judge(result);
  std::string html = fmt::format(
      "<section id=\"{}\"><h3>{} {}</h3>\n<p class=\"statement\">“{}”</p>\n<p "
      "class=\"meta\">Source: "
      "{}. "
      "Setting: {}.</p>\n",
      one.experiment.name, escaped(one.experiment.title), verdict_tag(verdict),
      escaped(result.claim), escaped(result.source), escaped(result.setting));
  if (verdict == Verdict::depends)
    html += "<p class=\"finding\"><b>Depends on</b> " + escaped(result.depends_on) + ".</p>\n";
  if (!result.finding.empty()) html += "<p class=\"finding\">" + escaped(result.finding) + "</p>\n";
  html += "<div class=\"columns\"><div>";
  for (const Chart& chart : result.charts) html += render_chart(chart);
  html += "</div><div>" + expectations(result) + "</div></div>\n";
  for (const Table& more : result.tables) html += table(more);
  html += fmt::format("<p class=\"meta\"><code>{}</code> · {:.1f} s</p></section>\n",
                      escaped(command_of(one.experiment, settings)), one.seconds);
  return html;
}

std::string overview(const std::vector<Finished>& all) {
  std::string html =
      "<section><div class=\"scroll\"><table><thead><tr><th>experiment</th><th>rows that "
      "agree</th><th>verdict</th></tr></thead><tbody>\n";
  for (const Finished& one : all) {
    const auto& rows = one.result.rows;
    const auto agree =
        std::count_if(rows.begin(), rows.end(), [](const Row& row) { return row.agrees(); });
    html += fmt::format("<tr><td><a href=\"#{}\">{}</a></td><td>{} of {}</td><td>{}</td></tr>\n",
                        one.experiment.name, escaped(one.experiment.title), agree, rows.size(),
                        verdict_tag(judge(one.result)));
  }
  return html + "</tbody></table></div></section>\n";
}

}  // namespace

std::string measured_text(const Row& row) {
  const bool truth = row.expected.text == "yes" || row.expected.text == "no";
  if (truth) return row.measured != 0.0 ? "yes" : "no";
  return number(row.measured);
}

std::string command_of(const Experiment& experiment, const Settings& settings) {
  return fmt::format("norm_lab {} --seed {}{}{}", experiment.name, settings.seed,
                     settings.quick ? " --quick" : "", settings.large() ? " --gpu" : "");
}

std::string render_report(const std::vector<Finished>& all, const Settings& settings,
                          const Facts& facts) {
  std::string html =
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
      "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">"
      "<title>The norm lab</title><style>" +
      std::string(kReportStyle) + "</style></head><body><main>\n<h1>The norm lab</h1>\n";
  html +=
      "<p class=\"sub\">Claims about normalization in Transformers, run again. Expected values "
      "come "
      "from the claim (first rows of each table) or from an own derivation or simulation (grey "
      "rows); a verdict is computed from the first kind. ";
  for (std::size_t i = 0; i < facts.size(); ++i)
    html += fmt::format("{}{}: {}", i == 0 ? "" : " · ", escaped(facts[i].first),
                        escaped(facts[i].second));
  html += "</p>\n";
  if (settings.quick)
    html += "<p class=\"finding\"><b>Made with --quick:</b> a few steps only, no evidence.</p>\n";
  if (all.size() > 1) html += "<h2>Verdicts</h2>\n" + overview(all);
  std::string group;
  for (const Finished& one : all) {
    if (group != one.experiment.group) {
      group = one.experiment.group;
      html += "<h2>" + escaped(group) + "</h2>\n";
    }
    html += section(one, settings);
  }
  return html + "<footer>Made by norm_lab, a program of norma.</footer>\n</main></body></html>\n";
}

std::string render_text(const Finished& one) {
  const Result& result = one.result;
  std::string text = fmt::format("{}: {}\n  claim: {}\n  source: {}\n", one.experiment.name,
                                 one.experiment.title, result.claim, result.source);
  for (const Row& row : result.rows)
    text += fmt::format("  {} {} {}: expected {}, measured {}\n", row.agrees() ? "✓" : "✗",
                        row.tests == Tests::claim ? "claim    " : "reference", row.quantity,
                        row.expected.text, measured_text(row));
  const Verdict verdict = judge(result);
  text += fmt::format("  verdict: {}", to_string(verdict));
  if (verdict == Verdict::depends) text += ", on " + result.depends_on;
  return text + fmt::format(" ({:.1f} s)\n", one.seconds);
}

}  // namespace norm_lab
