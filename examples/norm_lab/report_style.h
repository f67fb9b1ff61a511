// The style sheet of the report.
#pragma once

namespace norm_lab {

inline constexpr char kReportStyle[] = R"css(
:root{color-scheme:light dark;--bg:#fbfbfa;--card:#fff;--ink:#1d2329;--soft:#5d6873;--line:#e3e6e9;
--c1:#2166c4;--c2:#d1571b;--c3:#1b8a5a;--c4:#7a4fc2;--c5:#b3871a;--c6:#c43a78;--c7:#3a8f9c;--c8:#6b7280;
--good:#1b8a5a;--bad:#c8383d;--maybe:#a86b00}
@media (prefers-color-scheme:dark){:root{--bg:#14171a;--card:#1c2024;--ink:#e7eaed;--soft:#9aa5b0;
--line:#30363c;--c1:#6ba6f5;--c2:#f2955c;--c3:#57c794;--c4:#b294f0;--c5:#dfb95c;--c6:#f07fb0;--c7:#6cc5d3;
--c8:#9ca3af;--good:#57c794;--bad:#f0777b;--maybe:#e0ad4e}}
*{box-sizing:border-box}
body{margin:0;background:var(--bg);color:var(--ink);font:15px/1.5 system-ui,-apple-system,"Segoe UI",
Roboto,"DejaVu Sans",sans-serif;font-variant-numeric:tabular-nums}
main{max-width:1180px;margin:0 auto;padding:36px 24px 24px}
h1{font-size:30px;line-height:1.2;margin:2px 0 4px;letter-spacing:-.01em}
h2{font-size:21px;margin:46px 0 12px}
h3{font-size:16.5px;margin:0;display:flex;flex-wrap:wrap;gap:6px 12px;align-items:center}
h4{font-size:13px;margin:14px 0 4px;color:var(--soft);font-weight:600}
.sub,footer{color:var(--soft);margin:0}
a{color:var(--c1)}
section{background:var(--card);border:1px solid var(--line);border-radius:12px;padding:18px 20px;margin:0 0 16px}
.statement{font-size:16px;margin:10px 0 2px}
.meta{font-size:13px;color:var(--soft);margin:0}
.finding{margin:12px 0 0}
.verdict{font-size:12.5px;font-weight:600;border:1px solid currentColor;border-radius:20px;padding:1px 11px}
.confirmed{color:var(--good)}.refuted{color:var(--bad)}.depends{color:var(--maybe)}
.columns{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,430px),1fr));gap:14px 22px;
align-items:start;margin-top:14px}
.columns>*{min-width:0}
.scroll{overflow-x:auto}
figure{margin:0 0 12px}
figcaption{font-weight:600;font-size:14px;display:flex;flex-wrap:wrap;justify-content:space-between;gap:2px 14px}
.legend{font-weight:400;font-size:12.5px;color:var(--soft)}
.key{display:inline-block;width:16px;border-top:3px solid currentColor;margin:0 5px 4px 9px;vertical-align:middle}
.key.dashed{border-top-style:dashed}
svg{width:100%;height:auto;display:block}
.c1{color:var(--c1)}.c2{color:var(--c2)}.c3{color:var(--c3)}.c4{color:var(--c4)}
.c5{color:var(--c5)}.c6{color:var(--c6)}.c7{color:var(--c7)}.c8{color:var(--c8)}
.line{fill:none;stroke:currentColor;stroke-width:1.9;stroke-linejoin:round}
.line.dashed{stroke-dasharray:6 4;stroke-width:1.5}
.dot,.bar{fill:currentColor}.bar.open{fill-opacity:.25;stroke:currentColor;stroke-dasharray:4 3}
.dot{stroke:var(--card);stroke-width:1}
.cell{fill:color-mix(in srgb,var(--good) calc(var(--share)*55%),var(--card));stroke:var(--line)}
.cell.lost{fill:color-mix(in srgb,var(--bad) 45%,var(--card))}
.grid{stroke:var(--line)}.axis{stroke:var(--soft);fill:none}
svg text{font-size:11.5px;fill:var(--soft)}svg .value{fill:var(--ink);font-size:11px}
table{border-collapse:collapse;width:100%;font-size:13.5px}
th,td{padding:4px 8px;border-bottom:1px solid var(--line);text-align:right;vertical-align:top}
tbody tr:last-child>*{border-bottom:0}
th{font-weight:500;color:var(--soft)}
td:first-child,th:first-child{text-align:left;padding-left:0}
.rows td:not(:first-child){white-space:nowrap}
tr.reference td:first-child{color:var(--soft)}
.yes{color:var(--good)}.no{color:var(--bad)}
code{font-size:12.5px;color:var(--soft);overflow-wrap:anywhere}
footer{font-size:12.5px;margin-top:36px;padding-top:14px;border-top:1px solid var(--line)}
@media print{main{padding:0}section{break-inside:avoid}}
)css";

}  // namespace norm_lab
