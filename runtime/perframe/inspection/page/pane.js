"use strict";
// A canvas that shows one graph: drawing, zoom, and what lies under the pointer.

const FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif";

class Pane {
  constructor(view, page) {
    this.page = page;
    this.graph = new Graph(view);
    this.element = document.createElement("section");
    this.element.className = "pane";
    this.element.innerHTML = `<canvas aria-label="Graph of the model, ${view.label}"></canvas><div class="label"></div><div class="busy"></div>`;
    this.canvas = this.element.querySelector("canvas");
    this.busy = this.element.querySelector(".busy");
    this.element.querySelector(".label").textContent = `${view.label}: ${view.layers.length.toLocaleString("en")} layers`;
    this.camera = { x: 0, y: 0, scale: 1 };
    this.matches = new Set();
    this.selected = null;
    this.listen();
    new ResizeObserver(() => this.resize()).observe(this.element);
  }

  async arrange(then) {
    const { graph } = this;
    graph.build();
    const ticket = this.ticket = (this.ticket || 0) + 1;
    this.busy.textContent = `arranging ${graph.boxes.length} boxes …`;
    const placed = await Layout(graph);
    if (ticket !== this.ticket) return;
    graph.place(placed);
    this.busy.textContent = "";
    this.page.colours.prepare(graph);
    then?.();
    this.draw();
    this.page.arranged(this);
  }

  resize() {
    const ratio = window.devicePixelRatio || 1, { clientWidth, clientHeight } = this.element;
    this.canvas.width = clientWidth * ratio;
    this.canvas.height = clientHeight * ratio;
    this.draw();
  }

  fit() {
    if (!this.graph.size) return;
    const { clientWidth: width, clientHeight: height } = this.element, [wide, high] = this.graph.size;
    const whole = Math.min((width - 60) / wide, (height - 80) / high);
    const scale = Math.min(1.2, Math.max(whole, 0.005));
    this.camera = { scale, x: (width - wide * scale) / 2, y: (height - high * scale) / 2 };
    this.draw();
  }

  // The beginning of the model at a size that can be read.
  begin() {
    if (!this.graph.size) return;
    const { clientWidth: width, clientHeight: height } = this.element, [wide, high] = this.graph.size;
    const scale = Math.min(1.1, Math.max(0.62, Math.min((width - 60) / wide, (height - 80) / high)));
    const first = this.graph.boxes[0];
    this.camera = { scale, x: width / 2 - (wide * scale < width ? wide / 2 : first ? first.x : 0) * scale, y: 54 };
    if (high * scale < height - 80) this.camera.y = (height - high * scale) / 2;
    this.draw();
  }

  show(box, scale = Math.max(0.8, this.camera.scale)) {
    const { clientWidth: width, clientHeight: height } = this.element;
    this.camera = { scale, x: width / 2 - box.x * scale, y: height / 2 - box.y * scale };
    this.draw();
  }

  zoom(factor, x = this.element.clientWidth / 2, y = this.element.clientHeight / 2) {
    const scale = Math.min(4, Math.max(0.004, this.camera.scale * factor)), by = scale / this.camera.scale;
    this.camera = { scale, x: x - (x - this.camera.x) * by, y: y - (y - this.camera.y) * by };
    this.draw();
  }

  draw() {
    if (!this.scheduled) this.scheduled = requestAnimationFrame(() => { this.scheduled = 0; this.paint(); });
  }

