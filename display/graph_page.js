// The graph of a module, folded by scopes: a click opens a scope or shows an instruction; no server, no library.
"use strict";

const data = JSON.parse(document.getElementById("data").textContent);
const units = data.units;
const WIDTH = 210, HEIGHT = 58, GAP_X = 14, GAP_Y = 40, ROW = 14, LINE = 34;
const FIRST_BOXES = 60; // scopes open until this many boxes are drawn

const root = scope(data.name, null);
for (const [number, unit] of units.entries()) {
  let at = root;
  for (const name of unit.path) {
    if (!at.inner.has(name)) at.inner.set(name, scope(name, at));
    at = at.inner.get(name);
  }
  at.units.push(number);
  unit.home = at;
}
measure(root);

function scope(name, parent) {
  return { name, parent, inner: new Map(), units: [], open: parent === null, first: Infinity, count: 0, us: 0, depth: parent ? parent.depth + 1 : 0 };
}

function measure(one) {
  for (const inner of one.inner.values()) {
    measure(inner);
    one.count += inner.count;
    one.us += inner.us;
    one.first = Math.min(one.first, inner.first);
  }
  for (const n of one.units) one.us += units[n].us || 0;
  one.count += one.units.length;
  one.first = Math.min(one.first, ...one.units);
}

function scopes(one = root, found = []) {
  for (const inner of one.inner.values()) { found.push(inner); scopes(inner, found); }
  return found;
}

function openTo(level) {
  for (const one of scopes()) one.open = one.depth <= level;
}

function pathOf(one) {
  const names = [];
  for (let at = one; at && at.parent; at = at.parent) names.unshift(at.name);
  return names.join("/");
}

// --- what is drawn: a box for each closed scope and for each instruction of open ones ---
function visible(one = root, found = []) {
  for (const inner of one.inner.values()) {
    if (inner.open) visible(inner, found);
    else found.push({ scope: inner, order: inner.first });
  }
  for (const n of one.units) found.push({ unit: n, order: n });
  return found;
}

function boxOf(boxes) {
  const of = new Array(units.length);
  const mark = (one, box) => {
    for (const n of one.units) of[n] = box;
    for (const inner of one.inner.values()) mark(inner, box);
  };
  for (const box of boxes) box.scope ? mark(box.scope, box) : (of[box.unit] = box);
  return of;
}

function edgesOf(of) {
  const seen = new Map();
  for (const [a, b] of data.edges) {
    const [from, to] = [of[a], of[b]];
    if (from !== to) seen.set(`${from.id},${to.id}`, [from, to]);
  }
  return [...seen.values()];
}

function layers(boxes, edges) {
  const before = new Map(boxes.map((b) => [b, []]));
  for (const [from, to] of edges) if (from.order < to.order) before.get(to).push(from);
  const rows = [];
  for (const box of boxes) {
    box.row = Math.max(0, ...before.get(box).map((b) => b.row + 1));
    (rows[box.row] ||= []).push(box);
  }
  for (const row of rows) {
    const middle = (b) => before.get(b).reduce((s, o) => s + o.x, 0) / before.get(b).length || b.order / units.length;
    const places = new Map(row.map((b) => [b, middle(b)]));
    row.sort((a, b) => places.get(a) - places.get(b));
    row.forEach((b, n) => { b.x = (n + 0.5) / row.length; });
  }
  const cut = [];
  for (const row of rows) for (let n = 0; n < row.length; n += ROW) cut.push(row.slice(n, n + ROW));
  return cut;
}

// --- drawing ---
function element(name, attributes, ...inner) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...inner);
  return made;
}

const short = (text) => (text.length > LINE ? text.slice(0, LINE - 1) + "…" : text);
const time = (us) => (us ? `${us.toPrecision(3)} us` : "");
let chosen = null, matches = new Set();

function draw() {
  const boxes = visible().sort((a, b) => a.order - b.order);
  boxes.forEach((b, n) => { b.id = n; });
  const of = boxOf(boxes), edges = edgesOf(of), rows = layers(boxes, edges);
  const widest = Math.max(1, ...rows.map((r) => r.length)) * (WIDTH + GAP_X) + GAP_X;
  rows.forEach((row, y) => row.forEach((b, n) => {
    b.left = (widest - row.length * (WIDTH + GAP_X)) / 2 + n * (WIDTH + GAP_X);
    b.top = GAP_Y / 2 + y * (HEIGHT + GAP_Y);
  }));
  const svg = element("svg", { width: widest, height: rows.length * (HEIGHT + GAP_Y) + GAP_Y, role: "img", "aria-label": `${boxes.length} boxes` });
  for (const [a, b] of edges) svg.append(edge(a, b, chosen !== null && (of[chosen] === a || of[chosen] === b)));
  for (const box of boxes) svg.append(drawn(box));
  document.getElementById("graph").replaceChildren(svg);
  document.getElementById("count").textContent = `${boxes.length} boxes, ${units.length} instructions`;
  tree();
  return of;
}

function edge(a, b, isNear) {
  const [x1, y1, x2, y2] = [a.left + WIDTH / 2, a.top + HEIGHT, b.left + WIDTH / 2, b.top];
  const bend = Math.max(Math.abs(y2 - y1) / 2, GAP_Y / 2);
  return element("path", { class: `edge${isNear ? " near" : ""}`, d: `M${x1},${y1}C${x1},${y1 + bend} ${x2},${y2 - bend} ${x2},${y2}` });
}

