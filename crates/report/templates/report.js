// What the page does beyond showing: switch cells and references, hide contenders, sort, filter and copy tables, draw
// any visit over time. The view is kept in the address (#view:...), so that a link shows what its sender saw. Without
// this script every figure is still there. It fetches nothing; the policy of the page forbids it.
(() => {
"use strict";

const byId = (id) => document.getElementById(id);
const all = (selector, root = document) => [...root.querySelectorAll(selector)];
// The data may be large, and a reader who only looks does not need it.
let parsed = null;
const data = () => (parsed ??= JSON.parse(byId("data").textContent));

// ---- The view, and its address ----------------------------------------------------------------------------------

const PREFIX = "#view:";
const view = { cell: "", ref: "", hide: new Set(), visit: "", counter: "" };

function readAddress() {
  const known = location.hash.startsWith(PREFIX) ? location.hash.slice(PREFIX.length) : "";
  const given = new URLSearchParams(known);
  for (const key of ["cell", "ref", "visit", "counter"]) view[key] = given.get(key) ?? "";
  view.hide = new Set((given.get("hide") ?? "").split(",").filter((part) => /^\d+$/.test(part)));
}

function address() {
  const kept = new URLSearchParams();
  for (const key of ["cell", "ref", "visit", "counter"]) if (view[key]) kept.set(key, view[key]);
  if (view.hide.size) kept.set("hide", [...view.hide].join(","));
  const text = kept.toString();
  return text ? PREFIX + text : "";
}

function keepAddress() {
  const base = location.href.split("#")[0];
  history.replaceState(null, "", base + address());
}

// ---- Cells ------------------------------------------------------------------------------------------------------

const cellPicker = byId("cell");

function showCell() {
  if (!cellPicker) return;
  const options = all("option", cellPicker).map((option) => option.value);
  if (!options.includes(view.cell)) view.cell = "";
  const chosen = view.cell || "0";
  cellPicker.value = chosen;
  for (const part of all("section.cell")) {
    part.classList.toggle("is-hidden", chosen !== "all" && part.dataset.cell !== chosen);
  }
}

// An address that names a cell, or a part of one, shows that cell.
function reveal() {
  const target = location.hash.startsWith(PREFIX) ? null : byId(decodeURIComponent(location.hash.slice(1)));
  const cell = target?.closest("section.cell");
  if (!cell || !cellPicker) return;
  view.cell = cell.dataset.cell;
  apply();
  target.scrollIntoView();
}

// A link to a cell that is hidden shows it.
function follow(event) {
  const link = event.target.closest('a[href^="#"]');
  const target = link && byId(link.getAttribute("href").slice(1));
  const cell = target?.closest("section.cell");
  if (!cell || !cellPicker) return;
  view.cell = cell.dataset.cell;
  apply();
  keepAddress();
  event.preventDefault();
  target.scrollIntoView();
  target.setAttribute("tabindex", "-1");
  target.focus({ preventScroll: true });
}

// ---- Contenders that are shown ----------------------------------------------------------------------------------

const ROW = /translate\(0 (-?[\d.]+)\)/;

// Rows that are left move up, and what stands below them too.
function packRows(svg) {
  const rows = all(":scope > g.row", svg);
  const foot = svg.querySelector(":scope > g.foot");
  if (!rows.length || !foot) return;
  svg.dataset.full ??= JSON.stringify({
    view: svg.getAttribute("viewBox"),
    rows: rows.map((row) => Number(ROW.exec(row.getAttribute("transform"))?.[1])),
    foot: Number(ROW.exec(foot.getAttribute("transform"))?.[1]),
  });
  const full = JSON.parse(svg.dataset.full);
  const step = rows.length > 1 ? full.rows[1] - full.rows[0] : full.foot - full.rows[0];
  let shown = 0;
  for (const row of rows) {
    const hidden = view.hide.has(row.dataset.c);
    row.classList.toggle("is-hidden", hidden);
    if (!hidden) row.setAttribute("transform", `translate(0 ${full.rows[0] + step * shown++})`);
  }
  const bottom = full.rows[0] + step * shown;
  foot.setAttribute("transform", `translate(0 ${bottom})`);
  for (const line of all(":scope > line.down", svg)) line.setAttribute("y2", bottom);
  for (const area of all(":scope > rect.down", svg)) area.setAttribute("height", Math.max(0, bottom - full.rows[0]));
  const [x, y, width, height] = full.view.split(" ").map(Number);
  svg.setAttribute("viewBox", `${x} ${y} ${width} ${height - (full.foot - bottom)}`);
}

function showContenders() {
  for (const box of all("#shown input")) box.checked = !view.hide.has(box.value);
  for (const part of all("[data-c]")) part.classList.toggle("is-hidden", view.hide.has(part.dataset.c));
  for (const svg of all("svg")) packRows(svg);
  const names = new Set(view.hide.size ? [...view.hide].map((index) => data().contenders[index]) : []);
  for (const head of all("tbody th[scope=row]")) {
    const text = head.textContent;
    const isOf = (name) => text === name || text.startsWith(`${name} over `) || text.endsWith(` over ${name}`);
    head.parentElement.classList.toggle("is-hidden", [...names].some(isOf));
  }
}

// ---- Ratios to another reference --------------------------------------------------------------------------------

// The geometry of forest.rs.
const PLOT = [150, 320], SAID = 328, WIDTH = 500, TOP = 30, ROW_HEIGHT = 36, BELOW = 30, ARROW = 26, TICK_GAP = 34;
const NAME_ROOM = 140, FONT = 13, CHAR = 0.62;

const round1 = (value) => String(Math.round(Math.max(-1e6, Math.min(1e6, value)) * 10) / 10);
const fit = (text, room) => {
  const most = Math.max(2, Math.floor(room / (FONT * CHAR)));
  const chars = [...text];
  return chars.length <= most ? text : chars.slice(0, most - 1).join("").trimEnd() + "\u2026";
};

function element(name, attributes, text) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) {
    made.setAttribute(key, typeof value === "number" ? round1(value) : value);
  }
  if (text !== undefined) made.textContent = text;
  return made;
}