  paint() {
    const { graph, camera, canvas, page } = this, context = canvas.getContext("2d");
    if (!graph.size) return;
    const ratio = window.devicePixelRatio || 1, style = getComputedStyle(document.documentElement);
    const ink = name => style.getPropertyValue(name).trim();
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, canvas.width, canvas.height);
    context.setTransform(ratio * camera.scale, 0, 0, ratio * camera.scale, ratio * camera.x, ratio * camera.y);
    const left = -camera.x / camera.scale, top = -camera.y / camera.scale;
    const right = left + this.element.clientWidth / camera.scale, bottom = top + this.element.clientHeight / camera.scale;
    const accent = ink("--accent");
    for (const edge of graph.edges) {
      const [x0, y0, x1, y1] = edge.bounds;
      if (x1 < left || x0 > right || y1 < top || y0 > bottom) continue;
      const touched = this.selected && (this.selected === edge || graph.boxes[edge.from] === this.selected || graph.boxes[edge.to] === this.selected);
      context.strokeStyle = context.fillStyle = touched ? accent : ink("--edge");
      context.lineWidth = touched ? 2.2 : 1.2;
      this.trace(context, edge.points);
      if (camera.scale > 0.35) this.arrow(context, edge.points);
    }
    for (const box of graph.boxes) {
      if (box.x + box.width / 2 < left || box.x - box.width / 2 > right || box.y + box.height / 2 < top || box.y - box.height / 2 > bottom) continue;
      this.box(context, box, page.colours.of(graph, box), ink);
    }
  }

  trace(context, points) {
    context.beginPath();
    context.moveTo(...points[0]);
    for (let at = 1; at < points.length - 1; at++) {
      const [x, y] = points[at], [nextX, nextY] = points[at + 1];
      context.quadraticCurveTo(x, y, (x + nextX) / 2, (y + nextY) / 2);
    }
    context.lineTo(...points[points.length - 1]);
    context.stroke();
  }

  arrow(context, points) {
    const [x, y] = points[points.length - 1], [fromX, fromY] = points[points.length - 2];
    const angle = Math.atan2(y - fromY, x - fromX);
    context.beginPath();
    context.moveTo(x, y);
    context.lineTo(x - 7 * Math.cos(angle - 0.45), y - 7 * Math.sin(angle - 0.45));
    context.lineTo(x - 7 * Math.cos(angle + 0.45), y - 7 * Math.sin(angle + 0.45));
    context.fill();
  }

  box(context, box, colour, ink) {
    const x = box.x - box.width / 2, y = box.y - box.height / 2, end = box.kind === "input" || box.kind === "output";
    context.beginPath();
    context.roundRect(x, y, box.width, box.height, end ? box.height / 2 : 7);
    context.fillStyle = colour;
    context.fill();
    if (box.kind === "block") {
      context.beginPath();
      context.roundRect(x + 4, y + 4, box.width - 8, box.height - 8, 4);
      context.strokeStyle = "rgba(20,22,30,.25)";
      context.lineWidth = 1;
      context.stroke();
      context.beginPath();
      context.roundRect(x, y, box.width, box.height, 7);
    }
    const chosen = this.selected === box, match = this.matches.has(box);
    context.strokeStyle = chosen ? ink("--accent") : match ? ink("--match") : "rgba(20,22,30,.35)";
    context.lineWidth = chosen || match ? 4 : 1;
    context.stroke();
    if (this.camera.scale < 0.28) return;
    context.fillStyle = ink("--node-ink");
    context.textAlign = "center";
    context.textBaseline = "middle";
    const middle = box.kind === "block" ? box.y : box.y - (end ? 0 : 1);
    context.font = `600 13px ${FONT}`;
    context.fillText(this.clipped(context, box.title, box.width - 20), box.x, middle - 9);
    context.font = `12px ${FONT}`;
    context.globalAlpha = 0.75;
    context.fillText(this.clipped(context, box.text, box.width - 20), box.x, middle + 9);
    context.globalAlpha = 1;
  }

  clipped(context, text, width) {
    if (context.measureText(text).width <= width) return text;
    let kept = text;
    while (kept.length > 1 && context.measureText(kept + "…").width > width) kept = kept.slice(0, -1);
    return kept + "…";
  }

  // The box or the edge at a position of the pointer.
  at(event) {
    const bounds = this.canvas.getBoundingClientRect(), { camera, graph } = this;
    const x = (event.clientX - bounds.left - camera.x) / camera.scale, y = (event.clientY - bounds.top - camera.y) / camera.scale;
    if (!graph.size) return null;
    const box = graph.boxes.find(one => Math.abs(one.x - x) <= one.width / 2 && Math.abs(one.y - y) <= one.height / 2);
    if (box) return box;
    const reach = 6 / camera.scale;
    return graph.edges.find(({ points, bounds: [x0, y0, x1, y1] }) =>
      x > x0 - reach && x < x1 + reach && y > y0 - reach && y < y1 + reach &&
      points.some((point, index) => index && distance(x, y, points[index - 1], point) < reach)) ?? null;
  }

  listen() {
    const { canvas } = this;
    let from = null;
    canvas.addEventListener("pointerdown", event => {
      from = { x: event.clientX, y: event.clientY, camera: { ...this.camera }, moved: false };
      canvas.setPointerCapture(event.pointerId);
      this.page.focus(this);
    });
    canvas.addEventListener("pointermove", event => {
      if (!from) {
        const found = this.at(event);
        canvas.style.cursor = found ? "pointer" : "";
        canvas.title = found ? found.name || found.title || found.values.join(", ") : "";
        return;
      }
      const x = event.clientX - from.x, y = event.clientY - from.y;
      from.moved = from.moved || Math.hypot(x, y) > 4;
      this.camera = { ...this.camera, x: from.camera.x + x, y: from.camera.y + y };
      this.draw();
    });
    canvas.addEventListener("pointerup", event => {
      if (from && !from.moved) this.page.select(this, this.at(event));
      from = null;
    });
    canvas.addEventListener("dblclick", event => {
      const found = this.at(event);
      if (found?.kind === "block") this.page.toggle(this, found.which);
    });
    canvas.addEventListener("wheel", event => {
      event.preventDefault();
      const bounds = canvas.getBoundingClientRect();
      this.zoom(Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.0016)), event.clientX - bounds.left, event.clientY - bounds.top);
    }, { passive: false });
  }
}

function distance(x, y, [ax, ay], [bx, by]) {
  const length = (bx - ax) ** 2 + (by - ay) ** 2;
  const along = length ? Math.max(0, Math.min(1, ((x - ax) * (bx - ax) + (y - ay) * (by - ay)) / length)) : 0;
  return Math.hypot(x - ax - along * (bx - ax), y - ay - along * (by - ay));
}
