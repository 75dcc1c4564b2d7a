"use strict";

const data = JSON.parse(document.getElementById("data").textContent);
const canvas = document.getElementById("timeline");
const tip = document.getElementById("tip");
const search = document.getElementById("search");
const NAMES = 17, BAR = 22, GAP = 10, AXIS = 26, MARGIN = 16;
const view = { begin: 0, length: 1 };  // microseconds
let theme = {}, wanted = "", under = null;

const tracks = data.tracks.filter((track) => track.events.length);
const first = Math.min(...tracks.map((track) => track.events[0][0]));
const last = Math.max(...tracks.map((track) => track.events.reduce((end, e) => Math.max(end, e[0] + e[1]), 0)));

function time(micros) {
  if (micros >= 1e6) return `${(micros / 1e6).toFixed(3)} s`;
  if (micros >= 1e3) return `${(micros / 1e3).toFixed(3)} ms`;
  return `${micros.toFixed(2)} µs`;
}

function fit() {
  const room = Math.max(1, last - first) * 0.01;
  view.begin = first - room;
  view.length = Math.max(1, last - first) + 2 * room;
  draw();
}

function hue(text) {
  let sum = 7;
  for (const letter of text) sum = (sum * 31 + letter.codePointAt(0)) % 3600;
  return sum / 10;
}

const colours = new Map();
function colour(kind) {
  if (!colours.has(kind)) {
    const dark = document.documentElement.dataset.theme === "dark";
    const fixed = { frame: dark ? "#454b58" : "#c9ccd4", schedule: dark ? "#5d6b8a" : "#aebbdc" };
    colours.set(kind, fixed[kind] ?? `hsl(${hue(kind)} ${dark ? "38% 56%" : "52% 70%"})`);
  }
  return colours.get(kind);
}

function readTheme() {
  const style = getComputedStyle(document.documentElement);
  theme = Object.fromEntries(["ink", "faint", "line", "match", "card"].map((n) => [n, style.getPropertyValue(`--${n}`)]));
  colours.clear();
}

/** The index of the first event that ends after a moment; events of a track follow each other. */
function after(events, moment) {
  let low = 0, high = events.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (events[middle][0] + events[middle][1] < moment) low = middle + 1; else high = middle;
  }
  return low;
}

function draw() {
  const width = canvas.clientWidth, height = AXIS + tracks.length * (NAMES + BAR + GAP) + GAP;
  const scale = window.devicePixelRatio || 1;
  canvas.style.height = `${height}px`;
  canvas.width = width * scale;
  canvas.height = height * scale;
  const pen = canvas.getContext("2d");
  pen.scale(scale, scale);
  pen.font = "12px system-ui, 'DejaVu Sans', sans-serif";
  pen.textBaseline = "middle";
  const pixels = (width - 2 * MARGIN) / view.length;
  const at = (moment) => MARGIN + (moment - view.begin) * pixels;
  drawAxis(pen, width, height, at);
  tracks.forEach((track, row) => {
    const top = AXIS + row * (NAMES + BAR + GAP);
    pen.fillStyle = theme.faint;
    pen.fillText(track.name, MARGIN, top + NAMES / 2);
    let drawnTo = -1;
    for (let index = after(track.events, view.begin); index < track.events.length; index++) {
      const [begin, length, label] = track.events[index];
      if (begin > view.begin + view.length) break;
      const x = at(begin), wide = Math.max(length * pixels, 0.7);
      if (x + wide < drawnTo + 0.5) continue;  // it lies under a bar of less than a pixel
      drawnTo = x + wide;
      drawBar(pen, x, top + NAMES, wide, ...track.labels[label], width);
    }
  });
}

function drawAxis(pen, width, height, at) {
  const step = 10 ** Math.floor(Math.log10(view.length / 4));
  const every = [1, 2, 5, 10].map((n) => n * step).find((n) => view.length / n < 10);
  pen.strokeStyle = theme.line;
  pen.fillStyle = theme.faint;
  for (let moment = Math.ceil(view.begin / every) * every; moment < view.begin + view.length; moment += every) {
    const x = Math.round(at(moment)) + 0.5;
    pen.beginPath();
    pen.moveTo(x, AXIS - 6);
    pen.lineTo(x, height);
    pen.stroke();
    pen.fillText(time(moment), Math.min(x + 3, width - 60), AXIS / 2);
  }
}

