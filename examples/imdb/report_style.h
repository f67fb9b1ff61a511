// The style sheet of report.html.
#pragma once

namespace imdb {

inline constexpr char kReportStyle[] = R"css(
:root{color-scheme:light dark;--bg:#fbfbfa;--card:#fff;--ink:#1d2329;--soft:#5d6873;--line:#e3e6e9;
--c1:#2166c4;--c2:#d1571b;--c3:#1b8a5a;--c4:#7a4fc2;--good:#1b8a5a;--bad:#c8383d}
@media (prefers-color-scheme:dark){:root{--bg:#14171a;--card:#1c2024;--ink:#e7eaed;--soft:#9aa5b0;
--line:#30363c;--c1:#6ba6f5;--c2:#f2955c;--c3:#57c794;--c4:#b294f0;--good:#57c794;--bad:#f0777b}}
*{box-sizing:border-box}
body{margin:0;background:var(--bg);color:var(--ink);font:15px/1.5 system-ui,-apple-system,"Segoe UI",
Roboto,"DejaVu Sans",sans-serif;font-variant-numeric:tabular-nums}
main{max-width:1180px;margin:0 auto;padding:36px 24px 24px}
h1{font-size:30px;line-height:1.2;margin:2px 0 4px;letter-spacing:-.01em}
h2{font-size:19px;margin:38px 0 12px}
h3{font-size:13px;margin:0 0 6px;color:var(--soft);font-weight:600}
.over,.sub,.note,footer{color:var(--soft);margin:0}
.over{font-size:13px}.note{font-size:13px;margin:8px 0 12px}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(165px,1fr));gap:12px;margin-top:24px}
.tile,figure,article,.columns>div{background:var(--card);border:1px solid var(--line);border-radius:10px}
.tile{padding:14px 16px;display:flex;flex-direction:column}
.tile b{font-size:25px;line-height:1.2;font-weight:650}
.tile small{color:var(--soft);font-size:12px;line-height:1.35;margin-top:3px}
.charts{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,430px),1fr));gap:14px}
figure{margin:0;padding:12px 14px 6px}
figcaption{font-weight:600;display:flex;flex-wrap:wrap;justify-content:space-between;gap:2px 14px}
.legend{font-weight:400;font-size:12.5px;color:var(--soft)}
.key{display:inline-block;width:16px;height:3px;border-radius:2px;margin:0 5px 3px 9px;vertical-align:middle;
background:currentColor}
svg{width:100%;height:auto;display:block}
.c1{color:var(--c1)}.c2{color:var(--c2)}.c3{color:var(--c3)}.c4{color:var(--c4)}
.line{fill:none;stroke:currentColor;stroke-width:1.9;stroke-linejoin:round}
.faint{opacity:.28}.line.faint{stroke-width:1}
.dot{fill:currentColor;stroke:var(--card);stroke-width:1.5}
.grid{stroke:var(--line)}.axis{stroke:var(--soft);fill:none}
svg text{font-size:11.5px;fill:var(--soft)}
.columns{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,330px),1fr));gap:14px;
align-items:start}
.columns>div{padding:14px 16px;overflow-x:auto}
table{border-collapse:collapse;width:100%;font-size:13.5px}
th,td{padding:5px 8px;border-bottom:1px solid var(--line);text-align:right}
tbody tr:last-child>*{border-bottom:0}
th{font-weight:500;color:var(--soft)}
.numbers td:first-child,.numbers th:first-child{text-align:left}
.pairs th{text-align:left;padding-left:0;white-space:nowrap}
.pairs td{overflow-wrap:anywhere;padding-right:0}
.confusion td{text-align:center;border:4px solid var(--card);border-radius:10px;padding:12px 8px}
.confusion td b{display:block;font-size:19px}
.confusion td small{color:inherit;opacity:.8}
.confusion thead th{text-align:center}
.good{background:color-mix(in srgb,var(--good) calc(var(--share)*60%),var(--card))}
.bad{background:color-mix(in srgb,var(--bad) calc(var(--share)*60%),var(--card))}
article{padding:12px 16px;margin-bottom:10px}
article header{font-size:12.5px;display:flex;flex-wrap:wrap;gap:6px;align-items:center}
article p{margin:8px 0 0;overflow-wrap:anywhere}
code{color:var(--soft);font-size:12px;margin-left:auto}
.tag{border:1px solid currentColor;border-radius:20px;padding:1px 9px}
.pos{color:var(--good)}.neg{color:var(--bad)}.cut{color:var(--soft)}
footer{font-size:12.5px;margin-top:36px;padding-top:14px;border-top:1px solid var(--line)}
@media print{main{padding:0}.tile,figure,article{break-inside:avoid}}
)css";

}  // namespace imdb