function decimals(ratio, isFine) {
  if (ratio >= 100) return 0;
  if (ratio >= 10) return 1;
  return ratio < 0.1 || isFine ? 3 : 2;
}

function ratioText(ratio, low, high) {
  const near = (end) => end !== 1 && Math.abs(end - 1) < 0.005;
  const digits = decimals(ratio, Math.abs(high - low) < 0.02 || near(low) || near(high));
  return `${ratio.toFixed(digits)}x [${low.toFixed(digits)}, ${high.toFixed(digits)}]`;
}

function boundText(value, rounding, slack) {
  const digits = decimals(value, value !== 1 && Math.abs(value - 1) < 0.005);
  return `${(rounding(value * 10 ** digits + slack) / 10 ** digits).toFixed(digits)}x`;
}

// A pair of the data, from the side of `contender`.
function fromSideOf(contender, pair) {
  const [, , first, , ratio, low, high, kind, [ofFirst, ofSecond, inTable], blocks] = pair;
  const text = (index) => data().words[index];
  const side = { ratio, low, high, kind, said: text(ofFirst), inTable: text(inTable), blocks };
  if (first === contender) return side;
  const over = (value) => (value === null ? null : 1 / value);
  const turned = { 3: 4, 4: 3 }[kind] ?? kind;
  return { ...side, said: text(ofSecond), ratio: over(ratio), low: over(high), high: over(low), kind: turned };
}

// What forest.rs says: ratio, and the verdict below it.
function words({ ratio, low, high, kind, said }) {
  const measured = low === null ? "" : ratioText(ratio, low, high);
  switch (kind) {
    case 2: return [`(${measured})`, said];
    case 3: return [`at least ${boundText(ratio, Math.floor, 1e-9)}`, said];
    case 4: return [`at most ${boundText(ratio, Math.ceil, -1e-9)}`, said];
    default: return [measured, said];
  }
}

function linearTicks(low, high, most) {
  const rough = (high - low) / most;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((m) => m * power).find((one) => one >= rough) ?? 10 * power;
  const first = Math.ceil(low / step - 1e-9);
  const count = Math.max(0, Math.min(100, Math.floor(high / step + 1e-9) - first));
  return Array.from({ length: count + 1 }, (_, n) => (first + n) * step);
}

function logTicks(low, high, most) {
  const from = Math.floor(Math.log10(low)), to = Math.ceil(Math.log10(high));
  const of = (steps, stride) => {
    const ticks = [];
    for (let p = from; p <= to; p += stride) for (const s of steps) ticks.push(s * 10 ** p);
    return ticks.filter((tick) => tick >= low * (1 - 1e-9) && tick <= high * (1 + 1e-9));
  };
  return [of([1, 2, 5], 1), of([1, 3], 1)].find((ticks) => ticks.length <= most)
    ?? of([1], Math.max(1, Math.ceil((to - from + 1) / most)));
}