function drawBar(pen, x, y, wide, name, kind, width) {
  const isWanted = wanted && (name + " " + kind).toLowerCase().includes(wanted);
  pen.globalAlpha = wanted && !isWanted ? 0.25 : 1;
  pen.fillStyle = isWanted ? theme.match : colour(kind);
  pen.fillRect(x, y, Math.max(wide - (wide > 3 ? 0.6 : 0), 0.7), BAR);
  const left = Math.max(x, 0), room = Math.min(x + wide, width) - left;
  if (room > 30) {
    pen.save();
    pen.beginPath();
    pen.rect(left, y, room - 3, BAR);
    pen.clip();
    pen.fillStyle = document.documentElement.dataset.theme === "dark" && kind !== "frame" && kind !== "schedule" ? "#0f1115" : theme.ink;
    pen.fillText(kind === "frame" || kind === "schedule" ? name : `${name}  ${kind}`, left + 4, y + BAR / 2 + 0.5);
    pen.restore();
  }
  pen.globalAlpha = 1;
}

function zoom(factor, x = canvas.clientWidth / 2) {
  const share = (x - MARGIN) / (canvas.clientWidth - 2 * MARGIN);
  const length = Math.min(Math.max(view.length * factor, 0.05), 4 * (last - first) + 1);
  view.begin += (view.length - length) * share;
  view.length = length;
  draw();
}

function find(x, y) {
  const row = Math.floor((y - AXIS) / (NAMES + BAR + GAP)), track = tracks[row];
  if (!track || (y - AXIS) % (NAMES + BAR + GAP) < NAMES) return null;
  const pixel = view.length / (canvas.clientWidth - 2 * MARGIN);
  const moment = view.begin + (x - MARGIN) * pixel;
  const index = after(track.events, moment - pixel);
  const event = track.events[index];
  return event && event[0] <= moment + pixel ? { track, event } : null;
}

function point(event) {
  const box = canvas.getBoundingClientRect();
  under = find(event.clientX - box.left, event.clientY - box.top);
  tip.hidden = !under;
  if (!under) return;
  const [begin, length, label] = under.event, [name, kind] = under.track.labels[label];
  tip.textContent = `${name} · ${kind} · ${time(length)}, from ${time(begin)}`;
  tip.style.left = `${Math.min(event.clientX + 12, window.innerWidth - tip.offsetWidth - 8)}px`;
  tip.style.top = `${event.clientY + 16}px`;
}

let drag = null;
canvas.addEventListener("pointerdown", (event) => { drag = event.clientX; canvas.setPointerCapture(event.pointerId); });
canvas.addEventListener("pointerup", () => { drag = null; });
canvas.addEventListener("pointermove", (event) => {
  if (drag !== null) {
    view.begin -= (event.clientX - drag) * view.length / (canvas.clientWidth - 2 * MARGIN);
    drag = event.clientX;
    draw();
  }
  point(event);
});
canvas.addEventListener("pointerleave", () => { tip.hidden = true; });
canvas.addEventListener("wheel", (event) => {
  event.preventDefault();
  zoom(Math.exp(event.deltaY * 0.0015), event.clientX - canvas.getBoundingClientRect().left);
}, { passive: false });

