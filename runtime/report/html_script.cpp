#include "runtime/report/html_parts.hpp"

// Draws the ops of the chosen batch and the tooltip from the comparison's JSON. Text gets into the
// page through textContent alone. Devices and their colours are those of the legend.

namespace turnout {

const std::string_view kHtmlScript = R"js(
'use strict';
(() => {
const data = JSON.parse(document.getElementById('comparison').textContent);
const devices = [...document.querySelectorAll('#devices [data-device]')]
  .map(e => ({name: e.dataset.device, css: e.dataset.css}));
const batches = [...new Set(data.rows.map(r => r.batch))].sort((a, b) => a - b);
const rowsAt = batch => devices.map(d => ({...d, row: data.rows.find(r => r.batch === batch && r.device === d.name)}));

function make(tag, css, text, ...children) {
  const e = document.createElement(tag);
  if (css) e.className = css;
  if (text != null) e.textContent = text;
  e.append(...children);
  return e;
}
const digits = x => String(Number(x.toPrecision(3)));
function seconds(s) {
  if (s == null || !isFinite(s)) return '-';
  const [scale, unit] = s === 0 || s >= 0.9995 ? [1, 's'] : s >= 0.9995e-3 ? [1e3, 'ms'] : [1e6, '\u00b5s'];
  return digits(s * scale) + ' ' + unit;
}
const count = x => x == null ? '-' : x >= 999500 ? digits(x / 1e6) + 'M' : x >= 9999.5 ? digits(x / 1e3) + 'k' : digits(x);

// Tooltip: all devices at the batch under the pointer or the focus.
const tip = document.getElementById('tip');
function showTip(column) {
  const table = make('table');
  table.append(make('caption', '', 'batch ' + column.dataset.batch));
  for (const {name, css, row} of rowsAt(Number(column.dataset.batch))) {
    if (!row) continue;
    const line = make('tr', '', null, make('td', '', null, make('i', 'swatch ' + css), make('span', 'name', name)));
    if (row.skipped) line.append(make('td', 'skipped', 'skipped: ' + row.skipped));
    else line.append(make('td', 'n', seconds(row.latency_s)), make('td', 'n', count(row.throughput_per_s) + ' per s'),
      make('td', '', null, make('span', 'badge ' + row.evidence, row.evidence)));
    table.append(line);
  }
  tip.replaceChildren(table);
  tip.hidden = false;
  const frame = tip.parentNode.getBoundingClientRect();
  const box = column.getElementsByTagName('line')[0].getBoundingClientRect();
  const right = box.left - frame.left + 14;
  const left = box.left - frame.left - 14 - tip.offsetWidth;
  tip.style.left = Math.max(0, right + tip.offsetWidth <= frame.width || left < 0 ? right : left) + 'px';
  tip.style.top = box.top - frame.top + 8 + 'px';
}
for (const column of document.querySelectorAll('.column')) {
  column.getElementsByTagName('title')[0].remove();
  for (const event of ['mouseenter', 'focus']) column.addEventListener(event, () => showTip(column));
  for (const event of ['mouseleave', 'blur']) column.addEventListener(event, () => { tip.hidden = true; });
}
addEventListener('keydown', event => { if (event.key === 'Escape') tip.hidden = true; });

// Ops. Measured and other times of one op are apart, as in plans that use the CPU and a device.
function byOp(rows) {
  const ops = new Map();
  const add = (device, op, seconds, evidence, nodes) => {
    if (!ops.has(op)) ops.set(op, {op, most: 0, devices: new Map()});
    const of = ops.get(op).devices;
    if (!of.has(device)) of.set(device, {seconds: 0, nodes: 0, parts: new Map()});
    const entry = of.get(device);
    entry.seconds += seconds;
    entry.nodes += nodes;
    entry.parts.set(evidence, (entry.parts.get(evidence) || 0) + seconds);
  };
  for (const {name, row} of rows) {
    for (const node of row.node_times || []) add(name, node.op, node.seconds || 0, node.evidence, 1);
    if (row.transfer_s > 0) add(name, transfers, row.transfer_s, 'predicted', 0);
  }
  return [...ops.values()];
}
const transfers = 'transfers between devices';

function part(share, evidence, textWidth) {
  const e = make('span', 'part ' + evidence);
  e.style.width = `calc((100% - ${textWidth}px) * ${share.toFixed(5)})`;
  return e;
}
function drawOps(target, rows, relative) {
  const total = name => relative ? totals.get(name) || 1 : 1;
  const ops = byOp(rows);
  const totals = new Map();
  for (const {devices: of} of ops) for (const [name, e] of of) totals.set(name, (totals.get(name) || 0) + e.seconds);
  for (const op of ops) for (const [name, e] of op.devices) op.most = Math.max(op.most, e.seconds / total(name));
  ops.sort((a, b) => b.most - a.most);
  if (!relative && ops.length) ops.unshift({op: 'whole run', devices: new Map(rows.map(({name, row}) =>
    [name, {seconds: row.latency_s, nodes: 0, parts: new Map([[row.evidence, row.latency_s]])}]))});
  const most = Math.max(...ops.flatMap(op => [...op.devices].map(([name, e]) => e.seconds / total(name))), 1e-30);
  for (const op of ops) {
    const bars = make('div');
    for (const {name, css} of rows) {
      const entry = op.devices.get(name);
      if (!entry) continue;
      const track = make('div', 'track');
      for (const [evidence, s] of entry.parts) track.append(part(s / total(name) / most, evidence, 190));
      const share = 100 * entry.seconds / (totals.get(name) || 1);
      track.append(make('span', '', (relative ? digits(share) + ' %, ' : '') + seconds(entry.seconds) +
        (entry.nodes > 1 ? ' in ' + entry.nodes + ' nodes' : '')));
      const label = make('span', '', name);
      label.title = name;
      bars.append(make('div', 'bar ' + css, null, label, track));
    }
    target.append(make('div', 'op', null, make('div', '', op.op), bars));
  }
  return ops.length;
}

// One line a node. Devices run different graphs (fused or not), so nodes are matched by name.
function nodeLines(rows) {
  const order = [], lines = new Map();
  for (const {name, row} of rows) {
    const seen = new Map();
    let at = -1;
    for (const node of row.node_times || []) {
      const nth = seen.get(node.name) || 0;
      seen.set(node.name, nth + 1);
      const key = nth + ' ' + node.name;
      if (!lines.has(key)) {
        lines.set(key, {node, times: new Map()});
        order.splice(at + 1, 0, key);
      }
      at = order.indexOf(key);
      lines.get(key).times.set(name, node);
    }
  }
  return order.map(key => lines.get(key));
}
function drawNodes(target, rows) {
  const lines = nodeLines(rows);
  const most = Math.max(...lines.flatMap(l => [...l.times.values()].map(n => n.seconds || 0)), 1e-30);
  const head = make('tr', '', null, make('th', 'n', '#'), make('th', '', 'node'), make('th', '', 'op'));
  for (const {name, css} of rows) head.append(make('th', '', null, make('span', 'device', null, make('i', 'swatch ' + css), make('span', 'name', name))));
  const body = make('tbody');
  lines.forEach(({node, times}, i) => {
    const line = make('tr', '', null, make('td', 'n', i + 1), make('td', '', node.name || '-'), make('td', '', node.op));
    for (const {name, css} of rows) {
      const time = times.get(name);
      const cell = make('td', 'cell ' + css);
      if (time) {
        const text = seconds(time.seconds) + ' ' + time.provider;
        const where = time.device !== name ? ' on ' + time.device : '';
        cell.append(make('div', '', null, part((time.seconds || 0) / most, time.evidence, 0)), make('small', '', text + where));
        cell.title = time.evidence;
      }
      line.append(cell);
    }
    body.append(line);
  });
  target.replaceChildren(make('table', 'by-node', null, make('thead', '', null, head), body));
}

// Radio buttons: one stop of the tab key, arrow keys inside.
function choice(name, title, values, chosen, changed) {
  const set = make('fieldset', '', null, make('legend', '', title));
  values.forEach(([value, text]) => {
    const input = make('input');
    input.type = 'radio';
    input.name = name;
    input.checked = value === chosen;
    input.addEventListener('change', () => changed(value));
    set.append(make('label', '', null, input, text));
  });
  return set;
}

const full = batch => rowsAt(batch).filter(d => d.row && !d.row.skipped).length;
const state = {batch: batches.reduce((best, b) => full(b) >= full(best) ? b : best, batches[0]), relative: false};
const chart = make('div'), nodes = make('div', 'scroll'), details = make('details', '', null, make('summary', '', 'By node'), nodes);
function draw() {
  const rows = rowsAt(state.batch).filter(d => d.row && !d.row.skipped);
  chart.replaceChildren();
  for (const d of rowsAt(state.batch)) if (d.row && d.row.skipped)
    chart.append(make('p', 'skipped', d.name + ' at batch ' + state.batch + ' skipped: ' + d.row.skipped));
  if (!drawOps(chart, rows, state.relative)) chart.append(make('p', 'skipped', 'no times of ops at this batch'));
  nodes.replaceChildren();
  if (details.open) drawNodes(nodes, rows);
}
details.addEventListener('toggle', draw);
addEventListener('beforeprint', () => { details.open = true; draw(); });
const controls = make('div', 'controls', null,
  choice('batch', 'Batch', batches.map(b => [b, b]), state.batch, b => { state.batch = b; draw(); }),
  choice('scale', 'Bars', [[false, 'seconds'], [true, 'share of the device\u2019s time']], false, r => { state.relative = r; draw(); }));
document.getElementById('ops').replaceChildren(controls, chart, details);
draw();
})();
)js";

}  // namespace turnout