function drawn(box) {
  const unit = box.scope ? null : units[box.unit];
  const home = unit ? unit.home : box.scope.parent;
  const lines = unit
    ? [unit.op, `${unit.name} ${unit.shape}`, [unit.cost, time(unit.us)].filter(Boolean).join(", ")]
    : [`▸ ${box.scope.name}`, `${box.scope.count} instructions`, time(box.scope.us)];
  const held = unit ? matches.has(box.unit) : [...matches].some((n) => inside(units[n].home, box.scope));
  const names = ["box", held ? "found" : "", unit && box.unit === chosen ? "chosen" : ""].join(" ");
  const group = element("g", { class: names, tabindex: 0, role: "button", transform: `translate(${box.left},${box.top})`, "data-name": unit ? unit.name : pathOf(box.scope) });
  group.append(element("title", {}, unit ? unit.text : pathOf(box.scope)));
  group.append(element("rect", { width: WIDTH, height: HEIGHT, rx: 6, style: `fill:var(--${unit ? unit.kind : "scope"})` }));
  lines.forEach((line, n) => group.append(element("text", { x: 8, y: 17 + 16 * n, class: n ? "" : "title" }, short(line))));
  if (home && home.parent) {
    const path = element("text", { x: 8, y: -3, class: "path" }, short(pathOf(home)));
    path.addEventListener("click", (event) => { event.stopPropagation(); home.open = false; draw(); });
    group.append(path);
  }
  const act = () => {
    if (unit) choose(box.unit);
    else { box.scope.open = true; draw(); }
  };
  group.addEventListener("click", act);
  group.addEventListener("keydown", (event) => { if (event.key === "Enter") act(); });
  return group;
}

function inside(one, outer) {
  for (let at = one; at; at = at.parent) if (at === outer) return true;
  return false;
}

function choose(number) {
  chosen = number;
  for (let at = units[number].home; at; at = at.parent) at.open = true;
  const box = draw()[number];
  const view = document.getElementById("graph");
  view.scrollTo(box.left - view.clientWidth / 2 + WIDTH / 2, box.top - view.clientHeight / 2);
  details(units[number]);
}

function details(unit) {
  const list = document.createElement("dl");
  const row = (name, ...values) => {
    if (!values.some(Boolean)) return;
    const term = document.createElement("dt"), value = document.createElement("dd");
    term.textContent = name;
    value.append(...values);
    list.append(term, value);
  };
  const code = (text) => { const made = document.createElement("code"); made.textContent = text; return made; };
  const link = (name) => {
    const made = document.createElement("a");
    made.href = `#k-${name}`;
    made.textContent = name;
    return made;
  };
  row("instruction", code(unit.text));
  row("scope", unit.path.join("/"));
  row("source", unit.source);
  row("cost", unit.cost);
  if (unit.kernel) row("kernel", link(unit.kernel));
  for (const [stack, form] of Object.entries(unit.forms)) row(`form, ${stack}`, form);
  row("time", unit.us ? `${time(unit.us)}, ${(100 * unit.share).toPrecision(3)}% of the call` : "");
  if (unit.inner.length) row(`fuses ${unit.inner.length}`, code(unit.inner.join("\n")));
  document.getElementById("details").replaceChildren(list);
}

function tree() {
  const list = (one) => {
    const made = document.createElement("ul");
    for (const inner of one.inner.values()) {
      const item = document.createElement("li"), button = document.createElement("button");
      button.textContent = `${inner.open ? "▾" : "▸"} ${inner.name} (${inner.count}${inner.us ? ", " + time(inner.us) : ""})`;
      button.addEventListener("click", () => { inner.open = !inner.open; draw(); });
      item.append(button);
      if (inner.open) item.append(list(inner));
      made.append(item);
    }
    return made;
  };
  document.getElementById("tree").replaceChildren(list(root));
}

function find(text) {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const holds = (u) => words.every((w) => u.searched.includes(w));
  matches = new Set(words.length ? units.map((_, n) => n).filter((n) => holds(units[n])) : []);
  const items = [...matches].slice(0, 50).map((n) => {
    const item = document.createElement("li"), button = document.createElement("button");
    button.textContent = `${units[n].op} ${units[n].name}`;
    button.addEventListener("click", () => choose(n));
    item.append(button);
    return item;
  });
  document.getElementById("found").replaceChildren(...items);
  draw();
  if (words.length) document.getElementById("count").textContent += `, ${matches.size} found`;
}

for (const u of units) {
  const all = [u.name, u.op, u.shape, u.path.join("/"), u.source, u.kernel, ...u.inner, ...Object.values(u.forms)];
  u.searched = all.join(" ").toLowerCase();
}
const level = document.getElementById("level");
const deepest = Math.max(0, ...scopes().map((s) => s.depth));
let first = 0;
for (let n = 1; n <= deepest; n += 1) { openTo(n); if (visible().length <= FIRST_BOXES) first = n; else break; }
openTo(first);
level.value = first;
level.max = deepest;
level.addEventListener("input", () => { openTo(Number(level.value)); draw(); });
document.getElementById("fold").addEventListener("click", () => { openTo(0); level.value = 0; draw(); });
document.getElementById("text").addEventListener("input", (event) => find(event.target.value));
document.getElementById("find").addEventListener("submit", (event) => event.preventDefault());
for (const link of document.querySelectorAll("#kernels a[data-unit]")) {
  link.addEventListener("click", (event) => { event.preventDefault(); choose(Number(link.dataset.unit)); scrollTo(0, 0); });
}
draw();
