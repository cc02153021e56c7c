#include "runtime/report/html_parts.hpp"

// The colours of devices are told apart by people who are colour-blind, and stand out from the
// background of either theme as text does. What is measured is filled and solid, everywhere.

namespace turnout {

const std::string_view kHtmlStyle = R"css(
:root{color-scheme:light dark;--paper:#fff;--ink:#1b1f24;--quiet:#5c6670;--line:#d9dee3;--shade:#f4f6f8;
--bad:#b3261e;--c0:#0067a8;--c1:#c24a00;--c2:#007a5e;--c3:#a8478a;--c4:#8a6500;--c5:#5a4fcf;--c6:#4b6172}
@media (prefers-color-scheme:dark){:root{--paper:#14181d;--ink:#e8ecf0;--quiet:#a0abb6;--line:#343c45;
--shade:#1d2329;--bad:#ff8a80;--c0:#5db5f0;--c1:#ff8f52;--c2:#3fcca0;--c3:#ea9fcf;--c4:#e8bd45;--c5:#aca6ff;
--c6:#a9bccb}}
@media print{:root{color-scheme:light;--paper:#fff;--ink:#000;--quiet:#444;--line:#bbb;--shade:#f4f4f4;
--bad:#b3261e;--c0:#0067a8;--c1:#c24a00;--c2:#007a5e;--c3:#a8478a;--c4:#8a6500;--c5:#5a4fcf;--c6:#4b6172}
*{print-color-adjust:exact}section:has(svg),.op,tr{break-inside:avoid-page}#tip{display:none!important}}
.c0{--c:var(--c0)}.c1{--c:var(--c1)}.c2{--c:var(--c2)}.c3{--c:var(--c3)}.c4{--c:var(--c4)}.c5{--c:var(--c5)}
.c6{--c:var(--c6)}.auto{--c:var(--ink)}.none{--c:var(--quiet)}
*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--ink);font:15px/1.5 system-ui,"Segoe UI",Roboto,"DejaVu Sans",sans-serif}
main{max-width:1180px;margin:0 auto;padding:28px 24px 48px}
h1{font-size:27px;line-height:1.2;margin:0 0 8px}h2{font-size:18px;margin:36px 0 10px}
p{margin:6px 0;max-width:80ch}#result{font-size:19px;line-height:1.4;font-weight:600;overflow-wrap:anywhere}
h1{overflow-wrap:anywhere}.name{unicode-bidi:isolate;overflow-wrap:break-word;min-width:0}.bad{color:var(--bad);font-weight:600}
.small,small{font-size:13px;color:var(--quiet)}
.legend{display:flex;flex-wrap:wrap;justify-content:space-between;gap:4px 32px;margin-bottom:8px}
.legend ul{display:flex;flex-wrap:wrap;gap:2px 20px;margin:0;padding:0;list-style:none}
.legend li{display:flex;align-items:center;min-width:0}svg.key{margin-right:7px}
.swatch{display:inline-block;flex:none;width:11px;height:11px;border-radius:50%;background:var(--c);margin-right:7px}
.swatch.auto{opacity:.4}
svg.key{width:40px;height:12px}
.chart{position:relative}#latency{display:block;width:100%;height:auto}
svg text{font:13px system-ui,"Segoe UI",Roboto,"DejaVu Sans",sans-serif;fill:var(--ink)}
svg .tick,svg .axis{fill:var(--quiet);font-size:12.5px}.frame{fill:none;stroke:var(--line)}.grid{stroke:var(--line)}
.curve{fill:none;stroke:var(--c);stroke-width:2.2;stroke-linejoin:round}
.curve.predicted{stroke-dasharray:7 5}.curve.mixed{stroke-dasharray:.1 5;stroke-linecap:round;stroke-width:3}
.curve.auto{stroke-width:9;opacity:.22;stroke-dasharray:none;stroke-linecap:butt}
.curve.auto.predicted{stroke-dasharray:9 4}.curve.auto.mixed{stroke-dasharray:.1 12;stroke-linecap:round}
.curve.key{stroke-width:2.2;opacity:1}.curve.key.predicted{stroke-dasharray:7 5}
.curve.key.mixed{stroke-dasharray:.1 5;stroke-width:3}
.point{fill:var(--paper);stroke:var(--c);stroke-width:2}.point.key{--c:var(--ink)}
.point.measured{fill:var(--c)}.point.mixed{fill:color-mix(in srgb,var(--c) 45%,var(--paper))}
.point.auto{stroke-width:1.2;fill:none;opacity:.6}
.leader{stroke:var(--c);opacity:.7}.mark{stroke:var(--c);stroke-width:1.6;stroke-dasharray:2 3}
.band{fill:var(--c);opacity:.07}.ring{fill:none;stroke:var(--c);stroke-width:2}
svg .label,svg .mark-text{fill:var(--c);font-weight:600;paint-order:stroke;stroke:var(--paper);stroke-width:4px;stroke-linejoin:round}
.winner rect{fill:color-mix(in srgb,var(--c) 16%,var(--paper));stroke:var(--c);stroke-width:1.4;stroke-dasharray:5 3}
.winner.mixed rect{stroke-dasharray:1.5 3}.winner.measured rect{fill:var(--c);stroke-dasharray:none}
svg .winner text{font-size:12.5px}svg .winner.measured text{fill:var(--paper)}
.column rect{fill:transparent}.column line{stroke:var(--ink);opacity:0}
.column{outline:none}.column:hover line{opacity:.45}.column:focus-visible line{opacity:1;stroke-width:2}
#tip{position:absolute;z-index:1;pointer-events:none;background:var(--paper);border:1px solid var(--line);border-radius:6px;
box-shadow:0 3px 14px #0004;padding:8px 12px;font-size:13px;max-width:520px}
#tip td{padding:1px 10px 1px 0}#tip caption{text-align:left;font-weight:600}
td,th{text-align:left;vertical-align:top}.n{text-align:right;font-variant-numeric:tabular-nums}
.scroll{overflow-x:auto}#rows{border-collapse:collapse;width:100%;font-size:14px}
#rows th{color:var(--quiet);font-weight:600;font-size:13px}
#rows td,#rows th{padding:5px 12px 5px 0;white-space:nowrap}
#rows .device{max-width:260px;white-space:normal}
.device{display:inline-flex;align-items:baseline}
#rows tbody{border-top:1px solid var(--line)}#rows .nodes{white-space:normal;min-width:110px;font-size:13px;overflow-wrap:anywhere;padding-right:0}
#rows small{display:block;line-height:1.2;font-weight:400;font-size:12px}
.fastest{display:block;font-size:12px;line-height:1.2;color:var(--quiet)}.skipped{color:var(--quiet);font-style:italic}
.badge{display:inline-block;font-size:12px;line-height:1.45;font-weight:600;padding:0 8px;border-radius:9px;border:1.4px dashed var(--quiet);white-space:nowrap}
.badge.measured{background:var(--ink);border:1.4px solid var(--ink);color:var(--paper)}
.badge.calibrated{background:var(--shade);border:1.4px solid var(--ink)}.badge.predicted{border-color:var(--ink)}
.badge.mixed{border:1.6px dotted var(--ink);background:var(--shade)}.badge.default,.badge.unprobed{color:var(--quiet)}
.meanings{display:grid;grid-template-columns:repeat(auto-fill,minmax(400px,1fr));gap:6px 24px;margin:12px 0;font-size:13px}
.meanings div{display:flex;gap:10px}.meanings dt{flex:0 0 92px}.meanings dd{margin:0}
.controls{display:flex;flex-wrap:wrap;gap:8px 32px;margin:4px 0 12px}
fieldset{display:flex;flex-wrap:wrap;align-items:center;gap:4px;border:0;margin:0;padding:0}
legend{float:left;padding:0;margin-right:8px;color:var(--quiet);font-size:13px}
.controls label{position:relative;border:1px solid var(--line);border-radius:6px;padding:1px 11px;font-size:14px;cursor:pointer}
.controls input{position:absolute;inset:0;opacity:0;cursor:pointer;margin:0;width:100%;height:100%}
.controls label:has(:checked){background:var(--ink);color:var(--paper);border-color:var(--ink)}
.controls label:has(:focus-visible){outline:2px solid var(--c0);outline-offset:2px}
.op{display:grid;grid-template-columns:190px 1fr;gap:12px;padding:7px 0;border-top:1px solid var(--line)}
.op>:first-child{overflow-wrap:anywhere;font-weight:600}
.bar{display:grid;grid-template-columns:150px 1fr;gap:10px;align-items:center;font-size:13px;line-height:19px}
.bar>:first-child{color:var(--c);overflow:hidden;text-overflow:ellipsis;white-space:nowrap;unicode-bidi:isolate}
.track{display:flex;align-items:center;min-width:0}.part{flex:none;height:12px;min-width:2px;border:1.5px dashed var(--c);
background:color-mix(in srgb,var(--c) 14%,var(--paper))}
.part.measured{background:var(--c);border:1.5px solid var(--c)}.part.calibrated{border-style:solid}
.track span:last-child{margin-left:8px;white-space:nowrap;font-variant-numeric:tabular-nums}
details{margin-top:16px}summary{cursor:pointer;font-weight:600}
.by-node{border-collapse:collapse;font-size:13px;margin-top:8px;width:100%}
.by-node td,.by-node th{padding:3px 12px 3px 0;border-top:1px solid var(--line)}
.by-node td:nth-child(2){overflow-wrap:anywhere;min-width:140px;unicode-bidi:isolate}
.by-node .cell{min-width:130px}.by-node .part{display:inline-block;height:8px}
@media (max-width:1080px){main{padding:20px 16px}#rows td:nth-child(8),#rows th{white-space:normal}#rows{font-size:13px}#rows td,#rows th{padding-right:7px}#rows .nodes{min-width:90px}.by-node .cell{min-width:90px}.by-node .name{overflow-wrap:anywhere}}
.wins td{font-weight:600}.wins .nodes{font-weight:400}
)css";

}  // namespace turnout