const tickText = (tick) => (tick >= 0.001 && tick < 1e4 ? String(Number(tick.toFixed(3))) : tick.toExponential(0)) + "x";

function drawForest(svg, cell, metric, reference) {
  const order = all(":scope > g.row", svg.closest(".metric").querySelector("svg")).map((row) => Number(row.dataset.c));
  const pairs = data().pairs.filter((pair) =>
    pair[0] === cell && pair[1] === metric && (pair[2] === reference || pair[3] === reference));
  const rows = order.flatMap((contender) => {
    if (contender === reference) return [{ contender, isReference: true }];
    const pair = pairs.find((one) => one[2] === contender || one[3] === contender);
    return pair ? [{ contender, ...fromSideOf(contender, pair) }] : [];
  });
  const margin = data().margin;
  let low = 1 - 2 * Math.min(0.4, margin), high = 1 + 2 * Math.min(0.4, margin);
  for (const row of rows) {
    if (row.isReference || row.ratio === null) continue;
    low = Math.min(low, row.low ?? row.ratio);
    high = Math.max(high, row.high ?? row.ratio);
  }
  low = Math.max(low, 1e-6); high = Math.min(high, 1e6);
  const air = Math.max(1.01, (high / low) ** 0.07);
  low /= air; high *= air;
  const range = [PLOT[0] + ARROW / 2, PLOT[1] - ARROW];
  const x = (value) => {
    const inside = Math.max(low, Math.min(high, value));
    return range[0] + (Math.log(inside / low) / Math.log(high / low)) * (range[1] - range[0]);
  };
  const bottom = TOP + rows.length * ROW_HEIGHT;
  const made = [];
  const text = (where, cls, at, anchor, words, room) => {
    const node = element("text", { class: cls, x: at[0], y: at[1], "text-anchor": anchor }, room ? fit(words, room) : words);
    if (room && node.textContent !== words) node.prepend(element("title", {}, words));
    where.push(node);
  };
  const line = (where, cls, from, to) => where.push(element("line", { class: cls, x1: from[0], y1: from[1], x2: to[0], y2: to[1] }));
  text(made, "t head", [PLOT[0], TOP - 12], "start", "\u2190 worse");
  text(made, "t head", [PLOT[1] - 8, TOP - 12], "end", "better \u2192");
  text(made, "t head", [SAID, TOP - 12], "start", "times as good [95 %]");
  const band = [x(1 - Math.min(0.99, margin)), x(1 + margin)];
  made.push(element("rect", { class: "band down", x: band[0], y: TOP, width: band[1] - band[0], height: bottom - TOP }));
  const foot = element("g", { class: "foot", transform: `translate(0 ${bottom})` });
  const below = [];
  line(below, "rule", [0, 0], [WIDTH, 0]);
  const ticks = high / low >= 8 ? logTicks(low, high, 5) : linearTicks(low, high, 5);
  let labelled = -Infinity;
  for (const tick of ticks) {
    line(made, "grid down", [x(tick), TOP], [x(tick), bottom]);
    if (x(tick) - labelled >= TICK_GAP && Math.abs(x(tick) - x(1)) >= TICK_GAP && tick !== 1) {
      text(below, "t tick", [x(tick), 16], "middle", tickText(tick));
      labelled = x(tick);
    }
  }
  text(below, "t tick", [x(1), 16], "middle", "1x");
  line(made, "axis down", [x(1), TOP], [x(1), bottom]);
  foot.append(...below);
  made.push(foot);
  const sentences = [];
  rows.forEach((row, at) => {
    const group = element("g", { class: "row", "data-c": String(row.contender), transform: `translate(0 ${TOP + at * ROW_HEIGHT})` });
    const parts = [], y = ROW_HEIGHT / 2, name = data().contenders[row.contender];
    text(parts, "t name", [0, y + 4.5], "start", name, NAME_ROOM);
    let [ratio, said] = row.isReference ? ["1x, the reference", ""] : words(row);
    const sentence = `${name}: ${[ratio, said].filter(Boolean).join(", ")}`;
    // Without a ratio, the verdict has both lines.
    if (!ratio && said.includes(", ")) [ratio, said] = [said.slice(0, said.indexOf(", ")), said.slice(said.indexOf(", ") + 2)];
    sentences.push(sentence);
    const dot = (cls, at, r) => {
      const circle = element("circle", { class: cls, cx: at, cy: y, r });
      circle.append(element("title", {}, sentence));
      parts.push(circle);
    };
    const cls = ["", " open", " open void"][row.kind] ?? "";
    if (row.isReference) {
      parts.push(element("path", { class: "mark self", d: `M${round1(x(1))} ${y - 6}L${round1(x(1) + 6)} ${y}L${round1(x(1))} ${y + 6}L${round1(x(1) - 6)} ${y}Z` }));
    } else if (row.kind <= 2 && row.ratio !== null) {
      line(parts, "whisker" + cls, [x(row.low), y], [x(row.high), y]);
      if (x(row.high) - x(row.low) > 14) {
        for (const end of [row.low, row.high]) line(parts, "whisker" + cls, [x(end), y - 5], [x(end), y + 5]);
      }
      dot("mark" + cls, x(row.ratio), 4.5);
    } else if (row.kind === 3 || row.kind === 4) {
      const way = row.kind === 3 ? 1 : -1, from = x(row.ratio), tip = from + way * ARROW, back = tip - way * 8;
      line(parts, "whisker bound", [from, y], [tip, y]);
      line(parts, "whisker bound", [from, y - 6], [from, y + 6]);
      parts.push(element("path", { class: "mark bound", d: `M${round1(tip)} ${y}L${round1(back)} ${y - 5}L${round1(back)} ${y + 5}Z` }));
      dot("target", from, 9);
    }
    const style = row.kind === 2 || row.kind === 5 ? "t withheld" : "t said";
    if (ratio && said) {
      text(parts, style, [SAID, y - 2], "start", ratio, WIDTH - SAID);
      text(parts, "t tick", [SAID, y + 13], "start", said, WIDTH - SAID);
    } else {
      text(parts, style, [SAID, y + 4.5], "start", ratio || said, WIDTH - SAID);
    }
    group.append(...parts);
    made.push(group);
  });
  const title = svg.querySelector(":scope > title"), about = svg.querySelector(":scope > desc");
  about.textContent = `${data().metrics[metric].title}, times as good as ${data().contenders[reference]}. ${sentences.join("; ")}.`;
  delete svg.dataset.full;
  svg.setAttribute("viewBox", `0 0 ${WIDTH} ${bottom + BELOW}`);
  svg.replaceChildren(title, about, ...made);
}

