"use strict";
// The colours of boxes: by the kind of layer, by backend, or along a scale of a number.

const KINDS = [
  ["convolution", "#8fb8f6", ["conv", "conv_transpose", "deform_conv", "col2im"]],
  ["product", "#b9a4f2", ["matmul", "einsum", "attention", "rotary", "recurrent", "quantized", "linalg"]],
  ["elementwise", "#a7dba0", ["elementwise", "bits", "cumulative", "quantize", "requantize", "random"]],
  ["norm, reduction", "#f5cf7f", ["norm", "standardize", "reduce", "pool", "roi", "roi_pool"]],
  ["moves data", "#c9cdd6", ["move", "join", "gather", "scatter", "pad", "drop", "reverse", "extract", "resize", "grid", "make"]],
  ["selects, sorts", "#f3a7bd", ["select", "nms", "trees", "labels", "grams", "text", "sequence"]],
  ["control", "#f0a27c", ["control"]],
];
const OTHER = ["other", "#9fd8d8"];
const BLOCK = "#dfe3f4", END = "#ffffff";
const WHERE = { gpu: ["on the GPU", "#9bd3a5"], host: ["on the host", "#c9cdd6"], cpu: ["falls back to the CPU", "#f29b8b"], unknown: ["not known before a run", "#f5e3a0"] };

function kindOf(layer) {
  if (layer.on_host) return ["shape arithmetic", "#e4e1d4"];
  const found = KINDS.find(([, , families]) => families.includes(layer.family));
  return found ? [found[0], found[1]] : OTHER;
}

function whereOf(layer, backend) {
  const reason = layer.backends[backend] ?? "";
  if (reason === "") return "gpu";
  return reason.startsWith("on the host") ? "host" : reason === "?" ? "unknown" : "cpu";
}

// From pale to strong, on a logarithmic scale: costs of layers differ by thousands.
function heat(share) {
  const stops = [[255, 250, 230], [253, 208, 133], [240, 128, 90], [190, 50, 80]];
  const at = Math.max(0, Math.min(1, share)) * (stops.length - 1);
  const low = Math.min(stops.length - 2, Math.floor(at)), part = at - low;
  return `rgb(${stops[low].map((from, i) => Math.round(from + (stops[low + 1][i] - from) * part)).join(",")})`;
}

const NUMBERS = {
  cost: ["multiply-adds", layer => layer.multiply_adds, number => number.toLocaleString("en")],
  parameters: ["parameters", layer => layer.parameters, number => number.toLocaleString("en")],
  bytes: ["bytes in and out", layer => layer.bytes, bytesText],
};

function bytesText(size) {
  for (const unit of ["B", "KiB", "MiB"]) {
    if (size < 1024) return `${unit === "B" ? size : size.toFixed(1)} ${unit}`;
    size /= 1024;
  }
  return `${size.toFixed(1)} GiB`;
}

class Colours {
  constructor(data) {
    this.choices = [["kind", "kind of layer"]];
    for (const [key, [title]] of Object.entries(NUMBERS)) this.choices.push([key, title]);
    this.choices.push(["gpu_compute", "backend: gpu_compute"], ["gpu_pixel", "backend: gpu_pixel"]);
    this.numbers = { ...NUMBERS };
    for (const [title, mark] of Object.entries(data.marks)) {
      const of = layer => mark.layers[layer.name];
      const text = number => mark.unit === "s" ? `${(number * 1e3).toPrecision(3)} ms` : number.toPrecision(3);
      this.numbers[title] = [title, of, text];
      this.choices.push([title, title]);
    }
    this.choice = data.first_colour || "kind";
  }

  numberOf(layers) {
    const known = layers.map(this.numbers[this.choice][1]).filter(number => number !== null && number !== undefined);
    if (!known.length) return null;
    return this.choice in NUMBERS || /time/.test(this.choice) ? known.reduce((a, b) => a + b, 0) : Math.max(...known);
  }

  prepare(graph) {
    this.range = [Infinity, 0];
    if (!(this.choice in this.numbers)) return;
    for (const box of graph.boxes) {
      const number = this.numberOf(graph.layersOf(box));
      if (number > 0) this.range = [Math.min(this.range[0], number), Math.max(this.range[1], number)];
    }
  }

  of(graph, box) {
    const layers = graph.layersOf(box);
    if (!layers.length) return END;
    if (this.choice in this.numbers) {
      const number = this.numberOf(layers), [low, high] = this.range;
      if (number === null || !(number > 0)) return END;
      return heat(high > low ? Math.log(number / low) / Math.log(high / low) : 1);
    }
    if (this.choice === "kind") return box.kind === "block" ? BLOCK : kindOf(box.layer)[1];
    const wheres = layers.map(layer => whereOf(layer, this.choice));
    const worst = ["cpu", "unknown", "gpu", "host"].find(where => wheres.includes(where));
    return WHERE[worst][1];
  }

  legend(graph) {
    if (this.choice in this.numbers) {
      const [title, , text] = this.numbers[this.choice], [low, high] = this.range;
      if (!(high > 0)) return `<span>${title}: none</span>`;
      const stops = [0, 0.25, 0.5, 0.75, 1].map(heat).join(",");
      return `<span>${title}: ${text(low)}<span class="scale" style="background:linear-gradient(90deg,${stops})"></span>${text(high)}, logarithmic</span>`;
    }
    const entries = this.choice === "kind"
      ? new Map([...graph.view.layers.map(kindOf), ...(graph.view.blocks.length ? [["repeated block", BLOCK]] : [])])
      : new Map(graph.view.layers.map(layer => WHERE[whereOf(layer, this.choice)]));
    return [...entries].map(([title, colour]) => `<span><i style="background:${colour}"></i>${title}</span>`).join("");
  }
}
