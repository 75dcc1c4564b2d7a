"use strict";
// The panel beside the graph: what was clicked, as text. All texts of a model are escaped.

function escaped(text) {
  return String(text).replace(/[&<>"']/g, one => `&#${one.charCodeAt(0)};`);
}

function row(title, value, kind = "") {
  return value === null || value === undefined || value === "" ? "" : `<tr><th>${title}</th><td class="${kind}">${value}</td></tr>`;
}

function number(value) {
  return value === null || value === undefined ? null : value.toLocaleString("en");
}

const Panel = {
  model(data, view) {
    const counts = new Map();
    for (const layer of view.layers) counts.set(layer.op, (counts.get(layer.op) || 0) + 1);
    const common = [...counts].sort((a, b) => b[1] - a[1]);
    const opsets = Object.entries(data.opsets).map(([domain, version]) => `${escaped(domain)} ${version}`).join(", ");
    return `<h2>${escaped(data.title)}</h2><p class="kind">Click a layer, a block or an edge.</p>
      <table>${row("made by", escaped(data.producer))}${row("opsets", opsets)}
      ${row("layers", number(view.layers.length))}${row("parameters", number(view.parameters))}
      ${row("constants", bytesText(view.constant_bytes))}${row("multiply-adds", number(view.multiply_adds))}
      ${row("with", escaped(Object.entries(view.sizes).map(([name, size]) => `${name} = ${size}`).join(", ")))}</table>
      ${this.ends("inputs", view.inputs)}${this.ends("outputs", view.outputs)}
      <h3>operators</h3><table>${common.map(([op, count]) =>
        `<tr><td><a data-search="${escaped(op)}">${escaped(op)}</a></td><td class="number">${number(count)}</td></tr>`).join("")}</table>
      ${this.passes(data)}`;
  },

  ends(title, values) {
    return `<h3>${title}</h3>` + values.map(value =>
      `<div><a data-value="${escaped(value.name)}">${escaped(value.name)}</a> <span class="kind">${value.dtype} ${escaped(shapeText(value.shape))}</span></div>`).join("");
  },

  passes(data) {
    if (!data.passes.length) return "";
    const lines = data.passes.map(one => `<tr><td>${escaped(one.name)}</td><td class="number">${number(one.layers[0])} → ${number(one.layers[1])}</td></tr>`);
    return `<h3>what the passes did to the layers</h3><table>${lines.join("")}</table>`;
  },

  layer(graph, layer, colours) {
    const marks = Object.entries(colours.numbers).filter(([key]) => !(key in NUMBERS));
    return `<h2>${escaped(layer.name)}</h2><p class="kind">${escaped(titleOf(layer))}, of the family ${escaped(layer.family)}</p>
      <table>${row("multiply-adds", number(layer.multiply_adds))}${row("parameters", layer.parameters ? number(layer.parameters) : null)}
      ${row("bytes in and out", layer.bytes === null ? null : bytesText(layer.bytes))}
      ${marks.map(([title, [, of, text]]) => row(escaped(title), of(layer) === undefined || of(layer) === null ? null : text(of(layer)))).join("")}
      ${Object.entries(layer.backends).map(([backend, reason]) => row(backend, this.where(reason))).join("")}</table>
      ${this.attributes(layer)}
      <h3>inputs</h3>${layer.inputs.map(name => this.value(graph, name)).join("") || "none"}
      <h3>outputs</h3>${layer.outputs.map(name => this.value(graph, name)).join("")}`;
  },

  where(reason) {
    if (reason === "") return "runs there";
    return reason === "?" ? "not known before a run" : reason.startsWith("on the host") ? escaped(reason) : `falls back to the CPU: ${escaped(reason)}`;
  },

  attributes(layer) {
    const rows = Object.entries(layer.attributes).map(([name, value]) => row(escaped(name), escaped(value), "mono"));
    return rows.length ? `<h3>attributes</h3><table>${rows.join("")}</table>` : "";
  },

  value(graph, name) {
    const { view } = graph;
    if (!name) return `<div class="value kind">absent</div>`;
    const constant = view.constants[name];
    if (constant) return this.constant(name, constant);
    const maker = graph.maker.get(name), readers = graph.readers.get(name) || [], spec = view.values[name];
    const links = [
      ...(maker === undefined ? [] : [`made by ${this.link(view, maker)}`]),
      ...(readers.length ? [`read by ${readers.slice(0, 12).map(reader => this.link(view, reader)).join(", ")}${readers.length > 12 ? ` and ${readers.length - 12} more` : ""}`] : []),
    ];
    return `<div class="value"><b>${escaped(name)}</b><div class="kind">${spec ? `${spec[0]} ${escaped(shapeText(spec[1]))}` : ""}</div>
      <div>${links.join("<br>")}</div></div>`;
  },

  link(view, index) {
    return `<a data-layer="${index}">${escaped(view.layers[index].name || view.layers[index].op)}</a>`;
  },

  constant(name, { dtype, shape, bytes, shown, statistics }) {
    const facts = statistics && `<table>${row("from, to", `${precise(statistics.smallest)} … ${precise(statistics.largest)}`)}
      ${row("mean ± deviation", `${precise(statistics.mean)} ± ${precise(statistics.deviation)}`)}
      ${row("zeros", `${(statistics.zeros * 100).toFixed(1)} %`)}${row("NaN or infinite", statistics.others || null)}</table>${this.histogram(statistics)}`;
    return `<div class="value"><b>${escaped(name)}</b><div class="kind">constant, ${dtype} ${escaped(shapeText(shape))}, ${bytesText(bytes)}</div>
      <div class="mono">${escaped(shown)}</div>${facts || ""}</div>`;
  },

  histogram({ counts, smallest, largest }) {
    if (counts.length < 2) return "";
    const most = Math.max(...counts), width = 100 / counts.length;
    const bars = counts.map((count, at) => `<rect x="${at * width}" y="${40 - 38 * count / most}" width="${width * 0.9}" height="${38 * count / most}"></rect>`);
    return `<svg viewBox="0 0 100 40" preserveAspectRatio="none" fill="currentColor" opacity="0.7" role="img"
      aria-label="histogram from ${precise(smallest)} to ${precise(largest)}">${bars.join("")}</svg>`;
  },

  block(graph, box) {
    const layers = graph.layersOf(box);
    return `<h2>${escaped(box.title)}</h2><p class="kind">A repeated block of ${layers.length} layers. A double click shows them.</p>
      <p><button data-toggle="${box.which}">Show its layers</button></p>
      <table>${layers.map((layer, at) => `<tr><td><a data-layer="${box.block.first + at}">${escaped(titleOf(layer))}</a></td>
      <td class="kind">${escaped(shapeText(layer.shapes[0] ?? null))}</td></tr>`).join("")}</table>`;
  },
};

function precise(value) {
  return Number(value.toPrecision(5)).toString();
}