// The drawing as it was before rows were hidden, with its description.
function unpacked(svg) {
  const copy = svg.cloneNode(true);
  if (!svg.dataset.full) return copy;
  const full = JSON.parse(svg.dataset.full);
  all(":scope > g.row", copy).forEach((row, at) => {
    row.classList.remove("is-hidden");
    row.setAttribute("transform", `translate(0 ${full.rows[at]})`);
  });
  copy.querySelector(":scope > g.foot").setAttribute("transform", `translate(0 ${full.foot})`);
  for (const line of all(":scope > line.down", copy)) line.setAttribute("y2", full.foot);
  for (const area of all(":scope > rect.down", copy)) area.setAttribute("height", full.foot - full.rows[0]);
  copy.setAttribute("viewBox", full.view);
  return copy;
}

const originals = new Map();

function showReference() {
  const picker = byId("reference");
  if (!picker) return;
  if (!all("option", picker).some((option) => option.value === view.ref)) view.ref = "";
  picker.value = view.ref;
  for (const figure of all(".metric .against")) {
    const svg = figure.querySelector("svg"), caption = figure.querySelector(".caption");
    if (!originals.has(figure)) {
      if (view.ref === "") continue;
      originals.set(figure, [unpacked(svg), caption.textContent]);
    }
    const cell = Number(figure.closest("section.cell").dataset.cell);
    const metric = data().metrics.findIndex((one) => one.name === figure.closest(".metric").dataset.metric);
    const reference = Number(view.ref);
    const has = view.ref !== "" && data().pairs.some((pair) =>
      pair[0] === cell && pair[1] === metric && (pair[2] === reference || pair[3] === reference));
    if (has) {
      drawForest(svg, cell, metric, reference);
      const name = data().contenders[reference];
      caption.textContent = `Times as good as ${name}: at 2x a contender ${data().metrics[metric].twice} ${name}`;
    } else {
      const [drawing, words] = originals.get(figure);
      delete svg.dataset.full;
      svg.setAttribute("viewBox", drawing.getAttribute("viewBox"));
      svg.replaceChildren(...drawing.cloneNode(true).childNodes);
      caption.textContent = words;
    }
  }
}

// ---- Tables -----------------------------------------------------------------------------------------------------