document.getElementById("in").onclick = () => zoom(0.6);
document.getElementById("out").onclick = () => zoom(1 / 0.6);
document.getElementById("fit").onclick = fit;
document.getElementById("theme").onclick = () => setTheme(document.documentElement.dataset.theme === "dark" ? "light" : "dark");
document.addEventListener("keydown", (event) => {
  if (event.target === search) return;
  const keys = { "+": () => zoom(0.6), "-": () => zoom(1 / 0.6), 0: fit, "/": () => search.focus() };
  if (event.key in keys && !event.ctrlKey && !event.metaKey) { event.preventDefault(); keys[event.key](); }
});
search.addEventListener("input", () => {
  wanted = search.value.trim().toLowerCase();
  for (const row of document.querySelectorAll("#layers tbody tr")) {
    row.classList.toggle("match", wanted !== "" && row.textContent.toLowerCase().includes(wanted));
  }
  draw();
});
window.addEventListener("resize", draw);

function setTheme(name) {
  document.documentElement.dataset.theme = name;
  readTheme();
  draw();
}

// --- tables ---

function cell(row, text, isNumber, kind = "td") {
  const made = document.createElement(kind);
  made.textContent = text;
  if (isNumber) made.className = "number";
  row.append(made);
  return made;
}

function millis(seconds) { return seconds === null ? "–" : `${(seconds * 1e3).toFixed(3)} ms`; }

function fillTimes() {
  const table = document.getElementById("times"), head = table.createTHead().insertRow(), body = table.createTBody();
  ["", "number", "p50", "p95", "p99"].forEach((title, index) => cell(head, title, index > 0, "th"));
  const rows = [["frame", data.facts.frames]];
  for (const worker of data.facts.workers) rows.push([`schedule of ${worker.model} on ${worker.backend}`, worker.schedules]);
  for (const [name, times] of rows) {
    if (!times) continue;
    const row = body.insertRow();
    cell(row, name);
    [times.count, millis(times.p50), millis(times.p95), millis(times.p99)].forEach((text) => cell(row, text, true));
  }
}

const giga = (value) => (value === null ? "" : (value / 1e9).toFixed(1));
const COLUMNS = [
  ["layer", (l) => l.layer], ["operator", (l) => l.operator || "transfer"], ["backend", (l) => l.backend],
  ["runs", (l) => l.runs], ["time", (l) => millis(l.seconds), (l) => l.seconds ?? -1],
  ["moved", (l) => `${(l.bytes / 1e6).toFixed(2)} MB`, (l) => l.bytes],
  ["GB/s", (l) => giga(l.bytes_a_second), (l) => l.bytes_a_second ?? -1],
  ["GFLOP/s", (l) => giga(l.operations_a_second), (l) => l.operations_a_second ?? -1],
  ["of peak", (l) => (l.share_of_peak === null ? "" : `${(l.share_of_peak * 100).toFixed(0)} %`), (l) => l.share_of_peak ?? -1],
];

function fillLayers(key, down) {
  const table = document.getElementById("layers");
  table.replaceChildren();
  const head = table.createTHead().insertRow(), body = table.createTBody();
  COLUMNS.forEach(([title, text, value], index) => {
    const button = document.createElement("button");
    button.textContent = title + (key === index ? (down ? " ↓" : " ↑") : "");
    button.onclick = () => fillLayers(index, key === index ? !down : true);
    cell(head, "", index > 2, "th").append(button);
  });
  const worth = COLUMNS[key][2] ?? COLUMNS[key][1], most = Math.max(...data.facts.layers.map((l) => l.seconds ?? 0), 1e-12);
  const sorted = [...data.facts.layers].sort((a, b) => (worth(a) < worth(b) ? -1 : worth(a) > worth(b) ? 1 : 0) * (down ? -1 : 1));
  for (const layer of sorted) {
    const row = body.insertRow();
    COLUMNS.forEach(([title, text], index) => {
      const made = cell(row, text(layer), index > 2);
      if (title === "time" && layer.seconds) {
        const bar = document.createElement("span");
        bar.className = "bar";
        bar.style.width = `${Math.round(70 * layer.seconds / most)}px`;
        made.prepend(bar);
      }
    });
  }
}

fillTimes();
fillLayers(4, true);
if (data.since) document.getElementById("hint").textContent += " Earlier events are left out.";
if (window.matchMedia("(prefers-color-scheme: dark)").matches) document.documentElement.dataset.theme = "dark";
readTheme();
fit();
