"use strict";
// The drawn graph of a view: boxes for layers, collapsed blocks, inputs and outputs, and the edges between them.

const BOX = { width: 196, height: 50, block: 62, end: 34 };

function shapeText(shape) {
  return shape === null ? "?" : "(" + shape.map(dim => (dim === null ? "?" : dim)).join(", ") + ")";
}

function titleOf(layer) {
  return [layer.op, ...layer.epilogue].join(" + ");
}

class Graph {
  constructor(view) {
    this.view = view;
    this.expanded = new Set();
    this.maker = new Map();
    this.readers = new Map();
    view.layers.forEach((layer, index) => {
      for (const name of layer.outputs) if (name) this.maker.set(name, index);
      for (const name of new Set(layer.inputs)) if (name) {
        if (!this.readers.has(name)) this.readers.set(name, []);
        this.readers.get(name).push(index);
      }
    });
    this.blockOf = new Array(view.layers.length).fill(-1);
    view.blocks.forEach((block, which) => {
      for (let at = block.first; at < block.first + block.length; at++) this.blockOf[at] = which;
    });
  }

  // The boxes and edges under the present choice of expanded blocks.
  build() {
    const { view } = this;
    this.size = null; // until the layout is known, nothing is drawn
    this.boxes = [];
    this.boxOfLayer = new Array(view.layers.length);
    const boxOfBlock = new Map();
    const add = box => this.boxes.push(box) - 1;
    const inputs = new Map(view.inputs.map(value =>
      [value.name, add({ kind: "input", value, title: value.name, text: `${value.dtype} ${shapeText(value.shape)}` })]));
    view.layers.forEach((layer, index) => {
      const which = this.blockOf[index];
      if (which >= 0 && !this.expanded.has(which)) {
        if (!boxOfBlock.has(which)) {
          const block = view.blocks[which];
          boxOfBlock.set(which, add({ kind: "block", which, block, title: block.title, text: this.within(block) }));
        }
        this.boxOfLayer[index] = boxOfBlock.get(which);
      } else {
        this.boxOfLayer[index] = add({
          kind: "layer", index, layer, title: titleOf(layer), text: shapeText(layer.shapes[0] ?? null), name: layer.name,
        });
      }
    });
    const edges = new Map();
    const connect = (from, to, value) => {
      const key = `${from} ${to}`;
      if (from === to) return;
      if (!edges.has(key)) edges.set(key, { from, to, values: [] });
      if (!edges.get(key).values.includes(value)) edges.get(key).values.push(value);
    };
    const source = name => this.maker.has(name) ? this.boxOfLayer[this.maker.get(name)] : inputs.get(name);
    view.layers.forEach((layer, index) => {
      for (const name of layer.inputs) {
        const from = name ? source(name) : undefined;
        if (from !== undefined) connect(from, this.boxOfLayer[index], name);
      }
    });
    for (const value of view.outputs) {
      const box = add({ kind: "output", value, title: value.name, text: `${value.dtype} ${shapeText(value.shape)}` });
      const from = source(value.name);
      if (from !== undefined) connect(from, box, value.name);
    }
    for (const box of this.boxes) {
      box.width = BOX.width;
      box.height = box.kind === "layer" ? BOX.height : box.kind === "block" ? BOX.block : BOX.end + 8;
    }
    this.edges = [...edges.values()];
  }

  // What a collapsed block holds: the number of its layers, and the shape that they make.
  within(block) {
    const layers = this.view.layers.slice(block.first, block.first + block.length);
    return `${block.length} layers, to ${shapeText(layers[layers.length - 1].shapes[0] ?? null)}`;
  }

  layersOf(box) {
    if (box.kind === "layer") return [box.layer];
    if (box.kind !== "block") return [];
    return this.view.layers.slice(box.block.first, box.block.first + box.block.length);
  }

  // Shows a layer's own box, whatever block it is in. True if the boxes changed.
  reveal(index) {
    const which = this.blockOf[index];
    if (which < 0 || this.expanded.has(which)) return false;
    this.expanded.add(which);
    return true;
  }

  place(placed) {
    placed.boxes.forEach(([x, y], at) => Object.assign(this.boxes[at], { x, y }));
    placed.edges.forEach((points, at) => {
      const edge = this.edges[at];
      edge.points = points;
      edge.bounds = points.reduce((b, [x, y]) =>
        [Math.min(b[0], x), Math.min(b[1], y), Math.max(b[2], x), Math.max(b[3], y)],
      [Infinity, Infinity, -Infinity, -Infinity]);
    });
    this.size = placed.size;
  }
}