const UNITS = { ns: 1e-9, us: 1e-6, "\u00b5s": 1e-6, ms: 1e-3, s: 1, m: 60, kB: 1e3, KB: 1e3, h: 3600, MB: 1e6, GB: 1e9, TB: 1e12, B: 1, k: 1e3, M: 1e6 };

// The number that a cell begins with, its unit resolved; null if it begins with none.
function numberOf(text) {
  // A date is sorted as the text that it is, a run by its number.
  if (/^\d{4}-\d\d/.test(text)) return null;
  const found = /^(?:run )?[(>=<\s]*(-?[\d,]+(?:\.\d+)?(?:e-?\d+)?)\s*([a-zA-Z\u00b5]*)(?![^\s)/[])/.exec(text);
  if (!found) return null;
  return Number(found[1].replaceAll(",", "")) * (UNITS[found[2]] ?? 1);
}

function sortBy(table, column, down) {
  const body = table.tBodies[0], rows = [...body.rows];
  const key = (row) => row.cells[column]?.textContent.trim() ?? "";
  const numbers = rows.map((row) => numberOf(key(row)));
  const isNumeric = numbers.filter((number) => number !== null).length > rows.length / 2;
  const order = rows.map((row, at) => ({ row, key: isNumeric ? numbers[at] : key(row) }));
  order.sort((a, b) => {
    if (isNumeric) return a.key === null || b.key === null ? (a.key === null) - (b.key === null) : down ? b.key - a.key : a.key - b.key;
    return (down ? -1 : 1) * a.key.localeCompare(b.key);
  });
  body.append(...order.map((one) => one.row));
}

function asText(table) {
  const rows = [...table.rows].filter((row) => !row.classList.contains("is-hidden") && row.style.display !== "none");
  return rows.map((row) => [...row.cells].map((cell) => cell.textContent.trim()).join("\t")).join("\n");
}

async function copy(text, button) {
  const label = button.dataset.label ??= button.textContent;
  let done = true;
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // Pages that are opened as a file may not use the clipboard; selecting and copying still works there.
    const area = document.createElement("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    done = document.execCommand("copy");
    area.remove();
    button.focus();
  }
  button.textContent = done ? "Copied" : "Copying is not allowed here";
  setTimeout(() => (button.textContent = label), 1500);
}

function equip(table) {
  if (table.dataset.equipped || table.classList.contains("parity") || !table.tHead) return;
  const rows = table.tBodies[0]?.rows ?? [];
  if (rows.length < 2) return;
  table.dataset.equipped = "yes";
  const isGrouped = all("tr.group", table).length > 0;
  if (!isGrouped) {
    [...table.tHead.rows[0].cells].forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.className = "sort";
      button.append(...head.childNodes);
      button.addEventListener("click", () => {
        const down = button.dataset.dir !== "down";
        all(".sort", table).forEach((other) => { delete other.dataset.dir; other.parentElement.removeAttribute("aria-sort"); });
        button.dataset.dir = down ? "down" : "up";
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        sortBy(table, column, down);
      });
      head.append(button);
    });
  }
  const tools = document.createElement("div");
  tools.className = "table-tools";
  if (rows.length > 8) {
    const box = document.createElement("input");
    box.type = "search";
    box.placeholder = "filter rows";
    box.setAttribute("aria-label", "Filter the rows of the table below");
    box.addEventListener("input", () => {
      const wanted = box.value.toLowerCase();
      for (const row of table.tBodies[0].rows) row.style.display = row.textContent.toLowerCase().includes(wanted) ? "" : "none";
    });
    tools.append(box);
  }
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = "Copy table";
  button.addEventListener("click", () => copy(asText(table), button));
  tools.append(button);
  (table.closest(".wide") ?? table).before(tools);
}

// Puts a table that was made here at the end of a place, with its controls; it scrolls by itself where it is too wide.
function add(table, place) {
  const wide = document.createElement("div");
  wide.className = "wide";
  wide.tabIndex = 0;
  wide.append(table);
  place.append(wide);
  equip(table);
}

// Pairs of a run that has too many of them for tables in the page.
function allPairs(place) {
  const cell = Number(place.dataset.cell);
  place.replaceChildren();
  const table = document.createElement("table");
  table.innerHTML = "<thead><tr><th scope=col>metric</th><th scope=col>pair</th><th scope=col class=n>ratio [95 %]</th><th scope=col>verdict</th><th scope=col class=n>blocks</th></tr></thead>";
  const body = table.createTBody();
  for (const pair of data().pairs.filter((one) => one[0] === cell)) {
    const isTurned = pair[7] === 4 || (pair[7] !== 3 && pair[4] !== null && pair[4] < 1);
    const [first, second] = isTurned ? [pair[3], pair[2]] : [pair[2], pair[3]];
    const side = fromSideOf(first, pair);
    const row = body.insertRow();
    const text = [data().metrics[pair[1]].title, `${data().contenders[first]} over ${data().contenders[second]}`, words(side)[0], side.inTable, String(side.blocks)];
    text.forEach((value, column) => {
      // Hiding contenders goes by the heads of rows.
      const made = column === 1 ? row.appendChild(document.createElement("th")) : row.insertCell();
      if (column === 1) made.scope = "row";
      made.textContent = value;
      if (column === 2 || column === 4) made.className = "n";
    });
  }
  add(table, place);
}

// ---- Any visit over time ----------------------------------------------------------------------------------------

const visitPicker = byId("visit"), counterPicker = byId("counters");
const COUNTERS_DRAWN = 6;
let charts = [];

const shown = (value) => {
  if (value === null || value === undefined || Number.isNaN(value)) return "-";
  const size = Math.abs(value);
  if (size >= 1000) return Math.round(value).toLocaleString("en");
  return String(Number(value.toPrecision(3)));
};

function visitName(visit) {
  const cell = data().cells.length > 1 ? `, ${data().cells[visit.cell]}` : "";
  const state = visit.state === "measured" ? "" : ` (${visit.state})`;
  return `${data().contenders[visit.contender] ?? "the load"}${cell}, block ${visit.block}${state}`;
}

function fillVisits() {
  const cell = cellPicker && view.cell !== "all" ? Number(view.cell || 0) : null;
  const isShown = (visit) => visit.at.length > 1 && (cell === null || visit.cell === cell) && !view.hide.has(String(visit.contender));
  const visits = data().visits.map((visit, index) => ({ visit, index })).filter(({ visit }) => isShown(visit));
  visits.sort((a, b) => a.visit.contender - b.visit.contender || a.visit.block - b.visit.block);
  visitPicker.replaceChildren(...visits.map(({ visit, index }) => new Option(visitName(visit), String(index))));
  byId("explorer").hidden = visits.length === 0;
  if (!visits.length) return false;
  if (!visits.some(({ index }) => String(index) === view.visit)) view.visit = String(visits[0].index);
  visitPicker.value = view.visit;
  return true;
}

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

function chart(place, title, unit, x, lines, cut, isLog) {
  const axis = { stroke: colour("--muted"), grid: { stroke: colour("--grid"), width: 1 }, ticks: { stroke: colour("--grid") }, font: "12px system-ui" };
  const dashes = [[], [7, 3], [2, 3]];
  const marks = (u) => {
    const at = u.valToPos(cut, "x", true);
    if (!(cut > 0) || at < u.bbox.left || at > u.bbox.left + u.bbox.width) return;
    u.ctx.save();
    u.ctx.strokeStyle = colour("--ink");
    u.ctx.setLineDash([4, 3]);
    u.ctx.beginPath();
    u.ctx.moveTo(at, u.bbox.top);
    u.ctx.lineTo(at, u.bbox.top + u.bbox.height);
    u.ctx.stroke();
    u.ctx.restore();
  };
  const options = {
    title: "", width: Math.max(280, place.clientWidth), height: 170,
    cursor: { sync: { key: "visit" } },
    scales: { x: { time: false }, y: isLog ? { distr: 3 } : { range: (_u, low, high) => [Math.min(0, low * 1.05), high > 0 ? high * 1.05 : 1] } },
    axes: [{ ...axis, label: undefined }, { ...axis, size: 68, values: (_u, ticks) => ticks.map((tick) => (tick === null ? "" : shown(tick))) }],
    series: [
      { label: "seconds", value: (_u, value) => shown(value) },
      ...lines.map(([label], index) => ({
        label: `${label} (${unit})`, stroke: colour(["--c0", "--c1", "--c4"][index]), width: 1.6, dash: dashes[index % 3], spanGaps: false,
        points: { show: x.length < 40 }, value: (_u, value) => shown(value),
      })),
    ],
    hooks: { draw: [marks] },
  };
  const heading = document.createElement("h3");
  heading.textContent = `${title}, ${unit}, over seconds of the load`;
  place.append(heading);
  const made = new uPlot(options, [x, ...lines.map(([, values]) => values)], place);
  // Screen readers leave the arrow keys to it.
  made.root.setAttribute("role", "application");
  made.root.setAttribute("aria-roledescription", "chart");
  made.root.setAttribute("aria-label", `${title} of the chosen visit: arrow keys read it, or open the table below`);
  made.root.tabIndex = 0;
  return made;
}

// What the reader chose, or what most often explains a stall and births of processes, if it moved.
function chosenCounters(names) {
  if (view.counter === "none") return [];
  const given = view.counter.split(",").filter((name) => names.includes(name));
  if (given.length) return given.slice(0, COUNTERS_DRAWN);
  const first = (parts) => parts.map((part) => names.find((name) => name.includes(part))).find(Boolean);
  const stalls = first(["TCPTimeouts", "RetransSegs", "ListenOverflows", "DelayedACKs"]);
  const telling = [stalls, first(["processes", "procs"])].filter(Boolean);
  return telling.length ? telling : names.slice(0, 1);
}

function fillCounters(visit) {
  const names = visit.counters.map(([name]) => name);
  counterPicker.hidden = names.length === 0;
  const chosen = chosenCounters(names);
  const boxes = names.map((name) => {
    const label = document.createElement("label"), box = document.createElement("input");
    Object.assign(box, { type: "checkbox", value: name, checked: chosen.includes(name) });
    box.disabled = !box.checked && chosen.length >= COUNTERS_DRAWN;
    label.append(box, ` ${name}`);
    return label;
  });
  const focused = counterPicker.contains(document.activeElement) ? document.activeElement.value : null;
  const field = counterPicker.querySelector("fieldset");
  field.replaceChildren(field.querySelector("legend"), ...boxes);
  if (focused) all("input", field).find((box) => box.value === focused)?.focus();
  return chosen;
}

function drawVisit() {
  const visit = data().visits[Number(view.visit)];
  const place = byId("charts");
  charts.forEach((one) => one.destroy());
  place.replaceChildren();
  byId("reading").textContent = "";
  charts = [];
  if (!visit) return;
  const chosen = fillCounters(visit);
  byId("visit-figures").textContent = visit.figures;
  const { at, cut } = visit;
  const rates = [["ok", visit.rate]];
  if (visit.failed.some((rate) => rate > 0)) rates.push(["failed", visit.failed]);
  charts.push(chart(place, "Throughput", "per second", at, rates, cut, false));
  const positive = (values) => values.map((value) => (value > 0 ? value : null));
  const latencies = [["p50", positive(visit.p50)], ["p99", positive(visit.p99)], ["longest", positive(visit.max)]];
  charts.push(chart(place, "Service time", "ms", at, latencies, cut, true));
  for (const [name, changes] of visit.counters.filter(([name]) => chosen.includes(name))) {
    charts.push(chart(place, `Counter ${name}`, "per second", visit.read, [[name, changes]], cut, false));
  }
  // One time axis for all.
  charts.forEach((one) => one.setScale("x", { min: 0, max: at[at.length - 1] }));
  fillCourse(visit, chosen);
}

// The point that an instant lies in: points are the ends of what they are of.
function pointAt(ends, moment) {
  const index = ends.findIndex((end) => end >= moment - 1e-9);
  return index < 0 ? ends.length - 1 : index;
}

// The course as a table, once it is opened: for those who cannot see the charts, or want the figures.
function fillCourse(visit, chosen) {
  const details = byId("course"), summary = details.querySelector("summary");
  details.replaceChildren(summary);
  if (!details.open) return;
  const counters = visit.counters.filter(([name]) => chosen.includes(name));
  const columns = [
    ["s", (index) => shown(visit.at[index])],
    ["ok per s", (index) => shown(visit.rate[index])],
    ["failed per s", (index) => shown(visit.failed[index])],
    ["p50 ms", (index) => shown(visit.p50[index])],
    ["p99 ms", (index) => shown(visit.p99[index])],
    ["longest ms", (index) => shown(visit.max[index])],
    ...counters.map(([name, changes]) => [`${name} per s`, (index) => shown(changes[pointAt(visit.read, visit.at[index])])]),
  ];
  const table = document.createElement("table"), head = table.createTHead().insertRow(), body = table.createTBody();
  for (const [title] of columns) {
    const cell = document.createElement("th");
    Object.assign(cell, { scope: "col", className: "n", textContent: title });
    head.append(cell);
  }
  visit.at.forEach((_, index) => {
    const row = body.insertRow();
    for (const [, value] of columns) Object.assign(row.insertCell(), { className: "n", textContent: value(index) });
  });
  add(table, details);
}

// Where the keys are in each chart.
const reached = new WeakMap();

// The arrow keys move the cursor of all charts from point to point, and the figures there are said.
function step(event) {
  const ways = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity };
  const way = ways[event.key], at = charts.findIndex((one) => one.root.contains(event.target));
  if (way === undefined || at < 0) return;
  event.preventDefault();
  const on = charts[at], last = on.data[0].length - 1;
  const before = reached.get(on) ?? (way > 0 ? -1 : last + 1);
  const index = Math.max(0, Math.min(last, before + way)), moment = on.data[0][index];
  reached.set(on, index);
  on.setCursor({ left: on.valToPos(moment, "x"), top: on.over.clientHeight / 2 }, true);
  // Said from the figures themselves: cursors follow later, and not beyond what a zoom shows. Counters have instants of
  // their own, as in the table.
  const of = (one) => {
    const here = one === on ? index : pointAt(one.data[0], moment);
    return one.series.slice(1).map((line, number) => `${line.label} ${shown(one.data[number + 1][here])}`);
  };
  byId("reading").textContent = `At ${shown(moment)} s: ${charts.flatMap(of).join(", ")}`;
}

let isDrawn = false;

function explore() {
  if (!visitPicker) return;
  if (!fillVisits()) return;
  if (isDrawn) drawVisit();
}

// ---- All of it --------------------------------------------------------------------------------------------------

function apply() {
  showCell();
  showReference();
  showContenders();
  if (isDrawn) explore();
}

function listen() {
  document.addEventListener("click", follow);
  cellPicker?.addEventListener("change", () => { view.cell = cellPicker.value; apply(); keepAddress(); });
  byId("reference")?.addEventListener("change", (event) => { view.ref = event.target.value; apply(); keepAddress(); });
  byId("shown")?.addEventListener("change", (event) => {
    const { value, checked } = event.target;
    if (checked) view.hide.delete(value); else view.hide.add(value);
    apply();
    keepAddress();
  });
  for (const menu of [byId("shown"), counterPicker].filter(Boolean)) menu.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    menu.open = false;
    menu.querySelector("summary").focus();
  });
  byId("link")?.addEventListener("click", (event) => copy(location.href.split("#")[0] + address(), event.target));
  visitPicker?.addEventListener("change", () => { view.visit = visitPicker.value; drawVisit(); keepAddress(); });
  counterPicker?.addEventListener("change", () => {
    const chosen = all("input:checked", counterPicker).map((box) => box.value);
    view.counter = chosen.join(",") || "none";
    drawVisit();
    keepAddress();
  });
  byId("charts")?.addEventListener("keydown", step);
  byId("course")?.addEventListener("toggle", () => {
    const visit = data().visits[Number(view.visit)];
    if (isDrawn && visit) fillCourse(visit, chosenCounters(visit.counters.map(([name]) => name)));
  });
  addEventListener("hashchange", () => { if (location.hash === "" || location.hash.startsWith(PREFIX)) { readAddress(); apply(); } else reveal(); });
  let resizing = 0;
  addEventListener("resize", () => {
    clearTimeout(resizing);
    resizing = setTimeout(() => charts.forEach((one) => one.setSize({ width: Math.max(280, byId("charts").clientWidth), height: 170 })), 150);
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => isDrawn && drawVisit());
  for (const details of all("details")) details.addEventListener("toggle", () => details.open && all("table", details).forEach(equip));
  for (const button of all(".all-pairs button")) {
    const place = button.closest(".all-pairs");
    place.hidden = false;
    button.addEventListener("click", () => allPairs(place));
  }
}

// The charts are drawn when they come near the window: most readers look at the answer first.
function watch() {
  const explorer = byId("explorer");
  if (!explorer) return;
  explorer.hidden = false;
  const draw = () => { isDrawn = true; explore(); };
  if (view.visit) return draw();
  const watcher = new IntersectionObserver((entries) => {
    if (!entries.some((entry) => entry.isIntersecting)) return;
    watcher.disconnect();
    draw();
  }, { rootMargin: "400px" });
  watcher.observe(explorer);
}

readAddress();
const tools = byId("tools");
if (tools) tools.hidden = false;
listen();
apply();
reveal();
all("table").filter((table) => !table.closest("details:not([open])")).forEach(equip);
watch();
document.documentElement.dataset.ready = "yes";
})();
